# SPDX-License-Identifier: Apache-2.0
"""Mutants through the parsers of remote sessions that are Python: messages, state and journal of trackers, lines of proxies.

`./dev fuzz rpc --only tracker` runs them; by itself, `BATON_FUZZ_COUNT=1000 python tests/fuzz/rpc.py tracker`. The environment says which
mutants, as for the programs of C++ (tests/fuzz/harness.h). An error of ours is an answer; anything else is a defect.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from baton.rpc import proxy, transport  # noqa: E402
from baton.rpc.errors import RPCError  # noqa: E402
from baton.rpc.journal import TrialJournal, _line, scan  # noqa: E402
from baton.rpc.tracker import messages, probe  # noqa: E402
from baton.rpc.tracker.state import Limits, Peer, Tracker  # noqa: E402

HARD = [0, 1, -1, 2, 255, 2**31, 2**53, 2**63, 2**64, 10**30, 0.5, -0.0, 1e300, None, True, "", "x", "a" * 70, [], [[]], {}, {"a": 1}]
HARD_TEXT = [
    b"1e999",
    b"NaN",
    b"Infinity",
    b"-0",
    b"\\ud800",
    b"\xff\xfe",
    b"\x00",
    b"[" * 3000,
    b'{"a":' * 500,
    b"9" * 5000,
    b'"type"',
    b'"type":"request",',
    b"\r\n",
    b"\n",
]


def mutate_bytes(data: bytes, corpus, rng) -> bytes:
    """Flips, inserts, deletes, repeats, grafts."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out) + 1)
        choice = rng.randrange(6)
        if choice == 0 and at < len(out):
            out[at] = rng.randrange(256)
        elif choice == 1:
            out[at:at] = rng.choice(HARD_TEXT) if rng.random() < 0.3 else rng.randbytes(rng.randint(1, 6))
        elif choice == 2:
            del out[at : at + rng.randint(1, 8)]
        elif choice == 3:
            out[at:at] = out[at : at + rng.randint(1, 40)]
        elif choice == 4:
            other = rng.choice(corpus)
            begin = rng.randrange(len(other) + 1)
            out[at:at] = other[begin : begin + rng.randint(1, 60)]
        else:
            out = out[:at] if rng.random() < 0.2 else out
    return bytes(out)


def mutate_json(data: bytes, corpus, rng) -> bytes:
    """Fields that are dropped, added, exchanged, of another type or size; one in four by bytes."""
    if rng.random() < 0.25:
        return mutate_bytes(data, corpus, rng)
    message = json.loads(data)
    for _ in range(rng.randint(1, 3)):
        other = json.loads(rng.choice(corpus))
        name = rng.choice(list(message)) if message else "type"
        choice = rng.randrange(5)
        if choice == 0:
            message.pop(name, None)
        elif choice == 1:
            message[name] = rng.choice(HARD)
        elif choice == 2:
            key = rng.choice(list(other))
            message[key] = other[key]
        elif choice == 3 and type(message.get(name)) is int:
            message[name] += rng.choice([-1, 1, 100])
        else:
            message[rng.choice(["type", "x", "id", "leases", "seconds"])] = rng.choice(HARD)
    return json.dumps(message).encode()


def token(number: int) -> str:
    return f"{number:032x}"


MESSAGES = [
    json.dumps(message).encode()
    for message in (
        {"type": "register", "key": "board", "port": 9000},
        {"type": "register", "key": "board", "socket": "s", "resume": token(1), "epoch": 3},
        {"type": "register", "key": "board", "proxy": token(7)},
        {"type": "ready", "epoch": 1, "answer": token(5)},
        {"type": "ended", "epoch": 1},
        {"type": "request", "id": 1, "key": "board", "priority": 2, "seconds": 30.5},
        {"type": "cancel", "id": 1},
        {"type": "renew", "id": 2, "leases": [token(2), token(3)]},
        {"type": "release", "lease": token(2)},
        {"type": "summary", "id": 3, "offset": 0},
    )
]


def use_message(data: bytes) -> None:
    messages.id_of(data)
    message = messages.parse(data)
    if messages.parse(messages.pack(message)) != message:
        raise AssertionError("not the same when packed")


# ---- The tracker's state: lines of a time of day.

QUESTIONS = probe.Questions(random.Random(1), 4)
ANSWERS = {seed: answer for seed, answer in QUESTIONS._known}


