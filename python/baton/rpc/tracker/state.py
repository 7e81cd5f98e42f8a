# SPDX-License-Identifier: Apache-2.0
"""The tracker's logic: events in, messages out; no clock, no network, no file.

The process (`process.py`) and the simulation of the tests call the same four functions with the time, a number of seconds that may stand
still, jump or count back: `opened`, `received`, `closed`, `tick`. The actions to take are in `effects` afterwards: records reach
the disk before any message leaves, so that a restart never forgets an epoch that a server has seen.

A device serves one epoch at a time. An epoch is given once. It ends before the next begins: its server said so, or it was away and says
so when it comes back.
"""

from __future__ import annotations

import hashlib
import heapq
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field

from . import messages
from .devices import Devices
from .errors import Busy, Denied, DeviceLost, ProtocolError, RPCError
from .fair import FairQueue
from .probe import Questions
from .records import AWAY, ENDING, IDLE, LEASED, PREPARING, QUARANTINED, RESTING, Device, Lease, Limits, Link, Peer, Request

SUMMARY_ROWS = 200  # of devices in one answer; a client asks for more by `offset`


def digest(token: str) -> str:
    """The SHA-256 of a ticket, which is all that the journal keeps of it."""
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass
class Effects:
    """The actions to take, in this order."""

    records: list = field(default_factory=list)  # to the journal
    sends: list = field(default_factory=list)  # (connection, message)
    closes: list = field(default_factory=list)  # connections
    resets: list = field(default_factory=list)  # devices to be restarted by the reset command


