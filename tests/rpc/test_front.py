# SPDX-License-Identifier: Apache-2.0
"""The process that has the keys: what its session has not, and what is left when one of them is killed."""

import contextlib
import os
import random
import re
import signal
import subprocess
import threading
import time

import numpy as np
import pytest
from faulty_wire import FaultyWire
from processes import alive, children, name_of, until
from processes import served as served_at

import baton
from baton import rpc
from baton.rpc.library import function


@contextlib.contextmanager
def served(folder, *options, policy="session"):
    """A server with a key in a file; gives its process, its port and the file."""
    key = str(folder / "lab.key")
    function("KeyNew")("lab", key, policy, ["runtime.DeviceExists"])
    with served_at(f"tls://127.0.0.1:0?key={key}", *options, folder=folder, stderr=subprocess.PIPE) as (process, url):
        yield process, int(url.rpartition(":")[2]), key


def front_of(remote):
    found = [pid for pid in children(remote.info["session"]) if name_of(pid) == "baton-front"]
    assert len(found) == 1
    return found[0]


def memory(pid):
    """All bytes that a process can change."""
    out = bytearray()
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps:
            found = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if found:
                begin, end = int(found[1], 16), int(found[2], 16)
                with contextlib.suppress(OSError, ValueError):
                    mem.seek(begin)
                    out += mem.read(end - begin)
    return bytes(out)


def secrets_of(key):
    """What must not be found: the secret as bytes and as text, by halves."""
    with open(key) as file:
        text = re.search(r"^key: ([0-9a-f]{64})$", file.read(), re.M)[1]
    raw = bytes.fromhex(text)
    return {"first half": raw[:16], "second half": raw[16:], "first digits": text[:32].encode(), "last digits": text[32:].encode()}


def test_a_front_has_given_up_files_programs_and_sockets(tmp_path):
    with served(tmp_path) as (_, port, key), rpc.connect("127.0.0.1", port, key_file=key) as remote:
        assert remote.get_function("runtime.DeviceExists")(remote.cpu())
        with open(f"/proc/{front_of(remote)}/status") as file:
            status = dict(line.split(":\t", 1) for line in file if ":\t" in line)
        assert status["Seccomp"].strip() == "2" and status["NoNewPrivs"].strip() == "1"


@pytest.mark.parametrize("policy", ["session", "trusted"])
def test_no_process_of_a_session_has_the_key(tmp_path, policy):
    with served(tmp_path, policy=policy) as (process, port, key), rpc.connect("127.0.0.1", port, key_file=key) as remote:
        assert remote.get_function("runtime.DeviceExists")(remote.cpu()) and remote.info["policy"] == policy
        for pid in (process.pid, remote.info["session"], *children(process.pid)):
            has = memory(pid)
            assert len(has) > 100_000
            assert not [name for name, secret in secrets_of(key).items() if secret in has], name_of(pid)


def test_no_process_of_a_session_has_the_private_key_of_a_certificate(tmp_path):
    pytest.importorskip("cryptography")
    from authority import Authority

    authority = Authority(tmp_path, "lab")
    file = authority.give("board", hosts=["127.0.0.1"])
    with open(file) as text:
        secret = max(re.search(r"BEGIN PRIVATE KEY-----\n(.*?)-----END", text.read(), re.S)[1].split("\n"), key=len).encode()
    with served_at(f"tls://127.0.0.1:0?cert={file}&ca={authority.path}", folder=tmp_path) as (process, url):
        with rpc.connect(f"{url}?cert={authority.give('ci')}&ca={authority.path}") as remote:
            assert remote.peer and front_of(remote)
            for pid in (process.pid, remote.info["session"]):
                assert secret not in memory(pid)


def test_what_a_key_lets_do_arrives_in_the_session(tmp_path):
    with served(tmp_path, "--memory", "200", "--allow", "runtime.Time*", policy="trusted") as (_, port, key):
        token = str(tmp_path / "job.token")
        function("KeyNarrow")(key, token, ["allow=runtime.DeviceExists", "memory=104000000", "devices=cpu", "load=none", "wall=600"])
        with rpc.connect("127.0.0.1", port, key_file=token) as remote:
            assert remote.info["policy"] == "session" and remote.get_function("runtime.DeviceExists")(remote.cpu())
            with pytest.raises(rpc.Denied):
                remote.get_function("runtime.TimeEvaluator")
            with pytest.raises(rpc.OutOfMemory):
                baton.nd.empty((105_000_000,), "uint8", remote.cpu())
            with pytest.raises(rpc.Denied):
                baton.nd.empty((2,), "uint8", remote.cuda())
            remote.upload(b"x", "m.so")
            with pytest.raises(rpc.Denied, match="loads no modules"):
                remote.load_module("m.so")


