# SPDX-License-Identifier: Apache-2.0
"""`baton rpc-proxy`: runs a proxy for servers that cannot be reached, or puts such a server behind one."""

from __future__ import annotations

import argparse

from . import arguments
from .errors import UsageError
from .rpc_tracker import check_port


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton rpc-proxy --host 0.0.0.0 --key-file gate.key\n"
        "  baton rpc-proxy --host 0.0.0.0 --key-file gate.key --web-port 9443 --web-cert gate.pem\n"
        "  baton rpc-proxy --join proxy://gate.example:9191 --key-file gate.key --server 127.0.0.1:9090",
    )  # fmt: skip
    parser.add_argument("--host", default="127.0.0.1", metavar="HOST", help="address (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=9191, metavar="N", help="port (default: 9191)")
    parser.add_argument("--port-end", type=int, default=9199, metavar="N", help="end of the ports to try (default: 9199)")
    parser.add_argument("--key-file", metavar="FILE", help="servers prove that they have this secret; needed beyond this machine")
    parser.add_argument("--web-port", type=int, metavar="N", help="clients may come by WebSocket too, at this port (wss://HOST:N/TICKET)")
    parser.add_argument("--web-cert", metavar="FILE", help="certificate chain and private key for --web-port (PEM)")
    parser.add_argument("--join", metavar="URL", help="register a server of this machine with the proxy at this address")
    parser.add_argument("--server", metavar="HOST:PORT", help="the server to register")
    parser.add_argument("--silent", action="store_true", help="print nothing")
    parser.add_argument("--ready-fd", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--lifeline-fd", type=int, default=-1, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    check_port(args.port, "--port")
    if args.web_port is not None:
        check_port(args.web_port, "--web-port")
    if (args.web_port is None) != (args.web_cert is None):
        raise UsageError("--web-port and --web-cert go together", "baton rpc-proxy --web-port 9443 --web-cert FILE")
    if bool(args.join) != bool(args.server):
        raise UsageError("--join and --server go together", "baton rpc-proxy --join proxy://HOST:9191 --server 127.0.0.1:9090")
    from ..rpc import proxy

    def ready(text: str) -> None:
        if not args.silent:
            print(text, flush=True)

    if args.join:
        with proxy.Link(args.join, args.server, key_file=args.key_file) as link:
            ready(f"clients connect to {link.url}")
            link.wait()
        return 0
    proxy.serve(
        args.host, args.port, args.port_end, args.key_file, args.ready_fd, args.lifeline_fd, lambda url: ready(f"proxy at {url}"),
        web_port=args.web_port, web_cert=args.web_cert,
    )  # fmt: skip
    return 0
