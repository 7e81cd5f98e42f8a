# SPDX-License-Identifier: Apache-2.0
"""The tracker's state machine under a simulated clock and network: servers, clients, crashes, partitions, clock jumps, restarts.

Checked while it runs: a server is never prepared for a lease while a session of the lease before is alive; no two clients believe to hold
one device; a device whose holder is gone is free again within the time of its lease.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import random
import statistics
from collections import defaultdict
from dataclasses import dataclass, field

from baton.rpc.tracker import probe
from baton.rpc.tracker.state import LEASED, PREPARING, Limits, Peer, Tracker

HALF_OPEN = 10.0  # seconds until a transport notices that the other side is silent


@dataclass
class Plan:
    """How large, how long, how bad. Times in seconds; rates are mean times between events of one node, 0: never."""

    devices: int = 200
    clients: int = 40
    users: int = 8
    seconds: float = 3600.0
    hot_keys: int = 2  # kinds with `devices_of_hot` devices, which `hot_clients` of the clients want
    devices_of_hot: int = 2
    hot_clients: float = 0.6
    hold: float = 40.0
    think: float = 60.0
    server_crash: float = 3600.0
    client_crash: float = 3600.0
    partition: float = 3600.0  # of a node
    tracker_crash: float = 900.0
    clock_jump: float = 1200.0
    sick: float = 0.05  # share of devices that answer wrongly for a while
    limits: Limits = field(default_factory=Limits)


class Violation(AssertionError):
    pass


class Wire:
    """A connection between a node and the tracker: in order, with latency, silent while the node is cut off."""

    def __init__(self, sim, node):
        self.sim, self.node, self.alive = sim, node, True
        self.stalled: list = []
        self.number = sim.count = sim.count + 1
        self.last = [0.0, 0.0]

    def carry(self, way: int, action) -> None:
        if not self.alive:
            return
        if self.sim.now < self.node.cut_until:
            self.stalled.append((way, action))
            return
        self.last[way] = when = max(self.last[way], self.sim.now + self.sim.rng.uniform(0.001, 0.02))
        self.sim.at(when, self._arrive, action)

    def _arrive(self, action) -> None:
        if self.alive:
            if self.sim.now < self.node.cut_until:
                self.stalled.append((0, action))
            else:
                action()

    def close(self) -> None:
        """Both sides notice."""
        if self.alive:
            self.alive = False
            self.sim.tracker_sees_close(self)
            self.node.disconnected(self)


class Node:
    def __init__(self, sim, user: str):
        self.sim, self.user = sim, user
        self.cut_until, self.wire, self.up = 0.0, None, True
        self.backoff = 0.2

    def connect(self) -> None:
        if not self.up or self.wire is not None:
            return
        if self.sim.tracker is None or self.sim.now < self.cut_until:
            self.backoff = min(self.backoff * 2, 3.0)
            self.sim.after(self.sim.rng.uniform(0.5, 1.0) * self.backoff, self.connect)
            return
        self.backoff = 0.2
        self.wire = Wire(self.sim, self)
        self.sim.tracker_sees_open(self.wire)
        self.connected()

    def disconnected(self, wire) -> None:
        if self.wire is wire:
            self.wire = None
            self.sim.after(self.sim.rng.uniform(0.05, 0.2), self.connect)

    def say(self, **message) -> None:
        if self.wire is not None:
            raw, wire = json.dumps(message).encode(), self.wire
            wire.carry(0, lambda: self.sim.tracker_hears(wire, raw))

    def cut(self, seconds: float) -> None:
        """The node is cut off from everything; what is longer than HALF_OPEN ends its connection."""
        self.cut_until = max(self.cut_until, self.sim.now + seconds)
        wire = self.wire
        self.sim.after(HALF_OPEN, lambda: wire is self.wire and wire is not None and self.sim.now < self.cut_until and wire.close())
        self.sim.at(self.cut_until, self._healed)

    def _healed(self) -> None:
        if self.sim.now >= self.cut_until and self.wire is not None:
            stalled, self.wire.stalled = self.wire.stalled, []
            for way, action in stalled:
                self.wire.carry(way, action)


class Server(Node):
    def __init__(self, sim, user: str, key: str):
        super().__init__(sim, user)
        self.key, self.resume = key, None
        self.epoch, self.ticket, self.session = 0, "", None  # session: the client that is served
        self.sick_until = 0.0
        self.gone_since = None  # when the holder of its lease went away

    def connected(self) -> None:
        extra = {"resume": self.resume} if self.resume else {}
        self.say(type="register", key=self.key, port=9000, epoch=self.epoch, **extra)

    def hears(self, m: dict) -> None:
        if m["type"] == "registered":
            self.resume = m["resume"]
            self.sim.servers_of[m["server"]] = self
        elif m["type"] == "prepare":
            if self.session is not None:
                raise Violation(f"prepared for epoch {m['epoch']} while a session of epoch {self.epoch} is alive")
            if m["epoch"] <= self.epoch:
                raise Violation(f"epoch {m['epoch']} after {self.epoch}")
            self.epoch, self.ticket = m["epoch"], m["ticket"]
            right = self.sim.now >= self.sick_until
            self.say(type="ready", epoch=self.epoch, answer=self.sim.answer(m["question"]) if right else "0" * 64)
        elif m["type"] == "end" and m["epoch"] >= self.epoch:
            self.epoch, self.ticket = m["epoch"], ""
            self.drop()
            self.say(type="ended", epoch=self.epoch)

    def drop(self) -> None:
        client, self.session = self.session, None
        if client is not None:
            client.session_ended(self)

    def admit(self, client, match: str) -> bool:
        ticket = hashlib.sha256(match.rpartition(":")[2].encode()).hexdigest()
        if not self.up or ticket != self.ticket or self.session is not None:
            return False
        self.session = client
        return True

    def session_gone(self, client) -> None:
        if self.session is client:
            self.session = None
            self.say(type="ended", epoch=self.epoch)

    def crash(self) -> None:
        self.up, wire = False, self.wire
        self.drop()
        self.epoch, self.ticket = 0, ""
        if self.sim.rng.random() < 0.2:
            self.resume = None  # its disk is gone, too
        if wire is not None:
            wire.close()
        self.sim.after(self.sim.rng.uniform(1, 60), self.start)

    def start(self) -> None:
        self.up = True
        self.connect()


class Client(Node):
    def __init__(self, sim, user: str, keys: list[str]):
        super().__init__(sim, user)
        self.keys, self.number = keys, 0
        self.asked = self.lease = None  # (key, priority, when), the message `granted`

    def connected(self) -> None:
        if self.asked is not None and self.lease is None:
            self.ask()
        elif self.lease is not None:
            self.renew(self.lease)

    def think(self) -> None:
        self.sim.after(self.sim.rng.expovariate(1 / self.sim.plan.think), self.want)

    def want(self) -> None:
        if self.up and self.asked is None:
            self.asked = (self.sim.rng.choice(self.keys), self.sim.rng.choice((1, 1, 2)), self.sim.now)
            self.ask()

    def ask(self) -> None:
        self.number += 1
        self.say(type="request", id=self.number, key=self.asked[0], priority=self.asked[1], seconds=0)

    def hears(self, m: dict) -> None:
        kind = m["type"]
        if kind == "granted" and m["id"] == self.number and self.lease is None and self.asked is not None:
            self.lease = m
            self.sim.granted(self)
            self.renew(m)
            self.sim.after(self.sim.rng.uniform(0.002, 0.05), self.open, m)
        elif kind == "granted":
            self.say(type="release", lease=m["lease"])
        elif kind == "renewed" and self.lease is not None:
            if self.lease["lease"] in m["leases"]:
                # Sure from when it was sent: the answer may have been under way for long.
                self.sim.believes(self, m["id"] / 1e6 + self.sim.plan.limits.renew)
            elif self.lease["lease"] in m["lost"]:
                self.finish(False)
        elif kind == "lost" and self.lease is not None and m["digest"] == hashlib.sha256(self.lease["lease"].encode()).hexdigest():
            self.finish(False)

    def renew(self, lease) -> None:
        if self.lease is lease and self.up:
            if self.wire is not None:
                self.say(type="renew", id=int(self.sim.now * 1e6), leases=[lease["lease"]])
            self.sim.after(self.sim.plan.limits.renew / 2, self.renew, lease)

    def open(self, lease) -> None:
        if self.lease is lease and self.up:
            server = self.sim.servers_of[lease["server"]]
            cut = self.sim.now < max(self.cut_until, server.cut_until)
            if cut or not server.admit(self, lease["match"]):
                self.finish(True)
            else:
                self.sim.after(self.sim.rng.expovariate(1 / self.sim.plan.hold), self.done, lease)

    def done(self, lease) -> None:
        if self.lease is lease and self.up:
            self.sim.jobs += 1
            self.finish(True)

    def session_ended(self, server) -> None:
        if self.lease is not None:
            self.finish(True)

    def finish(self, release: bool) -> None:
        lease, self.lease, self.asked = self.lease, None, None
        self.sim.gives_up(self, lease)
        server = self.sim.servers_of[lease["server"]]
        if server.session is self:
            self.sim.after(0.01, server.session_gone, self)
        if release:
            self.say(type="release", lease=lease["lease"])
        self.think()

    def crash(self) -> None:
        self.up, wire, lease = False, self.wire, self.lease
        if lease is not None:
            server = self.sim.servers_of[lease["server"]]
            self.sim.gives_up(self, lease)
            # The machine may have lost power: the server sees nothing for a while.
            self.sim.after(self.sim.rng.choice((0.01, HALF_OPEN)), server.session_gone, self)
        self.lease = self.asked = None
        if wire is not None:
            wire.close()
        self.sim.after(self.sim.rng.uniform(1, 30), self.start)

    def start(self) -> None:
        self.up = True
        self.connect()
        self.think()


class Simulation:
    def __init__(self, plan: Plan, seed: int):
        self.plan, self.rng = plan, random.Random(seed)
        self.now, self.count, self.jobs, self.events = 0.0, 0, 0, 0
        self._heap: list = []
        self._order = 0
        self.records: list = []  # what is on the tracker's disk
        self.tracker = None
        self.wires: dict = {}
        self.servers_of: dict[str, Server] = {}
        self.holder: dict = {}  # server id -> (client, until when it is sure)
        self.clock, self.jumped, self.ticking = 0.0, -1e9, None
        self.waits = defaultdict(list)  # (priority, user) -> seconds
        self.faults: dict[str, int] = defaultdict(int)
        self.restarts = [0.0]
        self.longest_gone, self.grants = 0.0, 0
        self.questions = probe.Questions(self.rng)
        self.answers = dict(self.questions._known)
        hot = [f"hot{i}" for i in range(plan.hot_keys)]
        cold = [f"cold{i}" for i in range(max(1, plan.devices // 100))]
        kinds = [key for key in hot for _ in range(plan.devices_of_hot)]
        kinds += [cold[i % len(cold)] for i in range(plan.devices - len(kinds))]
        self.servers = [Server(self, f"lab{i % 4}", key) for i, key in enumerate(kinds)]
        # Each user has as many clients that want each kind, so that shares can be compared.
        self.clients = []
        for i in range(plan.clients):
            turn = i // plan.users
            wants_hot = turn * plan.users < plan.clients * plan.hot_clients
            self.clients.append(Client(self, f"u{i % plan.users}", [hot[turn % len(hot)]] if wants_hot else cold))

    # Time.

    def at(self, when: float, action, *args) -> None:
        self._order += 1
        heapq.heappush(self._heap, (when, self._order, action, args))

    def after(self, seconds: float, action, *args) -> None:
        self.at(self.now + seconds, action, *args)

    def run(self) -> Simulation:
        self.start_tracker()
        for node in (*self.servers, *self.clients):
            self.after(self.rng.uniform(0, 5), node.start)
        plan = self.plan
        self._faults("server_crash", plan.server_crash / max(1, plan.devices), lambda: self._one(self.servers).crash())
        self._faults("client_crash", plan.client_crash / max(1, plan.clients), lambda: self._one(self.clients).crash())
        both = (*self.servers, *self.clients)
        self._faults("partition", plan.partition / len(both), lambda: self._one(both).cut(self.rng.choice((0.5, 3, 8, 20, 90))))
        self._faults("tracker_crash", plan.tracker_crash, self.crash_tracker)
        self._faults("clock_jump", plan.clock_jump, self.jump)
        if plan.sick:
            self._faults("sick", 600 / max(1, plan.devices * plan.sick), self._sicken)
        while self._heap and self._heap[0][0] <= plan.seconds:
            self.now, _, action, args = heapq.heappop(self._heap)
            self.events += 1
            action(*args)
        return self

    def _faults(self, name: str, mean: float, action) -> None:
        if not mean:
            return

        def happen():
            self.faults[name] += 1
            action()
            self.after(self.rng.expovariate(1 / mean), happen)

        self.after(self.rng.expovariate(1 / mean), happen)

    def _one(self, nodes):
        while True:
            node = self.rng.choice(nodes)
            if node.up:
                return node

    def _sicken(self) -> None:
        self._one(self.servers).sick_until = self.now + self.rng.uniform(10, 600)

    # The tracker.

    def answer(self, question: int) -> str:
        return self.answers.get(question) or probe.answer(question)

    def start_tracker(self) -> None:
        self.tracker = Tracker(self.now + self.clock, self.plan.limits, lambda: f"{self.rng.getrandbits(128):032x}", self.questions)
        self.tracker.restore(self.now + self.clock, self.records)
        self.records = self.tracker.snapshot()
        self.restarts.append(self.now)
        self._work()

    def crash_tracker(self) -> None:
        if self.tracker is None:
            return
        self.tracker = None
        for wire in list(self.wires.values()):
            wire.close()
        self.wires.clear()
        self.after(self.rng.uniform(0.2, 5), self.start_tracker)

    def jump(self) -> None:
        self.clock += self.rng.choice((-3600, -10, 2, 10, 3600))
        self.jumped = self.now
        if self.tracker is not None:
            self._work(tick=True)

    def tracker_sees_open(self, wire) -> None:
        self.wires[wire.number] = wire
        self.tracker.opened(self.now + self.clock, wire.number, Peer(wire.node.user, "10.0.0.1"))

    def tracker_sees_close(self, wire) -> None:
        if self.wires.pop(wire.number, None) is not None and self.tracker is not None:
            self.tracker.closed(self.now + self.clock, wire.number)
            self._work()

    def tracker_hears(self, wire, raw: bytes) -> None:
        if self.tracker is not None and wire.number in self.wires:
            self.tracker.received(self.now + self.clock, wire.number, raw)
            self._work()

    def _tick(self, number) -> None:
        if self.ticking == number:
            self.ticking = None
            if self.tracker is not None:
                self._work(tick=True)

    def _work(self, tick: bool = False) -> None:
        tracker = self.tracker
        if tick:
            tracker.tick(self.now + self.clock)
        effects = tracker.take()
        self.records += effects.records
        if effects.records and self.plan.tracker_crash and self.rng.random() < 1e-5:
            self.after(0, self.crash_tracker)  # the records are on the disk, the messages never leave
            return
        if len(self.records) > 20000 + 4 * len(tracker.devices):
            self.records = tracker.snapshot()
        for conn, message in effects.sends:
            wire = self.wires.get(conn)
            if wire is not None:
                if message["type"] == "error":
                    raise Violation(f"the tracker refuses: {message['message']}")
                wire.carry(1, lambda node=wire.node, message=message: node.up and node.hears(message))
        for conn in effects.closes:
            if conn in self.wires:
                self.wires[conn].close()
        for reset in effects.resets:
            self.faults["reset"] += 1
            self.after(20, self._reset_done, reset["device"])
        due = tracker.next_timer()
        if due is not None:
            due = max(self.now, due - self.clock) + 1e-4  # rounding must not make it early
            if self.ticking is None or due < self.ticking[0] or self.ticking[0] < self.now:
                self.ticking = (due, self._order)
                self.at(due, self._tick, self.ticking)

    def _reset_done(self, device: str) -> None:
        if self.tracker is not None:
            self.tracker.reset_done(self.now + self.clock, device)
            self._work()

    # What is watched.

    def granted(self, client) -> None:
        key, priority, asked = client.asked
        self.grants += 1
        if key.startswith("hot"):
            self.waits[priority, client.user].append(self.now - asked)

    def believes(self, client, until: float) -> None:
        """A renewal was answered. A grant alone says nothing: it may have been under way for long; the server refuses its ticket then."""
        server = client.lease["server"]
        other = self.holder.get(server)
        if other is not None and other[0] is not client and self.now < other[1] and self.jumped < other[1] - self.plan.limits.renew:
            raise Violation(f"{server} is leased to two clients at {self.now}")
        self.holder[server] = (client, until)

    def gives_up(self, client, lease) -> None:
        if self.holder.get(lease["server"], (None,))[0] is client:
            del self.holder[lease["server"]]

    def check_lost(self) -> None:
        """At this moment: leases whose holder is gone, and since when."""
        held = {client.lease["server"] for client in self.clients if client.lease is not None}
        for device in self.tracker.devices.values() if self.tracker is not None else ():
            server = self.servers_of.get(device.id)
            if server is None or server.resume is None:
                continue
            if device.state in (LEASED, PREPARING) and device.id not in held:
                server.gone_since = self.now if server.gone_since is None else server.gone_since
                since = max(server.gone_since, self.restarts[-1])
                self.longest_gone = max(self.longest_gone, self.now - since)
            else:
                server.gone_since = None

    # Fairness.

    def fairness(self) -> dict[int, float]:
        """Jain's index of the users' mean waits for hot devices, by priority: 1 where all wait equally long."""
        found = {}
        for priority in {p for p, _ in self.waits}:
            means = [statistics.fmean(waits) for (p, _), waits in self.waits.items() if p == priority]
            found[priority] = sum(means) ** 2 / (len(means) * sum(m * m for m in means))
        return found

    def mean_wait(self, priority: int) -> float:
        return statistics.fmean(w for (p, _), waits in self.waits.items() if p == priority for w in waits)
