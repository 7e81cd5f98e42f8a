# SPDX-License-Identifier: Apache-2.0
"""Calls in processes of their own; the executor with times."""

import time

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.contrib.debugger import debug_executor
from baton.contrib.popen_pool import PopenPoolExecutor, PopenWorker, StatusKind
from baton.testing import (
    after_initializer,
    call_cpp_py_ffi,
    fast_summation,
    identity_after,
    initializer,
    register_ffi,
    slow_summation,
    terminate_self,
    timeout_job,
)


def test_a_worker():
    worker = PopenWorker()
    with pytest.raises(RuntimeError, match="nothing was sent"):
        worker.recv()
    worker.send(identity_after, [1, 0], timeout=100)
    assert worker.recv() == 1
    worker.send(identity_after, [2, 30], timeout=0.1)
    with pytest.raises(TimeoutError):
        worker.recv()
    worker.send(terminate_self)
    with pytest.raises(ChildProcessError):
        worker.recv()
    worker.send(int, ["x"])
    with pytest.raises(ValueError, match="invalid literal"):
        worker.recv()
    worker.send(fast_summation, [100])  # a new process
    assert worker.recv() == slow_summation(100) and worker.is_alive()
    worker.kill()
    assert not worker.is_alive()


def test_what_a_process_does_first():
    worker = PopenWorker(initializer, (1, "two", [3]))
    worker.send(after_initializer)
    assert worker.recv() == (1, "two", [3]) and after_initializer() == (0, 0, 0)
    functions = PopenWorker(register_ffi)
    functions.send(call_cpp_py_ffi, [7])
    assert functions.recv() == 7
    for make in (PopenWorker, lambda f: PopenPoolExecutor(initializer=f)):
        with pytest.raises(TypeError, match="callable"):
            make(3)


def test_a_pool():
    with PopenPoolExecutor(max_workers=2, timeout=20) as pool:
        futures = [pool.submit(fast_summation, n) for n in range(8)]
        assert [f.result() for f in futures] == [slow_summation(n) for n in range(8)]
        found = list(pool.map_with_error_catching(int, ["1", "x", "3"]))
        assert [r.status for r in found] == [StatusKind.COMPLETE, StatusKind.EXCEPTION, StatusKind.COMPLETE]
        assert [r.value for r in found[::2]] == [1, 3] and isinstance(found[1].value, ValueError)
    with PopenPoolExecutor(max_workers=1, timeout=0.5) as pool:
        (late,) = pool.map_with_error_catching(timeout_job, [20])
        assert late.status == StatusKind.TIMEOUT


def test_an_executor_with_times(tmp_path):
    x = relay.var("x", shape=(4, 8))
    lib = relay.build(tvm.IRModule.from_expr(relay.nn.softmax(relay.nn.relu(x))), "llvm")
    model = debug_executor.create(lib.get_graph_json(), lib, tvm.cpu(), dump_root=str(tmp_path))
    given = np.ones((4, 8), "float32")
    report = model.profile(x=given)
    assert "Total on cpu(0)" in str(report) and len(report.calls) == len(model.run_individual(2, 2)) and report.calls[0]["Duration (us)"] > 0
    model.run()
    tvm.testing.assert_allclose(model.get_output(0).numpy(), np.full((4, 8), 1 / 8), rtol=1e-6)


def test_the_time_that_a_process_takes_to_start_is_no_calls():
    """A process that takes longer to start than a call may take serves calls all the same."""
    with PopenPoolExecutor(max_workers=1, timeout=2, initializer=time.sleep, initargs=(3,)) as pool:
        assert pool.submit(abs, -3).result() == 3
        with pytest.raises(TimeoutError):
            pool.submit(time.sleep, 60).result()
        assert pool.submit(abs, -4).result() == 4
