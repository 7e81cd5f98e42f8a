# SPDX-License-Identifier: Apache-2.0
"""The package of the wheel `baton-runtime`, over the libraries of the checkout, on models that the compiler saved."""

import gc
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import baton_runtime
import numpy as np
import pytest

import baton as tvm
from baton import relay

ROOT = Path(__file__).resolve().parents[2]
X = np.arange(6, dtype="float32").reshape(2, 3)
Y = np.full((2, 3), -2, "float32")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The path of a saved model with two inputs and two outputs."""
    x, y = (relay.var(n, shape=(2, 3), dtype="float32") for n in "xy")
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.Tuple([relay.nn.relu(x + y), relay.sum(x, axis=[1])])))
    path = tmp_path_factory.mktemp("saved") / "model.so"
    relay.build(mod, target="llvm").export_library(str(path))
    return path


def test_a_model_is_called_in_order_and_by_name(saved):
    model = baton_runtime.load(saved)
    assert repr(model) == "<baton_runtime.Model x float32[2, 3], y float32[2, 3] -> output0 float32[2, 3], output1 float32[2]>"
    for outputs in (model(X, Y), model(X, y=Y), model({"x": X, "y": Y}), model(X.T.copy().T, Y)):
        np.testing.assert_array_equal(outputs[0].numpy(), np.maximum(X + Y, 0))
        np.testing.assert_array_equal(outputs[1].numpy(), X.sum(1))
    assert (outputs[1].shape, outputs[1].dtype, outputs[1].device) == ((2,), "float32", baton_runtime.cpu())


def test_the_graph_executor_interface(saved):
    graph = baton_runtime.GraphModule(baton_runtime.load_module(saved)["default"](baton_runtime.cpu()))
    graph.set_input("x", X)
    graph.run(y=Y)
    assert (graph.get_num_inputs(), graph.get_num_outputs()) == (2, 2)
    np.testing.assert_array_equal(graph.get_output(0).numpy(), np.maximum(X + Y, 0))


def test_other_libraries_take_outputs_without_a_copy(saved):
    output = baton_runtime.load(saved)(X, Y)[0]
    taken = np.from_dlpack(output)
    np.testing.assert_array_equal(taken, output.numpy())
    capsule = output.__dlpack__()  # that nothing takes
    del capsule, output
    gc.collect()
    np.testing.assert_array_equal(taken, np.maximum(X + Y, 0))


@pytest.mark.parametrize(
    "args, kwargs, error, message",
    [
        ((X,), {}, TypeError, "input `y` is missing"),
        ((X, Y, X), {}, TypeError, "takes 2 inputs"),
        ((X, Y), {"x": X}, TypeError, "given twice"),
        ((X,), {"z": Y}, TypeError, "no input `z`; its inputs are x, y"),
        ((X, Y[:1]), {}, ValueError, r"`y` has shape \(2, 3\), \(1, 3\) was given"),
        ((X, Y.astype("int8")), {}, TypeError, "`y` is float32, int8 was given"),
    ],
)
def test_wrong_inputs_are_named(saved, args, kwargs, error, message):
    with pytest.raises(error, match=message):
        baton_runtime.load(saved)(*args, **kwargs)


def test_errors_of_the_runtime_are_those_of_python_too(saved, tmp_path):
    with pytest.raises(RuntimeError, match="No such file") as caught:
        baton_runtime.load(tmp_path / "none.so")
    assert isinstance(caught.value, baton_runtime.Error) and caught.value.kind == "RuntimeError"
    graph = baton_runtime.GraphModule(baton_runtime.load_module(saved)["default"]())
    with pytest.raises(KeyError, match="the model has no input `q`"):
        graph.set_input("q", X)
    with pytest.raises(AttributeError, match="no function `nothing`"):
        graph.module["nothing"]
    with pytest.raises(KeyError, match="no function `nothing`"):
        baton_runtime.global_func("nothing")
    with pytest.raises(TypeError, match="type object cannot be passed"):
        graph.set_input(object(), X)
    with pytest.raises(OverflowError):
        graph.get_output(2**63)


def test_threads_share_a_model(saved):
    model, wrong = baton_runtime.load(saved), []

    def run(k):
        for _ in range(200):
            if not np.array_equal(model(X * k, Y)[1].numpy(), (X * k).sum(1)):
                wrong.append(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float64", "bfloat16"])
def test_every_dtype_passes(tmp_path, dtype):
    x = relay.var("x", shape=(2, 0) if dtype == "int8" else (4,), dtype=dtype)
    relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.reverse(x, axis=0))), target="llvm").export_library(str(tmp_path / "m.so"))
    if dtype == "bfloat16":
        import ml_dtypes

        dtype = ml_dtypes.bfloat16
    given = np.array([1, 0, 3, 1]).astype(dtype) if dtype != "int8" else np.zeros((2, 0), "int8")
    got = baton_runtime.load(tmp_path / "m.so")(given).numpy()
    assert got.dtype == given.dtype
    np.testing.assert_array_equal(got, given[::-1])


def test_control_flow_runs_on_the_virtual_machine(tmp_path):
    mod = tvm.relay.parse("""#[version = "0.0.5"]
def @main(%n: int32, %x: Tensor[(3, 2), float32]) {
  if (greater(%n, 0)) { add(%x, %x) } else { negative(%x) }
}""")
    relay.vm.compile(mod, target="llvm").lib.export_library(str(tmp_path / "vm.so"))
    model, ones = baton_runtime.load(tmp_path / "vm.so"), np.ones((3, 2), "float32")
    np.testing.assert_array_equal(model(np.int32(1), ones).numpy(), 2 * ones)
    np.testing.assert_array_equal(model(np.int32(-1), ones).numpy(), -ones)


ALONE = """
import sys
import numpy as np
import baton_runtime
x = np.arange(6, dtype="float32").reshape(2, 3)
outputs = baton_runtime.load({path!r})(x, x)
assert np.array_equal(outputs[0].numpy(), 2 * x)
libraries = {{line.split()[-1].rpartition("/")[2] for line in open("/proc/self/maps") if ".so" in line}}
assert "libbaton_runtime.so" in libraries
assert "baton" not in sys.modules and not any(l.startswith(("libbaton.so", "libLLVM", "_core")) for l in libraries), libraries
"""

BOTH = """
import {first}
import {second}
paths = {{line.split()[-1] for line in open("/proc/self/maps") if "libbaton_runtime" in line}}
assert len(paths) == 1, paths
assert baton_runtime.global_func("runtime.ListGlobalFuncNames")()
assert baton.list_global_func_names()
"""


def python(text):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_runtime_alone_runs_a_model(saved):
    python(ALONE.format(path=str(saved)))


@pytest.mark.parametrize("first, second", [("baton", "baton_runtime"), ("baton_runtime", "baton")])
def test_a_process_has_one_runtime(first, second):
    python(BOTH.format(first=first, second=second))


def test_the_package_asks_for_nothing_of_baton():
    for path in (ROOT / "python" / "baton_runtime").glob("*.py"):
        assert "import baton\n" not in path.read_text() and "from baton " not in path.read_text(), path
