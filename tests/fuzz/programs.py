# SPDX-License-Identifier: Apache-2.0
"""Random programs of Relay through random pipelines and executors: the same value, well-formed, well-typed, no crash.

python tests/fuzz/programs.py                          # 20,000 programs, in two processes
python tests/fuzz/programs.py --first 130 -n 1         # one again, with its text
python tests/fuzz/programs.py --kind empty -n 2000     # tensors without elements
python tests/fuzz/programs.py --kind symbolic -n 2000  # extents that are not known before it runs
python tests/fuzz/programs.py --kind open -n 2000      # extents with names, compiled once for all of them
python tests/fuzz/programs.py --kind named -n 2000     # extents with names, bound later
python tests/fuzz/programs.py --kind levels -n 2000    # compiled at each level, and without each pass of the pipeline
python tests/fuzz/programs.py --kind devices -n 2000   # on the CPU and a second device
"""

import argparse
import multiprocessing
import random
import re
import sys
import time
import traceback

import numpy as np

from baton import relay
from baton._ffi import get_global_func
from baton.driver.executable import Executable
from baton.error import CompileError
from baton.ir import assert_structural_equal
from baton.relay.testing import random_inputs, random_program
from baton.runtime.devices import cpu, device
from baton.runtime.vm import VirtualMachine
from baton.transform import PassContext, Sequential

# PrintIR prints; ToMixedPrecision and the approximations change values; the gradient is another function, and so is one with a continuation;
# LowerToTIR leaves no Relay.
_OTHER = {"PrintIR", "ToMixedPrecision", "FastMath", "Gradient", "FirstOrderGradient", "FakeQuantizationToInteger", "ToCPS", "LowerToTIR"}
CHUNK = 100


def passes():
    """The names of the registered passes over Relay that keep a program's meaning."""
    names = map(str, get_global_func("transform.PassNames")())
    return [n for n in names if not n.startswith(("Test", "tir.")) and n not in _OTHER]


def leaves(value):
    """The arrays within a value of an executor, with the tags of data types."""
    if hasattr(value, "numpy"):
        return [value.numpy()]
    if hasattr(value, "tag"):
        fields = value.fields if hasattr(value, "fields") else list(value)
        return [np.asarray(value.tag), *(x for f in fields for x in leaves(f))]
    if hasattr(value, "value"):
        return leaves(value.value)
    if hasattr(value, "__iter__"):
        return [x for f in value for x in leaves(f)]
    return []


def arrays(value):
    """The arrays within tuples."""
    return [value] if hasattr(value, "numpy") else [x for field in value for x in arrays(field)]


def difference(want, got):
    """What differs between two values, or an empty text. Passes may add in another order, hence the tolerance."""
    a, b = leaves(want), leaves(got)
    if len(a) != len(b):
        return f"{len(a)} leaves, then {len(b)}"
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x.dtype != y.dtype or x.shape != y.shape:
            return f"leaf {i}: {x.dtype}{x.shape}, then {y.dtype}{y.shape}"
        exact = x.dtype.kind in "iub"
        if not (np.array_equal(x, y) if exact else np.allclose(x, y, rtol=1e-3, atol=1e-4, equal_nan=True)):
            return f"leaf {i}: {x.ravel()[:6]}, then {y.ravel()[:6]}"
    return ""


# What is one compiled function: half of the programs that are compiled in different ways are of this kind.
_GRAPH = ("if", "closure", "global", "ref", "data", "recursion")


def program_text(kind, seed):
    """The program of a kind and number."""
    if kind in ("symbolic", "named"):
        return with_more_parameters(random_program(seed, skip=("closure", "global", "ref", "data", "recursion")), seed)
    if kind == "open":
        return with_more_parameters(random_program(seed, skip=_GRAPH), seed)
    return random_program(seed, skip=_GRAPH if kind == "levels" and seed % 2 else (), empty=kind == "empty")


_CONSTANT = re.compile(r'(?:(?:ones|zeros)\(|full\((?:cast\([^)]*\)|[^,()]*), )shape=\[([^\]]*)\], dtype="(\w+)"\)')


