# SPDX-License-Identifier: Apache-2.0
"""How soon Ctrl-C ends what takes long: an alarm comes at several moments of each piece of work, and the time from the alarm
to Python's handler counts. The bar is 100 ms (reliability figure 23).

    python bench/interrupt.py [--calls 300000] [--moments 8] [--only parse,print] [--check]
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))  # behind a package of PYTHONPATH

BAR = 0.1


class Stop(KeyboardInterrupt):
    """Raised by the alarm's handler, as Ctrl-C's raises KeyboardInterrupt."""


def latency(work: Callable[[], object], after: float) -> float | None:
    """Seconds from an alarm `after` seconds into `work` to its handler; None if `work` was done before."""
    came = []

    def handler(*_):
        came.append(time.perf_counter())
        raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    try:
        due = time.perf_counter() + after
        signal.setitimer(signal.ITIMER_REAL, after)
        try:
            work()
        except Stop:
            return came[0] - due
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Stop:  # between the end of the work and the end of the alarm
        pass
    finally:
        signal.signal(signal.SIGALRM, before)
    return None


def chain(calls: int) -> str:
    """The text of a function of so many calls."""
    body = "\n".join(f"  %{i} = add(%{i - 1}, %y);" for i in range(1, calls))
    return f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {{\n  %0 = add(%x, %y);\n{body}\n  %{calls - 1}\n}}\n'


def works(calls: int) -> dict[str, Callable[[], object]]:
    """Long work: name -> function that runs it once."""
    import baton
    from baton import relay
    from baton.runtime.vm import VirtualMachine

    text = chain(calls)
    mod = relay.transform.InferType()(relay.fromtext(text))
    twin = relay.transform.InferType()(relay.fromtext(text))
    saved = baton.ir.save_json(mod)
    loop = relay.fromtext('#[version = "0.0.5"]\ndef @main(%n: int64) -> int64 { if (equal(%n, 0i64)) { 0i64 } else { @main(subtract(%n, 1i64)) } }')
    machine = VirtualMachine(relay.vm.compile(loop, target="llvm"), baton.cpu())
    interpreter = relay.create_executor("debug", mod=relay.transform.InferType()(relay.fromtext(text)))
    dense = relay.fromtext(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(64, 64), float32]) {\n'
        + "".join(
            f"  %{i} = nn.softmax(nn.dense(%{i - 1 if i else 'x'}, ones(shape=[{64 + i}, {63 + i if i else 64}], dtype=\"float32\")));\n" for i in range(40)
        )
        + "  %39\n}\n"
    )

    def compile_many_kernels():
        with baton.transform.PassContext(opt_level=1):
            relay.build(dense, target="llvm")["default"](baton.cpu())

    out = {
        "parse": lambda: relay.fromtext(text),
        "print": lambda: mod.astext(show_types=False),
        "structural_hash": lambda: [baton.ir.structural_hash(mod) for _ in range(10)],
        "structural_equal": lambda: [baton.ir.structural_equal(mod, twin) for _ in range(10)],
        "save_json": lambda: baton.ir.save_json(mod),
        "load_json": lambda: baton.ir.load_json(saved),
        "virtual machine": lambda: machine.invoke("main", baton.nd.array(10_000_000)),
        "interpreter": lambda: interpreter.evaluate()(*(baton.nd.array(np.zeros(4, "float32")),) * 2),
        "compile": compile_many_kernels,
    }
    for name in (
        "FuseOps",
        "ToANormalForm",
        "ToGraphNormalForm",
        "ToBasicBlockNormalForm",
        "EliminateCommonSubexpr",
        "DeadCodeElimination",
        "FoldConstant",
        "SimplifyExpr",
        "PlanDevices",
        "PartialEvaluate",
        "ConvertLayout",
        "AnnotateSpans",
        "CombineParallelDense",
        "FoldScaleAxis",
        "Inline",
        "LambdaLift",
    ):
        out[name] = lambda name=name: getattr(relay.transform, name)()(mod)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300_000, help="calls in the program (default 300,000)")
    parser.add_argument("--moments", type=int, default=8, help="alarms a piece of work")
    parser.add_argument("--only", help="names, by commas (default: all)")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a bar is missed")
    args = parser.parse_args()
    missed = 0
    print(f"{'work':<26}{'takes':>9}{'worst wait':>12}  (seconds; bar {BAR} s)")
    for name, work in works(args.calls).items():
        if args.only and name not in args.only.split(","):
            continue
        start = time.perf_counter()
        work()
        takes = time.perf_counter() - start
        waits = [latency(work, takes * (i + 0.5) / args.moments) for i in range(args.moments)]
        worst = max((w for w in waits if w is not None), default=None)
        over = worst is not None and worst > BAR
        missed += over
        shown = "-" if worst is None else f"{worst:.3f}"
        print(f"{name:<26}{takes:9.3f}{shown:>12}{'  missed' if over else ''}", flush=True)
    return 1 if missed and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
