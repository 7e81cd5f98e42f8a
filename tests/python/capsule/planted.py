# SPDX-License-Identifier: Apache-2.0
"""Twenty faults planted in a pass over a network (reliability figure 34): each gives one capsule, which fails again, and a program that is a
tenth of the network's size or less. Prints a line of JSON for each.

A process of its own, as `injected.py`: passes that die do so in forks of it."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import planted_passes
from planted_passes import FAULTS, LIMITS, TRIGGERS

import baton as tvm
from baton import capsule, relay
from baton.capsule.replay import module_of, reduced, reproduces
from baton.guard import count_calls
from baton.instrument import VerifyIR
from baton.transform import PassContext, Sequential

TYPE = "Tensor[(4, 8), float32]"


def network(layers=16):
    """More than a hundred calls: layers of products and activations, with a triggering operator here and there."""
    lines, last = [], "%x"
    for i in range(layers):
        lines += [f"  %a{i} = add(multiply({last}, {i + 1}f), %y);", f"  %b{i} = nn.relu(subtract(%a{i}, nn.dense({last}, %w)));",
                  f"  %c{i} = maximum(negative(%b{i}), sqrt(abs(%a{i})));"]  # fmt: skip
        last = f"%c{i}"
        if i == layers // 2:
            lines += ["  %t = tanh(%c1);", "  %s = nn.softmax(%t);", "  %p = split(%s, indices_or_sections=2, axis=1);",
                      "  %q = concatenate((%p.1, %p.0), axis=1);", f"  %r = add(%q, sigmoid({last}));"]  # fmt: skip
            last = "%r"
    text, number = "\n".join(lines), {}
    for line in lines:  # the text takes numbers
        name = line.split(" = ")[0].strip()
        number[name] = f"%{len(number)}"
    for name in sorted(number, key=len, reverse=True):
        text = text.replace(name + " ", number[name] + " ").replace(name + ",", number[name] + ",").replace(name + ")", number[name] + ")")
        text = text.replace(name + ".", number[name] + ".")
    head = f'#[version = "0.0.5"]\ndef @main(%x: {TYPE}, %y: {TYPE}, %w: Tensor[(8, 8), float32]) {{\n'
    return relay.fromtext(head + text + f"\n  exp({number[f'%c{layers - 1}']})\n}}\n")


def one(fault, trigger, folder):
    """A row: the file, whether it fails again, the sizes."""
    path = os.path.join(folder, f"{fault}-{trigger}.capsule")
    mod = network()

    def work():
        with PassContext(opt_level=3, instruments=[VerifyIR(properties=["WellFormed"])] if fault == "bad_ir" else []):
            return Sequential([relay.transform.InferType(), getattr(planted_passes, f"{fault}_{trigger}")])(mod)

    try:
        if fault in ("abort", "segfault", "hang"):
            capsule.isolated(work, capsule=path, **LIMITS.get(fault, {}))
        else:
            with tvm.Capsule(path):
                work()
    except Exception as error:  # noqa: BLE001 - all of them fail
        row = {"fault": fault, "trigger": trigger, "error": f"{type(error).__name__}: {error}"}
    else:
        return {"fault": fault, "trigger": trigger, "error": "nothing failed"}
    file = capsule.load(path)
    again = capsule.replay(file)
    small = reduced(file)
    return row | {"path": path, "signature": file.signature, "differences": again.differences, "before": count_calls(module_of(file)[0]),
                  "after": count_calls(small), "small": str(small), "still": reproduces(file, small)}  # fmt: skip


if __name__ == "__main__":
    wanted = sys.argv[2:]
    for fault in FAULTS:
        for trigger in TRIGGERS:
            if not wanted or fault in wanted:
                print(json.dumps(one(fault, trigger, sys.argv[1])), flush=True)