class Day:
    """A tracker that is told lines: "open s1 lab", "say s1 {...}", "ready s1", "close s1", "wait 3"."""

    def __init__(self):
        self._made = self.errors = 0
        self.now, self.records, self.heard = 0.0, [], {}
        limits = Limits(devices=50, requests=60, requests_of_user=40, requests_of_peer=20)
        self.tracker = Tracker(0.0, limits, self._token, QUESTIONS, ["proxy://gate:1"])

    def _token(self) -> str:
        self._made += 1
        return token(self._made)

    def line(self, line: bytes) -> None:
        word, _, rest = line.partition(b" ")
        who, _, text = rest.partition(b" ")
        conn = who[:8]
        if word == b"open" and conn not in self.tracker.links:
            self.tracker.opened(self.now, conn, Peer(text[:8].decode("latin1"), "10.0.0.7" if conn[:1] == b"s" else ""))
        elif word == b"say":
            self.tracker.received(self.now, conn, text)
        elif word == b"ready" and conn in self.heard:
            asked = self.heard[conn]
            reply = {"type": "ready", "epoch": asked["epoch"], "answer": ANSWERS[asked["question"]]}
            self.tracker.received(self.now, conn, json.dumps(reply).encode())
        elif word == b"close":
            self.tracker.closed(self.now, conn)
        elif word == b"wait" and who.isdigit():
            self.now += min(int(who[:9]), 10**6)
            self.tracker.tick(self.now)
        self.take()

    def take(self) -> None:
        effects = self.tracker.take()
        self.records += effects.records
        for conn, message in effects.sends:
            if message["type"] == "prepare":
                self.heard[conn] = message
            self.errors += message["type"] == "error"
            messages.pack(message)
        for conn in effects.closes:
            self.tracker.closed(self.now, conn)
        if effects.closes:
            self.take()

    def check(self) -> None:
        """No device is leased twice; what the journal says is what is so."""
        leased = [lease.device.id for lease in self.tracker.leases.values()]
        if len(leased) != len(set(leased)):
            raise AssertionError("a device is leased twice")
        if self.tracker.waiting < 0 or any(count < 1 for count in self.tracker._waiting_of.values()):
            raise AssertionError("requests are counted wrongly")
        again = Tracker(0.0, questions=QUESTIONS)
        again.restore(0.0, json.loads(json.dumps(self.records)))
        if {d.id: (d.key, d.user, d.epoch) for d in again.devices.values()} != {d.id: (d.key, d.user, d.epoch) for d in self.tracker.devices.values()}:
            raise AssertionError("the journal says other devices")
        if again.leases.keys() != self.tracker.leases.keys():
            raise AssertionError("the journal says other leases")


def _day(*lines) -> bytes:
    return b"\n".join(line.encode() for line in lines)


REGISTER = '{"type":"register","key":"board","port":9000}'
DAYS = [
    _day("open s1 lab", f"say s1 {REGISTER}", 'say s1 {"type":"ended","epoch":0}', "open c1 ann", 'say c1 {"type":"request","id":1,"key":"board","seconds":9}',
         "ready s1", f'say c1 {{"type":"renew","id":2,"leases":["{token(2)}"]}}', "wait 3", f'say c1 {{"type":"release","lease":"{token(2)}"}}',
         'say s1 {"type":"ended","epoch":1}', "close c1", "close s1", "wait 90000"),
    _day("open s1 lab", f"say s1 {REGISTER}", 'say s1 {"type":"ended","epoch":0}', "open c1 ann", "open c2 bob", 'say c1 {"type":"request","id":1,"key":"board"}',
         'say c2 {"type":"request","id":1,"key":"board","priority":5}', "ready s1", "wait 6", 'say s1 {"type":"ended","epoch":1}', "ready s1",
         'say c2 {"type":"cancel","id":1}', "close s1", "open s2 lab", f'say s2 {{"type":"register","key":"board","port":9001,"resume":"{token(1)}","epoch":2}}'),
    _day("open s1 lab", f"say s1 {REGISTER}", 'say s1 {"type":"ended","epoch":0}', "open c1 ann", 'say c1 {"type":"request","id":4,"key":"board"}',
         f'say s1 {{"type":"ready","epoch":1,"answer":"{token(0)}"}}', "wait 2", "ready s1", "wait 10", 'say c1 {"type":"summary","id":9}', "wait 70", "ready s1"),
]  # fmt: skip


def mutate_day(data: bytes, corpus, rng) -> bytes:
    lines = data.split(b"\n")
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(lines))
        choice = rng.randrange(6)
        if choice == 0 and len(lines) > 1:
            del lines[at]
        elif choice == 1:
            lines.insert(at, rng.choice(rng.choice(corpus).split(b"\n")))
        elif choice == 2:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif choice == 3:
            lines.insert(at, rng.choice([b"wait 1", b"wait 6", b"wait 100000", b"ready s1", b"close s1", b"close c1", b"open c3 ann"]))
        elif choice == 4 and lines[at].startswith(b"say ") and b"{" in lines[at]:
            head, _, text = lines[at].partition(b"{")
            try:
                lines[at] = head + mutate_json(b"{" + text, MESSAGES, rng)
            except (ValueError, RecursionError):
                lines[at] = mutate_bytes(lines[at], MESSAGES, rng)
        else:
            lines[at] = mutate_bytes(lines[at], MESSAGES, rng)
    return b"\n".join(lines)


