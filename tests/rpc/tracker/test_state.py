# SPDX-License-Identifier: Apache-2.0
"""The tracker's logic, an event at a time."""

import hashlib
import json
import random

import pytest

from baton.rpc.journal import content_hash
from baton.rpc.tracker import messages, probe
from baton.rpc.tracker.errors import ProtocolError
from baton.rpc.tracker.fair import FairQueue
from baton.rpc.tracker.state import Limits, Peer, Tracker


class Desk:
    """A tracker whose messages are read one by one."""

    def __init__(self, limits=None, records=(), now=0.0, proxies=()):
        self.now, self.records, self.inbox, self.closes, self.resets = now, list(records), {}, [], []
        self.secrets = random.Random(1)
        self.tracker = Tracker(now, limits, lambda: f"{self.secrets.getrandbits(128):032x}", proxies=proxies)
        self.tracker.restore(now, self.records)
        self._take()

    def _take(self):
        effects = self.tracker.take()
        self.records += effects.records
        self.closes += effects.closes
        self.resets += effects.resets
        for conn, message in effects.sends:
            self.inbox.setdefault(conn, []).append(message)

    def open(self, conn, user="ann", host="10.0.0.7"):
        self.tracker.opened(self.now, conn, Peer(user, host))

    def say(self, conn, **message):
        self.tracker.received(self.now, conn, json.dumps(message).encode())
        self._take()

    def raw(self, conn, data):
        self.tracker.received(self.now, conn, data)
        self._take()
        return self.hear(conn)

    def close(self, conn):
        self.tracker.closed(self.now, conn)
        self._take()

    def wait(self, seconds):
        self.now += seconds
        self.tracker.tick(self.now)
        self._take()

    def hear(self, conn):
        """All that was said to a connection since the last time."""
        return self.inbox.pop(conn, [])

    def types(self, conn):
        return [message["type"] for message in self.hear(conn)]

    def server(self, conn, key="board", **extra):
        """A server that has registered and is idle; gives its registration."""
        self.open(conn, "lab")
        self.say(conn, type="register", key=key, port=9000, **extra)
        registered, end = self.hear(conn)
        self.say(conn, type="ended", epoch=end["epoch"])
        return registered

    def ready(self, conn):
        """Answers the known question; gives what was asked."""
        (prepare,) = self.hear(conn)
        self.say(conn, type="ready", epoch=prepare["epoch"], answer=probe.answer(prepare["question"]))
        return prepare

    def lease(self, client, server, number=1, key="board", **extra):
        self.say(client, type="request", id=number, key=key, **extra)
        self.ready(server)
        (granted,) = self.hear(client)
        assert granted["type"] == "granted"
        return granted

    def state(self, device="d1"):
        return self.tracker.devices[device].state


@pytest.fixture
def desk():
    return Desk()


def test_a_lease_from_request_to_release(desk):
    desk.server("s")
    desk.open("c")
    desk.say("c", type="request", id=5, key="board", priority=3, seconds=60)
    assert desk.hear("c") == []
    prepare = desk.ready("s")
    (granted,) = desk.hear("c")
    assert granted["type"] == "granted" and granted["id"] == 5 and granted["epoch"] == prepare["epoch"] == 1
    key, _, ticket = granted["match"].rpartition(":")
    assert key == "board" and hashlib.sha256(ticket.encode()).hexdigest() == prepare["ticket"]
    assert granted["address"] == "tls://10.0.0.7:9000"
    assert desk.state() == "leased"
    desk.say("c", type="release", lease=granted["lease"])
    assert desk.types("c") == ["released"] and desk.hear("s") == [{"type": "end", "epoch": 1}]
    assert desk.state() == "ending"
    desk.say("s", type="ended", epoch=1)
    assert desk.state() == "idle"


def test_the_next_lease_waits_for_the_end_of_the_session(desk):
    desk.server("s")
    for client in ("a", "b"):
        desk.open(client)
    first = desk.lease("a", "s")
    desk.say("b", type="request", id=1, key="board")
    desk.say("a", type="release", lease=first["lease"])
    assert desk.types("s") == ["end"]
    assert desk.hear("b") == []
    desk.say("s", type="ended", epoch=1)
    desk.ready("s")
    assert desk.hear("b")[0]["epoch"] == 2