class Tracker(Devices):
    """The state. `token` makes secrets of 32 hexadecimal digits, `questions` known answers, `proxies` are the proxies that servers may
    are behind, by URL. A subclass of `Devices`, which has what happens to one device.
    """

    def __init__(self, now: float, limits: Limits | None = None, token=None, questions=None, proxies=()):
        self.now, self.limits = now, limits or Limits()
        self._ahead = 0.0  # of the caller's clock
        self._token = token or (lambda: secrets.token_hex(16))
        self._questions = questions or Questions()
        self._proxies = tuple(proxies)
        self.links: dict[object, Link] = {}
        self.devices: dict[str, Device] = {}
        self.leases: dict[str, Lease] = {}
        self._by_resume: dict[str, Device] = {}
        self._of_user: dict[str, int] = {}
        self._of_key: dict[str, int] = {}
        self._idle: dict[str, OrderedDict] = {}
        self.queues: dict[str, FairQueue] = {}
        self._timers: list = []
        self._timer = self._seq = self._next_device = 0
        self.waiting = 0
        self._waiting_of: dict[str, int] = {}  # by user
        self.effects = Effects()

    # Events.

    def opened(self, now: float, conn, peer: Peer) -> None:
        """A peer connected and proved itself; `conn` is any hashable name of the connection."""
        self._at(now)
        self.links[conn] = Link(conn, peer)

    def received(self, now: float, conn, raw: bytes) -> None:
        """A message arrived. A bad one is answered by one error."""
        self._at(now)
        link = self.links.get(conn)
        if link is None:
            return
        try:
            message = messages.parse(raw)
        except ProtocolError as error:
            self._refuse(link, messages.id_of(raw), error)
            return
        try:
            _HANDLERS[message["type"]](self, link, message)
        except RPCError as error:
            self._refuse(link, message.get("id"), error)

    def closed(self, now: float, conn) -> None:
        """A connection ended, by the peer or by `effects.closes`."""
        self._at(now)
        link = self.links.pop(conn, None)
        if link is None:
            return
        for request in list(link.requests.values()):
            self._withdraw(request)
        if link.device is not None and link.device.conn == conn:
            self._leave(link.device)

    def tick(self, now: float) -> None:
        """Does what is due. Messages that arrived by `now` are to be handed in before: a renewal among them counts."""
        self._at(now)
        while self._timers and self._timers[0][0] <= self.now:
            _, number, what, subject = heapq.heappop(self._timers)
            what(subject, number)

    def next_timer(self) -> float | None:
        """When `tick` has something to do, by the caller's clock; None: not before the next event."""
        return self._timers[0][0] - self._ahead if self._timers else None

    def take(self) -> Effects:
        effects, self.effects = self.effects, Effects()
        return effects

    # The journal.

    def restore(self, now: float, records) -> None:
        """The state that the records of a journal say. Leases of it go on: each has the time of one renewal to be renewed in."""
        self._at(now)
        for record in records:
            try:
                _check_record(record)
                _REPLAY[record["what"]](self, record)
            except (KeyError, TypeError, ValueError) as error:
                raise ProtocolError(f"the journal has a record that this version does not know: {str(record)[:80]} ({error!r})") from None
        for device in self.devices.values():
            device.since = self.now
            self._start_timer(self.limits.forget, self._forget, device)
        for lease in self.leases.values():
            self._queue(lease.key).hold(lease.user)
            lease.granted, lease.expires = self.now, self.now + self.limits.renew
            lease.ends = self.now + lease.seconds if lease.seconds else 0.0
            self._start_timer_at(min(lease.expires, lease.ends or lease.expires), self._expire, lease)

    def snapshot(self) -> list[dict]:
        """Records that say the whole state; they replace a journal that has grown."""
        found = [{"what": "devices", "next": self._next_device}]
        for device in self.devices.values():
            found.append(self._device_record(device))
            if device.suspect:
                found.append({"what": "quarantine", "device": device.id, "times": device.quarantines})
        found += [self._lease_record(lease) for lease in self.leases.values()]
        return found

    def _device_record(self, device: Device) -> dict:
        return {
            "what": "device",
            "device": device.id,
            "key": device.key,
            "user": device.user,
            "resume": device.resume,
            "address": device.address,
            "epoch": device.epoch,
        }

    @staticmethod
    def _lease_record(lease: Lease) -> dict:
        return {"what": "lease", "device": lease.device.id, "epoch": lease.epoch, "token": lease.token, "user": lease.user, "seconds": lease.seconds}

    def _replay_device(self, record: dict) -> None:
        device = self.devices.get(record["device"])
        if device is None:
            device = Device(record["device"], record["key"], record["user"], record["resume"])
            self._add(device)
            self._next_device = max(self._next_device, int(device.id[1:]))
        self._rename(device, record["key"])
        device.address, device.epoch = record["address"], record["epoch"]

    def _replay_lease(self, record: dict) -> None:
        device = self.devices[record["device"]]
        device.epoch = record["epoch"]
        lease = Lease(record["token"], device, record["user"], device.key, record["epoch"], record["seconds"], 0.0)
        device.lease = self.leases[lease.token] = lease

    def _replay_end(self, record: dict) -> None:
        device = self.devices[record["device"]]
        if device.lease is not None and device.lease.epoch == record["epoch"]:
            del self.leases[device.lease.token]
            device.lease = None

    def _replay_quarantine(self, record: dict) -> None:
        device = self.devices[record["device"]]
        device.suspect, device.quarantines = True, record["times"]

    def _replay_healthy(self, record: dict) -> None:
        self.devices[record["device"]].suspect = False

    def _replay_forget(self, record: dict) -> None:
        device = self.devices[record["device"]]
        self._replay_end({"device": device.id, "epoch": device.epoch})
        self._remove(device)

    def _replay_devices(self, record: dict) -> None:
        self._next_device = max(self._next_device, record["next"])

    # Messages of servers.

    def _register(self, link: Link, message: dict) -> None:
        if link.requests or link.device is not None:
            raise Denied("a connection registers one server, and a client's connection none")
        address = self._address(link.peer, message)
        device = self._by_resume.get(digest(message["resume"])) if "resume" in message else None
        resume = message.get("resume")
        if device is not None and device.user != link.peer.user:
            raise Denied("this server belongs to another user")
        if device is None:
            if len(self.devices) >= self.limits.devices or self._of_user.get(link.peer.user, 0) >= self.limits.devices_of_user:
                raise Busy(f"{len(self.devices)} servers are registered, and no more are taken; see `docs/guides/farm.md` on several trackers")
            resume = self._token()
            self._next_device += 1
            device = Device(f"d{self._next_device}", message["key"], link.peer.user, digest(resume))
            self._add(device)
        self._arrive(device, link, message, address, resume)

    def _address(self, peer: Peer, message: dict) -> str:
        """The URL of a server: the host as the transport saw it; of the server's words the port or file name alone."""
        said = [name for name in ("port", "socket", "proxy") if name in message]
        if len(said) != 1:
            raise ProtocolError("`register` names one of `port`, `socket` and `proxy`")
        if said == ["proxy"]:
            if not self._proxies:
                raise Denied("this tracker knows no proxy; start it with --proxy URL")
            return f"{self._proxies[0]}/{message['proxy']}"
        if said == ["port"]:
            host = peer.host or "127.0.0.1"
            return f"tls://[{host}]:{message['port']}" if ":" in host else f"tls://{host}:{message['port']}"
        if peer.host:
            raise Denied("a server on another machine has a port, not a Unix socket")
        return f"unix:{message['socket']}"

    def _ready(self, link: Link, message: dict) -> None:
        device = self._device_of(link)
        if device.state != PREPARING or message["epoch"] != device.epoch:
            return  # it answered too late
        token, ticket, answer = device.ticket
        if message["answer"] != answer:
            self._fail(device, "its answer to a known question is wrong")
            return
        device.failures = 0
        if device.suspect:
            device.suspect, device.quarantines = False, 0
            self.effects.records.append({"what": "healthy", "device": device.id})
        request, lease = device.request, device.lease
        device.request, device.ticket = None, ()
        if lease is None or request is None or request.cancelled:
            self._stop(device)
            return
        self._set(device, LEASED)
        del self.links[request.conn].requests[request.id]
        lease.conn, lease.granted, lease.expires = request.conn, self.now, self.now + self.limits.renew
        lease.ends = self.now + lease.seconds if lease.seconds else 0.0
        self._start_timer_at(min(lease.expires, lease.ends or lease.expires), self._expire, lease)
        granted = {"type": "granted", "id": request.id, "lease": token, "key": lease.key, "epoch": lease.epoch, "server": device.id}
        granted.update(address=device.address, match=f"{lease.key}:{ticket}", renew=self.limits.renew, seconds=lease.seconds)
        self._send(lease.conn, granted)

    def _ended(self, link: Link, message: dict) -> None:
        device = self._device_of(link)
        if message["epoch"] != device.epoch:
            return
        if device.state == LEASED:
            self._lost(device.lease, "its server ended the session")
            self._end_lease(device)
            self._rest_or_idle(device)
        elif device.state == PREPARING:
            self._fail(device, "its server refused the lease")
        elif device.state == ENDING:
            self._rest_or_idle(device)

    # Messages of clients.

    def _request(self, link: Link, message: dict) -> None:
        if link.device is not None:
            raise Denied("a server's connection requests nothing; connect once more")
        if message["id"] in link.requests:
            raise ProtocolError(f"request {message['id']} is under way already")
        of_user = self._waiting_of.get(link.peer.user, 0)
        if len(link.requests) >= self.limits.requests_of_peer or of_user >= self.limits.requests_of_user or self.waiting >= self.limits.requests:
            raise Busy(f"{len(link.requests)} requests of this client wait, {of_user} of its user, {self.waiting} of all; wait for some of them")
        seconds, longest = message.get("seconds", 0), self.limits.longest
        if longest:
            seconds = min(seconds or longest, longest)
        self._seq += 1
        request = Request(link.conn, message["id"], link.peer.user, message["key"], message.get("priority", 1), seconds, self._seq, self.now)
        link.requests[request.id] = request
        self._enqueue(request)
        self._dispatch(request.key)

    def _cancel(self, link: Link, message: dict) -> None:
        request = link.requests.get(message["id"])
        if request is not None:
            self._withdraw(request)

    def _renew(self, link: Link, message: dict) -> None:
        good, lost = [], []
        for token in message["leases"]:
            lease = self._lease_of(link, token)
            if lease is None:
                lost.append(token)
                continue
            lease.expires, lease.conn = self.now + self.limits.renew, link.conn
            good.append(token)
        self._send(link.conn, {"type": "renewed", "id": message["id"], "leases": good, "lost": lost})

    def _release(self, link: Link, message: dict) -> None:
        lease = self._lease_of(link, message["lease"])
        if lease is not None:
            self._stop(lease.device)
        self._send(link.conn, {"type": "released", "lease": message["lease"]})

    def _lease_of(self, link: Link, token: str) -> Lease | None:
        """The lease of a token, if it is this user's and was granted."""
        lease = self.leases.get(digest(token))
        return lease if lease is not None and lease.user == link.peer.user and lease.device.state != PREPARING else None

    def _summary(self, link: Link, message: dict) -> None:
        offset = message.get("offset", 0)
        ids = list(self.devices)[offset : offset + SUMMARY_ROWS]
        rows = []
        for device in map(self.devices.get, ids):
            row = {"server": device.id, "key": device.key, "addr": device.address, "state": "quarantined" if device.suspect else device.state}
            if device.lease is not None:
                row["user"], row["seconds"] = device.lease.user, round(self.now - device.lease.granted, 3)
            rows.append(row)
        queues = {key: {"free": len(self._idle.get(key, ())), "pending": len(queue)} for key, queue in sorted(self.queues.items())[:SUMMARY_ROWS]}
        following = offset + SUMMARY_ROWS if offset + SUMMARY_ROWS < len(self.devices) else None
        self._send(link.conn, {"type": "summary", "id": message["id"], "servers": rows, "queues": queues, "next": following})

    # Requests.

    def _enqueue(self, request: Request) -> None:
        self._queue(request.key).push(request)
        request.queued = True
        self._count_waiting(request.user, 1)

    def _requeue(self, device: Device) -> None:
        """Gives the request that a device was prepared for its old place in the queue back."""
        request, device.request = device.request, None
        device.ticket = ()
        if request is not None and not request.cancelled:
            self._enqueue(request)

    def _withdraw(self, request: Request) -> None:
        link = self.links.get(request.conn)
        if link is not None:
            link.requests.pop(request.id, None)
        if request.queued:
            request.queued = False
            self._count_waiting(request.user, -1)
            self.queues[request.key].discard(request)
            self._drop_key(request.key)
        request.cancelled = True  # a device that is prepared for it hears so when it answers

    def _count_waiting(self, user: str, change: int) -> None:
        self.waiting += change
        count = self._waiting_of.get(user, 0) + change
        if count:
            self._waiting_of[user] = count
        else:
            del self._waiting_of[user]

    def _queue(self, key: str) -> FairQueue:
        queue = self.queues.get(key)
        if queue is None:
            queue = self.queues[key] = FairQueue()
        return queue

    def _dispatch(self, key: str) -> None:
        """Prepares idle devices for those that wait."""
        idle, queue = self._idle.get(key), self.queues.get(key)
        while idle and queue:
            request = queue.pop()
            request.queued = False
            self._count_waiting(request.user, -1)
            device = idle[next(iter(idle))]
            token, ticket = self._token(), self._token()
            device.request = request
            lease = Lease(digest(token), device, request.user, key, device.epoch + 1, request.seconds, self.now + self.limits.answer)
            device.lease = self.leases[lease.token] = lease
            self._prepare(device, token, ticket)

    # Small things.

    def _at(self, now: float) -> None:
        """Takes the caller's time. Where that counts back, this one goes on from where it was: leases end in their time."""
        self._ahead = max(self._ahead, self.now - now)
        self.now = now + self._ahead

    def _send(self, conn, message: dict) -> None:
        if conn in self.links:
            self.effects.sends.append((conn, message))

    def _refuse(self, link: Link, ident, error: RPCError) -> None:
        message = {"type": "error", "kind": type(error).__name__, "message": str(error)}
        if type(ident) is int:
            message["id"] = ident
        self._send(link.conn, message)
        if isinstance(error, ProtocolError):
            link.bad += 1
            if link.bad >= self.limits.bad_messages:
                self.effects.closes.append(link.conn)

    def _device_of(self, link: Link) -> Device:
        if link.device is None:
            raise Denied("only a registered server says this")
        return link.device

    def _lost(self, lease: Lease, why: str) -> None:
        if lease.conn is not None:
            self._send(lease.conn, {"type": "lost", "digest": lease.token, "kind": DeviceLost.__name__, "message": f"lease of {lease.device.id}: {why}"})

    def _start_timer(self, seconds: float, what, subject) -> int:
        self._timer += 1
        heapq.heappush(self._timers, (self.now + seconds, self._timer, what, subject))
        return self._timer

    def _start_timer_at(self, when: float, what, subject) -> None:
        self._timer += 1
        heapq.heappush(self._timers, (when, self._timer, what, subject))


