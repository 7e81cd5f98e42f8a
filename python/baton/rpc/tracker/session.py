# SPDX-License-Identifier: Apache-2.0
"""The client's view of a tracker: leases, and sessions on the devices that they are of."""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout

from .. import transport
from ..errors import DeviceLost, RPCError, SessionLost, Timeout
from .errors import of_kind
from .line import Line
from .state import digest

ANSWER_SECONDS = 30.0  # for what a tracker answers at once


class Lease:
    """A device that is this process's own until `release`, the end of its seconds, or its loss; renewed by the tracker's session.

    `address`: the URL of the server. `match`: what it is connected with, as `key`. `lost`: an event; `error` says why then.
    """

    def __init__(self, desk, message: dict, sent: float):
        self._desk, self._token = desk, message["lease"]
        self.key, self.epoch, self.server = message["key"], message["epoch"], message["server"]
        self.address, self.match, self.seconds = message["address"], message["match"], message["seconds"]
        self.renew_seconds, self.sure_until = message["renew"], sent + message["renew"]
        self.lost, self.error = threading.Event(), None

    def release(self) -> None:
        """Gives the device back."""
        self._desk.release(self)

    def _lose(self, why: str) -> None:
        if not self.lost.is_set():
            self.error = DeviceLost(why)
            self.lost.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()


class _Desk:
    """The half of a session that its thread works with, so that the session itself can be collected."""

    def __init__(self, url: str):
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._pending: dict[int, tuple[Future, dict]] = {}  # what is sent again after a loss
        self._leases: dict[str, Lease] = {}
        self._renewals: dict[int, float] = {}  # id -> when it was sent
        self._next_renewal = 0.0
        self.closed = False
        self.line = Line(url, self._up, self._hear, self._due)
        self.line.start()

    def ask(self, message: dict) -> tuple[int, Future]:
        future: Future = Future()
        number = next(self._ids)
        message["id"] = number
        with self._lock:
            if self.closed:
                raise SessionLost("the session with the tracker was closed")
            self._pending[number] = (future, message)
        self.line.send(message)
        return number, future

    def cancel(self, number: int) -> None:
        with self._lock:
            self._pending.pop(number, None)
        self.line.send({"type": "cancel", "id": number})

    def release(self, lease: Lease) -> None:
        with self._lock:
            self._leases.pop(digest(lease._token), None)
        lease._lose("it was given back")
        self.line.send({"type": "release", "lease": lease._token})

    def close(self) -> None:
        with self._lock:
            self.closed = True
            leases, pending = list(self._leases.values()), list(self._pending.values())
            self._pending.clear()
        for lease in leases:
            self.release(lease)
        self.line.close()
        for future, _ in pending:
            if not future.done():
                future.set_exception(SessionLost("the session with the tracker was closed"))

    # In the thread of the line.

    def _up(self) -> None:
        with self._lock:
            again = [message for _, message in self._pending.values()]
            self._renewals.clear()
            self._next_renewal = 0.0
        for message in again:
            self.line.send(message)

    def _due(self) -> float | None:
        now = time.monotonic()
        with self._lock:
            leases = list(self._leases.items())
        for name, lease in leases:
            if now >= lease.sure_until:
                self._leases.pop(name, None)
                lease._lose(f"lease of {lease.server}: the tracker was not reached for {lease.renew_seconds:g} s")
        if not leases:
            return 0.5
        if now >= self._next_renewal:
            self._next_renewal = now + min(lease.renew_seconds for _, lease in leases) / 4
            for start in range(0, len(leases), 256):
                number = next(self._ids)
                self._renewals[number] = now
                self.line.send({"type": "renew", "id": number, "leases": [lease._token for _, lease in leases[start : start + 256]]})
        return max(0.0, self._next_renewal - now)

    def _hear(self, message: dict) -> None:
        kind = message["type"]
        if kind == "renewed":
            sent = self._renewals.pop(message["id"], None)
            for token in message["leases"] if sent is not None else ():
                lease = self._leases.get(digest(token))
                if lease is not None:
                    # From when the renewal was sent: its answer may have been under way for long.
                    lease.sure_until = max(lease.sure_until, sent + lease.renew_seconds)
            for token in message["lost"]:
                self._lose(digest(token), "the tracker does not know it any more")
        elif kind == "lost":
            self._lose(message["digest"], message["message"])
        elif kind in ("granted", "summary", "error"):
            self._answer(message)

    def _answer(self, message: dict) -> None:
        with self._lock:
            future, _ = self._pending.pop(message.get("id"), (None, None))
        granted = message["type"] == "granted"
        if future is None or not future.set_running_or_notify_cancel():
            if granted:  # nothing waits for it any more
                self.line.send({"type": "release", "lease": message["lease"]})
        elif granted:
            lease = Lease(self, message, time.monotonic())
            with self._lock:
                self._leases[digest(message["lease"])] = lease
                self._next_renewal = 0.0
            future.set_result(lease)
        elif message["type"] == "error":
            future.set_exception(of_kind(message["kind"], message["message"]))
        else:
            future.set_result(message)

    def _lose(self, name: str, why: str) -> None:
        with self._lock:
            lease = self._leases.pop(name, None)
        if lease is not None:
            lease._lose(why)


