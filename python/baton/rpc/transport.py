# SPDX-License-Identifier: Apache-2.0
"""Connections of trackers: Unix sockets by Python itself, the others by `wire`; both look like `wire.Connection`."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from contextlib import suppress

from .errors import Denied, ProtocolError, RPCError, SessionLost, Timeout

LIMIT = 1 << 20  # bytes of a message, as `wire` has it
AT_ONCE = 1e-6  # a deadline that waits for nothing


class UnixConnection:
    """A connection to a process of the same user; a message is its length in 32 bits, little endian, and its bytes."""

    key_id = ""

    def __init__(self, sock):
        pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid != os.geteuid():
            sock.close()
            raise Denied(f"the process at the other end is of user {uid}, this one of user {os.geteuid()}")
        self.peer = f"uid {uid} pid {pid}"
        sock.setblocking(False)
        self._socket, self._have, self._broken = sock, bytearray(), False

    def fileno(self) -> int:
        return self._socket.fileno()

    def readable(self) -> bool:
        """Whether a whole message is here already."""
        return len(self._have) >= 4 and len(self._have) >= 4 + int.from_bytes(self._have[:4], "little")

    def send(self, message: bytes, deadline: float = 60) -> None:
        if self._broken:
            raise SessionLost("the connection was given up after a message that was not sent whole")
        view, end = memoryview(len(message).to_bytes(4, "little") + message), time.monotonic() + deadline
        self._broken = True
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, end, "sending to the peer")
            except OSError as error:
                raise SessionLost(f"sending to the peer: {error.strerror}") from None
        self._broken = False

    def recv(self, deadline: float = 60) -> bytes | None:
        end = time.monotonic() + deadline
        while True:
            if len(self._have) >= 4:
                size = int.from_bytes(self._have[:4], "little")
                if size > LIMIT:
                    self.close()
                    raise ProtocolError(f"a message of {size} bytes: the limit is {LIMIT}")
                if len(self._have) >= 4 + size:
                    message = bytes(self._have[4 : 4 + size])
                    del self._have[: 4 + size]
                    return message
            try:
                more = self._socket.recv(65536)
            except BlockingIOError:
                self._wait(select.POLLIN, end, "waiting for the peer")
                continue
            except OSError as error:
                raise SessionLost(f"waiting for the peer: {error.strerror}") from None
            if not more:
                if self._have:
                    raise SessionLost("the connection ended within a message")
                return None
            self._have += more

    def _wait(self, events: int, end: float, what: str) -> None:
        poll = select.poll()
        poll.register(self._socket, events)
        left = end - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise Timeout(f"{what}: the deadline has passed")

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # a thread that waits in it wakes

    def __del__(self):
        with suppress(AttributeError):
            self._socket.close()


class UnixListener:
    """Accepts connections at a Unix socket."""

    port = 0

    def __init__(self, path: str):
        self.url, self._path = f"unix:{path}", path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._bind(path)
        except OSError as error:
            self._socket.close()
            raise SessionLost(f"listening at `{path}`: {error.strerror or error}") from None

    def _bind(self, path: str) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other, suppress(FileNotFoundError, ConnectionRefusedError):
            other.connect(path)
            raise SessionLost(f"`{path}` is in use by another process")
        with suppress(FileNotFoundError):
            os.unlink(path)  # of a process that was killed
        before = os.umask(0o077)
        try:
            self._socket.bind(path)
        finally:
            os.umask(before)
        self._socket.listen(1024)
        self._socket.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def accept_unknown(self, deadline: float = 60):
        if not select.select([self._socket], [], [], deadline)[0]:
            return None
        try:
            return self._socket.accept()[0]
        except BlockingIOError:
            return None

    def authenticate(self, sock) -> UnixConnection:
        return UnixConnection(sock)

    def accept(self, deadline: float = 60) -> UnixConnection | None:
        found = self.accept_unknown(deadline)
        return None if found is None else self.authenticate(found)

    def close(self) -> None:
        self._socket.close()
        with suppress(OSError):
            os.unlink(self._path)


def listen(url: str):
    """A listener: "unix:/path" here, "tls://host:port" by `wire`."""
    if url.startswith("unix:"):
        return UnixListener(url.removeprefix("unix:"))
    from . import wire

    return wire.listen(url)


def connect(url: str, deadline: float = 5):
    """A connection to a URL, `unix:/path` or `tls:host:port`; Timeout after the deadline."""
    if not url.startswith("unix:"):
        from . import wire

        return watched(wire.connect(url, deadline))
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(url.removeprefix("unix:"))
    except OSError as error:
        sock.close()
        raise SessionLost(f"connecting to `{url}`: {error.strerror or error}") from None
    return UnixConnection(sock)


def watched(connection):
    """Lets the kernel notice within 10 s that the other side of a TCP connection is silent."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as sock:
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in (("TCP_KEEPIDLE", 4), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 10_000)):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return connection


def identity(connection) -> tuple[str, str]:
    """(user, host) as the transport proved them: the id of the key, or the user of the process; "" is this machine by a Unix socket."""
    user = f"key {connection.key_id}" if connection.key_id else " ".join(connection.peer.split()[:2])
    with socket.socket(fileno=os.dup(connection.fileno())) as sock:
        name = sock.getpeername() if sock.family != socket.AF_UNIX else ("",)
    return user, name[0].removeprefix("::ffff:")


def url_of(host: str, port: int | None = None, key_file: str | os.PathLike | None = None) -> str:
    """A URL of a host and a port, or the URL itself; `key_file` is the file of the key."""
    if port is None and not host.startswith(("unix:", "tls:")):
        raise RPCError(f"`{host}` has no port; write a host and a port, or a URL: tls://host:9190, unix:/path")
    url = host if port is None else f"tls://{f'[{host}]' if ':' in host else host}:{int(port)}"
    return f"{url}?key={os.fspath(key_file)}" if key_file else url


__all__ = ["AT_ONCE", "LIMIT", "UnixListener", "connect", "identity", "listen", "url_of", "watched"]
