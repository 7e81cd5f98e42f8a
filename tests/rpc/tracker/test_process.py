# SPDX-License-Identifier: Apache-2.0
"""The tracker's process, and both ends of it, over Unix sockets."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from fakes import FakeDevice, FakeSession, connected, register, running_tracker
from processes import until

from baton.rpc import transport
from baton.rpc.errors import DeviceLost, RPCError, SessionLost, Timeout
from baton.rpc.tracker import Tracker, connect_tracker
from baton.rpc.tracker.records import Limits

FAST = Limits(renew=0.4, answer=1.0, rest=0.05, quarantine=0.3)


@pytest.fixture
def url(tmp_path):
    with running_tracker(tmp_path / "t", limits=FAST) as url:
        yield url


def test_a_lease_is_renewed_while_it_is_held(url):
    device = FakeDevice()
    with register(url, device=device), connected(url) as session:
        with session.lease("board", seconds=100) as lease:
            time.sleep(1.2)
            assert not lease.lost.is_set() and device.ended == [0]
            assert device.begun[0][0] == lease.epoch == 1 and device.begun[0][2] == 100
        assert until(lambda: 1 in device.ended, 10)
        assert str(lease.error) == "it was given back"


def test_a_device_serves_one_client_at_a_time(url):
    busy, most = [], []

    def use(number):
        with connected(url) as session, session.lease("board"):
            busy.append(number)
            most.append(len(busy))
            time.sleep(0.02)
            busy.remove(number)

    with register(url), register(url), ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(16)))
    assert len(most) == 16 and max(most) <= 2


def test_a_client_that_was_killed_holds_nothing(url, tmp_path):
    program = (
        "import sys\nfrom baton.rpc.tracker import connect_tracker\n"
        "lease = connect_tracker(sys.argv[1]).lease('board')\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    with register(url) as server, connected(url) as session:
        child = subprocess.Popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE, stdin=subprocess.PIPE, env=_environment())
        assert child.stdout.readline() == b"held\n"
        child.kill()
        child.wait()
        began = time.monotonic()
        with session.lease("board", timeout=10) as lease:
            assert time.monotonic() - began < 5
            assert lease.epoch > 1 and server.epoch == lease.epoch


def _environment():
    import baton

    return {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(baton.__file__))}


def test_request_gives_a_session_and_takes_the_device_back(url):
    with register(url), connected(url) as session:
        remote = session.request("board")
        assert remote.address == "tls://127.0.0.1:9000"
        with pytest.raises(Timeout, match="no device of kind `board` was free within 0.1 s"):
            session.request("board", timeout=0.1)
        remote.close()
        assert remote.closed
        session.request("board", timeout=5).close()


def test_request_tries_another_device(url):
    tried = []

    def connect(lease):
        tried.append(lease.server)
        if len(tried) < 3:
            raise SessionLost("nothing listens there")
        return FakeSession(lease)

    with register(url), register(url), connected(url, connect) as session:
        session.request("board", max_retry=3).close()
        assert len(tried) == 3
        tried.clear()
        with pytest.raises(DeviceLost, match="after 2 attempts: nothing listens there"):
            session.request("board", max_retry=2)


def test_request_and_run_runs_again_when_the_device_is_lost(url):
    runs = []

    def work(remote):
        runs.append(remote)
        if len(runs) == 1:
            raise SessionLost("gone")
        return 42

    with register(url), connected(url) as session:
        assert session.request_and_run("board", work) == 42
        with pytest.raises(ZeroDivisionError):
            session.request_and_run("board", lambda remote: 1 / 0)
        assert all(remote.closed for remote in runs)


def test_a_client_that_gives_up_leaves_no_request(url):
    with connected(url) as session:
        with pytest.raises(Timeout):
            session.lease("board", timeout=0.05)
        with register(url):
            assert until(lambda: session.summary()["queue_info"] == {"board": {"free": 1, "pending": 0}}, 10)


def test_a_session_that_is_over_at_the_server_frees_the_device(url):
    device = FakeDevice()
    with register(url, device=device), connected(url) as session:
        lease = session.lease("board")
        device.open = 1
        time.sleep(0.6)
        assert not lease.lost.is_set()
        device.open = 0
        assert lease.lost.wait(5) and "ended the session" in str(lease.error)
        session.lease("board", timeout=5).release()


def test_a_registration_ends_with_its_server(url):
    device = FakeDevice()
    with register(url, device=device), connected(url) as session:
        device.there = False
        assert until(lambda: session.summary()["server_info"][0]["state"] == "away", 10)


def test_a_device_that_computes_wrongly_is_quarantined_and_reset(tmp_path):
    device, told = FakeDevice(wrong=True), tmp_path / "told"
    command = f"{sys.executable} -c \"import os; open('{told}', 'a').write(os.environ['BATON_DEVICE'] + ' ' + os.environ['BATON_KEY'])\""
    with running_tracker(tmp_path / "t", limits=FAST, reset_command=command) as url, register(url, device=device), connected(url) as session:
        with pytest.raises(Timeout):
            session.lease("board", timeout=1)
        assert until(lambda: session.summary()["server_info"][0]["state"] == "quarantined", 10)
        assert until(lambda: told.exists() and told.read_text().startswith("d1 board"), 10)
        device.wrong = False
        session.lease("board", timeout=10).release()


def test_text_summary(url):
    with register(url), connected(url) as session:
        assert until(lambda: "idle" in session.text_summary(), 10)  # it is probed first
        assert session.text_summary() == (
            "server  key    state  user  address\n-----------------------------------\nd1      board  idle         tls://127.0.0.1:9000\n\n"
            "key    free  pending\n--------------------\nboard  1     0\n"
        )


# Bad peers.


def talk(url):
    found = socket.socket(socket.AF_UNIX)
    found.connect(url.removeprefix("unix:"))
    found.settimeout(10)
    return found


STREAMS = [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\0" * 64, b"\x05\0\0\0abc", b"\x02\0\0\0{}" * 20, b"\xff\xff\x0f\0" + b"x" * 70000]


@pytest.mark.parametrize("data", STREAMS, ids=range(len(STREAMS)))
def test_garbage_disturbs_no_other(url, data):
    with register(url), connected(url) as session, talk(url) as bad:
        bad.sendall(data)
        with session.lease("board", timeout=5):
            bad.shutdown(socket.SHUT_WR)
            while bad.recv(4096):
                pass
        assert session.summary()["server_info"]


def test_silent_and_half_sent_connections_disturb_no_other(url):
    many = [talk(url) for _ in range(100)]
    for number, one in enumerate(many):
        one.sendall(b"\x30\0\0\0{"[: number % 6])
    with register(url), connected(url) as session:
        for _ in range(20):
            session.lease("board", timeout=5).release()
    for one in many:
        one.close()


def test_a_peer_that_reads_nothing_is_cut_off(url):
    with talk(url) as bad, connected(url) as session:
        message = json.dumps({"type": "summary", "id": 1}).encode()
        with pytest.raises(OSError):
            for _ in range(200_000):
                bad.sendall(len(message).to_bytes(4, "little") + message)
        assert session.summary()["server_info"] == []


def test_a_message_that_is_too_long_is_refused(url):
    connection = transport.connect(url)
    connection.send(b" " * 100_000)
    assert b"at most 65536" in connection.recv(5)
    connection.close()


# Restarts.


def start(tmp_path, **options):
    return Tracker(f"unix:{tmp_path / 't'}", journal=tmp_path / "journal", **options)


def test_a_tracker_is_a_process_of_its_own(tmp_path):
    with start(tmp_path) as tracker:
        assert tracker.pid != os.getpid() and tracker.url == f"unix:{tmp_path / 't'}"
        with connect_tracker(tracker.url) as session:
            assert session.summary() == {"queue_info": {}, "server_info": []}
        with pytest.raises(RPCError, match="in use by another process"):
            Tracker(tracker.url)
        with pytest.raises(RPCError, match="written by another process"):
            Tracker(f"unix:{tmp_path / 'u'}", journal=tmp_path / "journal")
    with pytest.raises(ProcessLookupError):
        os.kill(tracker.pid, 0)
    with pytest.raises(SessionLost, match="connecting to"):
        connect_tracker(tracker.url)


def test_a_killed_tracker_loses_no_server_and_no_lease(tmp_path):
    tracker = start(tmp_path)
    with register(tracker.url) as server, connected(tracker.url) as session:
        lease = session.lease("board")
        name = server.name
        for _ in range(3):
            os.kill(tracker.pid, signal.SIGKILL)
            tracker._process.wait()
            began = time.monotonic()
            tracker = start(tmp_path)
            assert until(lambda: session.summary()["server_info"][0]["state"] == "leased", 10)
            assert time.monotonic() - began < 10
        time.sleep(0.5)
        assert not lease.lost.is_set() and server.name == name and len(session.summary()["server_info"]) == 1
        lease.release()
        with session.lease("board", timeout=10) as again:
            assert again.epoch == lease.epoch + 1
    tracker.terminate()


def test_a_request_outlives_the_tracker(tmp_path):
    tracker = start(tmp_path)
    with connected(tracker.url) as session, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(session.lease, "board", timeout=20)
        assert until(lambda: session.summary()["queue_info"].get("board", {}).get("pending") == 1, 10)
        os.kill(tracker.pid, signal.SIGKILL)
        tracker._process.wait()
        tracker = start(tmp_path)
        with register(tracker.url):
            waiting.result(20).release()
    tracker.terminate()


def test_a_tracker_ends_with_its_parent(tmp_path):
    program = "import sys\nfrom baton.rpc.tracker import Tracker\ntracker = Tracker('unix:' + sys.argv[1])\nprint(tracker.pid, flush=True)\nsys.stdin.read()\n"
    child = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "t")], stdout=subprocess.PIPE, stdin=subprocess.PIPE, env=_environment())
    pid = int(child.stdout.readline())
    child.kill()
    child.wait()

    def gone():
        try:
            with open(f"/proc/{pid}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    assert until(gone, 10)


def test_threads_and_descriptors_are_given_back(tmp_path):
    def once():
        with running_tracker(tmp_path / "t") as url, register(url), connected(url) as session:
            session.lease("board").release()

    once()
    threads, before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        once()
    assert until(lambda: threading.active_count() <= threads + 2, 10)
    assert until(lambda: len(os.listdir("/proc/self/fd")) <= before + 2, 10)
