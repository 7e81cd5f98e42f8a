# SPDX-License-Identifier: Apache-2.0
"""Many at once: sessions, connections that say nothing, bytes on the wire."""

import contextlib
import resource
import socket
import struct
import threading
import time

import pytest
from faulty_wire import FaultyWire
from processes import children, resident, served, until

import baton
from baton import rpc
from baton.rpc.library import function


@pytest.fixture(autouse=True)
def descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
def test_256_sessions_at_once(tmp_path):
    with served(f"unix:{tmp_path}/s") as (process, url):
        sessions = [rpc.connect(url, connect_timeout=20) for _ in range(256)]
        assert len({s.info["session"] for s in sessions}) == 256
        for one in sessions:
            assert one.get_function("runtime.DeviceExists")(one.cpu())
        for one in sessions:
            one.close()
        assert until(lambda: len(children(process.pid)) <= 8, 20)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.long)])
def test_connections_that_say_nothing_disturb_no_other(tmp_path, count):
    key = str(tmp_path / "lab.key")
    function("KeyNew")("lab", key, "session", ["runtime.DeviceExists"])
    with served(f"tls://127.0.0.1:0?key={key}") as (process, url):
        port = int(url.rpartition(":")[2])
        with rpc.connect("127.0.0.1", port, key_file=key) as other:
            exists = other.get_function("runtime.DeviceExists")
            assert exists(other.cpu())
            before, times, silent = resident(process.pid), [], []
            for n in range(count):
                raw = socket.socket()
                raw.setblocking(False)
                raw.connect_ex(("127.0.0.1", port))
                silent.append(raw)
                if len(silent) > 2000:
                    silent.pop(0).close()
                if n % 50 == 0:
                    begin = time.monotonic()
                    assert exists(other.cpu())
                    times.append(time.monotonic() - begin)
            assert sorted(times)[len(times) // 2] < 0.1
            for raw in silent:
                raw.close()
            assert until(lambda: len(children(process.pid)) <= 8, 20)
            assert resident(process.pid) - before < 1 << 20
        end = time.monotonic() + 20
        while True:  # one of the crowd may be in the queue before it
            try:
                with rpc.connect("127.0.0.1", port, key_file=key) as remote:
                    assert remote.get_function("runtime.DeviceExists")(remote.cpu())
                break
            except rpc.RPCError:
                assert time.monotonic() < end


def test_64_mb_cost_at_most_a_tenth_more_on_the_wire(tmp_path):
    """At 1 Gbit/s bytes are what takes time: those of headers, records and credit are counted."""
    key = str(tmp_path / "lab.key")
    function("KeyNew")("lab", key, "trusted", [])
    with served(f"tls://127.0.0.1:0?key={key}") as (_, url), FaultyWire(int(url.rpartition(":")[2])) as wire:
        with rpc.connect("127.0.0.1", wire.port, key_file=key) as remote:
            size = 64 << 20
            x = baton.nd.empty((size,), "uint8")
            there = baton.nd.empty((size,), "uint8", remote.cpu())
            for action in (lambda: x.copyto(there), lambda: there.copyto(x)):
                before = wire.passed
                action()
                assert size < wire.passed - before < 1.1 * size


@pytest.mark.parametrize("where", ["unix", "tls"])
def test_connects_from_two_threads(tmp_path, where):
    """How many a second, `bench/rpc.py` says."""
    with served(f"unix:{tmp_path}/s" if where == "unix" else "tls://127.0.0.1:0") as (_, url):
        done = []

        def work():
            for _ in range(50):
                rpc.connect(url, connect_timeout=20).close()
                done.append(1)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert len(done) == 100


def test_a_greeting_is_not_read_beyond_its_size(tmp_path):
    """What a peer announces takes no memory before it is there."""
    with served(f"unix:{tmp_path}/s") as (process, url):
        peers = []
        for _ in range(50):
            raw = socket.socket(socket.AF_UNIX)
            raw.connect(url.removeprefix("unix:"))
            raw.sendall(struct.pack("<IBBHQQ", (1 << 20) + (64 << 10), 1, 0, 0, 0, 0))
            peers.append(raw)
        time.sleep(0.5)
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            pids = [int(word) for word in file.read().split()]
        total = 0
        for pid in pids:
            with contextlib.suppress(FileNotFoundError):
                total += resident(pid)
        assert total / max(1, len(pids)) < 20 << 20
        for raw in peers:
            raw.close()