def with_more_parameters(text, seed):
    """The program with parameters in the place of most constant tensors, so that much depends on them."""
    rng = random.Random(f"parameters {seed}")
    head, arrow, tail = text.partition("def @main(")
    names = {}

    def parameter(match):
        key = match[1], match[2]
        if (key not in names and len(names) == 5) or rng.random() < 0.3:
            return match[0]
        return names.setdefault(key, f"%y{len(names)}")

    tail = _CONSTANT.sub(parameter, tail)
    return head + arrow + "".join(f"{name}: Tensor[({shape}), {dtype}], " for (shape, dtype), name in names.items()) + tail


def with_open_extents(text, seed):
    """The program with `?` for half of the extents of main's parameters; other types are left to inference."""
    rng = random.Random(f"open {seed}")
    head, arrow, tail = text.partition("def @main")
    params, brace, body = tail.partition("{")
    params = re.sub(r" -> .*", " ", params)
    params = re.sub(r"\[\(([^)]*)\)", lambda m: "[(" + ", ".join("?" if d and rng.random() < 0.5 else d for d in m[1].split(", ")) + ")", params)
    body = re.sub(r"let (%\w+): (?:\([^=]*\)|Tensor\[[^\]]*\]|\w+) =", r"let \1 =", body)
    return head + arrow + params + brace + body


def with_bound_names(text, seed):
    """(The program with names for half of the extents of main's parameters, and which name stands for which extent.)

    Equal extents may share a name or have several, so that some follow from others and some are assumed."""
    rng = random.Random(f"named {seed}")
    head, arrow, tail = text.partition("def @main")
    params, brace, body = tail.partition("{")
    params = re.sub(r" -> .*", " ", params)
    dims = {}

    def name(extent):
        if not extent or rng.random() < 0.5:
            return extent
        chosen = f"{rng.choice('ab')}{extent}"
        dims[chosen] = int(extent)
        return chosen

    params = re.sub(r"\[\(([^)]*)\)", lambda m: "[(" + ", ".join(map(name, m[1].split(", "))) + ")", params)
    body = re.sub(r"let (%\w+): (?:\([^=]*\)|Tensor\[[^\]]*\]|\w+) =", r"let \1 =", body)
    return head + arrow + params + brace + body, dims


def check_named(seed):
    """A program of named extents, with these bound after some passes, gives what it gives when all are known. True if a
    shape rule refuses it, by name."""
    text = program_text("symbolic", seed)
    known = relay.transform.InferType()(relay.fromtext(text))
    args = random_inputs(known, seed)
    want = relay.create_executor("debug", known).evaluate()(*args)
    named, dims = with_bound_names(text, seed)
    try:
        mod = relay.transform.InferType()(relay.fromtext(named))
    except CompileError as e:
        assert re.search(r"\[\S+ R\d+\]|differ|mismatch|do not|does not|cannot|expected|must be equal", str(e)), str(e)
        return True
    used = ["named extents"]
    rng = random.Random(f"pipeline {seed}")
    bind = get_global_func("driver.BindDims")
    try:
        for name in [None, *rng.sample(passes(), 2)]:
            if name:
                used.append(name)
                with PassContext(opt_level=4):
                    mod = relay.transform.InferType()(Sequential([getattr(relay.transform, name)()])(mod))
            there = re.findall(r"\b[ab]\d+\b", mod.astext())
            problem = difference(want, relay.create_executor("debug", bind(mod, {k: v for k, v in dims.items() if k in there})).evaluate()(*args))
            assert not problem, problem
        used.append("text")
        again = relay.transform.InferType()(relay.fromtext(mod.astext()))
        # A text is inferred as a whole: what passes made without a look at their types may ask for more.
        if mod["main"].attrs and "extent_guards" in mod["main"].attrs:
            guards = again["main"].attrs["extent_guards"]
            assert {str(g[2]) for g in mod["main"].attrs["extent_guards"]} <= {str(g[2]) for g in guards}
            again["main"] = again["main"].with_attr("extent_guards", [])
            mod["main"] = mod["main"].with_attr("extent_guards", [])
        assert_structural_equal(mod, again, map_free_vars=True)
    except Exception as e:
        raise AssertionError(f"program {seed} after {', '.join(used)}: {type(e).__name__}: {e}") from e
    return False


