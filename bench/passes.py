# SPDX-License-Identifier: Apache-2.0
"""The cost of running passes beyond the passes. Each row of BENCHES is a function that gives (what, value, unit, bar).

python bench/passes.py                 # all
python bench/passes.py manager --check # one, exit code 1 if a bar is missed
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator

Row = tuple[str, float, str, float | None]
BENCHES: dict[str, Callable[[], Iterator[Row]]] = {}


def bench(function):
    """Adds a function to BENCHES, by its name."""
    BENCHES[function.__name__] = function
    return function


def best(action, rounds: int = 15, clock=time.perf_counter) -> float:
    """Seconds of the fastest of several runs: what the others add is the machine's."""
    out = float("inf")
    for _ in range(rounds):
        start = clock()
        action()
        out = min(out, clock() - start)
    return out


@bench
def manager() -> Iterator[Row]:
    """The manager itself: passes that do nothing, with and without instruments."""
    import baton as tvm
    from baton import relay
    from baton._ffi import get_global_func

    x = relay.var("x", shape=(2,))
    functions = 1000
    mod = tvm.IRModule({f"f{i}": relay.Function([x], x) for i in range(functions)})
    small = tvm.IRModule({"main": relay.Function([x], x)})
    empty = get_global_func("relay.testing.EmptyFunctionPass")()
    run = get_global_func("transform.RunPass")
    yield "empty function pass", best(lambda: run(empty, mod)) / functions * 1e6, "us a function", 1.0

    @tvm.instrument.pass_instrument
    class Nothing:
        def should_run(self, mod, info):
            return True

        def run_before_pass(self, mod, info):
            pass

        def run_after_pass(self, mod, info):
            pass

    passes = 1000
    several = tvm.transform.Sequential([empty] * passes)
    plain = best(lambda: several(small))
    yield "a pass in a sequence", plain / passes * 1e6, "us a pass", None
    with tvm.transform.PassContext(instruments=[Nothing()]):
        watched = best(lambda: several(small))
    yield "no-op Python instrument, three hooks", (watched - plain) / passes * 1e6, "us a pass", 10.0
    with tvm.transform.PassContext(instruments=[tvm.instrument.PassTimingInstrument()]):
        timed = best(lambda: several(small))
    yield "PassTimingInstrument", (timed - plain) / passes * 1e6, "us a pass", None


@bench
def inference() -> Iterator[Row]:
    """Inference in the default pipeline against inferring everything after every pass, in expressions visited."""
    import baton as tvm
    from baton import relay
    from baton._ffi import get_global_func

    layers, body, lines = 100, "%x", []
    for i in range(layers):
        lines.append(f"  %{i} = nn.relu(nn.bias_add(nn.dense({body}, %w, units=8), %b));")
        body = f"%{i}"
    mod = relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32], '
                         "%b: Tensor[(8), float32]) {\n" + "\n".join(lines) + f"\n  nn.softmax({body})\n}}")  # fmt: skip
    every = 0

    @tvm.instrument.pass_instrument
    class After:
        def run_after_pass(self, mod, info):
            nonlocal every
            if info.name not in ("InferType", "DefaultPipeline", "DecomposeAll", "FoldScaleAxis"):
                every += sum(int(relay.analysis.count_nodes(f)) for f in mod.functions.values())

    work = get_global_func("relay.analysis.infer_type_work")
    with tvm.transform.PassContext(opt_level=3, instruments=[After()]):
        before = int(work())
        get_global_func("driver.DefaultPipeline")()(mod)
    yield "inference of the default pipeline", (int(work()) - before) / every * 100, "% of after every pass", 40.0


