# SPDX-License-Identifier: Apache-2.0
"""Sessions go on when their connection is lost: each effect once, whatever the byte at which it was cut."""

import os
import random
import threading
import time

import numpy as np
import pytest
from faulty_wire import FaultyWire
from processes import until

import baton
from baton import rpc
from baton.rpc.library import function

counted = {}


@baton.register_func("test.resume.count")
def _count(name):
    counted[name] = counted.get(name, 0) + 1
    return counted[name]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A server with a key, and the key's file."""
    key = str(tmp_path_factory.mktemp("key") / "lab.key")
    function("KeyNew")("lab", key, "trusted", [])
    with rpc.Server("127.0.0.1", 0, key_file=key) as server:
        yield server, key


@pytest.fixture
def wire(lab):
    with FaultyWire(lab[0].port) as made:
        yield made


@pytest.fixture
def remote(lab, wire):
    with rpc.connect("127.0.0.1", wire.port, key_file=lab[1]) as session:
        yield session


def test_a_session_goes_on_after_a_cut(remote, wire):
    count = remote.get_function("test.resume.count")
    a = baton.nd.array(np.arange(5), remote.cpu())
    assert count("a") == 1
    pid = remote.info["session"]
    for n in range(2, 6):
        wire.cut()
        assert count("a") == n
    np.testing.assert_array_equal(a.numpy(), np.arange(5))
    assert wire.connections == 5 and not remote.lost and remote.info["session"] == pid


