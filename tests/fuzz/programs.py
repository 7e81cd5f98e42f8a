# SPDX-License-Identifier: Apache-2.0
"""Random programs of Relay through random pipelines and executors: the same value, well-formed, well-typed, no crash.

    python tests/fuzz/programs.py                          # 20,000 programs, in two processes
    python tests/fuzz/programs.py --first 130 -n 1         # one again, with its text
"""

import argparse
import collections
import multiprocessing
import random
import sys
import time

import numpy as np

from baton import relay
from baton._ffi import get_global_func
from baton.ir import assert_structural_equal
from baton.relay.testing import random_inputs, random_program
from baton.transform import PassContext, Sequential

# PrintIR prints; ToMixedPrecision and the approximations change values; the gradient is another function.
_OTHER = {"PrintIR", "ToMixedPrecision", "FastMath", "Gradient", "FirstOrderGradient"}
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


def check(seed, vm=False):
    """Raises AssertionError with the passes so far when one of them breaks program `seed`."""
    rng = random.Random(f"pipeline {seed}")
    mod = relay.transform.InferType()(relay.fromtext(random_program(seed)))
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
    first, count, every = job
    bad = []
    for seed in range(first, first + count):
        try:
            check(seed, vm=every > 0 and seed % every == 0)
        except AssertionError as e:
            bad.append((seed, str(e)))
    return count, bad


def main(argv):
    """Runs a range of programs; the exit status says whether all held."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="the first program's number (default: %(default)s)")
    parser.add_argument("-n", "--count", type=int, default=20000, help="how many (default: %(default)s)")
    parser.add_argument("--vm-every", type=int, default=20, help="run each so many through the virtual machine, too (default: %(default)s)")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="processes (default: %(default)s)")
    args = parser.parse_args(argv)
    if args.count == 1:
        print(random_program(args.first))
    start, done, bad, kinds = time.time(), 0, [], collections.Counter()
    jobs = [(at, min(CHUNK, args.first + args.count - at), args.vm_every) for at in range(args.first, args.first + args.count, CHUNK)]
    with multiprocessing.get_context("spawn").Pool(args.jobs, maxtasksperchild=20) as pool:
        for count, found in pool.imap(_chunk, jobs):
            done += count
            for seed, text in found:
                bad.append(seed)
                kinds[text.split(" after ")[1][:120]] += 1
                print(f"{text[:1500]}\nrepeat: python tests/fuzz/programs.py --first {seed} -n 1\n", flush=True)
    print(f"{done} programs, {len(bad)} bad, {time.time() - start:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
