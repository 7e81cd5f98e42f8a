# SPDX-License-Identifier: Apache-2.0
"""Where servers stand: boards and phones by a command that reaches them, code for their processors compiled here."""

import os
import stat
import struct

import numpy as np
import pytest

import baton
from baton import relay, rpc
from baton.rpc.server import program


@pytest.fixture
def reached(tmp_path, monkeypatch):
    """Commands named as those that reach other machines; each runs what it is given here, and says so in a file."""
    for name, shift in (
        ("ssh", 'while [ "$1" != -- ]; do shift; done; shift; host=$1; shift'),
        ("adb", "host=$1; shift"),
        ("docker", "shift; shift; host=$1; shift"),
    ):
        script = tmp_path / name
        script.write_text(f'#!/bin/sh\n{shift}\necho "{name} $host $*" >> {tmp_path}/log\nPATH={os.path.dirname(program())}:$PATH exec "$@"\n')
        script.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return lambda: (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    "url, said",
    [
        ("ssh://pi@raspberry", "ssh pi@raspberry baton-rpc-server --stdio"),
        ("exec:adb shell baton-rpc-server --stdio", "adb shell baton-rpc-server --stdio"),
        ("exec:docker exec -i board baton-rpc-server --stdio", "docker board baton-rpc-server --stdio"),
    ],
)
def test_rpc_004_boards_and_phones_by_the_command_that_reaches_them(reached, url, said, tmp_path):  # RPC-004
    with rpc.connect(url) as remote:
        a = baton.nd.array(np.arange(4), remote.cpu())
        assert (a.numpy() == np.arange(4)).all()
        remote.upload(b"x", "f")
        assert bytes(remote.download("f")) == b"x"
    assert said in reached()


@pytest.mark.parametrize("host", ["$(touch {})", "`touch {}`", "a;touch {}", "a' touch {} '"])
def test_rpc_004_a_host_is_no_command(reached, host, tmp_path):  # RPC-004
    mark = tmp_path / "mark"
    rpc.connect("ssh://" + host.format(mark)).close()
    assert not mark.exists() and f"ssh {host.format(mark)} baton-rpc-server" in reached()


@pytest.mark.parametrize("host", ["", "-oProxyCommand=x"])
def test_rpc_004_an_option_is_no_host(reached, host):  # RPC-004
    with pytest.raises(ValueError, match="names no host"):
        rpc.connect("ssh://" + host)


MACHINES = [("aarch64-linux-gnu", 2, 183), ("armv7a-linux-gnueabihf", 1, 40), ("riscv64-linux-gnu", 2, 243)]


@pytest.mark.parametrize("triple, width, machine", MACHINES, ids=[triple for triple, _, _ in MACHINES])
def test_rpc_012_modules_for_other_architectures_are_built_here(tmp_path, triple, width, machine):  # RPC-012
    x = relay.var("x", shape=(8,))
    lib = relay.build(baton.IRModule.from_expr(relay.Function([x], relay.add(x, x))), target=f"llvm -mtriple={triple}")
    path = tmp_path / "m.so"
    lib.export_library(str(path))
    head = path.read_bytes()[:20]
    assert head[:4] == b"\x7fELF" and head[4] == width and struct.unpack_from("<H", head, 18)[0] == machine
    # A server of another architecture says what it is, and goes on.
    with rpc.connect(f"exec:{program()} --stdio") as remote:
        remote.upload(path)
        with pytest.raises((RuntimeError, OSError, rpc.RPCError)):
            remote.load_module("m.so")
        assert remote.get_function("runtime.DeviceExists")(remote.cpu())