def use_day(data: bytes) -> None:
    day = Day()
    for line in data.split(b"\n")[:60]:
        day.line(line)
    day.check()
    if day.errors:
        raise RPCError("a message was answered by an error")


# ---- Journals.

RECORDS = [
    {"what": "devices", "next": 2},
    {"what": "device", "device": "d1", "key": "board", "user": "lab", "resume": "a" * 64, "address": "tls://h:1", "epoch": 4},
    {"what": "lease", "device": "d1", "epoch": 5, "token": "b" * 64, "user": "ann", "seconds": 30},
    {"what": "quarantine", "device": "d1", "times": 2},
    {"what": "healthy", "device": "d1"},
    {"what": "end", "device": "d1", "epoch": 5},
    {"what": "forget", "device": "d1"},
]
RECORD_LINES = [json.dumps(record).encode() for record in RECORDS]
RECORD_FILES = [b"\n".join(RECORD_LINES), b"\n".join(RECORD_LINES[:3]), b"\n".join(RECORD_LINES[:2] + RECORD_LINES[3:5])]


def mutate_records(data: bytes, corpus, rng) -> bytes:
    lines = data.split(b"\n")
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        if rng.random() < 0.7:
            try:
                lines[at] = mutate_json(lines[at], RECORD_LINES, rng)
            except (ValueError, AttributeError, RecursionError):
                lines[at] = rng.choice(RECORD_LINES)
        else:
            lines.insert(at, rng.choice(RECORD_LINES))
    return b"\n".join(lines)


def use_records(data: bytes) -> None:
    """Whole lines of a journal, whatever stands in them."""
    found = []
    for line in data.split(b"\n"):
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    tracker = Tracker(5.0, questions=QUESTIONS)
    tracker.restore(5.0, found)
    tracker.tick(20.0)
    again = Tracker(5.0, questions=QUESTIONS)
    again.restore(5.0, json.loads(json.dumps(tracker.snapshot())))


TRIALS = [{"trial": "a" * 64, "input": [1, 2], "result": 3.5}, {"trial": "b" * 64, "input": {}, "result": None}]
JOURNALS = [b"".join(map(_line, RECORDS)), b"".join(map(_line, TRIALS)), b"", _line({"a": "x" * 3000})]
SCRATCH = tempfile.TemporaryDirectory(prefix="baton-fuzz-journal-")


def mutate_journal(data: bytes, corpus, rng) -> bytes:
    if rng.random() < 0.3:  # with the right checksum
        return data + _line(rng.choice([*HARD, *TRIALS, {"trial": [], "result": 1}, {"trial": {}, "result": 2}]))
    return mutate_bytes(data, corpus, rng)


def use_journal(data: bytes) -> None:
    records, end = scan(data)
    if not 0 <= end <= len(data) or scan(data[:end]) != (records, end):
        raise AssertionError("what was kept reads as something else")
    if len(data) % 8 == 0:
        path = os.path.join(SCRATCH.name, "j")
        Path(path).write_bytes(data)
        with TrialJournal(path, sync=False) as journal:
            journal.record([len(journal)], 1)


# ---- Proxies.

ADDRESSES = [b"proxy://host:9191/" + b"0" * 32, b"proxy://[::1]:1", b"proxy://127.0.0.1:65535/"]


def use_address(data: bytes) -> None:
    host, port, ticket = proxy.parse(data.decode("utf-8", "replace"))
    if not host or not 0 < port < 65536 or len(ticket) not in (0, 32):
        raise AssertionError("an address without a place")


NONCE, NAME, OWN = b"1" * 32, b"2" * 32, b"3" * 32
JOIN = b"BATON-PROXY 1 JOIN\n"
PROOF = b" ".join([b"PROOF", proxy._mac(b"", b"join", NONCE, OWN, NAME), OWN, NAME]) + b"\n"
LINES = [JOIN + PROOF + b"PONG\nPONG\n", b"BATON-PROXY 1 CONNECT " + proxy._ticket(NAME) + b"\nbytes", b"BATON-PROXY 1 ACCEPT " + NONCE + b"\nbytes"]


class Out:
    """A writer that keeps what is written."""

    def __init__(self):
        self.data, self.closed = bytearray(), False
        self.transport = self

    def write(self, data):
        self.data += data

    async def drain(self):
        await asyncio.sleep(0)

    def is_closing(self):
        return self.closed

    def can_write_eof(self):
        return False

    def close(self):
        self.closed = True

    abort = close

    def get_extra_info(self, name):
        return None


