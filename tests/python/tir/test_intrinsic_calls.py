# SPDX-License-Identifier: Apache-2.0
"""Calls of intrinsics that a program writes by hand: wrong arguments are a CompileError that names the argument, never a crash."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import baton as tvm
from baton import te, tir

WRONG = {
    "tir.prefetch": ["", "A[i]", "0, 0"],
    "tir.call_extern": ["", "A[i]", "1, A[i]"],
    "tir.call_packed": ["", "A[i]"],
    "tir.tvm_call_trace_packed": ["'f'", "A[i]"],
    "tir.masked_store": ["1.0, A[i], True", "A[i]", "A[i], A[i], A[i]"],
    "tir.masked_load": ["1.0, True", "A[i]", "A[i], 1"],
    "tir.address_of": ["", "1.0"],
    "tir.exp": ["", "A[i], A[i]", "'x'"],
    "tir.sqrt": ["3", "tir.const(1.0, 'float64')"],
    "tir.pow": ["A[i]"],
    "tir.fma": ["A[i], A[i]"],
    "tir.if_then_else": ["A[i]", "A[i], A[i], A[i]", "True, A[i], 1"],
    "tir.memcpy": ["1, 2, 3"],
    "tir.load_handle": ["1", "1, 1"],
    "tir.ptr_offset": ["1"],
    "tir.popcount": ["A[i]"],
    "tir.shift_left": ["A[i], A[i]", "A[i]"],
    "tir.bitwise_not": ["A[i]"],
    "tir.ldexp": ["A[i]"],
    "tir.tvm_static_handle": [""],
}


def build(call):
    """A kernel whose value is a call of an intrinsic, as text."""
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: eval(call, {"tir": tir, "A": A, "i": i}), name="B")
    return tvm.build(te.create_schedule(B.op), [A, B], "llvm")


@pytest.mark.parametrize("name, given", [(name, given) for name, all_of in WRONG.items() for given in all_of])
def test_wrong_arguments_are_refused(name, given):
    with pytest.raises(tvm.error.CompileError, match=name.replace(".", r"\.")):
        build(f"tir.call_intrin('float32', {name!r}{', ' if given else ''}{given})")


def test_bits_that_differ_are_not_reinterpreted():
    with pytest.raises(tvm.error.CompileError, match="differ in bits"):
        build("tir.call_intrin('float64', 'tir.reinterpret', A[i])")


def test_what_fits_is_compiled():
    for right in (
        "tir.exp(A[i])",
        "tir.popcount(tir.const(7, 'int32'))",
        "tir.call_intrin('int32', 'tir.prefetch', A[i], 0, 3, 1)",
        "tir.if_then_else(i < 3, A[i], 0.0)",
    ):
        assert build(right)


def test_a_function_that_no_library_has():
    """The module is built and shows its source; calling it says what is missing."""
    module = build("tir.call_extern('float32', 'no_such_function', A[i])")
    assert "@no_such_function" in module.get_source("ll")
    with pytest.raises(tvm.error.CompileError, match="`no_such_function`, which no library"):
        module(tvm.nd.array(np.zeros(8, "float32")), tvm.nd.empty((8,)))


def test_a_function_of_a_library_that_is_loaded_later(tmp_path):
    """Functions are looked up when the first is called."""
    (tmp_path / "f.c").write_text("float later_function(float x) { return 2 * x; }\n")
    code = """
        import ctypes, subprocess
        import numpy as np
        import baton as tvm
        from baton import te, tir
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: tir.call_extern("float32", "later_function", A[i]), name="B")
        module = tvm.build(te.create_schedule(B.op), [A, B], "llvm")
        subprocess.run(["cc", "-shared", "-fPIC", "f.c", "-o", "f.so"], check=True)
        ctypes.CDLL("./f.so", mode=ctypes.RTLD_GLOBAL)
        b = tvm.nd.empty((8,))
        module(tvm.nd.array(np.arange(8, dtype="float32")), b)
        print(b.numpy().tolist())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout == "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]\n", done.stderr


@pytest.mark.parametrize("result, want", [(None, 1), (7.5, 7.5), (3, 3)])
def test_trace_gives_what_the_function_gives_or_the_last_argument(result, want):
    seen = []

    @tvm.register_func("test.traced", override=True)
    def traced(*values):
        seen.append(values)
        return result

    n = 4
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: tir.trace([i, A[i]], "test.traced"), name="B")
    b = tvm.nd.empty((n,))
    tvm.build(te.create_schedule(B.op), [A, B], "llvm")(tvm.nd.array(np.ones(n, "float32")), b)
    assert b.numpy().tolist() == [want] * n and seen == [(i, 1.0) for i in range(n)]


@pytest.mark.parametrize("order", ["ABC", "CAB", "BCA", "CBA", "ACB"])
def test_parameters_of_create_prim_func_stand_as_they_are_given(order):
    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    C = te.compute((4,), lambda i: A[i] - 2 * B[i], name="C")
    tensors = {"A": A, "B": B, "C": C}
    function = tvm.build(te.create_prim_func([tensors[name] for name in order]), target="llvm")
    values = {"A": np.arange(4, dtype="float32"), "B": np.ones(4, "float32"), "C": np.zeros(4, "float32")}
    arrays = {name: tvm.nd.array(value) for name, value in values.items()}
    function(*(arrays[name] for name in order))
    np.testing.assert_array_equal(arrays["C"].numpy(), values["A"] - 2)
    for name in "AB":
        np.testing.assert_array_equal(arrays[name].numpy(), values[name])


@pytest.mark.parametrize(
    "a, b", [((4, 3, 3), (4, 3, 3)), ((4, 3, 3), (1, 3, 1)), ((4, 3, 3), (1, 1, 1)), ((1, 1, 1), (4, 3, 3)), ((4, 1, 3), (1, 5, 1)), ((2, 1, 1), (1, 1, 6))]
)
def test_buffers_that_broadcast(a, b):
    shapes = [[te.size_var(f"{name}{d}") for d in range(3)] for name in "xyz"]
    A, B = te.placeholder(shapes[0], name="A"), te.placeholder(shapes[1], name="B")
    C = te.compute(shapes[2], lambda i, j, k: A[i, j, k] + B[i, j, k], name="C")
    binds = {t: tir.decl_buffer(t.shape, t.dtype, name=f"{t.op.name}b", buffer_type="auto_broadcast") for t in (A, B)}
    function = tvm.build(te.create_schedule(C.op), [A, B, C], target="llvm", binds=binds)
    x, y = np.random.default_rng(0).random(a).astype("float32"), np.random.default_rng(1).random(b).astype("float32")
    out = tvm.nd.empty((x + y).shape)
    function(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_array_equal(out.numpy(), x + y)
