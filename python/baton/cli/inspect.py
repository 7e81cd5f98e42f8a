# SPDX-License-Identifier: Apache-2.0
"""`baton inspect`: what is in a model file."""

from __future__ import annotations

import argparse
import json
import os
import sys

from . import arguments
from .errors import UNSUPPORTED, UsageError
from .terminal import note


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs,
        verb,
        text,
        "  baton inspect model.onnx\n  baton inspect model.onnx --dim batch=1\n  baton inspect model.so --json\n  baton inspect net.relay\n"
        "  baton inspect --xray net.pt2\n  baton inspect --xray model.onnx --missing lacking",
    )
    arguments.add_model(parser)
    arguments.add_shape_options(parser)
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    group = parser.add_argument_group("X-ray")
    group.add_argument("--xray", action="store_true", help="what becomes of each node: compiled, run by the host library, folded, or what is in the way")
    group.add_argument("--html", metavar="FILE", help="write the X-ray as a page").complete = "file"
    group.add_argument("--missing", metavar="DIR", help="write each node that is not supported as its own model").complete = "directory"
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    kind = arguments.kind_of_file(args.model)
    if args.xray:
        return _xray(args, kind)
    for option in ("html", "missing"):
        if getattr(args, option):
            raise UsageError(f"--{option} is of an X-ray: add --xray")
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


def _xray(args: argparse.Namespace, kind: str) -> int:
    """Prints what becomes of each node. Exit code 3 where some are not supported."""
    if kind == "artifact":
        raise UsageError(f"`{args.model}` is compiled already; `baton profile` shows its steps")
    from ..driver.xray import xray
    from .shapes import given_shapes

    given = {}
    if args.shape or args.dim:
        from ..driver.compiler import Source

        given = given_shapes(Source.of(args.model).signature(args.shape)[0], args.shape, args.dim)
    found = xray(args.model, given)
    if args.json:
        json.dump(found.as_dict(), sys.stdout, indent=1)
        print()
    else:
        print(found)
    if args.html:
        with open(args.html, "w", encoding="utf-8") as file:
            file.write(found.html())
    if args.missing:
        for path in found.write_missing(args.missing):
            note(f"wrote {path}")
    return UNSUPPORTED if found.unsupported or found.problem else 0


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
    if "precision" in facts:
        print(f"{'precision':<12}{facts['precision']}")
    if "operators" in facts:
        total = sum(facts["operators"].values())
        print(f"{'operators':<12}{total} nodes of {len(facts['operators'])} kinds")
        for name, count in sorted(facts["operators"].items(), key=lambda item: (-item[1], item[0])):
            print(f"{'':<12}{count:>6}  {name}")
    if "unsupported" in facts:
        for place, what in enumerate(facts["unsupported"] or ["nothing"]):
            print(f"{'unsupported' if not place else '':<12}{what}")
