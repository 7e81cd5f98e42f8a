# SPDX-License-Identifier: Apache-2.0
"""A tracker or proxy in a separate process, which ends with this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from .errors import RPCError
from .lifeline import close_lifeline, open_lifeline


class Child:
    """Runs `baton VERB ARGUMENTS`; `url` is what it says when it listens."""

    def __init__(self, verb: str, arguments: list[str], silent: bool):
        command = [sys.executable, "-m", "baton", verb, *arguments, *(["--silent"] if silent else [])]
        package = str(Path(__file__).resolve().parents[2])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))}
        told, tell = os.pipe()
        lifeline, self._lifeline = open_lifeline()
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
            raise RPCError(said.removeprefix("error: ") or f"`baton {verb}` ended with exit code {self._process.returncode}")
        threading.Thread(target=self._pass_on, args=(self._process.stderr, silent), daemon=True).start()

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
        """Ends the process."""
        if self._lifeline >= 0:
            close_lifeline(self._lifeline)
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


def until_told(stop, lifeline_fd: int) -> None:
    """Calls `stop` at SIGTERM and Ctrl-C, and when the process that started this one ends."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop())
    if lifeline_fd >= 0:
        threading.Thread(target=lambda: (os.read(lifeline_fd, 1), stop()), daemon=True).start()


def tell_ready(ready_fd: int, url: str) -> None:
    """Tells the process that started this one where it listens."""
    if ready_fd >= 0:
        os.write(ready_fd, f"{url}\n".encode())
        os.close(ready_fd)


__all__ = ["Child", "tell_ready", "until_told"]
