# SPDX-License-Identifier: Apache-2.0
"""The tracker's process: one loop that hands messages to the state and carries out what it says, and threads that authenticate.

A round reads what has arrived, at most a few messages of each connection; then one flush of the journal covers all that the round
decided, and only then messages leave. A peer that does not read its messages is cut off: the loop waits for none.
"""

from __future__ import annotations

import os
import queue
import resource
import selectors
import shlex
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from .. import transport
from ..errors import RPCError, Timeout
from ..journal import Journal
from . import messages
from .door import Door, Stranger
from .state import Limits, Peer, Tracker

ACCEPTED = 64  # connections in a round
MESSAGES = 32  # of one connection in a round
RECORDS = 20_000  # in the journal, until it is rewritten; more where there are many servers
RESET_SECONDS = 120.0


class Process:
    """Serves until `stop`. `journal`: its path, or None: then a restart forgets. `reset_command`: a program with arguments, run for each
    device that is quarantined, with BATON_DEVICE, BATON_KEY and BATON_ADDRESS in its environment; no shell reads it."""

    def __init__(self, listeners, journal=None, limits: Limits | None = None, reset_command: str = "", proxies=(), log=None):
        self._listeners, self._log = list(listeners), log or (lambda text: None)
        self._journal = Journal(journal) if journal else None
        self._state = Tracker(time.monotonic(), limits, proxies=proxies)
        self._written = 0
        if self._journal is not None:
            self._state.restore(time.monotonic(), self._journal.records)
            self._journal.records = []
            self._journal.rewrite(self._state.snapshot())
        self._reset_command = shlex.split(reset_command)
        self._connections: dict[int, object] = {}
        self._next = 0
        self._arrived: queue.SimpleQueue = queue.SimpleQueue()  # what other threads want done in the loop
        self._wake, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self._resets = ThreadPoolExecutor(4, "reset")
        self._selector = selectors.DefaultSelector()
        self._door = Door(self._selector, self._proved, self._refused)
        self._room = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200  # of descriptors: what else the process has open
        self._stopped = False

    def stop(self) -> None:
        """Ends `run`, from any thread."""
        self._call(self._end)

    def _end(self) -> None:
        self._stopped = True

    def run(self) -> None:
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        for listener in self._listeners:
            self._selector.register(listener, selectors.EVENT_READ, listener)
        ready: list = []
        try:
            while not self._stopped:
                ready = self._round(ready)
        finally:
            self._close()

    def _close(self) -> None:
        for listener in self._listeners:
            listener.close()
        for connection in self._connections.values():
            connection.close()
        self._door.close()
        self._resets.shutdown(wait=False, cancel_futures=True)
        self._selector.close()
        self._wake.close()
        self._woken.close()
        if self._journal is not None:
            self._journal.close()

    def _round(self, ready: list) -> list:
        """One round; gives the connections that have more than was read."""
        due, silent = self._state.next_timer(), self._door.tick()
        wait = 0.0 if ready else None if due is None else max(0.0, due - time.monotonic())
        if silent is not None:
            wait = silent if wait is None else min(wait, silent)
        found = self._selector.select(wait)
        numbers = dict.fromkeys(ready)
        for event, _ in found:
            if type(event.data) is int:
                numbers[event.data] = None
            elif type(event.data) is Stranger:
                if event.data.own.fileno() >= 0:  # another one of this round did not take its place
                    self._door.hear(event.data)
            elif event.data is None:
                with suppress(BlockingIOError):
                    self._woken.recv(4096)
                while not self._arrived.empty():
                    self._arrived.get()()
            else:
                self._accept(event.data)
        more = [number for number in numbers if self._read(number)]
        self._state.tick(time.monotonic())
        self._work()
        return more

    # Connections.

    def _accept(self, listener) -> None:
        for _ in range(ACCEPTED):
            try:
                found = listener.accept_unknown(transport.AT_ONCE)
            except RPCError:
                return
            if found is None:
                return
            if len(self._connections) + 2 * len(self._door) >= self._room:
                found.close() if hasattr(found, "close") else os.close(found)
                self._log("a connection was refused: no descriptors are left")
            elif isinstance(listener, transport.UnixListener):
                self._open(*self._identify(listener, found))  # waits for nothing
            else:
                self._door.accept(listener, found)

    @staticmethod
    def _identify(listener, found):
        """(the connection, its peer's identity), or (None, what is wrong)."""
        try:
            connection = listener.authenticate(found)
            return connection, transport.identity(connection)
        except (RPCError, OSError) as error:
            return None, str(error)

    def _proved(self, stranger, connection, identity) -> None:
        self._call(lambda: (self._door.done(stranger), self._open(connection, identity)))

    def _refused(self, stranger, why: str) -> None:
        self._call(lambda: (self._door.done(stranger), self._open(None, why)))

    def _call(self, action) -> None:
        self._arrived.put(action)
        with suppress(OSError):
            self._wake.send(b"!")

    def _open(self, connection, identity) -> None:
        if connection is None:
            self._log(f"a connection was refused: {identity}")
            return
        self._next += 1
        self._connections[self._next] = connection
        self._selector.register(connection, selectors.EVENT_READ, self._next)
        self._state.opened(time.monotonic(), self._next, Peer(*identity))
        self._read(self._next)  # what came together with the handshake

    def _drop(self, number: int) -> None:
        connection = self._connections.pop(number, None)
        if connection is not None:
            self._selector.unregister(connection)
            connection.close()
            self._state.closed(time.monotonic(), number)

    def _read(self, number: int) -> bool:
        """Hands over what has arrived; True where there is more."""
        connection = self._connections.get(number)
        if connection is None:
            return False
        for _ in range(MESSAGES):
            try:
                raw = connection.recv(transport.AT_ONCE)
            except Timeout:
                return False
            except RPCError as error:
                self._log(f"{connection.peer}: {error}")
                raw = None
            if raw is None:
                self._drop(number)
                return False
            self._state.received(time.monotonic(), number, raw)
            if not connection.readable():
                return False
        return True

    # Messages of the state.

    def _work(self) -> None:
        while True:
            effects = self._state.take()
            if self._journal is not None and effects.records:
                self._write(effects.records)
            dropped = dict.fromkeys(effects.closes)
            for number, message in effects.sends:
                connection = self._connections.get(number)
                if connection is None or number in dropped and message["type"] != "error":
                    continue
                try:
                    connection.send(messages.pack(message), transport.AT_ONCE)
                except RPCError as error:
                    self._log(f"{connection.peer}: {error}")
                    dropped[number] = None
            for reset in effects.resets:
                self._log(f"{reset['device']} ({reset['key']}) is quarantined: {reset['why']}")
                if self._reset_command:
                    self._resets.submit(self._reset, reset)
            for number in dropped:
                self._drop(number)
            if not dropped:
                return

    def _write(self, records: list) -> None:
        self._journal.append(*records)
        self._written += len(records)
        if self._written > RECORDS + 4 * len(self._state.devices):
            self._journal.rewrite(self._state.snapshot())
            self._written = 0

    def _reset(self, reset: dict) -> None:
        names = {"BATON_DEVICE": reset["device"], "BATON_KEY": reset["key"], "BATON_ADDRESS": reset["address"]}
        try:
            done = subprocess.run(self._reset_command, env={**os.environ, **names}, timeout=RESET_SECONDS, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            outcome = f"exit code {done.returncode}"
        except (OSError, subprocess.TimeoutExpired) as error:
            outcome = str(error)
        self._call(lambda: self._log(f"{reset['device']}: the reset command ended: {outcome}"))
        self._call(lambda: self._state.reset_done(time.monotonic(), reset["device"]))


def stderr_log(text: str) -> None:
    """Writes a line to standard error."""
    with suppress(OSError, ValueError):
        print(f"rpc-tracker: {text}", file=sys.stderr, flush=True)


__all__ = ["Process", "stderr_log"]
