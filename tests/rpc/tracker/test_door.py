# SPDX-License-Identifier: Apache-2.0
"""A server that a tracker leases out serves the lease that is current, and no other session."""

import gc
import os
import signal
import subprocess
import sys
import time

import pytest
from processes import until

from baton import rpc
from baton.rpc.library import function
from baton.rpc.server import program
from baton.rpc.tracker import Tracker, connect_tracker


@pytest.fixture
def tracker(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with Tracker("127.0.0.1", 0) as made:
        yield made


def python_server(tracker):
    server = rpc.Server(port=0, key="board", tracker_addr=("127.0.0.1", tracker.port))
    return server, f"tls://127.0.0.1:{server.port}", server.terminate


def native_server(tracker):
    command = [program(), "--listen", "tls://127.0.0.1:0", "--tracker", f"tls://127.0.0.1:{tracker.port}", "--key", "board"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    url = process.stdout.readline().split()[-1]

    def end():
        process.terminate()
        process.wait(5)
        process.stdout.close()

    return process, url, end


@pytest.fixture(params=[python_server, native_server], ids=["python", "program"])
def served(request, tracker):
    server, url, end = request.param(tracker)
    yield url, server
    end()


def works(remote):
    return remote.get_function("runtime.DeviceExists")(remote.cpu())


def test_the_current_lease_alone_is_served(served, tracker):
    url, _ = served
    for key in ("", "board", "board:" + "0" * 32, "board:"):
        with pytest.raises(rpc.Denied, match="connect_tracker"):
            rpc.connect(url, key=key)
    with connect_tracker("127.0.0.1", tracker.port) as session:
        with session.lease("board", timeout=10) as lease:
            with rpc.connect(lease.address, key=lease.match) as remote, rpc.connect(lease.address, key=lease.match) as two:
                assert works(remote) and works(two)
            with pytest.raises(rpc.Denied):
                rpc.connect(lease.address, key=lease.match[:-1] + ("0" if lease.match[-1] != "0" else "1"))
            old = lease.match
        with session.lease("board", timeout=10) as lease:
            assert lease.epoch > 1
            with pytest.raises(rpc.Denied):
                rpc.connect(lease.address, key=old)
            with rpc.connect(lease.address, key=lease.match) as remote:
                assert works(remote)


def test_a_session_ends_with_its_lease(served, tracker):
    with connect_tracker("127.0.0.1", tracker.port) as session:
        lease = session.lease("board", timeout=10)
        remote = rpc.connect(lease.address, key=lease.match)
        assert works(remote)
        lease.release()

        def over():
            try:
                return not works(remote)
            except rpc.SessionLost:
                return True

        assert until(over, 5)


def test_a_session_that_is_dropped_is_given_back(served, tracker):
    gc.disable()
    try:
        with connect_tracker("127.0.0.1", tracker.port) as session:
            for _ in range(2):
                remote = session.request("board", timeout=5)
                assert works(remote)
                del remote
    finally:
        gc.enable()


def test_a_device_is_free_when_its_client_was_killed(served, tracker):
    code = (
        "import sys\nfrom baton import rpc\nremote = rpc.connect_tracker('127.0.0.1', int(sys.argv[1])).request('board')\n"
        "print('held', flush=True)\nsys.stdin.read()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tracker.port)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "held\n"
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    began = time.monotonic()
    with connect_tracker("127.0.0.1", tracker.port) as session, session.request("board", timeout=10) as remote:
        assert works(remote) and time.monotonic() - began < 6


def test_a_server_behind_a_proxy_is_leased(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    key = str(tmp_path / "lab.key")
    function("KeyNew")("lab", key, "trusted", [])
    monkeypatch.setenv("BATON_RPC_KEY", key)
    with rpc.proxy.Proxy("127.0.0.1", 0, key_file=key) as gate, Tracker("127.0.0.1", 0, key_file=key, proxies=[gate.url]) as tracker:
        address = f"tls://127.0.0.1:{tracker.port}?key={key}"
        with (
            rpc.Server("127.0.0.1", gate.port, is_proxy=True, key="nat", key_file=key, tracker_addr=address) as server,
            connect_tracker("127.0.0.1", tracker.port, key_file=key) as session,
        ):
            assert server.url.startswith(gate.url + "/")
            with session.request("nat", timeout=10) as remote:
                assert works(remote)
            with pytest.raises(rpc.Denied):
                rpc.proxy.connect(server.url)