def test_a_lease_that_is_not_renewed_ends(desk):
    desk.server("s")
    desk.open("c")
    granted = desk.lease("c", "s")
    desk.wait(4)
    desk.say("c", type="renew", id=1, leases=[granted["lease"], "0" * 32])
    assert desk.hear("c") == [{"type": "renewed", "id": 1, "leases": [granted["lease"]], "lost": ["0" * 32]}]
    desk.wait(4.9)
    assert desk.state() == "leased"
    desk.wait(0.2)
    (lost,) = desk.hear("c")
    assert lost["type"] == "lost" and lost["kind"] == "DeviceLost" and "not renewed for 5 s" in lost["message"]
    assert desk.types("s") == ["end"]


def test_a_lease_ends_after_its_seconds(desk):
    desk.server("s")
    desk.open("c")
    granted = desk.lease("c", "s", seconds=12)
    for number in range(5):
        desk.wait(2.3)
        desk.say("c", type="renew", id=number, leases=[granted["lease"]])
    assert set(desk.types("c")) == {"renewed"}
    desk.wait(0.6)
    (lost,) = desk.hear("c")
    assert "its 12 s are over" in lost["message"]


def test_a_lease_belongs_to_its_user(desk):
    desk.server("s")
    desk.open("c")
    desk.open("thief", user="bob")
    granted = desk.lease("c", "s")
    desk.say("thief", type="renew", id=1, leases=[granted["lease"]])
    desk.say("thief", type="release", lease=granted["lease"])
    assert desk.hear("thief")[0]["lost"] == [granted["lease"]]
    assert desk.state() == "leased"


def test_a_client_that_comes_back_keeps_its_lease(desk):
    desk.server("s")
    desk.open("c")
    granted = desk.lease("c", "s")
    desk.close("c")
    desk.open("c2")
    desk.wait(3)
    desk.say("c2", type="renew", id=0, leases=[granted["lease"]])
    desk.wait(4)
    assert desk.types("c2") == ["renewed"] and desk.state() == "leased"


def test_requests_of_a_client_that_leaves_are_forgotten(desk):
    desk.open("c")
    desk.say("c", type="request", id=1, key="board")
    assert desk.tracker.waiting == 1
    desk.close("c")
    assert desk.tracker.waiting == 0 and desk.tracker.queues == {}
    desk.server("s")
    assert desk.hear("s") == []


def test_a_client_that_leaves_while_a_device_is_prepared(desk):
    desk.server("s")
    desk.open("c")
    desk.say("c", type="request", id=1, key="board")
    desk.close("c")
    desk.ready("s")
    assert desk.types("s") == ["end"] and not desk.tracker.leases
    desk.say("s", type="ended", epoch=1)
    assert desk.state() == "idle"


def test_three_wrong_answers_quarantine_a_device(desk):
    desk.server("s")
    desk.open("c")
    desk.say("c", type="request", id=1, key="board")
    for failures in (1, 2, 3):
        (prepare,) = desk.hear("s")
        desk.say("s", type="ready", epoch=prepare["epoch"], answer="0" * 64)
        assert desk.types("s") == ["end"]
        desk.say("s", type="ended", epoch=prepare["epoch"])
        if failures < 3:
            assert desk.state() == "resting" and not desk.resets
            desk.wait(2 ** (failures - 1))
    assert desk.state() == "quarantined" and desk.resets[0]["device"] == "d1" and "wrong" in desk.resets[0]["why"]
    assert desk.tracker.waiting == 1  # the request waits for another device
    desk.wait(60)
    prepare = desk.ready("s")
    assert prepare["ticket"] == ""  # tried without a client
    desk.hear("s")
    desk.say("s", type="ended", epoch=prepare["epoch"])
    desk.ready("s")
    assert desk.types("c") == ["granted"]


def test_a_quarantine_outlives_connection_and_tracker(desk):
    desk.server("s")
    desk.tracker.limits = Limits(failures=1)
    desk.open("c")
    desk.say("c", type="request", id=1, key="board")
    desk.say("s", type="ready", epoch=1, answer="0" * 64)
    desk.say("s", type="ended", epoch=1)
    resume = next(r for r in desk.records if r["what"] == "device")
    for records in (desk.records, desk.tracker.snapshot()):
        later = Desk(records=records)
        assert later.tracker.devices["d1"].suspect and later.tracker.devices["d1"].resume == resume["resume"]


