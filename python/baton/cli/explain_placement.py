# SPDX-License-Identifier: Apache-2.0
"""`baton explain-placement`: on which device each expression runs, and why; what is copied, and for which expression."""

from __future__ import annotations

import argparse
import json
import sys

from . import arguments
from .errors import UsageError
from .shapes import read_module


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton explain-placement model.relay\n"
        "  baton explain-placement model.relay --default cuda --json\n"
        "  baton explain-placement model.relay --load chip.py --compiler chip\n"
        "  baton explain-placement model.so",
    )  # fmt: skip
    parser.add_argument("model", metavar="FILE", help="ONNX file; Relay text, - for standard input; or what `baton compile` wrote (.so)").complete = "file"
    parser.add_argument("--default", default="cpu", metavar="DEVICE", help="device of what no annotation decides (default: cpu)")
    parser.add_argument(
        "--compiler", action="append", default=[], metavar="NAME",
        help="divide the program for this code generator first (relay.ext.NAME), and say of each call that is not its why not",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments.add_shape_options(parser)
    arguments.add_load_option(parser)
    parser.set_defaults(run=run)


def _bytes(row: dict) -> str:
    if row["bytes"] >= 0:
        return f"{row['bytes']:,} bytes"
    return f"{row['formula'] or 'all its tensors: ?'} bytes, known when it runs"


def _of_artifact(path: str) -> dict:
    """Where the kernels of a compiled program run, and what it copies for which of them."""
    from .._ffi import get_global_func

    manifest = json.loads(get_global_func("runtime.ReadManifest")(path))  # what it imports need not be there
    program = manifest.get("program", "")
    found = _of_program(json.loads(program)) if program else {"places": [], "copies": []}  # all of it on the processor
    regions = [
        {"region": f"import {i}", "compiler": row["key"], "because": f"its code is {row['bytes']:,} bytes"} for i, row in enumerate(manifest.get("imports", ()))
    ]
    return {**found, "regions": regions} if regions else found


def _regions(module) -> list[dict]:
    """Functions that partitioning made for compilers of others, and whether code is made of each."""
    from ..driver.external import regions_of, why_out
    from ..relay.analysis import list_op_freqs
    from ..relay.transform import InferType

    rows = []
    for var, func in regions_of(InferType()(module) if regions_of(module) else module).items():
        name, out = str(func.attrs["Compiler"]), why_out(func)
        why = f"{out}: Baton's own kernels compute it" if out else f"`relay.ext.{name}` makes its code"
        calls = [str(n) for n in list_op_freqs(func)]
        rows.append({"region": f"@{var.name_hint}", "compiler": name, "because": why, "operators": calls})
    return rows


def _divided(module, compilers):
    """The program with regions for compilers, as their tables and the attributes `target.NAME` say, the first that takes a call."""
    from ..relay.left_out import takes_nothing
    from ..relay.op.contrib.register import get_pattern_table
    from ..relay.transform.partition import partitioned

    for name in compilers:
        if takes_nothing(name):
            raise UsageError(
                f"--compiler: nothing says what `{name}` takes: it has no pattern table, and no operator has an attribute `target.{name}`; "
                "--load the file that registers them"
            )
        module = partitioned(module, None, name, get_pattern_table(name) or [])
    return module


def _left_out(module, compilers) -> list[dict]:
    """Calls that compilers do not take, and why not."""
    from ..relay.left_out import left_out

    return [row for name in compilers for row in left_out(module, name)]


def _of_program(program: dict) -> dict:
    """Where a program of the virtual machine computes, and what its instructions copy."""
    device = [d[0] for d in program.get("devices", [])]
    names = [f["name"] for f in program["functions"]]
    why = "the plan that it was compiled with"
    places = [
        {
            "function": "main",
            "place": "",
            "expression": f"{kernel['symbol']} ({kernel['operators']})" if kernel.get("operators") else kernel["symbol"],
            "device_type": device[kernel.get("device", 0)],
            "because": why,
        }
        for kernel in program["kernels"]
        if device
    ]
    places += [
        {
            "function": "main",
            "place": "",
            "expression": slot["name"] if isinstance(slot, dict) else slot[0],
            "device_type": device[0],
            "because": "it runs on the host",
        }
        for slot in (program["packed"] if device else ())
    ]
    copies = [
        {
            "function": names[c["function"]],
            "place": c["place"],
            "expression": c["value"],
            "src_dev_type": device[c["from"]],
            "dst_dev_type": device[c["to"]],
            "bytes": c["bytes"],
            "formula": c["formula"],
            "because": c["because"],
        }
        for c in program.get("copies", ())
    ]
    return {"places": places, "copies": copies}


def _is_artifact(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False  # reported where the file is read


def run(args: argparse.Namespace) -> int:
    if args.model != "-" and _is_artifact(args.model):
        if args.shape or args.dim or args.compiler:
            raise UsageError(f"`{args.model}` is compiled already; --shape, --dim and --compiler are for its program")
        return _show(_of_artifact(args.model), args.json)
    module = read_module(args.model, args.shape, args.dim)
    from ..relay import analysis

    try:
        found = analysis.explain_placement(module, args.default)
    except (ValueError, TypeError) as error:
        if "device" not in str(error):
            raise
        raise UsageError(f"--default: {error}") from None
    divided = _divided(module, args.compiler)
    regions = _regions(divided)
    compilers = dict.fromkeys([*args.compiler, *(r["compiler"] for r in regions)])
    left = _left_out(module, args.compiler) if args.compiler else _left_out(divided, compilers)
    found = {**found, **({"regions": regions} if regions else {}), **({"left_out": left} if left else {})}
    return _show(found, args.json)


def _show(found: dict, as_json: bool) -> int:
    names = _device_names()
    for rows in found.values():
        for row in rows:
            for key in ("device_type", "src_dev_type", "dst_dev_type"):
                if key in row:
                    row[key.replace("_type", "")] = names.get(row[key], f"device {row[key]}")
    if as_json:
        json.dump(found, sys.stdout, indent=2)
        print()
        return 0
    for row in found["places"]:
        where = f"{row['place']}: " if row["place"] else ""
        print(f"{where}@{row['function']}: {row['expression']} on {row['device']}: {row['because']}")
    for row in found.get("copies", ()):
        where = f"{row['place']}: " if row["place"] else ""
        print(f"{where}@{row['function']}: copy of {row['expression']} from {row['src_dev']} to {row['dst_dev']}, {_bytes(row)}: {row['because']}")
    for row in found.get("regions", ()):
        holds = f"; it has {', '.join(row['operators'])}" if row.get("operators") else ""
        print(f"{row['region']}: for {row['compiler']}: {row['because']}{holds}")
    for row in found.get("left_out", ()):
        where = f"{row['place']}: " if row["place"] else ""
        print(f"{where}@{row['function']}: {row['expression']} is not for {row['compiler']}: {row['because']}")
    if found.get("copies") == []:
        print("nothing is copied")
    return 0


def _device_names() -> dict[int, str]:
    from .._core import Device

    return {n: str(Device(n, 0)).split("(")[0] for n in range(1, 16)}
