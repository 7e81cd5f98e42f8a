# SPDX-License-Identifier: Apache-2.0
"""`python -m baton.exec.rpc_server`: serves the functions registered in Python, and modules that clients upload. `baton-rpc-server` is the
server without Python, and confines its sessions; this one cannot, since functions of Python need its files."""

import argparse
import ipaddress
import signal
import sys
import threading

from .. import rpc


def _address(parser, flag, text):
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        parser.error(f"{flag} takes host:port, not `{text}`")
    return host, int(port)


def _reached_by_others(args, proxy) -> bool:
    """Whether programs of other machines may come: by an address that is not of this machine alone, or through a proxy."""
    if proxy:
        return True
    if args.url:
        scheme, _, rest = args.url.partition("://")
        if scheme != "tls":
            return False
        host = rest.partition("?")[0].rpartition(":")[0].strip("[]")
    else:
        host = args.host.strip("[]")
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def main(argv=None):
    """Serves until it is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m baton.exec.rpc_server", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; beyond this machine --key-file is needed (default: %(default)s)")
    parser.add_argument("--port", type=int, default=9090, help="first port to try (default: %(default)s)")
    parser.add_argument("--port-end", type=int, default=9199, help="end of the ports to try (default: %(default)s)")
    parser.add_argument("--url", help="listen there instead: unix:/path, tls://host:port")
    parser.add_argument("--key-file", help="secret key, as `baton rpc-key new` writes it")
    parser.add_argument("--policy", choices=["trusted", "session"], help="what clients may call (default: by who they are)")
    parser.add_argument("--allow", default="", help="registered functions that clients may call, with commas; `*` at the end: any that begin so")
    parser.add_argument("--max-sessions", type=int, default=256, help="sessions at once (default: %(default)s)")
    parser.add_argument("--tracker", help="host:port of a tracker to register with")
    parser.add_argument("--proxy", help="host:port of a proxy to be behind; --key-file is needed then")
    parser.add_argument("--proxy-key-file", help="secret key of the proxy (default: --key-file)")
    parser.add_argument("--key", default="", help="kind of device, as trackers know it; no secret")
    parser.add_argument("--custom-addr", help="address that the tracker tells clients")
    parser.add_argument("--load-library", help="libraries to load first, with colons between them")
    parser.add_argument("--no-sandbox", action="store_true", help="serve clients of other machines though sessions are not confined here")
    parser.add_argument("--silent", action="store_true", help="print nothing about sessions")
    for flag in ("--no-fork", "--fork"):  # of Relay's time: each session has a process
        parser.add_argument(flag, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--through-proxy", action="store_true", help=argparse.SUPPRESS)  # of Relay's time: host and port are the proxy's
    args = parser.parse_args(argv)
    tracker, proxy = (_address(parser, flag, text) for flag, text in (("--tracker", args.tracker), ("--proxy", args.proxy)))
    if args.through_proxy:
        proxy = args.host, args.port
    if proxy:
        args.host, args.port = proxy
    if _reached_by_others(args, proxy) and args.policy != "trusted" and not args.no_sandbox:
        parser.error(
            "other machines can reach this server, and a session of Python's is not confined: code that a client uploads may do what this user may. "
            "`baton-rpc-server` confines sessions; --no-sandbox serves them as they are"
        )
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        server = rpc.Server(
            args.host, args.port, args.port_end, key=args.key, tracker_addr=tracker, load_library=args.load_library, custom_addr=args.custom_addr,
            silent=args.silent, url=args.url, key_file=args.key_file, policy=args.policy, allow=[n for n in args.allow.split(",") if n],
            max_sessions=args.max_sessions, is_proxy=bool(proxy), proxy_key_file=args.proxy_key_file,
        )  # fmt: skip
    except (OSError, ValueError, RuntimeError) as error:
        print(f"rpc_server: {error}", file=sys.stderr)
        return 1
    with server:
        print(f"rpc_server: listening on {server.url}", flush=True)
        stop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
