# SPDX-License-Identifier: Apache-2.0
"""`baton cache`: the kernel cache on disk."""

from __future__ import annotations

import argparse
import json
import time

from . import arguments
from .errors import Failure, UsageError, file_error
from .terminal import note

ACTIONS = {
    "stats": "where it is, its bound, and what was found lately (the default)",
    "list": "its entries, the one that was used last at the end",
    "why": "the last look-ups of all processes: hit, or miss and why",
    "clear": "remove all entries",
    "export": "write all entries to FILE",
    "import": "take in the entries of FILE: code that you would run",
}


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton cache\n"
        "  baton cache list\n"
        "  baton cache why\n"
        "  baton cache export kernels.tar          # on the machine that has compiled\n"
        "  baton cache import kernels.tar          # on others of its kind\n"
        "  BATON_CACHE=0 baton run model.onnx      # without it",
    )  # fmt: skip
    parser.add_argument("action", nargs="?", choices=ACTIONS, default="stats", help="; ".join(f"{name}: {what}" for name, what in ACTIONS.items()))
    parser.add_argument("file", nargs="?", metavar="FILE", help="of export and import").complete = "file"
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from .. import cache

    takes_file = args.action in ("export", "import")
    if takes_file != bool(args.file):
        raise UsageError(f"`baton cache {args.action}` " + ("needs a FILE" if takes_file else "takes no file"))
    try:
        if args.action == "stats":
            return _answer(args, cache.stats(), _stats)
        if args.action == "list":
            return _answer(args, cache.entries(), _entries)
        if args.action == "why":
            return _answer(args, cache.log(), lines)
        if args.action == "clear":
            return _answer(args, {"removed": cache.clear()}, lambda answer: [f"removed {_count(answer['removed'])}"])
        count = cache.export(args.file) if args.action == "export" else _taken_in(args.file)
    except OSError as error:
        raise file_error(error) from None
    verb = "wrote" if args.action == "export" else "took in"
    return _answer(args, {verb.replace(" ", "_"): count}, lambda _: [f"{verb} {_count(count)}"])


def _taken_in(path: str) -> int:
    from .. import cache

    try:
        return cache.import_file(path)
    except ValueError as error:
        raise Failure(str(error), "write one with: baton cache export FILE") from None


def _answer(args: argparse.Namespace, answer, show) -> int:
    if args.json:
        print(json.dumps(answer, indent=1))
        return 0
    for line in show(answer):
        print(line)
    return 0


def _count(n: int) -> str:
    return "1 entry" if n == 1 else f"{n} entries"


def _size(n: int) -> str:
    return f"{n / 1e6:.1f} MB" if n >= 1e5 else f"{n} bytes"


def _stats(stats: dict) -> list[str]:
    out = [f"folder      {stats['folder']}"]
    if stats["off"] or stats["problem"]:
        out.append(f"off         {stats['off'] or stats['problem']}")
    out.append(f"entries     {stats['entries']}, {_size(stats['bytes'])} of {_size(stats['most'])}")
    misses = ", ".join(f"{count} {reason}" for reason, count in sorted(stats["misses"].items()))
    total = sum(stats["misses"].values())
    out.append(f"lately      {stats['hits']} hits, {total} misses{f' ({misses})' if misses else ''}, {stats['evicted']} evicted")
    return out


def _named(count: int, first: str) -> str:
    return first if count < 2 else f"{first} and {count - 1} more"


def _entries(rows: list[dict]) -> list[str]:
    out = []
    for row in rows:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(row["used"]))
        what = row["problem"] or _named(len(row["functions"]), row["functions"][0] if row["functions"] else "data")
        out.append(f"{used}  {_size(row['bytes']):>12}  {row['name'][:16]}  {what}")
    return out


def lines(events: list[dict]) -> list[str]:
    """Look-ups, a line each, with why the code was not there."""
    out = []
    for event in events:
        if event["what"] not in ("hit", "miss", "not kept"):
            continue
        what = _named(event["functions"], event["first"])
        why = f": {event['reason']}: {event['why']}" if event.get("reason") else f": {event['why']}" if event.get("why") else ""
        out.append(f"{event['what']:<5} {what}{why}")
    return out


def tell(quiet: bool = False) -> None:
    """Says on standard error what became of this process's look-ups."""
    from .. import cache

    off = cache.place()["off"]
    for line in [f"kernel cache off: {off}"] if off else lines(cache.events()) or ["kernel cache: nothing was compiled"]:
        note(line, quiet)