def test_a_session_with_little_memory_begins_and_is_told_its_limit(tmp_path):
    with served(tmp_path) as (_, port, key):
        token = str(tmp_path / "job.token")
        function("KeyNarrow")(key, token, ["memory=1000000"])
        with rpc.connect("127.0.0.1", port, key_file=token) as remote:
            assert remote.get_function("runtime.DeviceExists")(remote.cpu())
            with pytest.raises(rpc.OutOfMemory, match="at most 1000000"):
                baton.nd.empty((1_000_001,), "uint8", remote.cpu())


def test_a_refusal_and_an_end_are_said_by_the_right_process(tmp_path):
    other = str(tmp_path / "other.key")
    function("KeyNew")("other", other, "trusted", [])
    with served(tmp_path, "--max-sessions", "1", "--verbose") as (process, port, key):
        with pytest.raises(rpc.Denied):
            rpc.connect("127.0.0.1", port, key_file=other)
        with rpc.connect("127.0.0.1", port, key_file=key) as remote:
            assert remote.get_function("runtime.DeviceExists")(remote.cpu())
            pid, front = remote.info["session"], front_of(remote)
        assert until(lambda: not alive(pid) and not alive(front))
        process.terminate()
        said = process.communicate(timeout=10)[1]
    assert said.count("refused") == 1 and re.search(r"session \d+ of key [0-9a-f]{16} lab, policy session: 2 calls, \d+ bytes in", said)


POINTS = [15, pytest.param(200, marks=pytest.mark.long)]


def work(remote):
    """Calls, arrays and files, until something breaks."""
    exists, x = remote.get_function("runtime.DeviceExists"), np.arange(100_000)
    while True:
        assert exists(remote.cpu())
        assert (baton.nd.array(x, remote.cpu()).numpy() == x).all()
        remote.upload(x.tobytes(), "f")
        remote.remove("f")


@pytest.mark.parametrize("points", POINTS)
def test_a_front_is_killed(tmp_path, points):
    """One typed error in 2 s, the process of the session gone in 5 s, the port open, other sessions undisturbed."""
    rng = random.Random(11)
    with served(tmp_path) as (process, port, key), rpc.connect("127.0.0.1", port, key_file=key) as other:
        exists = other.get_function("runtime.DeviceExists")
        for _ in range(points):
            remote = rpc.connect("127.0.0.1", port, key_file=key, resume_timeout=0)
            pid, front, killed = remote.info["session"], front_of(remote), []

            def kill(front=front, killed=killed):
                killed.append(time.monotonic())
                os.kill(front, signal.SIGKILL)

            threading.Timer(rng.uniform(0, 0.05), kill).start()
            with pytest.raises(rpc.SessionLost):
                work(remote)
            assert time.monotonic() - killed[0] < 2 and exists(other.cpu())
            assert until(lambda pid=pid: not alive(pid)) and process.poll() is None
        other.close()
        assert until(lambda: not list(tmp_path.glob("baton-rpc-server-*/*")))


def test_a_session_goes_on_when_its_front_is_killed(tmp_path):
    with served(tmp_path) as (_, port, key), rpc.connect("127.0.0.1", port, key_file=key) as remote:
        a = baton.nd.array(np.arange(1000), remote.cpu())
        os.kill(front_of(remote), signal.SIGKILL)
        for _ in range(3):
            np.testing.assert_array_equal(a.numpy(), np.arange(1000))
        assert not remote.lost


@pytest.mark.parametrize("points", POINTS)
def test_a_session_with_a_front_is_killed(tmp_path, points):
    rng = random.Random(12)
    with served(tmp_path) as (_, port, key):
        for _ in range(points):
            remote = rpc.connect("127.0.0.1", port, key_file=key)
            pid, front, killed = remote.info["session"], front_of(remote), []

            def kill(pid=pid, killed=killed):
                killed.append(time.monotonic())
                os.kill(pid, signal.SIGKILL)

            threading.Timer(rng.uniform(0, 0.05), kill).start()
            with pytest.raises(rpc.SessionLost):
                work(remote)
            assert time.monotonic() - killed[0] < 2
            assert until(lambda front=front: not alive(front))


def test_a_client_that_reads_nothing_keeps_no_process(tmp_path):
    """The front of a session that is gone goes too, be it that its client takes none of the bytes that are left."""
    with served(tmp_path) as (_, port, key), FaultyWire(port) as wire:
        remote = rpc.connect("127.0.0.1", wire.port, key_file=key, call_timeout=1, resume_timeout=0)
        pid, front = remote.info["session"], front_of(remote)
        there = baton.nd.empty((64 << 20,), "uint8", remote.cpu())
        here = baton.nd.empty((64 << 20,), "uint8")
        wire.silent = True
        with pytest.raises(rpc.RPCError):
            there.copyto(here)
        os.kill(pid, signal.SIGKILL)
        assert until(lambda: not alive(front), 8)
        wire.silent = False
