# SPDX-License-Identifier: Apache-2.0
"""Reliability figure 23: Ctrl-C ends what takes long, and the process stays usable."""

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[3] / "bench" / "interrupt.py"
spec = importlib.util.spec_from_file_location("bench_interrupt", BENCH)
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)


@pytest.fixture(scope="module")
def works():
    return bench.works(100_000)


@pytest.mark.parametrize(
    "name",
    [
        "parse",
        "print",
        "structural_hash",
        "structural_equal",
        "save_json",
        "load_json",
        "virtual machine",
        "interpreter",
        "compile",
        "FuseOps",
        "ToANormalForm",
        "PartialEvaluate",
    ],
)
def test_an_alarm_ends_it(works, name):
    """The alarm comes soon after the start of work that goes on for long after it."""
    work = works[name]
    assert any(bench.latency(work, after) is not None for after in (0.03, 0.02, 0.01)), f"{name} went on to its end"
    assert bench.latency(work, 3600.0) is None  # nothing is left of it: the same work succeeds


def test_an_alarm_ends_an_import():
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    import baton

    nodes = [helper.make_node("Tanh" if i % 2 else "Exp", [f"v{i}"], [f"v{i + 1}"]) for i in range(16_000)]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in ("v0", "v16000")]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    data = model.SerializeToString()
    assert onnx and any(bench.latency(lambda: baton.relay.frontend.from_onnx(data), after) is not None for after in (0.2, 0.1, 0.05, 0.02, 0.01, 0.005))


ENDS = """
import importlib.util, os, sys, time
spec = importlib.util.spec_from_file_location("bench_interrupt", sys.argv[1])
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)
work = bench.works(10)["compile"]
start = time.perf_counter()
work()
takes = time.perf_counter() - start
threads = len(os.listdir("/proc/self/task"))
# At most of these moments LLVM works, on threads that go on after the alarm.
left = next((p for p in (0.7, 0.6, 0.5, 0.4, 0.3) if bench.latency(work, takes * p) is not None
             and len(os.listdir("/proc/self/task")) > threads), None)
assert left is not None, "no alarm came while LLVM worked"
if sys.argv[2] == "fork":  # the child has none of these threads
    if child := os.fork():
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    work()
    sys.exit(7)
if sys.argv[2] == "raises":
    raise KeyboardInterrupt
sys.exit(7)
"""


@pytest.mark.parametrize(("end", "code"), [("exits", 7), ("raises", -signal.SIGINT), ("fork", 7)])
def test_the_process_ends_well_after_an_interrupted_compile(end, code):
    """LLVM cannot be stopped; the process ends while it still works, at once and with its own exit status."""
    done = subprocess.run([sys.executable, "-c", ENDS, BENCH, end], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr


DAEMON = """
import importlib.util, sys, threading, time
spec = importlib.util.spec_from_file_location("bench_interrupt", sys.argv[1])
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)
work = bench.works(10)["compile"]
def compile_on():
    while True:
        work()
threading.Thread(target=compile_on, daemon=True).start()
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("after", [0.5, 1.0, 1.5])
def test_the_process_ends_well_while_a_daemon_thread_compiles(after):
    done = subprocess.run([sys.executable, "-c", DAEMON, BENCH, str(after)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def products(steps, n):
    """A model of so many products of n x n matrices, and its input."""
    onnx = pytest.importorskip("onnx")
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    import baton

    weight = numpy_helper.from_array(np.full((n, n), 1 / n, "float32"), "w")
    nodes = [helper.make_node("MatMul", [f"v{i}", "w"], [f"v{i + 1}"]) for i in range(steps)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [n, n]) for name in ("v0", f"v{steps}")]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], [weight]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx and baton.compile(model.SerializeToString()), np.ones((n, n), "float32")


def test_an_alarm_ends_a_native_call():
    """Of a model that is one function: between two of its steps."""
    made, x = products(300, 512)
    want = made(x).numpy()
    assert any(bench.latency(lambda: made(x), after) is not None for after in (0.05, 0.02, 0.01))
    assert (made(x).numpy() == want).all()


def test_seconds_bound_a_native_call():
    made, x = products(300, 512)
    want = made(x).numpy()
    made.limits = {"seconds": 0.05}
    with pytest.raises(TimeoutError, match="longer than `limits` allow"):
        made(x)
    made.limits = None
    assert (made(x).numpy() == want).all()


def test_an_alarm_ends_a_compile_of_many_nodes():
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    import baton

    nodes = [helper.make_node("Tanh" if i % 2 else "Exp", ["x"] if i < 2 else [f"v{i - 2}"], [f"v{i}"]) for i in range(16_000)]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in ("x", "v15999")]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    data = model.SerializeToString()
    assert onnx and any(bench.latency(lambda: baton.compile(data), after) is not None for after in (0.4, 0.2, 0.1, 0.05))
