# SPDX-License-Identifier: Apache-2.0
"""Wide programs: a tuple of 1,000,000 fields, 100,000 functions, 10,000 outputs, 5000 inputs, a match of 10,000 clauses. Everything
that takes a program takes them, in time that grows with their size: each step is timed at a tenth of the size and at the whole, and its
exponent told. Times are seconds that the processor spends in the process; pages that the system clears, which small programs find used
before, are left out. Work beyond the caches takes more a node, so exponents a little over 1 are linear.

    python bench/wide.py                     # all, at full size
    python bench/wide.py --shapes outputs    # one of them: tuple, functions, outputs, inputs, clauses
    python bench/wide.py --scale 0.1         # a tenth of it
"""

import argparse
import math
import resource
import sys

import numpy as np

import baton
from baton import relay
from baton._ffi import get_global_func
from baton.contrib import graph_executor
from baton.ir import assert_structural_equal
from baton.relay.testing import random_inputs
from baton.runtime.vm import VirtualMachine
from baton.transform import PassContext

_HEAD = '#[version = "0.0.5"]\n'
_OTHER = {"PrintIR", "LowerToTIR", "ToMixedPrecision", "FastMath", "Gradient", "FirstOrderGradient"}
SIZES = {"tuple": 1_000_000, "functions": 100_000, "outputs": 10_000, "inputs": 5000, "clauses": 10_000}
LEAST = 0.05  # seconds below which a time says nothing of growth
STEEP = 1.2  # exponent that is not linear any more


def passes():
    """The names of the registered passes over Relay that keep a program's meaning."""
    names = map(str, get_global_func("transform.PassNames")())
    return [n for n in names if not n.startswith(("Test", "tir.")) and n not in _OTHER]