def _check_record(record: dict) -> None:
    """TypeError where a field is of another type than `_FIELDS` says, KeyError where it is not there."""
    for name, kinds in _FIELDS[record["what"]].items():
        if type(record[name]) not in kinds:
            raise TypeError(f"`{name}` is {record[name]!r:.40}")


_HANDLERS = {
    "register": Tracker._register,
    "ready": Tracker._ready,
    "ended": Tracker._ended,
    "request": Tracker._request,
    "cancel": Tracker._cancel,
    "renew": Tracker._renew,
    "release": Tracker._release,
    "summary": Tracker._summary,
}
# Fields of the journal's records: field -> types.
_TEXT, _WHOLE = (str,), (int,)
_OF_DEVICE = {"device": _TEXT}
_FIELDS = {
    "devices": {"next": _WHOLE},
    "device": {**_OF_DEVICE, "key": _TEXT, "user": _TEXT, "resume": _TEXT, "address": _TEXT, "epoch": _WHOLE},
    "lease": {**_OF_DEVICE, "epoch": _WHOLE, "token": _TEXT, "user": _TEXT, "seconds": (int, float)},
    "end": {**_OF_DEVICE, "epoch": _WHOLE},
    "quarantine": {**_OF_DEVICE, "times": _WHOLE},
    "healthy": _OF_DEVICE,
    "forget": _OF_DEVICE,
}
_REPLAY = {
    "devices": Tracker._replay_devices,
    "device": Tracker._replay_device,
    "lease": Tracker._replay_lease,
    "end": Tracker._replay_end,
    "quarantine": Tracker._replay_quarantine,
    "healthy": Tracker._replay_healthy,
    "forget": Tracker._replay_forget,
}

__all__ = ["AWAY", "ENDING", "IDLE", "LEASED", "PREPARING", "QUARANTINED", "RESTING", "Effects", "Limits", "Peer", "Tracker", "digest"]