def test_no_answer_is_a_failure(desk):
    desk.server("s")
    desk.open("c")
    desk.say("c", type="request", id=1, key="board")
    (prepare,) = desk.hear("s")
    desk.wait(5)
    assert desk.types("s") == ["end"]
    desk.say("s", type="ready", epoch=prepare["epoch"], answer=probe.answer(prepare["question"]))  # too late
    assert desk.hear("c") == [] and desk.tracker.devices["d1"].failures == 1
    desk.wait(5)
    assert desk.closes == ["s"] and desk.state() == "away"


def test_a_server_that_refuses_a_lease_is_not_asked_at_once_again(desk):
    desk.server("s")
    desk.open("c")
    desk.say("c", type="request", id=1, key="board")
    desk.say("s", type="ended", epoch=1)
    assert desk.types("s") == ["prepare", "end"]
    desk.say("s", type="ended", epoch=1)
    assert desk.state() == "resting"


def test_a_server_comes_back_as_the_same_device(desk):
    registered = desk.server("s")
    desk.open("c")
    granted = desk.lease("c", "s")
    desk.close("s")
    assert desk.state() == "away"
    desk.wait(3)
    desk.say("c", type="renew", id=0, leases=[granted["lease"]])
    desk.open("s2", "lab")
    desk.say("s2", type="register", key="board", port=9000, resume=registered["resume"], epoch=1)
    assert desk.types("s2") == ["registered"] and desk.state() == "leased"
    desk.open("s3", "mallory")
    desk.say("s3", type="register", key="board", port=9000, resume=registered["resume"])
    assert desk.hear("s3")[0]["kind"] == "Denied"


def test_a_server_that_was_restarted_has_no_lease(desk):
    registered = desk.server("s")
    desk.open("c")
    desk.lease("c", "s")
    desk.open("s2", "lab")  # the old connection is half open
    desk.say("s2", type="register", key="board", port=9000, resume=registered["resume"], epoch=0)
    assert desk.closes == ["s"]
    (lost,) = desk.hear("c")
    assert "restarted" in lost["message"]
    desk.close("s")
    assert desk.types("s2") == ["registered", "end"] and desk.tracker.devices["d1"].conn == "s2"


def test_a_tracker_that_was_restarted_knows_servers_and_leases(desk):
    registered = desk.server("s")
    desk.open("c")
    granted = desk.lease("c", "s")
    later = Desk(records=desk.records, now=1000.0)
    later.open("c")
    later.say("c", type="renew", id=0, leases=[granted["lease"]])
    assert later.hear("c")[0]["leases"] == [granted["lease"]]
    later.open("s", "lab")
    later.say("s", type="register", key="board", port=9000, resume=registered["resume"], epoch=1)
    assert later.state() == "leased"
    later.wait(5)
    assert later.types("c") == ["lost"] and later.types("s") == ["registered", "end"]
    later.say("s", type="ended", epoch=1)
    assert later.lease("c", "s", 2)["epoch"] == 2


def test_epochs_never_fall(desk):
    """The journal is gone, the server remembers."""
    desk.server("s", epoch=41)
    desk.open("c")
    assert desk.lease("c", "s")["epoch"] == 42


# Words of clients.

