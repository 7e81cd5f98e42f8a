# SPDX-License-Identifier: Apache-2.0
"""The end of a tracker's connection at a server: registers it, answers known questions, ends sessions of leases that are over."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import warnings
from pathlib import Path

from .. import transport
from . import probe
from .line import Line

LOOK_SECONDS = 0.25  # between looks at whether a session is over
LIFE_SECONDS = 2.0  # between looks at whether the server is there
KILL_SECONDS = 4.0


class Device:
    """The interface of a server for a registration; a base for a program's own servers.

    `compute` runs the known question on the device. `begin(epoch, ticket, seconds)`: sessions that show a ticket with this SHA-256 are to
    be served, no others. `sessions()`: how many are open; `served()`: how many there were, for those that are too short to be seen. `end(epoch)`: ends them, and returns when they are gone.
    """

    compute = staticmethod(probe.compute)

    def begin(self, epoch: int, ticket: str, seconds: float) -> None:
        pass

    def sessions(self) -> int:
        return 0

    def served(self) -> int:
        return 0

    def end(self, epoch: int) -> None:
        pass

    def alive(self) -> bool:
        """Whether the server is there; a registration ends with it."""
        return True


class Registration:
    """Keeps a server registered until `close`. `where`: {"port": n}, {"socket": name} or {"proxy": ticket}; it and the key are all that the
    tracker takes from here, the host is what it sees itself."""

    def __init__(self, url: str, key: str, where: dict, device: Device | None = None):
        self._key, self._where, self._device = key, where, device or Device()
        self._epoch, self._resume = 0, None
        self._leased = self._seen = False  # a lease is under way; a session of it was seen
        self._before = 0  # sessions before the lease
        self.registered, self.name, self.error = threading.Event(), "", None
        self._line = Line(url, self._up, self._hear, self._due)
        self._line.start()

    @property
    def epoch(self) -> int:
        return self._epoch

    def close(self) -> None:
        self._line.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _up(self) -> None:
        message = {"type": "register", "key": self._key, "epoch": self._epoch, **self._where}
        if self._resume:
            message["resume"] = self._resume
        self._line.send(message)

    def _hear(self, message: dict) -> None:
        kind = message["type"]
        if kind == "registered":
            self._resume, self.name = message["resume"], message["server"]
            self.registered.set()
        elif kind == "error":
            self.error = f"{message['kind']}: {message['message']}"
        elif kind == "prepare":
            self._prepare(message["epoch"], message["question"], message["ticket"], message["seconds"])
        elif kind == "end" and message["epoch"] >= self._epoch:
            self._epoch = message["epoch"]
            self._over()

    def _prepare(self, epoch: int, question: int, ticket: str, seconds: float) -> None:
        if epoch <= self._epoch:  # of a tracker that forgot
            self._line.send({"type": "ended", "epoch": epoch})
            return
        self._epoch = epoch
        answer = probe.answer(question, self._device.compute)
        self._before = self._device.served()
        self._device.begin(epoch, ticket, seconds)
        self._leased, self._seen = bool(ticket), False
        self._line.send({"type": "ready", "epoch": epoch, "answer": answer})

    def _over(self) -> None:
        self._leased = False
        self._device.end(self._epoch)
        self._line.send({"type": "ended", "epoch": self._epoch})

    def _due(self) -> float | None:
        if not self._device.alive():
            self._line.close()
        if not self._leased:
            return LIFE_SECONDS
        if self._device.sessions():
            self._seen = True
        elif self._seen or self._device.served() != self._before:
            self._over()
        return LOOK_SECONDS


class Door:
    """A file that says which lease is current. A server takes sessions that show its ticket and no others; it reads `descriptor`."""

    def __init__(self):
        self._written = os.memfd_create("baton-door")
        self.descriptor = os.open(f"/proc/self/fd/{self._written}", os.O_RDONLY)
        self.say(0, "")

    def say(self, epoch: int, ticket: str) -> None:
        """`ticket`: the SHA-256 of the ticket of the current lease; empty: there is none."""
        record = epoch.to_bytes(8, "little") + (bytes.fromhex(ticket) or bytes(32))
        if self._written >= 0:
            os.pwrite(self._written, record + hashlib.sha256(record).digest()[:8], 0)

    def close(self) -> None:
        for one in (self._written, self.descriptor):
            if one >= 0:
                os.close(one)
        self._written = self.descriptor = -1


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


class ServerDevice(Device):
    """The device of a `baton.rpc.Server`: each session is a process that the server's process started."""

    def __init__(self, server):
        self._server = server

    def alive(self) -> bool:
        return _state(self._server.pid) not in ("Z", "X", "")

    def begin(self, epoch: int, ticket: str, seconds: float) -> None:
        self._server.door.say(epoch, ticket)

    def sessions(self) -> int:
        return self._server.active()

    def served(self) -> int:
        return self._server.served()

    def end(self, epoch: int) -> None:
        self._server.door.say(epoch, "")
        self._server.end_sessions()
        give_up = time.monotonic() + KILL_SECONDS
        while self.sessions() and self.alive() and time.monotonic() < give_up:
            time.sleep(0.005)


def register_server(tracker_addr, server, custom_addr=None) -> Registration:
    """Registers a `baton.rpc.Server`. `tracker_addr`: (host, port), or a URL with "?key=FILE" behind it."""
    if custom_addr:
        warnings.warn("custom_addr is not used: a tracker gives out the address that it sees; behind NAT use baton.rpc.proxy", stacklevel=3)
    url = tracker_addr if isinstance(tracker_addr, str) else transport.url_of(*tracker_addr)
    if server.ticket:
        where = {"proxy": server.ticket}
    elif server.url.startswith("unix:"):
        where = {"socket": os.path.basename(server.url)}
    else:
        where = {"port": server.port}
    key = server.key or "cpu"
    return Registration(url, key, where, ServerDevice(server))


__all__ = ["Device", "Door", "Registration", "ServerDevice", "register_server"]
