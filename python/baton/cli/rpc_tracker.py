# SPDX-License-Identifier: Apache-2.0
"""`baton rpc-tracker`: runs a tracker, or shows what one knows."""

from __future__ import annotations

import argparse

from . import arguments
from .errors import UsageError


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton rpc-tracker --journal farm.journal\n"
        "  baton rpc-tracker --host 0.0.0.0 --key-file lab.key --reset-command \"power-switch cycle\"\n"
        "  baton rpc-tracker --summary --host lab.example --key-file lab.key",
    )  # fmt: skip
    add_options(parser)
    parser.set_defaults(run=run)


def add_address(parser) -> None:
    parser.add_argument("--host", default="127.0.0.1", metavar="HOST", help="address, or a URL as unix:/path (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=9190, metavar="N", help="port (default: 9190)")
    parser.add_argument("--key-file", metavar="FILE", help="the key, as `baton rpc-key new` writes it; needed beyond this machine")


def add_options(parser) -> None:
    add_address(parser)
    parser.add_argument("--port-end", type=int, default=9199, metavar="N", help="end of the ports to try (default: 9199)")
    parser.add_argument("--summary", action="store_true", help="print what the tracker at this address knows, and stop")
    parser.add_argument("--journal", metavar="FILE", help="keep servers and leases here, so that a restart loses none")
    parser.add_argument(
        "--reset-command", default="", metavar="COMMAND", help="run for a device that is quarantined: BATON_DEVICE, BATON_KEY, BATON_ADDRESS name it"
    )
    parser.add_argument("--proxy", action="append", default=[], metavar="URL", help="a proxy that servers may be behind")
    parser.add_argument("--renew", type=arguments.seconds, default=5.0, metavar="S", help="a lease that is not renewed for so long ends (default: 5)")
    parser.add_argument("--longest", type=arguments.seconds, default=None, metavar="S", help="the longest lease (default: any)")
    parser.add_argument("--silent", action="store_true", help="print nothing")
    parser.add_argument("--ready-fd", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--lifeline-fd", type=int, default=-1, help=argparse.SUPPRESS)


def check_port(port: int, flag: str) -> None:
    if not 0 <= port <= 65535:
        raise UsageError(f"{flag}: {port} is not a port; ports are 1 to 65535, and 0 for any that is free")


def run(args: argparse.Namespace) -> int:
    check_port(args.port, "--port")
    if args.summary:
        return summary(args)
    from ..rpc.tracker.launch import serve
    from ..rpc.tracker.records import Limits

    def ready(url: str) -> None:
        if not args.silent:
            print(f"tracker at {url}", flush=True)

    serve(
        args.host, args.port, args.port_end, args.key_file, args.silent, args.ready_fd, args.lifeline_fd, ready,
        journal=args.journal, limits=Limits(renew=args.renew, longest=args.longest or 0.0), reset_command=args.reset_command, proxies=args.proxy,
    )  # fmt: skip
    return 0


def summary(args: argparse.Namespace) -> int:
    from ..rpc.tracker import connect_tracker

    port = None if args.host.startswith(("unix:", "tls:")) else args.port
    with connect_tracker(args.host, port, key_file=args.key_file) as session:
        print(session.text_summary(), end="")
    return 0