BAD = [
    (b"", "not JSON"), (b"\xff\xfe", "not JSON"), (b"[1]", "an object, not list"), (b"{}", "type 'None'"), (b'{"type":["register"]}', "of type"),
    (b'{"type":"granted"}', "of type 'granted'"), (b'{"type":"cancel","id":1,"id":2}', "is there twice"), (b'{"type":"cancel","id":NaN}', "is not a number of JSON"),
    (b'{"type":"cancel"}', "`cancel` lacks `id`"), (b'{"type":"cancel","id":true}', "`id` of `cancel`"), (b'{"type":"cancel","id":-1}', "`id` of `cancel`"),
    (b'{"type":"cancel","id":1e3}', "`id` of `cancel`"), (b'{"type":"cancel","id":99999999999999999999}', "`id` of `cancel`"),
    (b'{"type":"request","id":1,"key":"a b"}', "`key` of `request`"), (b'{"type":"request","id":1,"key":"../../x"}', "`key` of `request`"),
    (b'{"type":"request","id":1,"key":"k","seconds":-1}', "`seconds` of `request`"), (b'{"type":"request","id":1,"key":"k","seconds":1e999}', "`seconds`"),
    (b'{"type":"request","id":1,"key":"k","priority":1.5}', "`priority` of `request`"),
    (b'{"type":"renew","id":1,"leases":[1]}', "`leases` of `renew`"), (b'{"type":"renew","id":1,"leases":{}}', "`leases` of `renew`"),
    (b'{"type":"register","key":"k","port":0}', "`port` of `register`"), (b'{"type":"register","key":"k","port":65536}', "`port` of `register`"),
    (b'{"type":"register","key":"k","socket":"../x"}', "`socket` of `register`"), (b'{"type":"register","key":"k"}', "names one of"),
    (b'{"type":"register","key":"k","port":1,"socket":"x"}', "names one of"),
    (b"[" * 60000, "not JSON"), (b'{"type":"cancel","id":' + b"9" * 60000 + b"}", ""), (b"x" * 70000, "70000 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "text"), BAD, ids=range(len(BAD)))
def test_a_bad_message_is_answered_by_one_error(desk, raw, text):
    desk.open("c")
    (error,) = desk.raw("c", raw)
    assert error["type"] == "error" and error["kind"] == "ProtocolError" and text in error["message"]
    assert len(json.dumps(error)) < 400
    desk.say("c", type="summary", id=7)
    assert desk.types("c") == ["summary"]  # the connection goes on


def test_many_bad_messages_close_the_connection(desk):
    desk.open("c")
    for _ in range(16):
        desk.raw("c", b"?")
    assert desk.closes == ["c"]


def test_an_error_names_the_request(desk):
    desk.open("c")
    (error,) = desk.raw("c", b'{"type":"request","id":12,"key":""}')
    assert error["id"] == 12


WRONG_ROLE = [
    ("c", {"type": "ready", "epoch": 1, "answer": "0" * 64}, "only a registered server"),
    ("c", {"type": "ended", "epoch": 1}, "only a registered server"),
    ("s", {"type": "request", "id": 1, "key": "board"}, "requests nothing"),
    ("s", {"type": "register", "key": "board", "port": 1}, "registers one server"),
    ("c", {"type": "register", "key": "board", "socket": "x"}, "on another machine"),
    ("c", {"type": "register", "key": "board", "proxy": "0" * 32}, "knows no proxy"),
]  # fmt: skip


@pytest.mark.parametrize(("conn", "message", "text"), WRONG_ROLE, ids=[f"{c}-{m['type']}-{t[:8]}" for c, m, t in WRONG_ROLE])
def test_what_a_peer_may_not_do(desk, conn, message, text):
    desk.server("s")
    desk.open("c")
    desk.say(conn, **message)
    (error,) = desk.hear(conn)
    assert error["kind"] == "Denied" and text in error["message"]


ADDRESSES = [
    ("10.1.2.3", {"port": 9090}, "tls://10.1.2.3:9090"),
    ("fe80::1", {"port": 9090}, "tls://[fe80::1]:9090"),
    ("", {"port": 9090}, "tls://127.0.0.1:9090"),
    ("", {"socket": "board.sock"}, "unix:board.sock"),
    ("10.1.2.3", {"proxy": "a" * 32}, "proxy://gate:9191/" + "a" * 32),
]  # fmt: skip


@pytest.mark.parametrize(("host", "words", "address"), ADDRESSES, ids=[a for _, _, a in ADDRESSES])
def test_an_address_is_what_the_transport_saw(host, words, address):
    desk = Desk(proxies=["proxy://gate:9191"])
    desk.open("s", "lab", host)
    desk.say("s", type="register", key="board", host="6.6.6.6", address="tls://6.6.6.6:1", server="d77", **words)
    assert desk.hear("s")[0]["server"] == "d1" and desk.tracker.devices["d1"].address == address


def test_bounds_are_errors():
    desk = Desk(Limits(devices=1, requests_of_peer=2, requests_of_user=3, requests=4))
    desk.server("s")
    desk.open("t", "lab")
    desk.say("t", type="register", key="board", port=1)
    assert desk.hear("t")[0]["kind"] == "Busy"
    for conn, user, taken in (("a", "ann", 2), ("b", "ann", 1), ("c", "bob", 1), ("d", "cy", 0)):
        desk.open(conn, user)
        for number in range(3):
            desk.say(conn, type="request", id=number, key="none")
        assert [m["kind"] for m in desk.hear(conn)] == ["Busy"] * (3 - taken)
    for conn in "abcd":
        desk.close(conn)
    assert desk.tracker.waiting == 0 and not desk.tracker._waiting_of


def test_a_server_that_stays_away_is_forgotten(desk):
    desk.server("s")
    desk.close("s")
    desk.wait(86399)
    assert desk.tracker.devices
    desk.wait(1)
    assert not desk.tracker.devices and not Desk(records=desk.records).tracker.devices and not desk.tracker._of_key


def test_summary(desk):
    desk.server("s")
    desk.server("t", "phone")
    desk.open("c")
    desk.lease("c", "s")
    desk.say("c", type="request", id=2, key="board")
    desk.say("c", type="summary", id=9)
    (summary,) = desk.hear("c")
    assert summary["queues"] == {"board": {"free": 0, "pending": 1}, "phone": {"free": 1, "pending": 0}}
    assert [(row["server"], row["state"]) for row in summary["servers"]] == [("d1", "leased"), ("d2", "idle")]
    assert summary["next"] is None


def test_a_summary_comes_in_parts(desk):
    for number in range(201):
        desk.server(f"s{number}")
    desk.open("c")
    desk.say("c", type="summary", id=1)
    desk.say("c", type="summary", id=2, offset=200)
    first, second = desk.hear("c")
    assert first["next"] == 200 and second["next"] is None and len(second["servers"]) == 1
    assert len(messages.pack(first)) < messages.LIMIT


def test_the_snapshot_says_what_the_records_say():
    desk = Desk()
    rng = random.Random(3)
    for number in range(6):
        desk.server(f"s{number}", rng.choice(["a", "b"]))
        desk.open(f"c{number}", f"u{number}")
    for number in range(4):
        desk.say(f"c{number}", type="request", id=1, key=rng.choice(["a", "b"]))
    for number in range(6):
        if f"s{number}" in desk.inbox and rng.random() < 0.7:
            desk.ready(f"s{number}")
    by_records, by_snapshot = Desk(records=desk.records).tracker, Desk(records=desk.tracker.snapshot()).tracker
    assert by_records.snapshot() == by_snapshot.snapshot() == desk.tracker.snapshot()
    assert content_hash(by_records.snapshot()) == content_hash(by_snapshot.snapshot())


def test_a_record_of_another_version_is_an_error():
    with pytest.raises(ProtocolError, match="this version does not know"):
        Desk(records=[{"what": "lunch"}])


def test_random_messages_leave_the_tracker_whole():
    """Messages of all types with fields drawn at random: each is answered by at most one error, and the invariants hold."""
    rng = random.Random(11)
    desk = Desk(Limits(bad_messages=10**9))
    values = [0, 1, 2, 3, -1, 2**53, 2**70, "board", "", "0" * 32, "f" * 64, None, True, [], ["0" * 32], {}, 1.5, "x" * 300]
    fields = ["id", "key", "port", "socket", "resume", "epoch", "answer", "lease", "leases", "seconds", "priority", "offset", "proxy"]
    conns = []
    for step in range(4000):
        action = rng.random()
        if action < 0.05 or not conns:
            conns.append(step)
            desk.open(step, f"u{rng.randrange(3)}")
        elif action < 0.08:
            desk.close(conns.pop(rng.randrange(len(conns))))
        elif action < 0.12:
            desk.wait(rng.random() * 3)
        else:
            conn = rng.choice(conns)
            for message in desk.hear(conn):
                if message["type"] == "prepare" and rng.random() < 0.8:
                    desk.say(conn, type="ready", epoch=message["epoch"], answer=probe.answer(message["question"]))
                elif message["type"] == "end":
                    desk.say(conn, type="ended", epoch=message["epoch"])
            kind = rng.choice([*messages.SCHEMA, "nonsense"])
            words = {name: rng.choice(values) for name in fields if rng.random() < 0.5}
            if rng.random() < 0.5:
                words.update(id=step, key="board", port=9000)
                for name in ("socket", "proxy", "seconds", "priority", "resume", "epoch"):
                    words.pop(name, None)
            desk.hear(conn)
            desk.say(conn, type=kind, **words)
            assert sum(message["type"] == "error" for message in desk.inbox.get(conn, [])) <= 1
        tracker = desk.tracker
        assert tracker.waiting == sum(map(len, tracker.queues.values())) == sum(tracker._waiting_of.values())
        assert {lease.device.id for lease in tracker.leases.values()} == {d.id for d in tracker.devices.values() if d.lease}
        assert sum(map(len, tracker._idle.values())) == sum(d.state == "idle" for d in tracker.devices.values())
    assert desk.tracker.devices


# Fairness.


class Asked:
    def __init__(self, user, seq, priority=1):
        self.user, self.seq, self.priority, self.cancelled = user, seq, priority, False


def test_a_user_with_many_requests_gets_no_more():
    queue, served = FairQueue(), []
    for seq in range(100):
        queue.push(Asked("many", seq))
    for seq in range(100, 105):
        queue.push(Asked("few", seq))
    for _ in range(10):
        request = queue.pop()
        served.append(request.user)
        queue.end(request.user, 10.0)
    assert served.count("few") == 5 and set(served[:2]) == {"many", "few"}


def test_seconds_count_and_not_requests():
    queue, seconds = FairQueue(), {"long": 0.0, "short": 0.0}
    for seq in range(2000):
        queue.push(Asked("long" if seq % 2 else "short", seq))
    while min(seconds.values()) < 1000:
        request = queue.pop()
        took = 30.0 if request.user == "long" else 1.0
        seconds[request.user] += took
        queue.end(request.user, took)
    assert abs(seconds["long"] - seconds["short"]) <= 30


def test_devices_in_use_count():
    queue = FairQueue()
    for seq in range(10):
        queue.push(Asked("a", seq))
    for seq in range(10, 20):
        queue.push(Asked("b", seq))
    assert [queue.pop().user for _ in range(6)] == ["a", "b", "a", "b", "a", "b"]


def test_priority_is_among_the_requests_of_one_user():
    queue = FairQueue()
    queue.push(Asked("polite", 1, priority=0))
    queue.push(Asked("loud", 2, priority=1000))
    queue.push(Asked("polite", 3, priority=5))
    order = []
    while queue:
        request = queue.pop()
        order.append((request.user, request.seq))
        queue.end(request.user, 1.0)
    assert order.index(("polite", 3)) < order.index(("polite", 1))
    assert order[1][0] != order[0][0]  # the loud one does not keep others waiting


def test_idle_time_is_no_credit():
    queue = FairQueue()
    for seq in range(500):
        queue.push(Asked("steady", seq))
        queue.end(queue.pop().user, 1.0)
    for seq in range(500, 540):
        queue.push(Asked("steady" if seq % 2 else "new", seq))
    served = []
    for _ in range(20):
        request = queue.pop()
        served.append(request.user)
        queue.end(request.user, 1.0)
    assert 8 <= served.count("steady") <= 12


def test_a_connection_is_known_by_its_name(desk):
    """Names that are equal are one connection, be they one object or two."""
    desk.server(("s", 1000))
    desk.close(tuple(["s", 1000]))
    assert desk.tracker.devices["d1"].conn is None and desk.state() == "away"


@pytest.mark.parametrize("change", [{"seconds": {}}, {"epoch": "5"}, {"epoch": True}, {"token": []}, {"user": None}, {"device": {}}, {"seconds": "9"}])
def test_a_journal_whose_records_have_other_types_is_refused(change):
    device = {"what": "device", "device": "d1", "key": "board", "user": "lab", "resume": "a" * 64, "address": "tls://h:1", "epoch": 4}
    lease = {"what": "lease", "device": "d1", "epoch": 5, "token": "b" * 64, "user": "ann", "seconds": 30}
    Desk(records=[device, lease])
    with pytest.raises(ProtocolError, match="does not know"):
        Desk(records=[device, {**lease, **change}])


@pytest.mark.parametrize("seconds", [1, 10, 3600])
def test_a_clock_that_counts_back_makes_no_lease_longer(desk, seconds):
    desk.server("s")
    desk.open("c")
    desk.wait(5000)
    desk.lease("c", "s")
    desk.wait(1)
    desk.now -= seconds
    assert 3 < desk.tracker.next_timer() - desk.now <= 5 + seconds
    desk.wait(0)
    assert 3 < desk.tracker.next_timer() - desk.now < 5
    desk.wait(3)
    assert desk.state() == "leased"
    desk.wait(2)
    assert desk.state() == "ending" and desk.types("c") == ["lost"]
    # And again, by less than before.
    desk.now -= 0.5
    desk.wait(6)
    assert desk.state() == "away"
