# SPDX-License-Identifier: Apache-2.0
"""How an executable binds its arguments, specialises itself, and serves several threads; over a stand-in for compiled
code.
"""

import threading

import numpy as np
import pytest

pytest.importorskip("baton._core", reason="the extension is not built")
from baton.driver.executable import Executable, TensorInfo  # noqa: E402
from baton.error import UnsupportedError  # noqa: E402
from baton.runtime import convert  # noqa: E402


class Functions(dict):
    """Functions of a module by name."""

    def __missing__(self, name):
        raise AttributeError(name)


class Code:
    """A module with one model: out[i] = sum of the inputs + i. Refuses to be called by two threads at once."""

    made = 0

    def __init__(self, inputs, outputs):
        self.tables = {"input": inputs, "output": outputs}

    def __getitem__(self, name):
        if name != "default":
            raise AttributeError(name)
        return self.executor

    def executor(self):
        self.made += 1
        busy = threading.Lock()

        def call(*arrays):
            assert busy.acquire(blocking=False), "two calls at once"
            try:
                for info, array in zip(self.tables["input"], arrays, strict=True):
                    if array.shape != tuple(info[1]) or str(array.dtype) != info[2]:
                        raise RuntimeError("does not fit")
                if self.gate:
                    self.gate.wait()
                out = [sum(a.sum() for a in arrays) + i for i in range(len(self.tables["output"]))]
                return out[0] if len(out) == 1 else convert(out)
            finally:
                busy.release()

        out = {"call": call}
        for side, rows in self.tables.items():
            out[f"get_num_{side}s"] = lambda rows=rows: len(rows)
            out[f"get_{side}_info"] = lambda i, rows=rows: rows[i]
        return Functions(out)

    gate = None

    def get_source(self, fmt):
        raise UnsupportedError(fmt)


def model(outputs=1, shape=(2,)):
    inputs = [["a", shape, "float32"], ["b:0", shape, "float32"]]
    return Executable(Code(inputs, [[f"y{i}", (), "float32"] for i in range(outputs)]))


A, B = np.float32([1, 2]), np.float32([10, 20])


def test_arguments():
    exe = model()
    assert exe.inputs == (TensorInfo("a", "float32", (2,)), TensorInfo("b:0", "float32", (2,)))
    assert exe(A, B) == exe({"a": A, "b:0": B}) == exe(A, **{"b:0": B}) == exe({"b:0": B}, a=A) == 33
    assert model(2)(A, B) == (33, 34)
    assert str(exe.inputs[0]) == "a float32[2]" and "a float32[2]" in repr(exe) and not exe.dynamic


@pytest.mark.parametrize(
    "args, kwargs, words",
    [
        ([A], {}, "`b:0` is missing"),
        ([], {}, "`a` is missing"),
        ([A, B, A], {}, "3 were given"),
        ([A, B], {"a": A}, "given twice"),
        ([{"a": A}], {"a": A}, "given twice"),
        ([A], {"c": B}, "no input `c`; its inputs are a, b:0"),
        ([A.astype(np.float64), B], {}, "`a` is float32, float64 was given"),
    ],
)
def test_wrong_arguments(args, kwargs, words):
    with pytest.raises(TypeError, match=words):
        model()(*args, **kwargs)


def test_wrong_shape_and_list():
    with pytest.raises(ValueError, match=r"`b:0` has shape \(2,\), \(1, 2\) was given"):
        model()(A, B[None])
    with pytest.raises(ValueError, match="has shape"):
        model().specialize({"a": (3,)})
    exe = model()
    assert exe.specialize({"a": (2,), "b:0": (2,)}) is exe


def test_threads_get_executors_of_their_own():
    exe = model()
    code = exe.module
    code.gate = threading.Barrier(3)
    results = []
    threads = [threading.Thread(target=lambda: results.append(exe(A, B))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [33, 33, 33] and code.made == 3
    code.gate = None
    assert exe(A, B) == 33 and code.made == 3  # those made are used again


def test_executor_survives_an_error():
    exe = model()
    with pytest.raises(TypeError):
        exe(A.astype(np.int32), B)
    assert exe(A, B) == 33 and exe.module.made == 1


def test_module_without_a_model():
    class Empty:
        def __getitem__(self, name):
            raise AttributeError(name)

    with pytest.raises(RuntimeError, match="no model"):
        Executable(Empty())


def test_a_model_in_memory_is_read_a_few_times(monkeypatch):
    """What a file says of its inputs is asked for each of them; reading hundreds of megabytes each time took minutes."""
    from onnx import TensorProto, helper

    from baton.driver import compiler

    names = [f"x{i}" for i in range(24)]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in names]
    graph = helper.make_graph([helper.make_node("Sum", names, ["y"])], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    reads, find = [], compiler.get_global_func

    def counted(name, *args):
        function = find(name, *args)
        return (lambda *a: (reads.append(name), function(*a))[1]) if name.endswith("_bytes") else function

    monkeypatch.setattr(compiler, "get_global_func", counted)
    model = compiler.compile(data, shape={name: (None, 2) for name in names})
    assert len(reads) <= 5, reads
    x = np.ones((3, 2), "float32")
    np.testing.assert_array_equal(model(*[x] * 24).numpy(), 24 * x)