@pytest.mark.parametrize("cuts", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_each_effect_is_there_once_whatever_the_byte_of_the_cut(remote, wire, cuts):
    rng = random.Random(7)
    count, echo = remote.get_function("test.resume.count"), remote.get_function("test.rpc.echo")
    data = rng.randbytes(300_000)
    n = 0
    while wire.connections <= cuts:
        n += 1
        wire.cut_after(rng.choice([rng.randint(1, 400), rng.randint(1, 200_000)]))
        assert count(f"each {cuts}") == n
        if n % 4 == 0:
            assert bytes(echo(data)) == data
        if n % 10 == 0:
            got = baton.nd.array(np.frombuffer(data, "uint8"), remote.cpu())
            assert got.numpy().tobytes() == data


def test_bulk_both_ways_over_a_wire_that_is_cut_again_and_again(remote, wire):
    x = np.random.default_rng(0).integers(0, 255, 24 << 20, dtype="uint8")
    stop = threading.Event()

    def cut():
        while not stop.wait(0.005):
            if wire._budget is None:
                wire.cut_after(3 << 20)

    thread = threading.Thread(target=cut)
    thread.start()
    try:
        a = baton.nd.array(x, remote.cpu())
        got = a.numpy()
    finally:
        stop.set()
        thread.join()
    assert (got == x).all() and wire.connections > 10


def test_a_callback_goes_on_after_a_cut(remote, wire):
    seen = []

    def back(n):
        seen.append(n)
        wire.cut()
        return n + 1

    apply = remote.get_function("test.rpc.apply")
    assert [apply(back, n) for n in range(5)] == [1, 2, 3, 4, 5] and seen == list(range(5))


def test_a_call_that_runs_while_the_connection_is_cut_gives_its_result(remote, wire):
    sleep = remote.get_function("test.rpc.sleep")
    timer = threading.Timer(0.3, wire.cut)
    timer.start()
    begin = time.monotonic()
    sleep(3.0)
    assert 2.9 < time.monotonic() - begin < 6


def test_a_half_open_connection_is_given_up_when_the_client_comes_back(lab, remote, wire):
    count = remote.get_function("test.resume.count")
    assert count("half") == 1
    wire.silent = True  # the server sees no end of the old connection
    with wire._lock:
        near = [pair[0] for pair in wire._pairs]
    for one in near:
        one.shutdown(2)
    wire.silent = False
    assert count("half") == 2


def test_a_worker_that_is_gone_is_a_lost_session_at_once(remote, wire):
    call = remote.get_function("test.rpc.add")
    os.kill(remote.info["session"], 9)
    begin = time.monotonic()
    with pytest.raises(rpc.SessionLost, match="not there any more"):
        call(1, 2)
    assert time.monotonic() - begin < 2 and remote.lost


def test_a_server_that_is_gone_is_a_lost_session_soon(tmp_path):
    key = str(tmp_path / "k")
    function("KeyNew")("k", key, "trusted", [])
    server = rpc.Server("127.0.0.1", 0, key_file=key)
    remote = rpc.connect("127.0.0.1", server.port, key_file=key)
    call = remote.get_function("test.rpc.add")
    server.terminate()
    begin = time.monotonic()
    with pytest.raises(rpc.SessionLost):
        call(1, 2)
    assert time.monotonic() - begin < 2


def test_another_key_does_not_get_the_session(tmp_path, lab):
    """The name of a session is worth nothing to a peer that has another key."""
    keys = [str(tmp_path / name) for name in ("a", "b")]
    for key in keys:
        function("KeyNew")("k", key, "trusted", [])
    with rpc.Server("127.0.0.1", 0, key_file=keys[0]) as server, pytest.raises(rpc.RPCError):
        rpc.connect("127.0.0.1", server.port, key_file=keys[1])


def test_without_resumption_a_cut_is_a_lost_session(lab, wire):
    remote = rpc.connect("127.0.0.1", wire.port, key_file=lab[1], resume_timeout=0)
    call = remote.get_function("test.rpc.add")
    pid = remote.info["session"]
    wire.cut()
    with pytest.raises(rpc.SessionLost):
        call(1, 2)
    assert until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_closing_ends_the_worker_at_once(lab, wire):
    remote = rpc.connect("127.0.0.1", wire.port, key_file=lab[1])
    pid = remote.info["session"]
    wire.cut()
    remote.get_function("test.rpc.add")(1, 1)
    remote.close()
    assert until(lambda: not os.path.exists(f"/proc/{pid}"), 3)


def test_calls_are_under_way_at_the_same_time(remote, wire):
    calls = [remote.call_async("test.rpc.add", n, n) for n in range(200)]
    assert remote.get_function("test.rpc.add")(1, 1) == 2  # a plain call passes its turn
    wire.cut()
    assert [call.result() for call in reversed(calls)] == [2 * n for n in reversed(range(200))]
    assert calls[0].result() == 0  # known by now
    failed = remote.call_async("test.rpc.fail", "ValueError", "wrong")
    for _ in range(2):
        with pytest.raises(ValueError, match="wrong"):
            failed.result()
    dropped = [remote.call_async("test.rpc.echo", [1, 2]) for _ in range(50)]
    del dropped
    assert remote.get_function("test.rpc.add")(1, 1) == 2
    with pytest.raises(TypeError, match="function of this session"):
        remote.call_async(lambda: 1)


def test_calls_under_way_take_less_time_than_one_by_one(remote, wire):
    add = remote.get_function("test.rpc.add")
    wire.delay = 0.01
    begin = time.monotonic()
    calls = [remote.call_async(add, n, 1) for n in range(60)]
    assert [c.result() for c in calls] == list(range(1, 61))
    assert time.monotonic() - begin < 0.6  # of 60 * 0.02


def test_small_calls_pass_between_the_pieces_of_an_upload(remote, wire):
    add = remote.get_function("test.rpc.add")
    data = os.urandom(32 << 20)
    wire.delay, done, longest = 0.002, [], 0.0
    thread = threading.Thread(target=lambda: (remote.upload(data, "large"), done.append(1)))
    thread.start()
    time.sleep(0.1)
    count = 0
    while not done:
        begin = time.monotonic()
        assert add(count, 1) == count + 1
        longest = max(longest, time.monotonic() - begin)
        count += 1
    thread.join()
    wire.delay = 0
    assert count > 3
    assert bytes(remote.download("large")) == data


def test_a_pool_makes_lost_sessions_anew(lab, wire, tmp_path):
    (tmp_path / "f").write_bytes(b"of a file")
    with rpc.Pool("127.0.0.1", wire.port, key_file=lab[1], size=2) as pool:
        pool.upload(b"abc", "name")
        pool.upload(tmp_path / "f")
        seen = []

        def work(remote):
            seen.append(remote.info["session"])
            if len(seen) == 2:
                os.kill(seen[-1], 9)
            return bytes(remote.download("name")), bytes(remote.download("f"))

        assert pool.run(work) == pool.run(work) == (b"abc", b"of a file")
        assert len(seen) == 3 and seen[0] == seen[1] != seen[2]
        with pool.session() as one, pool.session() as two:
            assert one.info["session"] != two.info["session"]
        with pytest.raises(ValueError):
            pool.run(lambda remote: remote.get_function("test.rpc.fail")("ValueError", "x"))
    with pytest.raises(rpc.SessionLost, match="closed"):
        pool.run(work)
