# SPDX-License-Identifier: Apache-2.0
"""A tracker in a process of its own, and the function that such a process runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from .. import transport
from ..errors import RPCError, Timeout
from .process import Process, stderr_log

START_SECONDS = 30.0


class Tracker:
    """A tracker, in a process of its own that ends with this one.

        tracker = baton.rpc.tracker.Tracker("127.0.0.1", 9190)
        session = baton.rpc.connect_tracker("127.0.0.1", tracker.port)

    host, port, port_end: the address, and the first port from `port` on that is free; `host` may be "unix:/path". Beyond this machine it
    needs `key_file`. journal: a file in which servers and leases outlive a restart. reset_command: run for a device that is quarantined.
    proxies: URLs of proxies that servers may stand behind.
    """

    def __init__(self, host="127.0.0.1", port=9190, port_end=9199, silent=True, *, key_file=None, journal=None, reset_command=None, proxies=()):
        command = [sys.executable, "-m", "baton", "rpc-tracker", "--host", host, "--port", str(port), "--port-end", str(port_end)]
        for flag, value in (("--key-file", key_file), ("--journal", journal), ("--reset-command", reset_command)):
            if value:
                command += [flag, os.fspath(value)]
        for proxy in proxies:
            command += ["--proxy", proxy]
        if silent:
            command.append("--silent")
        package = str(Path(__file__).resolve().parents[3])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))}
        told, tell = os.pipe()
        lifeline, self._lifeline = os.pipe()
        try:
            command += ["--ready-fd", str(tell), "--lifeline-fd", str(lifeline)]
            self._process = subprocess.Popen(command, env=environment, pass_fds=(tell, lifeline), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        finally:
            os.close(tell)
            os.close(lifeline)
        with os.fdopen(told) as reader:
            self.url = reader.readline().strip()
        if not self.url:
            self._process.wait()
            said = self._process.stderr.read().decode(errors="replace").strip()
            self.terminate()
            raise RPCError(said.removeprefix("error: ") or "the tracker's process ended")
        threading.Thread(target=self._pass_on, args=(self._process.stderr, silent), daemon=True).start()
        self.host, self.port = host, int(self.url.rpartition(":")[2]) if self.url.startswith("tls:") else 0

    @staticmethod
    def _pass_on(stream, silent: bool) -> None:
        for line in stream:
            if not silent:
                with suppress(OSError, ValueError):
                    sys.stderr.write(line.decode(errors="replace"))

    @property
    def pid(self) -> int:
        return self._process.pid

    def terminate(self) -> None:
        """Ends the tracker."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.terminate()

    def __del__(self):
        with suppress(Exception):
            self.terminate()


def listen(host: str, port: int, port_end: int, key_file=None):
    """A listener at the first port from `port` to `port_end` that is free."""
    if host.startswith("unix:"):
        return transport.listen(host)
    last: Exception | None = None
    for one in range(port, max(port + 1, port_end)) if port else [0]:
        try:
            return transport.listen(transport.url_of(host, one, key_file))
        except (OSError, RPCError) as error:
            if "in use" not in str(error):
                raise
            last = error
    raise Timeout(f"no port from {port} to {port_end} is free: {last}") if port_end > port + 1 else last


def serve(host, port, port_end, key_file=None, silent=False, ready_fd=-1, lifeline_fd=-1, ready=None, **options) -> None:
    """Runs a tracker in this process until SIGTERM or Ctrl-C, or until the other end of `lifeline_fd` is closed. `ready(url)` is called when
    it listens."""
    listener = listen(host, port, port_end, key_file)
    log = (lambda text: None) if silent else stderr_log
    try:
        process = Process([listener], log=log, **options)
    except BaseException:
        listener.close()
        raise
    url = listener.url.partition("?")[0]
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: process.stop())
    if lifeline_fd >= 0:
        threading.Thread(target=lambda: (os.read(lifeline_fd, 1), process.stop()), daemon=True).start()
    if ready is not None:
        ready(url)
    if ready_fd >= 0:
        os.write(ready_fd, f"{url}\n".encode())
        os.close(ready_fd)
    process.run()


__all__ = ["Tracker", "listen", "serve"]
