# SPDX-License-Identifier: Apache-2.0
"""A process of a session is killed at some point of its work: one typed error in 2 s, no orphan, no file left, no other session disturbed."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from processes import alive, children, descriptors, resident, until
from processes import served as served_at

import baton
from baton import rpc

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "tracker"))
from fakes import FakeDevice, register  # noqa: E402

POINTS = [25, pytest.param(200, marks=pytest.mark.long)]


def served(folder, transport, *options):
    return served_at(f"unix:{folder}/socket" if transport == "unix" else "tls://127.0.0.1:0" + transport.removeprefix("tls"), *options, folder=folder)


def work(remote):
    """Calls, arrays, files and callbacks, until something breaks."""
    exists, x = remote.get_function("runtime.DeviceExists"), np.arange(200_000)
    while True:
        assert exists(remote.cpu())
        assert (baton.nd.array(x, remote.cpu()).numpy() == x).all()
        remote.upload(x.tobytes(), "f")
        assert bytes(remote.download("f")) == x.tobytes()
        remote.remove("f")


@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("transport", ["unix", "tls"])
def test_a_worker_is_killed(tmp_path, transport, points):
    rng = random.Random(2)
    with served(tmp_path, transport) as (_, url), rpc.connect(url) as other:
        exists = other.get_function("runtime.DeviceExists")
        for _ in range(points):
            remote = rpc.connect(url)
            pid, killed = remote.info["session"], []

            def kill(pid=pid, killed=killed):
                killed.append(time.monotonic())
                os.kill(pid, signal.SIGKILL)

            threading.Timer(rng.uniform(0, 0.05), kill).start()
            with pytest.raises(rpc.SessionLost):
                work(remote)
            assert time.monotonic() - killed[0] < 2 and exists(other.cpu())
        other.close()
        assert until(lambda: not list(tmp_path.glob("baton-rpc-server-*/*")))


@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("transport", ["unix", "tls"])
def test_the_supervisor_is_killed(tmp_path, transport, points):
    rng = random.Random(4)
    for _ in range(points):
        with served(tmp_path, transport) as (process, url):
            remote = rpc.connect(url)
            pid, killed = remote.info["session"], []

            def kill(process=process, killed=killed):
                killed.append(time.monotonic())
                process.kill()

            threading.Timer(rng.uniform(0, 0.05), kill).start()
            with pytest.raises(rpc.SessionLost):
                work(remote)
            assert time.monotonic() - killed[0] < 2.5 and until(lambda pid=pid: not alive(pid))
    # The next server removes what they left.
    with served(tmp_path, transport):
        assert until(lambda: len(list(tmp_path.glob("baton-rpc-server-*"))) == 1)


@pytest.mark.parametrize("points", [5, pytest.param(200, marks=pytest.mark.long)])
def test_a_client_is_killed(tmp_path, points):
    rng = random.Random(6)
    with served(tmp_path, "unix") as (_, url):
        program_text = (
            f"import sys\nsys.path[:0] = {[os.path.dirname(__file__), os.path.dirname(os.path.dirname(rpc.__path__[0]))]!r}\nfrom test_kill_points import work\nfrom baton import rpc\n"
            f"remote = rpc.connect({url!r})\nprint(remote.info['session'], flush=True)\nwork(remote)\n"
        )
        for _ in range(points):
            with subprocess.Popen([sys.executable, "-c", program_text], stdout=subprocess.PIPE, text=True) as client:
                pid = int(client.stdout.readline())
                time.sleep(rng.uniform(0, 0.1))
                client.kill()
            assert until(lambda pid=pid: not alive(pid))
        assert until(lambda: not list(tmp_path.glob("baton-rpc-server-*/*")))
        with rpc.connect(url) as remote:
            assert remote.get_function("runtime.DeviceExists")(remote.cpu())


def test_processes_that_wait_are_killed(tmp_path):
    """The pool of processes that wait for a client is made anew."""
    with served(tmp_path, "unix") as (process, url):
        assert until(lambda: len(children(process.pid)) == 4)
        for _ in range(5):
            for pid in children(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            ready = False
            end = time.monotonic() + 5
            while not ready and time.monotonic() < end:
                with contextlib.suppress(rpc.SessionLost):
                    rpc.connect(url).close()
                    ready = True
            assert ready
        assert until(lambda: len([pid for pid in children(process.pid) if alive(pid)]) == 4)


def test_many_rounds_leave_nothing(tmp_path):
    """Connect, run, close: no descriptors, processes or memory are left."""
    with served(tmp_path, "unix") as (process, url):

        def rounds(count):
            for _ in range(count):
                with rpc.connect(url) as remote:
                    assert remote.get_function("runtime.DeviceExists")(remote.cpu())

        rounds(30)
        assert until(lambda: descriptors(process.pid) < 20)
        mine, theirs, before = descriptors(os.getpid()), descriptors(process.pid), (resident(os.getpid()), resident(process.pid))
        rounds(400)
        assert until(lambda: descriptors(process.pid) <= theirs) and descriptors(os.getpid()) <= mine
        assert resident(os.getpid()) - before[0] < 1 << 20 and resident(process.pid) - before[1] < 1 << 20


def until_it_works(action, seconds=10):
    end = time.monotonic() + seconds
    while True:
        try:
            return action()
        except rpc.RPCError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


@pytest.mark.parametrize("points", [3, pytest.param(200, marks=pytest.mark.long)])
def test_a_tracker_is_killed(tmp_path, points):
    """At any point of leases that come and go: no lease is given twice, each device is free within 10 s."""
    rng = random.Random(8)
    journal, url = tmp_path / "journal", f"unix:{tmp_path}/t"
    device = FakeDevice()
    tracker = rpc.tracker.Tracker(url, journal=journal)
    try:
        with register(url, device=device), rpc.connect_tracker(url) as session:
            stop, epochs = threading.Event(), []

            def use():
                while not stop.is_set():
                    with contextlib.suppress(rpc.RPCError):
                        lease = session.lease("board", timeout=5)
                        epochs.append(lease.epoch)
                        lease.release()

            thread = threading.Thread(target=use)
            thread.start()
            try:
                for _ in range(points):
                    time.sleep(rng.uniform(0, 0.1))
                    count = len(epochs)
                    os.kill(tracker.pid, signal.SIGKILL)
                    tracker._process.wait()
                    tracker.terminate()
                    tracker = until_it_works(lambda: rpc.tracker.Tracker(url, journal=journal))
                    assert until(lambda count=count: len(epochs) > count, 15)
            finally:
                stop.set()
                thread.join(20)
            assert len(epochs) == len(set(epochs)) and epochs == sorted(epochs)
    finally:
        tracker.terminate()


@pytest.mark.parametrize("points", [3, pytest.param(200, marks=pytest.mark.long)])
def test_a_proxy_is_killed(tmp_path, points):
    """The session through it is lost, in time, or goes on; the next one comes through the next proxy."""
    rng, key = random.Random(9), str(tmp_path / "lab.key")
    rpc.library.function("KeyNew")("lab", key, "session", ["runtime.DeviceExists"])
    with served(tmp_path, f"tls?key={key}") as (_, url):
        gate = rpc.proxy.Proxy("127.0.0.1", 0, key_file=key)
        port = gate.port
        with rpc.proxy.Link(gate.url, url.removeprefix("tls://"), key) as link:
            try:
                for _ in range(points):
                    remote = until_it_works(lambda: rpc.proxy.connect(link.url, key_file=key, resume_timeout=0), 15)
                    killed = []

                    def kill(gate=gate, killed=killed):
                        killed.append(time.monotonic())
                        os.kill(gate.pid, signal.SIGKILL)

                    threading.Timer(rng.uniform(0, 0.05), kill).start()
                    with pytest.raises(rpc.SessionLost):
                        work(remote)
                    assert time.monotonic() - killed[0] < 2
                    remote.close()
                    gate._process.wait()
                    gate.terminate()
                    gate = until_it_works(lambda: rpc.proxy.Proxy("127.0.0.1", port, port + 1, key_file=key))
            finally:
                gate.terminate()
        assert until(lambda: not list(tmp_path.glob("baton-rpc-server-*/*")), 10)


def test_devices_are_free_again_in_5_s(tmp_path):
    """Whatever ends a session, its process and with it what it had of devices is gone within 5 s: also one that runs code which does not return."""
    with served(tmp_path, "unix", "--policy", "trusted") as (_, url):
        program_text = (
            f"import sys\nsys.path.insert(0, {os.path.dirname(os.path.dirname(rpc.__path__[0]))!r})\nfrom baton import rpc\nremote = rpc.connect({url!r})\n"
            "print(remote.info['session'], flush=True)\nf = remote.get_function('runtime.DeviceExists')\nt = remote.get_function('runtime.TimeEvaluator')\n"
            "t(f, '', remote.cpu(), 1000000000, 1, 0)(remote.cpu())\n"
        )
        with subprocess.Popen([sys.executable, "-c", program_text], stdout=subprocess.PIPE, text=True) as client:
            pid = int(client.stdout.readline())
            time.sleep(0.3)
            assert alive(pid)
            client.kill()
        killed = time.monotonic()
        assert until(lambda: not alive(pid), 5) and time.monotonic() - killed < 5