class TrackerSession:
    """A session with a tracker. Threads may use it at the same time; a lost connection is made again, and leases go on meanwhile."""

    def __init__(self, url: str, connect=None):
        self._desk = _Desk(url)
        self._connect = connect
        self._end = weakref.finalize(self, self._desk.close)

    def lease(self, key: str, priority: int = 1, seconds: float = 0, timeout: float = 0) -> Lease:
        """A device of a kind, when it is this client's turn. `priority` orders requests of one user, larger first; `seconds` end the lease
        (0: none do); after `timeout` seconds of waiting Timeout is raised (0: never)."""
        number, future = self._desk.ask({"type": "request", "key": key, "priority": int(priority), "seconds": float(seconds)})
        try:
            return future.result(timeout or None)
        except FutureTimeout:
            self._desk.cancel(number)
            if future.cancel():
                raise Timeout(f"no device of kind `{key}` was free within {timeout:g} s") from None
            return future.result()  # it came at the last moment
        except BaseException:  # Ctrl-C
            self._desk.cancel(number)
            future.cancel()
            raise

    def request(self, key: str, priority: int = 1, session_timeout: float = 0, max_retry: int = 5, session_constructor_args=None, *, timeout: float = 0):
        """A session on a device of a kind; `close` of it gives the device back.

        priority: among the requests of one user, larger first. session_timeout: seconds until the device is taken back; 0: never.
        max_retry: how many devices are tried. timeout: seconds to wait for each; 0: as long as it takes. Raises the error of the last.
        """
        last: Exception | None = None
        for _ in range(max(1, max_retry)):
            lease = self.lease(key, priority, session_timeout, timeout)
            try:
                session = self._open(lease, session_constructor_args)
            except (RPCError, OSError) as error:
                lease.release()
                last = error
                continue
            except BaseException:
                lease.release()
                raise
            return _give_back(session, lease)
        raise DeviceLost(f"no session with a device of kind `{key}` after {max(1, max_retry)} attempts: {last}") from last

    def request_and_run(self, key: str, func, priority: int = 1, session_timeout: float = 0, max_retry: int = 2):
        """`func(session)` on a device of a kind, on another one when the device is lost meanwhile, `max_retry` times in all."""
        for attempt in range(1, max(1, max_retry) + 1):
            session = self.request(key, priority, session_timeout)
            try:
                return func(session)
            except (SessionLost, DeviceLost, Timeout):
                if attempt >= max_retry:
                    raise
            finally:
                session.close()

    def _open(self, lease: Lease, extra):
        if self._connect is not None:
            return self._connect(lease)
        return open_session(lease, extra)

    def summary(self) -> dict:
        """{"queue_info": {kind: {"free": n, "pending": n}}, "server_info": [{"server", "key", "addr", "url", "state", ...}]}. The `key` of a server
        is "server:" and the kind of its device, `addr` its host and port, ("", 0) while it is away; a device that is leased is not free."""
        queues, servers, offset = {}, [], 0
        while offset is not None:
            number, future = self._desk.ask({"type": "summary", "offset": offset})
            try:
                part = future.result(ANSWER_SECONDS)
            except FutureTimeout:
                self._desk.cancel(number)
                raise Timeout(f"the tracker gave no answer in {ANSWER_SECONDS:g} s") from None
            queues, offset = part["queues"], part["next"]
            servers += part["servers"]
        return {"queue_info": queues, "server_info": [_shown(row) for row in servers]}

    def text_summary(self) -> str:
        """The summary as two tables."""
        info = self.summary()
        servers = [[row["server"], row["key"].removeprefix("server:"), row["state"], row.get("user", ""), row["url"]] for row in info["server_info"]]
        queues = [[key, str(row["free"]), str(row["pending"])] for key, row in info["queue_info"].items()]
        return "\n\n".join([_table(["server", "key", "state", "user", "address"], servers), _table(["key", "free", "pending"], queues)]) + "\n"

    def close(self) -> None:
        """Gives all devices back and ends the session."""
        self._end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _shown(row: dict) -> dict:
    """A row of the tracker's summary as programs read it."""
    host, _, port = row["addr"].partition("://")[2].partition("/")[0].partition("?")[0].rpartition(":")
    known = row["state"] != "away" and port.isdigit()
    return {**row, "key": f"server:{row['key']}", "url": row["addr"], "addr": (host.strip("[]"), int(port)) if known else ("", 0)}


def open_session(lease: Lease, extra=None):
    """A session with the server of a lease."""
    from .. import connect, proxy

    options = {"session_constructor_args": extra} if extra else {}
    if lease.address.startswith("proxy:"):
        return proxy.connect(lease.address, lease.match, lease.seconds, **options)
    return connect(lease.address, key=lease.match, session_timeout=lease.seconds, **options)


def _give_back(session, lease: Lease):
    """Lets `session.close()` release the lease. A session that is collected instead is seen by its server, which tells the tracker."""
    close, there = type(session).close, weakref.ref(session)  # no cycle: what is dropped is closed at once

    def both():
        try:
            if there() is not None:
                close(there())
        finally:
            lease.release()

    session.close, session.lease = both, lease
    return session


def _table(head: list[str], rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def connect_tracker(url: str, port: int | None = None, *, key_file=None) -> TrackerSession:
    """A session with a tracker: a host and a port, or a URL ("tls://host:9190", "unix:/path"); `key_file` is the file of the key."""
    return TrackerSession(transport.url_of(url, port, key_file))


__all__ = ["Lease", "TrackerSession", "connect_tracker", "open_session"]
