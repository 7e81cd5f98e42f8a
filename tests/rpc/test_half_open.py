# SPDX-License-Identifier: Apache-2.0
"""A network that drops every packet and closes nothing, in a network namespace whose one interface goes down."""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from processes import alive


def _network(up):
    """Sets the loopback interface of this namespace up or down; what is sent while it is down is lost."""
    with socket.socket() as one:
        name = b"lo".ljust(16, b"\0")
        flags = struct.unpack("16xH", fcntl.ioctl(one, 0x8913, name + bytes(16))[:18])[0]  # SIOCGIFFLAGS, SIOCSIFFLAGS
        fcntl.ioctl(one, 0x8914, name + struct.pack("H", flags | 1 if up else flags & ~1) + bytes(14))


def _program(case, folder):
    """Runs within the namespace; prints what it measured."""
    import baton
    from baton import rpc
    from baton.rpc.library import function

    counted = []
    baton.register_func("test.count", lambda: counted.append(1) or len(counted))
    baton.register_func("test.sleep", time.sleep)
    _network(True)
    key = f"{folder}/lab.key"
    function("KeyNew")("lab", key, "trusted", [])
    with rpc.Server("127.0.0.1", 0, key_file=key) as server:
        remote = rpc.connect("127.0.0.1", server.port, key_file=key, call_timeout=60, resume_timeout=30 if case == "heals" else 0)
        count, sleep, pid = remote.get_function("test.count"), remote.get_function("test.sleep"), remote.info["session"]
        assert count() == 1
        if case == "waits":
            threading.Timer(0.3, _network, (False,)).start()
        else:
            _network(False)
        began = time.monotonic()
        if case == "heals":
            threading.Timer(3, _network, (True,)).start()
            assert [count() for _ in range(5)] == [2, 3, 4, 5, 6]
            print("found in", time.monotonic() - began)
        else:
            with pytest.raises(rpc.SessionLost):
                sleep(40) if case == "waits" else count()
            print("found in", time.monotonic() - began)
            while alive(pid) and time.monotonic() - began < 30:
                time.sleep(0.05)
            print("ended in", time.monotonic() - began)
        _network(True)


def _unshare():
    """The command that makes a namespace; None where this user may not."""
    for command in (["unshare", "-n"], ["unshare", "-rn"]):
        if shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0:
            return command
    return None


@pytest.mark.parametrize("case", [pytest.param("waits", marks=pytest.mark.slow), "sends", "heals"])
def test_a_peer_that_the_network_cut_off_is_found_in_10_seconds(case, tmp_path):
    command = _unshare()
    if command is None:
        pytest.skip("this user may make no network namespace")
    package = Path(sys.modules["baton"].__file__).parents[1] if "baton" in sys.modules else Path(__file__).parents[2] / "python"
    environment = {**os.environ, "PYTHONPATH": f"{package}", "XDG_RUNTIME_DIR": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run([*command, sys.executable, __file__, case, tmp_path], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    said = dict(line.split(" in ") for line in done.stdout.splitlines())
    assert float(said["found"]) < 10.5 and float(said.get("ended", 0)) < 12.5


if __name__ == "__main__":
    _program(*sys.argv[1:])
