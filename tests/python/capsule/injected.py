# SPDX-License-Identifier: Apache-2.0
"""Sixty failures of six kinds: each is caught in a capsule, and replayed at one and at two threads. Prints what came of each.

A process of its own, because those that crash do so in forks of it: nothing is compiled in it, so that it has no threads."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import broken_passes

import baton as tvm
from baton import capsule, relay
from baton.guard import SemanticGuard
from baton.instrument import VerifyIR
from baton.transform import PassContext, Sequential, parse_pipeline

V = '#[version = "0.0.5"]\n'
GOOD = V + "def @main(%x: Tensor[(2, 3), float32]) { nn.relu(add(%x, multiply(2f, 3f))) }"
# Programs that passes in C++ refuse.
BAD = [
    "def @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) { add(%x, %y) }",
    "def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 5), float32]) { nn.dense(%x, %w) }",
    "def @main(%x: Tensor[(2, 3), float32]) { reshape(%x, newshape=[7]) }",
    "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), int32]) { multiply(%x, %y) }",
    "def @main(%x: Tensor[(2, 3), float32]) { transpose(%x, axes=[0, 5]) }",
    "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(4, 3), float32]) { concatenate((%x, %y), axis=1) }",
    "def @main(%x: Tensor[(2, 3), float32]) { %x.7 }",
    "def @main(%x: Tensor[(2, 3), float32]) { if (%x) { 1f } else { 2f } }",
    "def @main(%f: fn (int32) -> int32) { %f(1f) }",
    "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 5, 3, 3), float32]) { nn.conv2d(%x, %w) }",
]


def in_list(name, **options):
    def work():
        mod = relay.fromtext(GOOD)
        with PassContext(opt_level=3, **{key: make() for key, make in options.items()}):
            return Sequential([relay.transform.InferType(), relay.transform.FoldConstant(), getattr(broken_passes, name), relay.transform.FuseOps()])(mod)

    return work


def in_cxx(number):
    def work():
        with PassContext(opt_level=3):
            return parse_pipeline(["InferType", "FoldConstant,FuseOps", "SimplifyInference"][number % 3])(relay.fromtext(V + BAD[number]))

    return work


# Deaths first: they happen in forks of this process, and nothing else has started threads in it yet.
CASES = [("signal", f"{name} {level}", in_list(name), {}) for name in ("segfaults", "bus_error", "float_error", "illegal", "killed") for level in (0, 1)]
LIMITS = {"eats_memory": {"memory": 64 << 20}, "eats_at_once": {"memory": 1 << 30}, "hangs": {"timeout": 1.5}}
CASES += [("abort", f"{name} {level}", in_list(name), LIMITS.get(name, {})) for name in ("aborts", "eats_memory", "eats_at_once", "exits") for level in (0, 1)]
CASES += [("abort", name, in_list(name), LIMITS.get(name, {})) for name in ("hangs", "is_told_to_end")]
CASES += [("c++", f"type {n}", in_cxx(n), {}) for n in range(10)]
CASES += [("python", name, in_list(name), {}) for name in list(broken_passes.BODIES)[:10]]
CASES += [
    ("verifier", name, in_list(name, instruments=lambda: [VerifyIR(properties=["WellFormed"])]), {})
    for n in range(5)
    for name in (f"breaks_free_{n}", f"breaks_twice_{n}")
]
CASES += [("guard", f"miscompiles_{n}", in_list(f"miscompiles_{n}", instruments=lambda: [SemanticGuard(seed=3)]), {}) for n in range(8)]
# An instrument of one's own is as good.
CASES += [("guard", f"miscompiles_{n}", in_list(f"miscompiles_{n}", instruments=lambda: [broken_passes.Guard(passes=["miscompiles"])]), {}) for n in (8, 9)]


def one(kind, name, work, limits, folder):
    path = os.path.join(folder, f"{kind}-{name}.capsule".replace(" ", "-"))
    try:
        if kind in ("signal", "abort"):
            capsule.isolated(work, capsule=path, **limits)
        else:
            with tvm.Capsule(path):
                work()
    except Exception as error:  # noqa: BLE001 - all of them fail
        row = {"kind": kind, "name": name, "error": f"{type(error).__name__}: {error}", "note": getattr(error, "capsule_note", "")}
    else:
        return {"kind": kind, "name": name, "error": "nothing failed"}
    if not os.path.exists(path):
        return row
    file = capsule.load(path)
    row |= {"signature": file.signature, "pipeline": file.pipeline, "ir": file.ir_format, "notes": file.notes}
    for threads in (1, 2):
        again = capsule.replay(file, threads=threads)
        row[f"replay{threads}"] = again.differences
        row[f"signature{threads}"] = again.signature
    return row


if __name__ == "__main__":
    print(json.dumps([one(*case, sys.argv[1]) for case in CASES], indent=1))
