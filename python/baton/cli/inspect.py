# SPDX-License-Identifier: Apache-2.0
"""`baton inspect`: what is in a model file."""

from __future__ import annotations

import argparse
import json
import os
import sys

from . import arguments
from .errors import UsageError


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text, "  baton inspect model.onnx\n  baton inspect model.onnx --dim batch=1\n  baton inspect model.so --json\n  baton inspect net.relay"
    )
    arguments.add_model(parser)
    arguments.add_shape_options(parser)
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    kind = arguments.kind_of_file(args.model)
    if kind == "artifact":
        if args.shape or args.dim:
            raise UsageError(f"`{args.model}` is compiled already; --shape and --dim come with `baton compile`")
        from ..driver.executable import load

        executable = load(args.model)
        facts = {"kind": "artifact", **executable.describe()}
    else:
        from ..driver.compiler import Source, describe
        from .shapes import given_shapes

        given = {}
        if args.shape or args.dim:
            given = given_shapes(Source.of(args.model).signature(args.shape)[0], args.shape, args.dim)
        facts = {"kind": kind, **describe(args.model, given)}
    facts = {"file": args.model, "bytes": os.path.getsize(args.model), **facts}
    if args.json:
        json.dump(facts, sys.stdout, indent=1)
        print()
        return 0
    show(facts)
    return 0


def _tensor(info: dict) -> str:
    return f"{info['name']} {info['dtype']}[{', '.join(map(str, info['shape']))}]"


def show(facts: dict) -> None:
    from ..driver.dims import Dim

    head = [facts["file"], facts["kind"], f"{facts['bytes']} bytes"]
    head += [f"{key.replace('_', ' ')} {facts[key]}" for key in ("opset", "producer", "target", "version") if facts.get(key)]
    print("   ".join(map(str, head)))
    for key in ("inputs", "outputs"):
        for place, info in enumerate(facts.get(key, [])):
            print(f"{key if not place else '':<12}{_tensor(info)}")
    for key, lines in (("dims", [str(Dim(**dim)) for dim in facts.get("dims", ())]), ("guards", facts.get("guards", ()))):
        for place, line in enumerate(lines):
            print(f"{key if not place else '':<12}{line}")
    for place, what in enumerate(facts.get("needs", [])):
        print(f"{'needs' if not place else '':<12}{what}")
    if "weights" in facts:
        print(f"{'weights':<12}{facts['weights']} tensors, {facts['weight_bytes'] / 1e6:.1f} MB")
    if "operators" in facts:
        total = sum(facts["operators"].values())
        print(f"{'operators':<12}{total} nodes of {len(facts['operators'])} kinds")
        for name, count in sorted(facts["operators"].items(), key=lambda item: (-item[1], item[0])):
            print(f"{'':<12}{count:>6}  {name}")
    if "unsupported" in facts:
        for place, what in enumerate(facts["unsupported"] or ["nothing"]):
            print(f"{'unsupported' if not place else '':<12}{what}")
