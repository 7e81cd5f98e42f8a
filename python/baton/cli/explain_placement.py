# SPDX-License-Identifier: Apache-2.0
"""`baton explain-placement`: on which device each expression runs, and why; what is copied, and for whom."""

from __future__ import annotations

import argparse
import json
import sys

from . import arguments
from .errors import Failure, UsageError
from .opt import read_text


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton explain-placement model.relay\n"
        "  baton explain-placement model.relay --default cuda --json",
    )  # fmt: skip
    parser.add_argument("model", metavar="FILE", help="Relay text; - for standard input").complete = "file"
    parser.add_argument(
        "--default", default="cpu", metavar="DEVICE", help="device of what no annotation decides (default: cpu)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def _bytes(count: int) -> str:
    return "a number of bytes known when it runs" if count < 0 else f"{count:,} bytes"


def run(args: argparse.Namespace) -> int:
    text = read_text(args.model)
    if not text.strip():
        raise Failure(f"`{args.model}` is empty; Relay text is needed")
    from ..driver import passes
    from ..relay import analysis

    names = _device_names()
    try:
        found = analysis.explain_placement(
            passes.parse(text, "<stdin>" if args.model == "-" else args.model), args.default
        )
    except (ValueError, TypeError) as error:
        if "device" not in str(error):
            raise
        raise UsageError(f"--default: {error}") from None
    for rows in found.values():
        for row in rows:
            for key in ("device_type", "src_dev_type", "dst_dev_type"):
                if key in row:
                    row[key.replace("_type", "")] = names.get(row[key], f"device {row[key]}")
    if args.json:
        json.dump(found, sys.stdout, indent=2)
        print()
        return 0
    for row in found["places"]:
        where = f"{row['place']}: " if row["place"] else ""
        print(f"{where}@{row['function']}: {row['expression']} on {row['device']}: {row['because']}")
    for row in found["copies"]:
        where = f"{row['place']}: " if row["place"] else ""
        print(f"{where}@{row['function']}: copy of {row['expression']} from {row['src_dev']} to {row['dst_dev']}, "
              f"{_bytes(row['bytes'])}: {row['because']}")
    if not found["copies"]:
        print("nothing is copied")
    return 0


def _device_names() -> dict[int, str]:
    from .._core import Device

    return {n: str(Device(n, 0)).split("(")[0] for n in range(1, 16)}