def wide_tuple(n):
    """A tuple of n fields, each a use of one of two inputs, and a part of it."""
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    fields = relay.Tuple([x, y] * (n // 2))
    return baton.IRModule.from_expr(relay.Function([x, y], relay.add(relay.TupleGetItem(fields, n // 2), relay.TupleGetItem(fields, n - 1))))


def many_functions(n):
    """n functions in a module, of which main calls a hundredth, each with a call of its neighbour."""
    lines = [
        f"def @f{i}(%x: float32) -> float32 {{ add(%x, {i % 7}f) }}" if i % 2 else f"def @f{i}(%x: float32) -> float32 {{ multiply(@f{i + 1}(%x), 0.5f) }}"
        for i in range(n - n % 2)
    ]
    body = "".join(f"let %v{i} = @f{i * 100}(%v{i - 1 if i else 'x'}); " for i in range(max(1, n // 100)))
    return relay.fromtext(_HEAD + "\n".join(lines) + f"\ndef @main(%vx: float32) -> float32 {{ {body} %v{max(1, n // 100) - 1} }}\n")


def many_outputs(n):
    """n results, an operator each."""
    x = relay.var("x", shape=(4,))
    ops = (relay.negative, relay.nn.relu, relay.tanh, relay.abs)
    return baton.IRModule.from_expr(relay.Function([x], relay.Tuple([ops[i % 4](relay.add(x, relay.const(float(i % 100)))) for i in range(n)])))


def many_inputs(n):
    """n parameters, joined and stacked."""
    xs = [relay.var(f"x{i}", shape=(2,)) for i in range(n)]
    return baton.IRModule.from_expr(relay.Function(xs, relay.Tuple([relay.concatenate(xs, 0), relay.stack(xs, 1)])))


def many_clauses(n):
    """A data type of n constructors, and a match with a clause for each."""
    body = ", ".join(f"A{i}(%y{i}) => add(%y{i}, {i % 5}f)" for i in range(n))
    return relay.fromtext(
        _HEAD + "type T { " + ", ".join(f"A{i}(float32)" for i in range(n)) + f", }}\ndef @main(%x: float32) {{ match (A{n - 1}(%x)) {{ {body} }} }}\n"
    )


MAKE = {"tuple": wide_tuple, "functions": many_functions, "outputs": many_outputs, "inputs": many_inputs, "clauses": many_clauses}


def _equal(a, b):
    assert a == b, (a, b)


def flat(value):
    """The arrays of tuples in a row."""
    return [value.numpy()] if hasattr(value, "numpy") else [a for v in value for a in flat(v)]


def steps(shape, n, full=True):
    """(name, function) in order; each checks what it makes. A pass gives the module that it makes, "interpret" (arguments, result)."""
    made = {}

    def keep(name, make):
        made[name] = make()
        return made[name]

    def typed():
        return made["typed"]

    yield "make", lambda: keep("mod", lambda: MAKE[shape](n))
    yield "InferType", lambda: keep("typed", lambda: relay.transform.InferType()(made["mod"]))
    yield "print", lambda: keep("text", lambda: typed().astext(show_types=False))
    yield "parse", lambda: keep("again", lambda: relay.transform.InferType()(relay.fromtext(made["text"])))
    yield "compare", lambda: assert_structural_equal(typed(), made["again"], map_free_vars=True)
    yield "hash", lambda: _equal(baton.ir.structural_hash(typed(), True), baton.ir.structural_hash(made["again"], True))
    yield "save", lambda: keep("json", lambda: baton.ir.save_json(typed()))
    yield "load", lambda: keep("loaded", lambda: baton.ir.load_json(made["json"]))
    yield "compare loaded", lambda: assert_structural_equal(typed(), made["loaded"], map_free_vars=True)

    def run_pass(name):
        with PassContext(opt_level=4):
            new = relay.transform.InferType()(getattr(relay.transform, name)()(typed()))
        assert relay.analysis.well_formed(new)
        return new

    for name in (
        passes()
        if full
        else (
            "FuseOps",
            "SimplifyExpr",
            "EliminateCommonSubexpr",
            "ToANormalForm",
            "PlanDevices",
            "Inline",
            "DeadCodeElimination",
            "LambdaLift",
            "PartialEvaluate",
        )
    ):
        yield name, lambda name=name: run_pass(name)

    def evaluate():
        made["args"] = random_inputs(typed(), 0)
        made["want"] = relay.create_executor("debug", typed()).evaluate()(*made["args"])
        return made["args"], made["want"]

    def compiled():
        if shape in ("functions", "clauses"):
            got = VirtualMachine(relay.vm.compile(typed(), target="llvm"), baton.cpu()).invoke("main", *made["args"])
        else:
            model = graph_executor.GraphModule(relay.build(typed(), target="llvm")["default"](baton.cpu()))
            for i, value in enumerate(made["args"]):
                model.set_input(i, value)
            model.run()
            got = [model.get_output(i) for i in range(model.get_num_outputs())]
        for a, b in zip(flat(made["want"]), flat(got), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)

    yield "interpret", evaluate
    yield "compile and run", compiled


def times(shape, n, full=True):
    """{step: seconds} of one size."""
    out = {}
    for name, work in steps(shape, n, full):
        begin = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        work()
        out[name] = resource.getrusage(resource.RUSAGE_SELF).ru_utime - begin
    return out


def main(argv):
    """Prints a table a shape; the exit status says whether all was linear."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default=",".join(SIZES), help="of %(default)s")
    parser.add_argument("--scale", type=float, default=1.0, help="of the full size (default: 1)")
    args = parser.parse_args(argv)
    bad = 0
    for shape in args.shapes.split(","):
        if shape not in SIZES:
            parser.error(f"--shapes: there is no `{shape}`; there are {', '.join(SIZES)}")
        n = int(SIZES[shape] * args.scale)
        small, large = times(shape, n // 10), times(shape, n)
        print(f"{shape}: {n:,}")
        for name, seconds in large.items():
            known = small[name] >= LEAST
            exponent = math.log10(seconds / small[name]) if known else float("nan")
            steep = known and exponent > STEEP
            bad += steep
            print(f"  {name:30} {small[name]:8.3f} s {seconds:8.3f} s   {exponent:5.2f}{'  steep' if steep else ''}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
