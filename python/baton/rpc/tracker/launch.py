# SPDX-License-Identifier: Apache-2.0
"""A tracker in a separate process, and the function that such a process runs."""

from __future__ import annotations

import os

from .. import transport
from ..child import Child, tell_ready, until_told
from ..errors import RPCError
from .process import Process, stderr_log


class Tracker(Child):
    """A tracker, in a separate process that ends with this one.

        tracker = baton.rpc.tracker.Tracker("127.0.0.1", 9190)
        session = baton.rpc.connect_tracker("127.0.0.1", tracker.port)

    host, port, port_end: the address, and the first port from `port` on that is free; `host` may be "unix:/path". Beyond this machine it
    needs `key_file`. journal: a file in which servers and leases outlive a restart. reset_command: run for a device that is quarantined.
    proxies: URLs of proxies for servers.
    """

    def __init__(self, host="127.0.0.1", port=9190, port_end=9199, silent=True, *, key_file=None, journal=None, reset_command=None, proxies=()):
        arguments = ["--host", host, "--port", str(port), "--port-end", str(port_end)]
        for flag, value in (("--key-file", key_file), ("--journal", journal), ("--reset-command", reset_command)):
            if value:
                arguments += [flag, os.fspath(value)]
        for proxy in proxies:
            arguments += ["--proxy", proxy]
        super().__init__("rpc-tracker", arguments, silent)
        self.host, self.port = host, int(self.url.rpartition(":")[2]) if self.url.startswith("tls:") else 0


def listen(host: str, port: int, port_end: int, key_file=None):
    """A listener at the first port from `port` to `port_end` that is free."""
    if host.startswith("unix:"):
        return transport.listen(host)
    last = None
    for one in range(port, max(port + 1, port_end)) if port else [0]:
        try:
            return transport.listen(transport.url_of(host, one, key_file))
        except (OSError, RPCError) as error:
            if "in use" not in str(error):
                raise
            last = error
    raise RPCError(f"port {port} is in use; choose another by --port" if port_end <= port + 1 else f"no port from {port} to {port_end - 1} is free") from last


def serve(host, port, port_end, key_file=None, silent=False, ready_fd=-1, lifeline_fd=-1, ready=None, **options) -> None:
    """Runs a tracker in this process until SIGTERM or Ctrl-C, or until the other end of `lifeline_fd` is closed. `ready(url)` is called when
    it listens."""
    listener = listen(host, port, port_end, key_file)
    try:
        process = Process([listener], log=(lambda text: None) if silent else stderr_log, **options)
    except BaseException:
        listener.close()
        raise
    url = listener.url.partition("?")[0]
    until_told(process.stop, lifeline_fd)
    if ready is not None:
        ready(url)
    tell_ready(ready_fd, url)
    process.run()


__all__ = ["Tracker", "listen", "serve"]
