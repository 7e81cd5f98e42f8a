# SPDX-License-Identifier: Apache-2.0
"""`baton rpc-server`: starts the program baton-rpc-server, which needs no Python, in place of this one."""

from __future__ import annotations

import argparse
import os
import sys

from . import arguments
from .errors import UsageError


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton rpc-server\n"
        "  baton rpc-server --listen unix:/run/user/1000/board\n"
        "  baton rpc-server --listen tls://0.0.0.0:9090 --key-file lab.key --allow 'my.*'",
    )  # fmt: skip
    parser.add_argument("--listen", metavar="URL", default="tls://127.0.0.1:9090", help="unix:/path or tls://host:port (default: %(default)s)")
    parser.add_argument("--key-file", metavar="FILE", help="secret key of `baton rpc-key new`; needed beyond this machine").complete = "file"
    parser.add_argument("--policy", choices=["trusted", "session"], help="what clients may call (default: by who they are)")
    parser.add_argument("--allow", metavar="NAMES", help="registered functions that clients may call, with commas; `*` at the end: any that begin so")
    parser.add_argument("--no-load", action="store_true", help="load no modules")
    parser.add_argument("--load", dest="modules", choices=["none", "signed", "any"], help="modules of clients that are loaded (default: any)")
    parser.add_argument("--signers", metavar="FILE", help="public keys (PEM) of those that sign modules by `baton sign`").complete = "file"
    parser.add_argument("--tracker", metavar="URL", help="tracker to register with (tls://host:port, ?key=FILE behind it)")
    parser.add_argument("--key", metavar="KIND", help="kind of device, as the tracker knows it; no secret")
    parser.add_argument("--max-sessions", type=arguments.positive, metavar="N", help="sessions at once (default: 256)")
    parser.add_argument("--idle", type=arguments.seconds, metavar="SECONDS", help="a session without a call for so long ends (default: 600)")
    parser.add_argument("--disk", type=arguments.positive, metavar="MIB", help="files of a session (default: 4096)")
    parser.add_argument("--cpu", type=arguments.positive, metavar="SECONDS", help="of the processor for a session (default: any number)")
    parser.add_argument("--no-sandbox", action="store_true", help="do not confine sessions that are not trusted (files, processes, network)")
    parser.add_argument("--verbose", action="store_true", help="a line on standard error at the end of each session")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ..rpc.server import program

    url = args.listen
    if args.key_file:
        if not url.startswith("tls://"):
            raise UsageError("--key-file belongs to tls://; programs of this user alone reach a unix: socket")
        url += f"?key={os.path.abspath(args.key_file)}"
    command = [program(), "--listen", url]
    for name in ("policy", "allow", "signers", "tracker", "key", "max_sessions", "idle", "disk", "cpu"):
        if (value := getattr(args, name)) is not None:
            command += ["--" + name.replace("_", "-"), str(value)]
    if args.modules:
        command += ["--load", args.modules]
    command += [flag for flag, given in (("--no-load", args.no_load), ("--no-sandbox", args.no_sandbox), ("--verbose", args.verbose)) if given]
    sys.stdout.flush()
    os.execv(command[0], command)
    return 1  # not reached
