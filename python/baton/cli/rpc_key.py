# SPDX-License-Identifier: Apache-2.0
"""`baton rpc-key`: secret keys of remote sessions."""

from __future__ import annotations

import argparse
import os

from . import arguments
from .errors import UsageError


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton rpc-key new --name lab -o lab.key\n"
        "  baton rpc-key new --name ci -o ci.key --allow 'my.*,bench.run'\n"
        "  baton rpc-key show lab.key",
    )  # fmt: skip
    parser.add_argument("action", choices=["new", "show"], help="write a new key; or say what a key file is, without the secret")
    parser.add_argument("file", nargs="?", help="key file to show").complete = "file"
    parser.add_argument("--name", default="key", help="for people and audit lines (default: %(default)s)")
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write; its owner alone may read it").complete = "file"
    parser.add_argument("--policy", choices=["session", "trusted"], default="session", help="what a client with it may call (default: %(default)s)")
    parser.add_argument("--allow", default="", metavar="NAMES", help="registered functions that it may call, with commas; `*` at the end: any that begin so")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ..rpc.library import function

    if args.action == "show":
        if not args.file:
            raise UsageError("which key file?", "baton rpc-key show lab.key")
        key_id, name, policy, *allow = (str(one) for one in function("KeyShow")(args.file))
        print(f"{key_id} {name}: {policy}" + (f", allows {', '.join(allow)}" if allow else ""))
        return 0
    if not args.output:
        raise UsageError("where to?", "baton rpc-key new --name lab -o lab.key")
    if os.path.exists(args.output):
        raise UsageError(f"`{args.output}` exists already, and what uses it would lose it; choose another name")
    allow = [name for name in args.allow.split(",") if name]
    key_id = function("KeyNew")(args.name, os.path.abspath(args.output), args.policy, allow)
    print(f"{args.output}: key {key_id} {args.name}; copy it to server and client, and to no other place")
    return 0
