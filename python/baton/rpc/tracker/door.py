# SPDX-License-Identifier: Apache-2.0
"""Connections to a tracker whose peer has not proved itself: silent ones cost a descriptor and no thread, slow ones make room for others."""

from __future__ import annotations

import os
import random
import selectors
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from .. import transport
from ..errors import RPCError

HANDSHAKES = 64  # at a time
STRANGERS = 1024  # that have said nothing yet
SILENT_SECONDS = 5.0


class Stranger:
    """A connection that was accepted. Its peer speaks first."""

    def __init__(self, listener, descriptor: int):
        self.listener, self.descriptor, self.since = listener, descriptor, time.monotonic()
        # Another descriptor of the connection: this one stays valid while a thread has the first.
        self.own = socket.socket(fileno=os.dup(descriptor))
        try:
            self.name = "%s port %s" % self.own.getpeername()[:2]
        except OSError:
            self.name = "a peer that is gone"

    def fileno(self) -> int:
        return self.own.fileno()

    def cut(self) -> None:
        """Ends the connection, be it that a thread waits in it."""
        with suppress(OSError):
            self.own.shutdown(socket.SHUT_RDWR)


class Door:
    """Lets peers prove themselves, a few at a time, each in a thread once it speaks.

    `proved(connection, identity)` is called in a thread for each that did, `refused(why)` for each that did not. Where there are too many,
    one of those before it is cut off by chance: a crowd then cuts off its own, and a peer that speaks at once gets through.
    """

    def __init__(self, selector: selectors.BaseSelector, proved, refused):
        self._selector, self._proved, self._refused = selector, proved, refused
        self._silent: dict[int, Stranger] = {}  # by descriptor, oldest first
        self._speaking: set[Stranger] = set()
        self._threads = ThreadPoolExecutor(HANDSHAKES, "handshake")

    def __len__(self) -> int:
        return len(self._silent) + len(self._speaking)

    def accept(self, listener, descriptor: int) -> None:
        """Takes a connection that a listener accepted."""
        if len(self._silent) >= STRANGERS:
            self._drop(random.choice(list(self._silent.values())))
        stranger = Stranger(listener, descriptor)
        self._silent[stranger.fileno()] = stranger
        self._selector.register(stranger, selectors.EVENT_READ, stranger)

    def hear(self, stranger: Stranger) -> None:
        """A peer has said something, or is gone."""
        self._selector.unregister(stranger)
        del self._silent[stranger.fileno()]
        if len(self._speaking) >= HANDSHAKES:
            random.choice(list(self._speaking)).cut()  # the thread that waits in it is free then
        self._speaking.add(stranger)
        self._threads.submit(self._prove, stranger)

    def done(self, stranger: Stranger) -> None:
        """The peer has proved itself, or not; called in the loop."""
        self._speaking.discard(stranger)
        stranger.own.close()

    def tick(self) -> float | None:
        """Drops peers that were silent for too long; gives the seconds until the next one is."""
        now = time.monotonic()
        for stranger in list(self._silent.values()):
            left = stranger.since + SILENT_SECONDS - now
            if left > 0:
                return left
            self._drop(stranger)
            self._refused(stranger, f"{stranger.name} said nothing in {SILENT_SECONDS:g} s")
        return None

    def close(self) -> None:
        for stranger in list(self._silent.values()):
            self._drop(stranger)
        for stranger in list(self._speaking):
            stranger.cut()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _drop(self, stranger: Stranger) -> None:
        self._selector.unregister(stranger)
        del self._silent[stranger.fileno()]
        stranger.own.close()
        os.close(stranger.descriptor)

    def _prove(self, stranger: Stranger) -> None:
        """In a thread: lets the peer prove itself."""
        try:
            connection = transport.watched(stranger.listener.authenticate(stranger.descriptor))
            proved = connection, transport.identity(connection)
        except (RPCError, OSError) as error:
            self._refused(stranger, f"{stranger.name}: {error}")
        else:
            self._proved(stranger, *proved)


__all__ = ["Door", "Stranger"]
