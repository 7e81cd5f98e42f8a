# SPDX-License-Identifier: Apache-2.0
"""Programs of Relay's time, as its documentation writes them."""

import subprocess
import sys

import numpy as np
import pytest
from processes import children

import baton as tvm
from baton import rpc, te


@pytest.fixture(scope="module")
def add_one(tmp_path_factory):
    """A library with one function, as an archive."""
    a = te.placeholder((1024,), name="A")
    b = te.compute((1024,), lambda i: a[i] + 1.0, name="B")
    path = str(tmp_path_factory.mktemp("lib") / "lib.tar")
    tvm.build(te.create_schedule(b.op), [a, b], target="llvm", name="add_one").export_library(path)
    return path


def arrays(device):
    return tvm.nd.array(np.arange(1024, dtype="float32"), device), tvm.nd.array(np.zeros(1024, "float32"), device)


def test_a_remote_library_of_one_function_is_called(remote, add_one):
    remote.upload(add_one)
    func, dev = remote.load_module("lib.tar"), remote.cpu()
    a, b = arrays(dev)
    func(a, b)
    np.testing.assert_equal(b.numpy(), a.numpy() + 1)
    assert func.time_evaluator(func.entry_name, dev, number=10)(a, b).mean > 0
    assert func.time_evaluator("add_one", dev, number=10)(a, b).mean > 0
    assert func.entry_func is not None
    with pytest.raises(AttributeError, match="`other`"):
        func["other"]


def test_a_library_of_two_functions_has_no_entry(remote, tmp_path):
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] * 2, name="y")
    lower = lambda name: tvm.lower(te.create_schedule(y.op), [x, y], name=name)  # noqa: E731
    both = lower("one")
    both.update(lower("two"))
    tvm.build(both, target="llvm").export_library(str(tmp_path / "two.so"))
    remote.upload(tmp_path / "two.so")
    module = remote.load_module("two.so")
    assert module["one"] and module["two"]
    with pytest.raises(AttributeError, match="`main`"):
        module.entry_func  # noqa: B018


@pytest.mark.parametrize("policy", ["trusted", "session"])
def test_times_with_cold_caches(tmp_path, add_one, policy):
    with rpc.Server(url=f"unix:{tmp_path}/s", policy=policy) as server, rpc.connect(server.url) as there, rpc.LocalSession() as here:
        for session in (there, here):
            session.upload(add_one)
            module, dev = session.load_module("lib.tar"), session.cpu()
            times = module.time_evaluator("add_one", dev, number=1, repeat=4, f_preproc="cache_flush_cpu_non_first_arg")
            assert len(times(*arrays(dev)).results) == 4
            with pytest.raises((ValueError, rpc.Denied), match="absent"):
                module.time_evaluator("add_one", dev, number=1, f_preproc="absent")(*arrays(dev))


def test_a_function_is_called_before_each_round(add_one):
    seen = []
    tvm.register_func("test.rpc.before", lambda *args: seen.append(len(args)), override=True)
    with rpc.LocalSession() as here:
        here.upload(add_one)
        here.load_module("lib.tar").time_evaluator("add_one", here.cpu(), number=2, repeat=3, f_preproc="test.rpc.before")(*arrays(here.cpu()))
    assert seen == [2, 2, 2]


def test_arguments_and_paths_of_old():
    from baton.rpc.client import LocalSession, RPCSession, TrackerSession, connect, connect_tracker  # noqa: F401
    from baton.rpc.minrpc import with_minrpc

    assert RPCSession is rpc.RPCSession and with_minrpc is rpc.with_minrpc
    with rpc.Server("127.0.0.1", 0, use_popen=True, no_fork=True, silent=True) as server, connect("127.0.0.1", server.port) as remote:
        assert remote.cpu().exist


def test_what_was_is_refused_with_what_is():
    with pytest.raises(tvm.UnsupportedError, match="is_proxy=True"):
        rpc.proxy.websocket_proxy_server("ws://localhost:9190/ws", key="board")
    command = [sys.executable, "-m", "baton.exec.rpc_server", "--through-proxy", "--host", "gate.example", "--port", "9191", "--fork", "--no-sandbox"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "behind a proxy needs `key_file`" in done.stderr


def test_a_session_by_way_of_another_server():
    with rpc.Server(port=0, key="x0") as near, rpc.Server(port=0, key="x1") as far:
        way = ["rpc.Connect", "127.0.0.1", far.port, "x1", False]
        with rpc.connect("127.0.0.1", near.port, key="x0", session_constructor_args=way) as client:
            echo = client.get_function("testing.echo")
            assert echo(1) == 1 and echo("xyz") == "xyz" and bytes(echo(bytearray(b"123"))) == b"123"
            np.testing.assert_equal(tvm.nd.array(np.arange(300_000), client.cpu(0)).numpy(), np.arange(300_000))
            pid = client.info["session"]
            assert pid in children(far.pid) and pid not in children(near.pid)
            far.terminate()
            with pytest.raises(rpc.SessionLost):
                echo(1)
        with pytest.raises(rpc.RPCError):
            rpc.connect("127.0.0.1", near.port, session_constructor_args=way)
        with rpc.connect("127.0.0.1", near.port, session_constructor_args=["rpc.LocalSession"]) as client:
            assert client.get_function("testing.echo")(2) == 2
        with pytest.raises(rpc.RPCError, match="each session of a server is its own process"):
            rpc.connect("127.0.0.1", near.port, session_constructor_args=["rpc.PopenSession", b""])


def test_a_server_opens_sessions_with_others_for_those_it_trusts(tmp_path):
    with rpc.Server(url=f"unix:{tmp_path}/far") as far, rpc.Server(url=f"unix:{tmp_path}/near", policy="session") as near:
        with pytest.raises(rpc.Denied, match="trusts"):
            rpc.connect(near.url, session_constructor_args=["rpc.Connect", far.url])
    with rpc.Server(url=f"unix:{tmp_path}/far") as far, rpc.Server(url=f"unix:{tmp_path}/near") as near:
        with rpc.connect(near.url, session_constructor_args=["rpc.Connect", far.url]) as remote:
            assert remote.cpu().exist


def test_files_that_are_not_there(remote, tmp_path):
    with pytest.raises(FileNotFoundError):
        remote.upload(tmp_path / "absent.so")
    for use in (remote.load_module, remote.download, remote.remove):
        with pytest.raises(rpc.RPCError, match="absent.so"):
            use("absent.so")


def test_arrays_are_filled_at_random():
    import baton.contrib.random  # noqa: F401

    fill = rpc.LocalSession().get_function("tvm.contrib.random.random_fill")
    for dtype in ("float32", "int8", "bool"):
        a = tvm.nd.empty((50, 4), dtype)
        fill(a)
        assert 0 <= a.numpy().min() and 1 <= a.numpy().max() <= 10