@bench
def patterns() -> Iterator[Row]:
    """Patterns and local rewrites on 100,000 nodes, and how their time grows from 10,000 on."""
    import math

    from baton import relay
    from baton.ir import IRModule
    from baton.relay.dataflow_pattern import DFPatternCallback, dominates, is_constant, is_op, rewrite, wildcard

    def program(n):
        """One reshape in 4 nodes that does nothing; the rest stays."""
        x, two = relay.var("x", shape=(4, 4)), relay.const(2.0)
        body = x
        for _ in range(n // 4):
            body = relay.nn.relu(relay.reshape(relay.transpose(body, (1, 0)), (4, 4)) + two)
        return relay.transform.InferType()(IRModule.from_expr(relay.Function([x], body)))

    class DropRelu(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.x = wildcard()
            self.pattern = is_op("nn.relu")(self.x + is_constant())

        def callback(self, pre, post, node_map):
            return node_map[self.x][0]

    relu = is_op("nn.relu")(wildcard() + is_constant())
    fuzzy = dominates(is_op("transpose")(wildcard()), wildcard(), is_op("nn.relu")(wildcard()))
    merge = relay.transform.MergeComposite([("relu", relu)])
    actions = {
        "SimplifyExpr": relay.transform.SimplifyExpr(), "CanonicalizeCast": relay.transform.CanonicalizeCast(),
        "FastMath": relay.transform.FastMath(), "MergeComposite": merge,
        "rewrite, a callback in Python": lambda mod: rewrite(DropRelu(), mod["main"]),
        "partition by a dominator": lambda mod: fuzzy.partition(mod["main"]),
    }  # fmt: skip
    small, large = program(10_000), program(100_000)
    for name, action in actions.items():
        few, many = (best(lambda m=m, a=action: a(m), 3) for m in (small, large))
        yield f"{name}, 100,000 nodes", many, "s", 2.0
        yield f"{name}, exponent", math.log10(many / few), "", None


@bench
def history() -> Iterator[Row]:
    """Every step over MiniLM (its package is needed) by two readings of "at most 1.5 times the last module plus changed nodes":
    1.5 times both; and 1.5 times the last module alone beyond what changed, where a node that is written anew but says what the
    step was given is not a change."""
    import baton as tvm
    from baton._ffi import get_global_func
    from baton.demo.minilm import find_minilm
    from baton.driver.compiler import Source

    try:
        path = find_minilm().onnx_file()
    except Exception as error:  # noqa: BLE001 - the model is optional, whatever is wrong with it
        print(f"history    left out: {error}")
        return
    mod = Source.of(str(path)).read(dict.fromkeys(("input_ids", "attention_mask"), (1, 16)))
    with tvm.History() as h, tvm.transform.PassContext(opt_level=3):
        get_global_func("driver.Optimize")(mod, tvm.target.Target("llvm"))
    cost = h.cost()
    print(f"history    {len(h)} steps: {cost}; copies: {h.copies()}")
    for what, copies in (("objects", "copies"), ("bytes", "copied_bytes"), ("tensor_bytes", None)):
        held, last, made = cost[what], cost["last_" + what], cost["made_" + what]
        yield what, held / (last + made), "times the last module and what steps made", 1.5
        changed = made - (cost["made_" + copies] if copies else 0)
        yield f"{what} beyond what changed", (held - changed) / last, "times the last module", 1.5


@bench
def devices() -> Iterator[Row]:
    """PlanDevices on chains of 10,000 and 100,000 operators with an annotation every tenth, in the process's own time:
    500,000 nodes a second are 2 us each."""
    import baton as tvm
    from baton import relay

    plan, infer = relay.transform.PlanDevices("cpu"), relay.transform.InferType()
    for calls in (10_000, 100_000):
        x = relay.var("x", shape=(4,))
        e = x
        for i in range(calls):
            e = relay.add(e, x)
            if i % 10 == 5:
                e = relay.on_device(e, 1 + i // 10 % 2)
        mod = infer(tvm.IRModule.from_expr(relay.Function([x], e)))
        nodes = int(relay.analysis.count_nodes(mod["main"]))
        yield f"PlanDevices, {nodes:,} nodes", best(lambda mod=mod: plan(mod), 5, time.process_time) / nodes * 1e6, "us a node", 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run: {', '.join(BENCHES)} (default: all)")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a bar is missed")
    args = parser.parse_args()
    for name in args.names:
        if name not in BENCHES:
            parser.error(f"there is no benchmark `{name}`; there are {', '.join(BENCHES)}")
    try:
        import baton

        _ = baton.compile
    except (ImportError, AttributeError) as error:
        print(f"error: Baton is not ready: {error}; build it first: ./dev build", file=sys.stderr)
        return 1
    missed = 0
    for name in args.names or BENCHES:
        for what, value, unit, bar in BENCHES[name]():
            over = bar is not None and not value <= bar
            missed += over
            print(f"{name:<10} {what:<38} {value:10.3f} {unit}" + (f" (bar {bar:g}{', missed' if over else ''})" if bar else ""))
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
