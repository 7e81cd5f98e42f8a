# SPDX-License-Identifier: Apache-2.0
"""Functions for trying a connection, libraries that come back linked, and sessions that cannot be made."""

import numpy as np
import pytest

import baton
from baton import rpc, te
from baton.contrib import tar


@pytest.fixture(scope="module")
def remote():
    with rpc.Server(key="trying") as server, rpc.connect("127.0.0.1", server.port, key="trying") as session:
        yield session


def test_functions_that_each_server_has(remote):
    call = remote.get_function
    assert call("rpc.test.addone")(10) == 11 and call("rpc.test.strcat")("abc", 11) == "abc:11" and call("rpc.test.runtime_str_concat")("x", "y") == "xy"
    assert call("rpc.test.add_to_lhs")(10)(12) == 22
    call("rpc.test.remote_array_func")(baton.nd.array(np.ones((3, 4)), remote.cpu()))
    with pytest.raises(baton.error.RPCError):
        call("rpc.test.remote_array_func")(baton.nd.array(np.zeros((3, 4)), remote.cpu()))
    with pytest.raises(ValueError, match="because"):
        call("rpc.test.except")("because")
    make = call("rpc.test.remote_return_nd")
    array = make("get_arr")()
    assert array.shape == (10,) and make("get_elem")(3) == 0 and make("get_arr_elem")(array, 2) == 0 and make("ref_count")() >= 1


def test_a_module_registers_them_here():
    import baton.rpc.testing  # noqa: F401

    assert baton.get_global_func("rpc.test.addone")(1) == 2


def test_libraries_come_back_linked(remote, tmp_path):
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1, name="B")
    module = baton.build(te.create_schedule(b.op), [a, b], "llvm", name="f")
    module.save(str(tmp_path / "code.o"))
    module.export_library(str(tmp_path / "code.tar"), fcompile=tar.tar)
    module.export_library(str(tmp_path / "code.so"))
    with rpc.LocalSession() as here:
        for session in (remote, here):
            for name in ("code.o", "code.tar", "code.so"):
                session.upload(tmp_path / name)
                (tmp_path / "back.so").write_bytes(session.download_linked_module(name))
                x, y = baton.nd.array(np.ones(4, "float32")), baton.nd.empty((4,))
                baton.runtime.load_module(str(tmp_path / "back.so"))["f"](x, y)
                assert y.numpy().tolist() == [2] * 4
                (tmp_path / "back.so").unlink()
            session.upload(b"nothing of the kind", "other")
            with pytest.raises(ValueError, match="neither a library"):
                session.download_linked_module("other")


def test_a_session_that_no_constructor_makes(remote):
    with pytest.raises(baton.error.RPCError, match="not rpc.Nothing"):
        rpc.connect("127.0.0.1", 1, session_constructor_args=["rpc.Nothing"])


def test_the_summary_of_a_tracker():
    with rpc.tracker.Tracker("127.0.0.1", 9190, 9399) as tracker, rpc.connect_tracker("127.0.0.1", tracker.port) as client:
        with rpc.Server(key="trying", tracker_addr=("127.0.0.1", tracker.port)) as server:
            row = _soon(lambda: client.summary()["server_info"], lambda rows: rows)[0]
            assert row["key"] == "server:trying" and tuple(row["addr"]) == ("127.0.0.1", server.port) and row["url"].endswith(f":{server.port}")
            leased = client.request("trying")
            assert client.summary()["queue_info"]["trying"] == {"free": 0, "pending": 0}
            leased.close()
        away = _soon(lambda: client.summary()["server_info"], lambda rows: rows[0]["state"] == "away")
        assert tuple(away[0]["addr"]) == ("", 0) and "trying" in client.text_summary()


def _soon(ask, holds):
    import time

    end = time.monotonic() + 20
    while not holds(found := ask()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found