def _reader(data: bytes):
    reader = asyncio.StreamReader(limit=proxy.CHUNK)
    reader.feed_data(data)
    reader.feed_eof()
    return reader


async def _gate(data: bytes) -> None:
    gate = proxy.Gate(b"")
    outs = []

    async def greet(text, open_end=False):
        reader, out = _reader(text), Out()
        if open_end:
            reader = asyncio.StreamReader(limit=proxy.CHUNK)
            reader.feed_data(text)
        outs.append(out)
        await gate._greet(reader, out)

    joined = asyncio.ensure_future(greet(JOIN + PROOF, True))
    await asyncio.sleep(0)
    await asyncio.gather(*(greet(part) for part in data.split(b"BATON-PROXY 2")[:3]))
    joined.cancel()
    await asyncio.gather(joined, return_exceptions=True)
    if gate._greetings or gate._splices or gate._waiting or gate._tasks:
        raise AssertionError("something is left")
    for out in outs:
        if not out.closed:
            raise AssertionError("a connection stays open")
        if len(out.data) > 2000:
            raise AssertionError("an answer that is too long")
    if any(out.data.startswith(b"ERROR") for out in outs):
        raise RPCError("refused")


def use_proxy(data: bytes) -> None:
    LOOP.run_until_complete(_gate(data))


# ---- Messages on sockets.

STREAMS = [b"".join(len(m).to_bytes(4, "little") + m for m in MESSAGES[:3]), b"\0\0\0\0", (3000).to_bytes(4, "little") + b"y" * 3000]


def mutate_stream(data: bytes, corpus, rng) -> bytes:
    if rng.random() < 0.2:
        return data
    if rng.random() < 0.4:
        return rng.choice([0, 3, 2**20, 2**20 + 1, 2**32 - 1]).to_bytes(4, "little") + data
    return mutate_bytes(data, corpus, rng)[:60000]


def use_stream(data: bytes) -> None:
    near, far = socket.socketpair()
    with far:
        far.sendall(data)
    connection = transport.UnixConnection(near)
    try:
        while connection.recv(5) is not None:
            pass
    finally:
        connection.close()


KINDS = {
    "tracker-messages": (MESSAGES, mutate_json, use_message),
    "tracker": (DAYS, mutate_day, use_day),
    "records": (RECORD_FILES, mutate_records, use_records),
    "journal": (JOURNALS, mutate_journal, use_journal),
    "proxy": (LINES, mutate_bytes, use_proxy),
    "proxy-addresses": (ADDRESSES, mutate_bytes, use_address),
    "transport": (STREAMS, mutate_stream, use_stream),
}
LOOP = asyncio.new_event_loop()


def mutant_of(kind: str, number: int) -> bytes:
    corpus, mutate, _ = KINDS[kind]
    return mutate(corpus[number % len(corpus)], corpus, random.Random(number))


def run(kind: str, first: int, count: int, keep: str = "", seconds: int = 0) -> int:
    """Runs mutants; gives how many were wrong."""
    use = KINDS[kind][2]
    refused = wrong = 0
    proxy.PAIR_SECONDS, proxy.PING_SECONDS = 0.001, 0.01
    proxy.secrets.token_hex = lambda size: NONCE.decode()
    index = os.open(keep + ".index", os.O_RDWR | os.O_CREAT, 0o600) if keep else -1
    for number in range(first, first + count):
        data = mutant_of(kind, number)
        if keep:
            os.pwrite(index, b"%d\n" % number, 0)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            use(data)
        except RPCError:
            refused += 1
        except Exception as error:  # noqa: BLE001 - any other is what is looked for
            wrong += 1
            if keep:
                Path(keep).write_bytes(data)
            print(f"mutant {number} of {kind}: {type(error).__name__}: {error}; {data[:300]!r}", flush=True)
        signal.setitimer(signal.ITIMER_PROF, 0)
    print(f"fuzz: {kind}: from {first}: {count} mutants, {count - refused - wrong} accepted, {refused} refused, {wrong} wrong")
    if count >= 400 and not (refused and refused < count):
        print("mutants that are all refused, or none, show little")
        return 1
    return wrong


def main() -> int:
    env = os.environ
    number = [int(env.get(f"BATON_FUZZ_{name}", default)) for name, default in (("FIRST", 0), ("COUNT", 400), ("SECONDS", 0))]
    return 1 if run(sys.argv[1], number[0], number[1], env.get("BATON_FUZZ_KEEP", ""), number[2]) else 0


if __name__ == "__main__":
    sys.exit(main())
