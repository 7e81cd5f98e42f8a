# SPDX-License-Identifier: Apache-2.0
"""`baton rpc-key`: secret keys of remote sessions."""

from __future__ import annotations

import argparse
import os
import time

from . import arguments
from .errors import UsageError


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton rpc-key new --name lab -o lab.key\n"
        "  baton rpc-key new --name ci -o ci.key --allow 'my.*,bench.run'\n"
        "  baton rpc-key narrow lab.key -o job.token --expires 1h --load signed --allow 'my.run'\n"
        "  baton rpc-key show lab.key",
    )  # fmt: skip
    parser.add_argument("action", choices=["new", "narrow", "show"], help="write a new key; make a token of a key that may do less; or say what a key file is")
    parser.add_argument("file", nargs="?", help="key file (or token) to show or to narrow").complete = "file"
    parser.add_argument("--name", default="key", help="for people and audit lines (default: %(default)s)")
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write; its owner alone may read it").complete = "file"
    parser.add_argument("--policy", choices=["session", "trusted"], help="what a client with it may call (default of a new key: session)")
    parser.add_argument("--allow", default="", metavar="NAMES", help="registered functions that it may call, with commas; `*` at the end: any that begin so")
    parser.add_argument("--expires", metavar="TIME", help="until when it is good: 90s, 30m, 12h, 7d from now")
    parser.add_argument("--load", dest="modules", choices=["none", "signed", "any"], help="modules that a client with it may load")
    parser.add_argument("--devices", metavar="NAMES", help="devices that it may use, with commas: cpu, cuda, cuda:1")
    for name, what in (("memory", "arrays"), ("disk", "files")):
        parser.add_argument(f"--{name}", type=arguments.positive, metavar="MIB", help=f"{what} of a session")
    parser.add_argument("--cpu", type=arguments.positive, metavar="SECONDS", help="of the processor for a session")
    parser.add_argument("--wall", type=arguments.positive, metavar="SECONDS", help="a session ends after so long")
    parser.set_defaults(run=run)


def _expiry(text: str) -> int:
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:])
    if unit is None or not text[:-1].isdecimal():
        raise UsageError(f"--expires takes a number and a unit, not `{text}`", "baton rpc-key narrow lab.key -o job.token --expires 12h")
    return int(time.time()) + int(text[:-1]) * unit


def _limits(args: argparse.Namespace) -> list[str]:
    """Returns the caveats of the arguments."""
    found = []
    if args.expires:
        found.append(f"expires={_expiry(args.expires)}")
    if args.modules:
        found.append(f"load={args.modules}")
    for name, unit in (("devices", None), ("memory", 1 << 20), ("disk", 1 << 20), ("cpu", 1), ("wall", 1)):
        if (value := getattr(args, name)) is not None:
            found.append(f"{name}={value if unit is None else int(value * unit)}")
    return found


def run(args: argparse.Namespace) -> int:
    from ..rpc.library import function

    if args.action == "show":
        if not args.file:
            raise UsageError("which key file?", "baton rpc-key show lab.key")
        key_id, name, policy, *allow = (str(one) for one in function("KeyShow")(args.file))
        print(f"{key_id} {name}: {policy}" + (f", allows {', '.join(allow)}" if allow else ""))
        return 0
    if not args.output:
        narrow = "narrow lab.key -o job.token --expires 1h"
        raise UsageError("where to?", f"baton rpc-key {narrow if args.action == 'narrow' else 'new --name lab -o lab.key'}")
    if args.action == "narrow" and not args.file:
        raise UsageError("of which key?", "baton rpc-key narrow lab.key -o job.token --expires 1h")
    if os.path.exists(args.output):
        raise UsageError(f"`{args.output}` exists already, and what uses it would lose it; choose another name")
    allow = [name for name in args.allow.split(",") if name]
    if args.action == "narrow":
        caveats = _limits(args) + ([f"policy={args.policy}"] if args.policy else []) + ([f"allow={','.join(allow)}"] if allow else [])
        if not caveats:
            raise UsageError("a token that may do as much as the key is that key", "baton rpc-key narrow lab.key -o job.token --expires 1h")
        token = function("KeyNarrow")(args.file, os.path.abspath(args.output), caveats)
        print(f"{args.output}: token {token}; give it to the client, which uses it as a key file")
        return 0
    key_id = function("KeyNew")(args.name, os.path.abspath(args.output), args.policy or "session", allow, _limits(args))
    print(f"{args.output}: key {key_id} {args.name}; copy it to server and client, and to no other place")
    return 0