def check_symbolic(seed):
    """A program of open extents gives what it gives when all are known. True if a shape rule refuses it, by name."""
    text = program_text("symbolic", seed)
    known = relay.transform.InferType()(relay.fromtext(text))
    args = random_inputs(known, seed)
    want = relay.create_executor("debug", known).evaluate()(*args)
    try:
        mod = relay.transform.InferType()(relay.fromtext(with_open_extents(text, seed)))
    except CompileError as e:
        assert re.search(r"\[\S+ R\d+\]|differ|mismatch|do not|does not|cannot|expected", str(e)), str(e)
        return True
    used = ["open extents"]
    rng = random.Random(f"pipeline {seed}")
    try:
        for name in [None, *rng.sample(passes(), 2)]:
            if name:
                used.append(name)
                with PassContext(opt_level=4):
                    mod = relay.transform.InferType()(Sequential([getattr(relay.transform, name)()])(mod))
            problem = difference(want, relay.create_executor("debug", mod).evaluate()(*args))
            assert not problem, problem
        used.append("vm")
        problem = difference(want, relay.create_executor("vm", mod).evaluate()(*args))
        assert not problem, problem
    except Exception as e:
        raise AssertionError(f"program {seed} after {', '.join(used)}: {type(e).__name__}: {e}") from e
    return False


def with_named_extents(text, seed):
    """The program with a name for half of the lengths of main's parameters: equal lengths have one name."""
    rng = random.Random(f"named {seed}")
    names = {}

    def name(length):
        if not length.isdecimal() or int(length) < 2:
            return length
        if length not in names:
            names[length] = f"n{length}" if rng.random() < 0.6 else length
        return names[length]

    head, arrow, tail = text.partition("def @main")
    params, brace, body = tail.partition("{")
    params = re.sub(r" -> .*", " ", params)
    params = re.sub(r"\[\(([^)]*)\)", lambda m: "[(" + ", ".join(map(name, m[1].split(", "))) + ")", params)
    body = re.sub(r"let (%\w+): (?:\([^=]*\)|Tensor\[[^\]]*\]|\w+) =", r"let \1 =", body)
    return head + arrow + params + brace + body


def check_open(seed):
    """A program whose lengths have names, compiled once for all of them, gives what it gives when they are literals. True if it cannot be one
    program: a value decides a shape, or a rule needs a literal."""
    text = program_text("open", seed)
    known = relay.transform.InferType()(relay.fromtext(text))
    args = random_inputs(known, seed)
    want = relay.create_executor("debug", known).evaluate()(*args)
    try:
        mod = relay.transform.InferType()(relay.fromtext(with_named_extents(text, seed)))
    except CompileError as e:
        assert re.search(r"\[\S+ R\d+\]|differ|mismatch|do not|does not|cannot|expected", str(e)), str(e)
        return True
    try:
        module = get_global_func("driver.CompileDynamic")(mod, None)
        if module is None:
            return True
        problem = difference(arrays(want), Executable(module)(*args))
        assert not problem, problem
    except Exception as e:
        raise AssertionError(f"program {seed} as one for all shapes: {type(e).__name__}: {e}") from e
    return False


def pipeline():
    """The names of the passes of the built-in pipeline, in order."""
    return list(dict.fromkeys(str(p.info.name) for p in get_global_func("driver.DefaultPipeline")().passes))


def check_levels(seed):
    """Compiled at each level, and at the highest without each pass: the value is the interpreter's."""
    mod = relay.transform.InferType()(relay.fromtext(program_text("levels", seed)))
    args = random_inputs(mod, seed)
    want = relay.create_executor("debug", mod).evaluate()(*args)
    for level, disabled in [*((n, []) for n in range(4)), *((3, [name]) for name in pipeline())]:
        try:
            with PassContext(opt_level=level, disabled_pass=disabled):
                problem = difference(want, relay.create_executor("vm", mod).evaluate()(*args))
            assert not problem, problem
        except Exception as e:
            what = f"without {disabled[0]}" if disabled else f"at level {level}"
            raise AssertionError(f"program {seed} after compiling {what}: {type(e).__name__}: {e}") from e


