# SPDX-License-Identifier: Apache-2.0
"""Hostile code in a session: what it can reach."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from baton import rpc
from baton.rpc.library import path as library
from baton.rpc.server import program

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def has_landlock():
    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 1


pytestmark = [
    pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler"),
    pytest.mark.skipif(not has_landlock(), reason="this kernel has no Landlock"),
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The library of what hostile code tries."""
    out = tmp_path_factory.mktemp("hostile") / "hostile.so"
    lib = os.path.dirname(library("x"))
    command = ["cc", "-shared", "-fPIC", "-O1", f"-I{ROOT / 'include'}", HERE / "hostile.c", f"-L{lib}", "-lbaton_runtime", f"-Wl,-rpath,{lib}", "-o", out]
    subprocess.run(command, check=True)
    return out


@pytest.fixture
def start(hostile, tmp_path, request):
    """Starts a server that has the hostile functions; gives a function that connects."""
    processes = []

    def run(*options):
        environment = {**os.environ, "LD_PRELOAD": str(hostile), "TMPDIR": str(tmp_path)}
        command = [program(), "--listen", f"unix:{tmp_path}/socket", "--policy", "session", "--allow", "hostile.try", *options]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment))
        processes[-1].stdout.readline()
        return rpc.connect(f"unix:{tmp_path}/socket")

    yield run
    for process in processes:
        process.terminate()
        process.communicate(timeout=5)


def test_reaches_nothing_outside_its_folder(start, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x")
    remote = start()
    attempt = remote.get_function("hostile.try")
    for what, where in [
        ("read", secret), ("read", "/etc/passwd"), ("read", "/proc/1/environ"), ("read", f"/proc/{os.getpid()}/environ"), ("read", os.path.expanduser("~")),
        ("write", tmp_path / "new"), ("write", secret), ("write", "/etc/new"), ("write", "/dev/shm/new"), ("mkdir", tmp_path / "folder"),
        ("remove", secret), ("link", tmp_path / "link"), ("fork", ""), ("exec", "/bin/true"), ("socket", ""), ("unix", ""), ("ptrace", ""),
    ]:  # fmt: skip
        assert attempt(what, str(where)) in (1, 13), (what, where)  # EPERM, EACCES
    if ctypes.CDLL(None).syscall(444, None, 0, 1) >= 6:
        assert attempt("kill", "") == 1
    # Its own files it has, and the session works.
    remote.upload(b"mine", "f")
    assert remote.download("f") == b"mine"
    assert secret.read_text() == "x" and not (tmp_path / "new").exists() and not (tmp_path / "link").is_symlink()


def test_without_the_sandbox_the_attempts_work(start, tmp_path):
    attempt = start("--no-sandbox").get_function("hostile.try")
    assert [attempt(*a) for a in (("read", "/etc/passwd"), ("fork", ""), ("socket", ""), ("memory", ""))] == [0, 0, 0, 0]


def test_memory_and_processor_have_limits(start):
    remote = start("--memory", "512", "--cpu", "1")
    attempt = remote.get_function("hostile.try")
    assert attempt("memory", "") == 12  # ENOMEM
    with pytest.raises(rpc.SessionLost):  # before the call's own deadline
        attempt("spin", "")


def test_a_model_runs_within_the_sandbox(start, tmp_path):
    import numpy as np

    import baton as tvm
    from baton import relay
    from baton.contrib import graph_executor

    x = relay.var("x", shape=(64, 64))
    tvm.relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, x))), target="llvm").export_library(str(tmp_path / "m.so"))
    remote = start()
    remote.upload(tmp_path / "m.so")
    m = graph_executor.GraphModule(remote.load_module("m.so")["default"](remote.cpu()))
    data = np.random.default_rng(0).standard_normal((64, 64)).astype("float32")
    m.run(x=data)
    np.testing.assert_allclose(m.get_output(0).numpy(), data @ data.T, rtol=1e-3, atol=1e-4)
    assert m.benchmark(remote.cpu(), repeat=2, number=2).mean > 0
