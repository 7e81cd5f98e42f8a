# SPDX-License-Identifier: Apache-2.0
"""What sessions do that are confined: all that a client of an ordinary key needs. What they cannot do: `test_sandbox_*.py`."""

import threading

import numpy as np
import pytest
from hostility import KERNELS, LANDLOCK, attacked

import baton as tvm
from baton import relay, rpc
from baton.contrib import graph_executor

pytestmark = pytest.mark.skipif(LANDLOCK < 1, reason="this kernel has no Landlock")


@pytest.fixture(params=KERNELS, ids=lambda kernel: kernel.name)
def url(request, tmp_path):
    with attacked(tmp_path, "--memory", "4096", kernel=request.param) as (_, url):
        yield url


def test_a_model_runs_and_is_timed(url, tmp_path):
    x = relay.var("x", shape=(64, 64))
    tvm.relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, x))), target="llvm").export_library(str(tmp_path / "m.so"))
    with rpc.connect(url) as remote:
        remote.upload(tmp_path / "m.so")
        m = graph_executor.GraphModule(remote.load_module("m.so")["default"](remote.cpu()))
        data = np.random.default_rng(0).standard_normal((64, 64)).astype("float32")
        m.run(x=data)
        np.testing.assert_allclose(m.get_output(0).numpy(), data @ data.T, rtol=1e-3, atol=1e-4)
        assert m.benchmark(remote.cpu(), repeat=2, number=2).mean > 0


def test_files_come_and_go(url):
    with rpc.connect(url) as remote:
        data = np.random.default_rng(1).bytes(3 << 20)
        remote.upload(data, "f")
        assert remote.download("f") == data
        remote.remove("f")
        with pytest.raises(rpc.RPCError, match="`f`|cannot read"):
            remote.download("f")


def test_sessions_work_side_by_side(url):
    """Arrays of several sessions at once: each has its own elements."""
    wrong = []

    def one(seed):
        with rpc.connect(url) as remote:
            for i in range(20):
                data = np.full((64, 64), seed * 100 + i, "float32")
                if not (tvm.nd.array(data, remote.cpu()).numpy() == data).all():
                    wrong.append((seed, i))

    threads = [threading.Thread(target=one, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