def check_devices(seed):
    """Planned for the CPU and a second device, with random annotations, and run there: the value is that of one device."""
    rng = random.Random(f"devices {seed}")
    text = program_text("devices", seed)
    plain = relay.transform.InferType()(relay.fromtext(text))
    args = random_inputs(plain, seed)
    want = relay.create_executor("debug", plain).evaluate()(*args)
    places = [m.start() for m in re.finditer(r"(?<![\w.@%])(?:add|multiply|maximum|copy|tanh|negative|abs|sum|where|nn\.\w+)\(", text)]
    for at in sorted(rng.sample(places, min(len(places), 4)), reverse=True):
        depth, end = 0, text.index("(", at)
        while True:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                break
        if not text.startswith(".", end):  # a field binds closer than a call
            text = f"{text[:at]}on_device({text[at:end]}, device_type={rng.choice((1, 12))}){text[end:]}"
    try:
        mod = relay.fromtext(text)
        exe = relay.vm.compile(mod, target={"cpu": "llvm", "ext_dev": "llvm"})
        got = VirtualMachine(exe, [cpu(), device("ext_dev")]).invoke("main", *args)
        problem = difference(want, got)
        assert not problem, problem
    except Exception as e:
        raise AssertionError(f"program {seed} after planning: {type(e).__name__}: {e}\n{text}") from e


def check(seed, vm=False, kind="all"):
    """Raises AssertionError with the passes so far when one of them breaks program `seed`."""
    rng = random.Random(f"pipeline {seed}")
    mod = relay.transform.InferType()(relay.fromtext(program_text(kind, seed)))
    args = random_inputs(mod, seed)
    want = relay.create_executor("debug", mod).evaluate()(*args)
    used = []
    try:
        for name in rng.sample(passes(), rng.randint(1, 5)):
            used.append(name)
            before = mod.astext()
            with PassContext(opt_level=4, num_threads=rng.choice((1, 2))):
                new = relay.transform.InferType()(Sequential([getattr(relay.transform, name)()])(mod))
            assert mod.astext() == before, "the pass changed the module that went in"
            assert relay.analysis.well_formed(new), "not well-formed"
            problem = difference(want, relay.create_executor("debug", new).evaluate()(*args))
            assert not problem, problem
            mod = new
        used.append("text")
        again = relay.transform.InferType()(relay.fromtext(mod.astext()))
        assert_structural_equal(mod, again, map_free_vars=True)
        if vm:
            used.append("vm")
            problem = difference(want, relay.create_executor("vm", mod).evaluate()(*args))
            assert not problem, problem
    except Exception as e:
        raise AssertionError(f"program {seed} after {', '.join(used)}: {type(e).__name__}: {e}") from e


def _chunk(job):
    """(how many, (seed, what it ended with) of those that did not hold, how many were refused)."""
    first, count, every, kind = job
    bad, refused = [], 0
    for seed in range(first, first + count):
        try:
            if kind in ("all", "empty"):
                check(seed, vm=every > 0 and seed % every == 0, kind=kind)
            else:
                refused += bool(KINDS[kind](seed))
        except Exception as e:  # it may be the generator's fault: said, and on to the next
            bad.append((seed, str(e) if str(e).startswith("program ") else f"program {seed} ends with {traceback.format_exc()[-1200:]}"))
    return count, bad, refused


KINDS = {"all": check, "empty": check, "symbolic": check_symbolic, "open": check_open, "named": check_named, "levels": check_levels, "devices": check_devices}


def main(argv):
    """Runs a range of programs; the exit status says whether all held."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="the first program's number (default: %(default)s)")
    parser.add_argument("-n", "--count", type=int, default=20000, help="how many (default: %(default)s)")
    parser.add_argument("--vm-every", type=int, default=20, help="run each so many through the virtual machine, too (default: %(default)s)")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--kind", choices=sorted(KINDS), default="all", help="what is done with them (default: random pipelines)")
    args = parser.parse_args(argv)
    if args.count == 1:
        print(program_text(args.kind, args.first))
    start, done, bad, refused = time.time(), 0, [], 0
    jobs = [(at, min(CHUNK, args.first + args.count - at), args.vm_every, args.kind) for at in range(args.first, args.first + args.count, CHUNK)]
    with multiprocessing.get_context("spawn").Pool(args.jobs, maxtasksperchild=20) as pool:
        for count, found, unsupported in pool.imap(_chunk, jobs):
            done += count
            refused += unsupported
            for seed, text in found:
                bad.append(seed)
                print(f"{text[:1500]}\nrepeat: python tests/fuzz/programs.py --kind {args.kind} --first {seed} -n 1\n", flush=True)
    said = {"symbolic": f"{refused} refused by name, ", "named": f"{refused} refused by name, ", "open": f"{refused} not one program, "}.get(args.kind, "")
    print(f"{done} programs, {len(bad)} bad, {said}{time.time() - start:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
