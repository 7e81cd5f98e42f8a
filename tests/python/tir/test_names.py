# SPDX-License-Identifier: Apache-2.0
"""Functions of expressions, constructors, and classes that are there for `isinstance` alone."""

import numpy as np
import pytest

import baton as tvm
from baton import te, tir

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-3, 3, 64).astype("float32"), RNG.uniform(-3, 3, 64).astype("float32")
INTS = RNG.integers(-(2**31), 2**31, 64).astype("int32") >> RNG.integers(0, 31, 64).astype("int32")


def computed(f, *arrays):
    """`f` of the elements of arrays, as compiled code computes it."""
    inputs = [te.placeholder(a.shape, str(a.dtype), f"in{i}") for i, a in enumerate(arrays)]
    result = te.compute(arrays[0].shape, lambda i: f(*(x[i] for x in inputs)), name="out")
    out = tvm.nd.empty(arrays[0].shape, str(result.dtype))
    tvm.build(te.create_schedule(result.op), [*inputs, result], "llvm")(*map(tvm.nd.array, arrays), out)
    return out.numpy()


# fmt: off
FUNCTIONS = {
    "exp10": (tir.exp10, lambda x: 10.0**x, [X]),
    "ldexp": (tir.ldexp, np.ldexp, [X, INTS % 7]),
    "hypot": (tir.hypot, np.hypot, [X, Y]),
    "copysign": (tir.copysign, np.copysign, [X, Y]),
    "nextafter": (tir.nextafter, np.nextafter, [X, Y]),
    "clz": (tir.clz, lambda x: np.array([32 - (int(v) & 0xFFFFFFFF).bit_length() for v in x], "int32"), [INTS]),
    "likely": (lambda x: te.if_then_else(tir.likely(x > 0.0), x, -x), np.abs, [X]),
    "q_multiply_shift": (lambda x: tir.q_multiply_shift(x, 1395864371, 31, -2), lambda x: ((x.astype("int64") * 1395864371 + (1 << 32)) >> 33).astype("int32"), [INTS]),
    "llvm.sqrt": (lambda x: tir.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", tir.const(1, "uint32"), x), np.sqrt, [np.abs(X)]),
    "llvm.fma": (lambda x, y: tir.call_llvm_intrin("float32", "llvm.fma.f32", tir.const(3, "uint32"), x, y, x), lambda x, y: x * y + x, [X, Y]),
    "add": (lambda x, y: te.add(te.multiply(x, y), te.subtract(x, y)), lambda x, y: x * y + (x - y), [X, Y]),
    "generic": (lambda x: tir.generic.cast(tir.generic.add(x, 1.5), "int32"), lambda x: (x + 1.5).astype("int32"), [X]),
}
# fmt: on


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    f, reference, arrays = FUNCTIONS[name]
    np.testing.assert_allclose(computed(f, *arrays), reference(*arrays), rtol=1e-5)


def test_arguments_by_name():
    x = te.var("x", "float32")
    assert tvm.ir.structural_equal(tir.exp(x=x), tir.exp(x)) and tvm.ir.structural_equal(tir.floordiv(a=te.var("n"), b=2).b, tir.const(2))
    with pytest.raises(TypeError, match=r"tir\.exp takes x"):
        tir.exp(x, x, x)
    with pytest.raises(TypeError, match=r"tir\.atan2 takes x1, x2"):
        tir.atan2(x)


def test_trace(capfd):
    seen = []

    @tvm.register_func("tests.trace_action", override=True)
    def action(*values):
        seen.append(values)
        return values[-1] * 2

    got = computed(lambda x, i: te.trace([i, x], "tests.trace_action"), X[:3], np.arange(3, dtype="int32"))
    assert (got == 2 * X[:3]).all() and [v[0] for v in seen] == [0, 1, 2]
    assert (computed(lambda x: te.trace([x]), X[:2]) == X[:2]).all()


def test_constructors():
    k = te.reduce_axis((0, 4), "k")
    data = te.placeholder((4,), name="data")
    a, b = tir.Var("a", "float32"), tir.Var("b", "float32")
    combiner = tir.CommReducer([a], [b], [a + b], [tir.const(0.0)])
    load = tir.ProducerLoad(data, [k.var])
    reduce = tir.Reduce(combiner, [load], [k], tir.const(True), 0)
    assert tvm.ir.structural_equal(reduce, te.sum(data[k], axis=k), map_free_vars=True)
    axis = tir.IterVar(tvm.ir.Range(0, 8), "t", tir.IterVar.ThreadIndex, "threadIdx.x")
    assert axis.thread_tag == "threadIdx.x" and k.thread_tag == "" and te.thread_axis("blockIdx.x").thread_tag == "blockIdx.x"


def test_pointers_to_buffers():
    buffer = tir.decl_buffer((4, 5), "float32", "B")
    assert list(buffer.strides) == [] and buffer.elem_offset == 0 and buffer.offset_factor == 1
    pointer = buffer.access_ptr("rw", offset=7)
    assert pointer.op.name == "tir.tvm_access_ptr" and pointer.args[0].dtype == "float32" and pointer.args[1].same_as(buffer.data)
    assert [int(a) for a in pointer.args[2:]] == [7, 13, 3] and int(buffer.access_ptr("w").args[4]) == 2
    with pytest.raises(ValueError, match="access_mask"):
        buffer.access_ptr("x")


@pytest.mark.parametrize("name", tir.absent.__all__)
def test_a_class_that_is_not_there(name):
    made = tir.Evaluate(0)
    assert not isinstance(made, getattr(tir, name))
    with pytest.raises(tvm.error.UnsupportedError, match=rf"tir\.{name} is not there: "):
        getattr(tir, name)(1, 2)


def test_what_there_is_not_says_so():
    with pytest.raises(tvm.error.UnsupportedError, match="PARALLEL"):
        tir.For(te.var("i"), 0, 4, tir.ForKind.THREAD_BINDING, tir.Evaluate(0))
    with pytest.raises(tvm.error.UnsupportedError, match="call_extern"):
        tir.call_llvm_intrin("float32", "llvm.prefetch", tir.const(0, "uint32"))


def test_the_names_of_the_package():
    assert {"relay", "te", "nd", "cpu"} <= set(dir(tvm))


@pytest.mark.parametrize(
    ("a", "b", "both"),
    [
        ("int32", "float32", "float32"),
        ("float16", "int64", "float16"),
        ("float16", "float32", "float32"),
        ("int8", "int32", "int32"),
        ("uint8", "uint16", "uint16"),
        ("uint8", "int32", "int32"),
        ("uint32", "int8", "int32"),
    ],
)  # fmt: skip
def test_arithmetic_matches_dtypes(a, b, both):
    x, y = te.var("x", a), te.var("y", b)
    assert (x * y).dtype == (y - x).dtype == both and (x < y).dtype == "bool"


def test_dtypes_that_nothing_matches():
    for a, b in (("bool", "float32"), ("float16", "bfloat16")):
        with pytest.raises(TypeError, match="dtypes differ"):
            te.var("x", a) + te.var("y", b)
