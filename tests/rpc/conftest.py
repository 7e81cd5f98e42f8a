# SPDX-License-Identifier: Apache-2.0
"""Servers for the tests below; their keys lie in a folder of the test's own."""

import sys
from pathlib import Path

import pytest

import baton
from baton import rpc

sys.path.insert(0, str(Path(__file__).parent))  # faulty_wire


@pytest.fixture(scope="session", autouse=True)
def runtime_dir(tmp_path_factory):
    """The folder of loopback keys."""
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    patch.delenv("BATON_RPC_KEY", raising=False)
    yield
    patch.undo()


@baton.register_func("test.rpc.add")
def _add(a, b):
    return a + b


@baton.register_func("test.rpc.echo")
def _echo(x):
    return x


@baton.register_func("test.rpc.apply")
def _apply(f, *args):
    return f(*args)


@baton.register_func("test.rpc.fail")
def _fail(kind, text):
    raise {"ValueError": ValueError, "KeyError": KeyError, "ZeroDivisionError": ZeroDivisionError, "Own": _Own}[kind](text)


class _Own(Exception):
    pass


@baton.register_func("test.rpc.sleep")
def _sleep(seconds):
    import time

    time.sleep(seconds)


@baton.register_func("test.rpc.poll")
def _poll(seconds):
    """Works for a while and asks in between, as loops of C++ do, whether to stop."""
    import time

    end, ask = time.monotonic() + seconds, baton.get_global_func("runtime.CheckSignals")
    while time.monotonic() < end:
        time.sleep(0.01)
        ask()


@baton.register_func("test.rpc.die")
def _die():
    import os

    os._exit(9)


@baton.register_func("test.rpc.make_adder")
def _make_adder(n):
    return lambda x: x + n


@pytest.fixture(scope="session", params=["unix", "tls"])
def server(request, tmp_path_factory):
    """A server of this process's functions."""
    url = f"unix:{tmp_path_factory.mktemp('s')}/socket" if request.param == "unix" else "tls://127.0.0.1:0"
    with rpc.Server(url=url) as made:
        yield made


@pytest.fixture
def remote(server):
    """A session of the test's own."""
    with rpc.connect(server.url) as session:
        yield session
