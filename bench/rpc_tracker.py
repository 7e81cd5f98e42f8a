# SPDX-License-Identifier: Apache-2.0
"""The load that one tracker process serves, and the tracker's logic under a simulated week.

`python bench/rpc_tracker.py` starts a tracker with a journal and a process that plays servers and clients, and counts lease operations a
second: requests granted (known-answer run, journal flush and all), renewals and releases. The bar is 2,000 a second on two cores.
`--simulate` runs 10,000 devices and 2,000 clients through a simulated week with crashes, partitions, clock jumps and restarts, in
minutes; `--days`, `--devices`, `--clients` make it smaller. `--check` makes a missed bar exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "rpc" / "tracker")]
BAR = 2000.0


class Load:
    """Servers and clients in one loop; each client asks for a device, renews a few times, gives it back, and asks again."""

    def __init__(self, url: str, servers: int, clients: int, renewals: int):
        from baton.rpc import transport
        from baton.rpc.tracker import probe

        self._probe, self._answers = probe, {}
        self._at_once, self._renewals = transport.AT_ONCE, renewals
        self._selector = selectors.DefaultSelector()
        self.counts = {"grants": 0, "renewals": 0, "releases": 0}
        self.waits: list[float] = []
        for number in range(servers):
            one = self._add(transport.connect(url), self._server)
            self._say(one, type="register", key=f"k{number % 8}", port=9000)
        for number in range(clients):
            one = self._add(transport.connect(url), self._client)
            one["key"] = f"k{number % 8}"
            self._ask(one)

    def _add(self, connection, hear) -> dict:
        one = {"connection": connection, "hear": hear, "id": 0}
        self._selector.register(connection, selectors.EVENT_READ, one)
        return one

    @staticmethod
    def _say(one: dict, **message) -> None:
        one["connection"].send(json.dumps(message).encode(), 5)

    def _ask(self, one: dict) -> None:
        one["id"] += 1
        one["left"], one["asked"] = self._renewals, time.perf_counter()
        self._say(one, type="request", id=one["id"], key=one["key"])

    def _server(self, one: dict, message: dict) -> None:
        if message["type"] == "prepare":
            seed = message["question"]
            if seed not in self._answers:
                self._answers[seed] = self._probe.answer(seed)
            self._say(one, type="ready", epoch=message["epoch"], answer=self._answers[seed])
        elif message["type"] == "end":
            self._say(one, type="ended", epoch=message["epoch"])

    def _client(self, one: dict, message: dict) -> None:
        kind = message["type"]
        if kind == "granted":
            self.counts["grants"] += 1
            self.waits.append(time.perf_counter() - one["asked"])
            one["lease"] = message["lease"]
        elif kind == "renewed":
            self.counts["renewals"] += 1
        elif kind == "released":
            self.counts["releases"] += 1
            self._ask(one)
            return
        else:
            raise SystemExit(f"the tracker says {message}")
        if one["left"]:
            one["left"] -= 1
            self._say(one, type="renew", id=0, leases=[one["lease"]])
        else:
            self._say(one, type="release", lease=one["lease"])

    def run(self, seconds: float) -> float:
        """Operations a second."""
        from baton.rpc.errors import Timeout

        end = time.perf_counter() + seconds
        before, began = sum(self.counts.values()), time.perf_counter()
        while time.perf_counter() < end:
            for event, _ in self._selector.select(0.1):
                connection = event.data["connection"]
                while True:
                    try:
                        raw = connection.recv(self._at_once)
                    except Timeout:
                        break
                    event.data["hear"](event.data, json.loads(raw))
                    if not connection.readable():
                        break
        return (sum(self.counts.values()) - before) / (time.perf_counter() - began)


def measure(args) -> float:
    from baton.rpc.tracker import Tracker

    with tempfile.TemporaryDirectory() as folder:
        host = f"unix:{folder}/tracker" if args.transport == "unix" else "127.0.0.1"
        with Tracker(host, 0, journal=f"{folder}/journal") as tracker:
            load = Load(tracker.url, args.servers, args.clients, args.renewals)
            load.run(1.0)
            load.waits.clear()
            load.counts = dict.fromkeys(load.counts, 0)
            used = _cpu(tracker.pid)
            rate = load.run(args.seconds)
            used = (_cpu(tracker.pid) - used) / args.seconds
            waits = sorted(load.waits)
            rss = next(int(line.split()[1]) for line in Path(f"/proc/{tracker.pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
            rows = ", ".join(f"{name} {count / args.seconds:.0f}/s" for name, count in load.counts.items())
            print(f"{args.transport}: {args.servers} servers, {args.clients} clients, {args.renewals} renewals a lease; {os.cpu_count()} cores")
            print(f"  {rate:.0f} lease operations a second ({rows}); bar {BAR:.0f}")
            if waits:
                print(f"  request to grant: p50 {waits[len(waits) // 2] * 1e3:.1f} ms, p99 {waits[int(len(waits) * 0.99)] * 1e3:.1f} ms")
            print(f"  the tracker took {used:.0%} of a core and {rss / 1024:.0f} MiB")
            return rate


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def simulate(args) -> bool:
    from simulation import Plan, Simulation

    seconds = args.days * 86400
    plan = Plan(
        devices=args.devices, clients=args.clients, users=max(2, args.clients // 10), seconds=seconds, hot_keys=max(1, args.clients // 100), devices_of_hot=1,
        hold=60, think=1800, server_crash=7 * 86400, client_crash=2 * 86400, partition=7 * 86400, tracker_crash=6 * 3600, clock_jump=12 * 3600, sick=0.001,
    )  # fmt: skip
    simulation, began = Simulation(plan, args.seed), time.perf_counter()

    def watch():
        simulation.check_lost()
        simulation.after(10 if args.days > 0.5 else 1, watch)

    def report():
        took = time.perf_counter() - began
        print(f"  day {simulation.now / 86400:.2f}: {simulation.events:,} events, {simulation.grants:,} leases, {took:.0f} s", flush=True)
        simulation.after(seconds / 14, report)

    simulation.at(10, watch)
    simulation.at(seconds / 14, report)
    print(f"{args.devices:,} devices, {args.clients:,} clients, {args.days:g} days, seed {args.seed}")
    simulation.run()
    took, fair = time.perf_counter() - began, simulation.fairness()
    print(f"  {simulation.events:,} events in {took:.0f} s; {simulation.grants:,} leases, {simulation.jobs:,} jobs done; faults {dict(simulation.faults)}")
    print("  no device leased twice (else this had stopped)")
    print(f"  longest time that a device was held by none: {simulation.longest_gone:.0f} s (bar 11: 5 to renew, 5 to prepare, 1 to look)")
    waits = ", ".join(f"{priority}: {simulation.mean_wait(priority):.0f} s, {index:.3f}" for priority, index in sorted(fair.items()))
    print(f"  waits for contended devices by priority, mean and Jain's index over {plan.users} users (bar 0.9): {waits}")
    return simulation.longest_gone <= 11 and min(fair.values()) >= 0.9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transport", choices=["unix", "tls"], default="unix")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--servers", type=int, default=64)
    parser.add_argument("--clients", type=int, default=None, help="default: 64, and 2,000 for --simulate")
    parser.add_argument("--renewals", type=int, default=0, help="of each lease (default: none, the hardest load)")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    args.clients = args.clients or (2000 if args.simulate else 64)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    good = simulate(args) if args.simulate else measure(args) >= BAR
    return 0 if good or not args.check else 1


if __name__ == "__main__":
    sys.exit(main())
