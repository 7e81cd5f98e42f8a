# SPDX-License-Identifier: Apache-2.0
"""The cost of the semantic guard beside a plain compile, and what it says of real models.

    python bench/guard.py                      # MiniLM: bar of 2 times the plain compile
    python bench/guard.py --models all --check # ten models: no alarm is the bar too

Each figure is of a fresh process, in turns, the least of some rounds: reading the model and compiling it, as `baton compile` does.
The ratio of processor time (the median) is beside it: that one holds on a busy machine too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import models

TEN = ["minilm", "resnet50", "squeezenet", "shufflenet", "densenet121", "inception_v2", "bvlc_alexnet", "light_inception_v1", "light_vgg19",
       "light_zfnet512"]  # fmt: skip
BAR = {"minilm": 2.0}


def child(name: str, guarded: bool) -> None:
    """Compiles once and prints a line of JSON."""
    model = models.load(name)
    import baton
    from baton import relay
    from baton.driver.compiler import Source

    if guarded:
        from baton.instrument import SemanticGuard

        guard = SemanticGuard(mode="record", sample="changed")
    start, cpu = time.perf_counter(), time.process_time()
    module = Source.of(str(model.path)).read(model.shape)
    with baton.transform.PassContext(opt_level=3, instruments=[guard] if guarded else []):
        relay.build(module, target="llvm")
    out = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    if guarded:
        out |= {"checked": sum(guard.checked.values()), "findings": [f.text() for f in guard.findings], "not_checked": guard.not_checked}
    print(json.dumps(out))


def once(name: str, guarded: bool) -> dict:
    done = subprocess.run([sys.executable, __file__, "--child", name] + ["--guarded"] * guarded, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="minilm", help="names of bench/models.py, with commas, or all (default: minilm)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="exit code 1 if a bar is missed or a pass is blamed")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--guarded", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.guarded)
        return 0
    bad = 0
    print(f"{'model':20} {'plain s':>8} {'guarded s':>10} {'ratio':>6} {'bar':>5} {'CPU':>6}  passes checked, blamed, not checked")
    for name in TEN if args.models == "all" else args.models.split(","):
        plain, guarded, cpu = [], [], []
        for _ in range(args.rounds):
            other, row = once(name, False), once(name, True)
            plain.append(other["seconds"])
            guarded.append(row["seconds"])
            cpu.append(row["cpu"] / other["cpu"])
        ratio, bar = min(guarded) / min(plain), BAR.get(name)
        missed = bar is not None and ratio > bar
        print(f"{name:20} {min(plain):8.2f} {min(guarded):10.2f} {ratio:6.2f} {bar or '':>5} {sorted(cpu)[len(cpu) // 2]:6.2f}  {row['checked']}, {len(row['findings'])}, "
              f"{len(row['not_checked'])}{'  MISSED' if missed else ''}")  # fmt: skip
        for text in [*row["findings"], *map(str, row["not_checked"])]:
            print("   ", text.replace("\n", "\n    "))
        bad += missed or bool(row["findings"])
    return 1 if args.check and bad else 0


if __name__ == "__main__":
    sys.exit(main())
