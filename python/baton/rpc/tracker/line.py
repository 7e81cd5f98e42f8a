# SPDX-License-Identifier: Apache-2.0
"""A connection to a tracker that is made again when it is lost; the end of both clients and servers."""

from __future__ import annotations

import json
import random
import threading
import time

from .. import transport
from ..errors import RPCError, SessionLost, Timeout
from . import messages

SLOWEST = 3.0  # seconds between two attempts to connect, at most


class Line:
    """Runs a thread that connects to `url`, calls `up()`, then `hear(message)` for each message, and `due()` whenever the seconds that it
    gave last are over. All of them run in that thread. `url` is a text, or a function that gives one."""

    def __init__(self, url: str, up, hear, due, deadline: float = 5.0):
        self.url, self._up, self._hear, self._due = url, up, hear, due
        self._connection = transport.connect(url, deadline)
        self._sending = threading.Lock()
        self._closed = threading.Event()
        self.thread = threading.Thread(target=self._run, name="baton tracker", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def send(self, message: dict) -> bool:
        """Whether the message went out; if not, `up` is called when there is a connection again."""
        connection = self._connection
        if connection is None:
            return False
        try:
            with self._sending:
                connection.send(messages.pack(message), 10)
            return True
        except (RPCError, OSError):
            connection.close()
            return False

    def close(self) -> None:
        self._closed.set()
        connection = self._connection
        if connection is not None:
            connection.close()

    def _run(self) -> None:
        pause = 0.05
        while not self._closed.is_set():
            if self._connection is None:
                self._closed.wait(random.uniform(0.5, 1.0) * pause)
                pause = min(pause * 2, SLOWEST)
                self._call(self._due)
                try:
                    self._connection = transport.connect(self.url, 5.0)
                except (RPCError, OSError):
                    continue
            self._call(self._up)
            if self._talk():
                pause = 0.05
            connection, self._connection = self._connection, None
            connection.close()

    def _talk(self) -> bool:
        """Until the connection is lost; whether anything was heard."""
        heard = False
        while not self._closed.is_set():
            wait = self._call(self._due)
            try:
                raw = self._connection.recv(max(0.001, 60.0 if wait is None else wait))
                if raw is None:
                    return heard
                message = json.loads(raw)
            except Timeout:
                continue
            except (RPCError, OSError, ValueError):
                return heard
            heard = True
            self._call(self._hear, message)
        return heard

    @staticmethod
    def _call(action, *args):
        try:
            return action(*args)
        except (KeyError, TypeError, AttributeError, ValueError):
            return 1.0  # a tracker of another version: what it says is not understood, and passed over


def wait_until(end: float | None) -> float | None:
    """Waits for a descriptor to be ready; Timeout after the deadline."""
    return None if end is None else max(0.0, end - time.monotonic())


__all__ = ["Line", "SessionLost", "wait_until"]
