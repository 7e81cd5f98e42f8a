# SPDX-License-Identifier: Apache-2.0
"""Rows of intrinsics: each has its columns, and what folds, what interprets, what is compiled and what is differentiated agree."""

import numpy as np
import pytest

import baton as tvm
from baton import te, tir

COLUMNS = {str(name): {str(k): str(v) for k, v in row.items()} for name, row in tir._ffi_api.IntrinColumns().items()}
FUNCTIONS = {str(name): [str(p) for p in params] for name, *params in tir._ffi_api.IntrinFunctions()}
# Pointers and functions of the process, which the interpreter has none of; it follows ptr_offset where a statement binds one.
NOT_INTERPRETED = {"address_of", "ptr_offset", "load_handle", "memcpy", "call_extern", "call_packed", "tvm_call_trace_packed"}
# LowerIntrin leaves none of a floating dtype, and there is none of another.
EXPANDED = {"sigmoid"}
# Vectors and pointers of processors: a device's code has neither.
OF_PROCESSORS = {name for name in COLUMNS if name.startswith(("masked_", "vector_"))} | {"dot4", "dot2", "address_of", "ptr_offset", "load_handle", "memcpy"}
# Threads of a block: a processor has none.
OF_DEVICES = {"tvm_storage_sync"}
INTS = ("popcount", "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right")
# Arguments within the domains of all but a few.
SAMPLES = {"acosh": (1.25, 3.5), "atan2": (0.75, 2.5), "fmod": (7.5, 2.0), "pow": (1.75, 2.5), "fma": (1.5, 2.25, -0.75)}
PLACES = {name for name, row in COLUMNS.items() if row["takes"].startswith("l")}


def made_by(name, *values, dtype="float32"):
    return getattr(tir, name)(*(tir.const(v, dtype) for v in values))


@pytest.mark.parametrize("name", COLUMNS)
def test_each_intrinsic_has_its_columns(name):
    row = COLUMNS[name]
    assert row["doc"].endswith(".") or row["doc"].endswith(").")
    assert ("derivative" in row) != ("no derivative" in row)
    assert int(row["effect"]) in range(7) and float(row["cost"]) >= 0
    ends = "ends in" in row
    assert ends or name in NOT_INTERPRETED or "host" in row or "interpret" in row, "the interpreter"
    assert ends or name in EXPANDED | OF_DEVICES or "llvm" in row, "code for processors"
    assert ends or name in EXPANDED | OF_PROCESSORS or "opencl" in row and "cuda" in row, "code for devices"
    assert ends or name in EXPANDED | OF_DEVICES or "c" in row, "code for C"
    assert not (ends and ("llvm" in row or "opencl" in row)), "no code generator sees it"
    assert not (name in NOT_INTERPRETED and ("host" in row or "interpret" in row)), "NOT_INTERPRETED is too long"


@pytest.mark.parametrize("name", COLUMNS)
def test_each_intrinsic_is_an_operator_with_attributes(name):
    op = tvm.ir.Op.get(f"tir.{name}")
    row = COLUMNS[name]
    assert op.get_attr("TCallEffectKind") == int(row["effect"])
    assert bool(op.get_attr("TVectorizable")) == ("lanes" in row)
    assert op.description == row["doc"]


def test_effects_are_those_of_relay():
    kinds = tir.CallEffectKind
    want = {"exp": kinds.Pure, "likely": kinds.ExprAnnotation, "masked_load": kinds.ReadState, "call_extern": kinds.UpdateState, "ret": kinds.ControlJump}
    assert {name: int(COLUMNS[name]["effect"]) for name in want} == want


def test_what_names_a_place_takes_one():
    assert {name for name, row in COLUMNS.items() if "place" in row} == PLACES


def values_of(name):
    """(arguments, dtype) to compute a function with."""
    arity = len(FUNCTIONS[name])
    if name in INTS:
        return [((11, 3)[:arity], "int32"), ((-7, 2)[:arity], "int32"), ((200, 1)[:arity], "uint8"), ((5, 40)[:arity], "int32")]
    return [(SAMPLES.get(name, (0.375,) * arity), dtype) for dtype in ("float32", "float64")]


def computed(name, values, dtype):
    """(interpreted, compiled) values of a function whose arguments are read from memory."""
    inputs = [te.placeholder((1,), dtype=dtype, name=f"x{i}") for i in range(len(values))]
    call = getattr(tir, name)
    out = te.compute((1,), lambda i: call(*(x[i] for x in inputs)), name="out")
    function = te.create_prim_func([*inputs, out])
    results = []
    for run in (lambda *arrays: tir._ffi_api.Interpret(function, list(arrays)), tvm.build(function, target="llvm")):
        arrays = [tvm.nd.array(np.array([v], dtype)) for v in values] + [tvm.nd.empty((1,), str(out.dtype))]
        run(*arrays)
        results.append(arrays[-1].numpy()[0])
    return results


@pytest.mark.parametrize("name", [n for n, p in FUNCTIONS.items() if n != "abs"])
def test_folding_the_interpreter_and_compiled_code_agree(name):
    for values, dtype in values_of(name):
        folded = made_by(name, *values, dtype=dtype)
        assert not isinstance(folded, tir.Call), "literals are folded"
        interpreted, compiled = computed(name, values, dtype)
        assert np.asarray(folded.value).astype(interpreted.dtype) == interpreted
        # Polynomials are a few ulp off.
        np.testing.assert_allclose(compiled, interpreted, rtol=1e-6 if dtype == "float32" else 1e-14)


def test_a_root_is_rounded_before_it_divides():
    """As compiled code has it; in one step the last bit differs for one number of five."""
    x = np.linspace(0.1, 9, 1001, dtype="float32")
    folded = np.array([made_by("rsqrt", float(v)).value for v in x], "float32")
    np.testing.assert_array_equal(folded, np.float32(1) / np.sqrt(x))


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in INTS and "derivative" in COLUMNS[n] and "lanes" in COLUMNS[n] and n[:2] != "is"])
def test_derivatives_are_those_of_differences(name):
    values = np.array(SAMPLES.get(name, (0.375,) * len(FUNCTIONS[name])))
    inputs = [te.placeholder((1,), dtype="float64", name=f"x{i}") for i in range(len(values))]
    out = te.compute((1,), lambda i: getattr(tir, name)(*(x[i] for x in inputs)), name="out")
    gradients = te.gradient(out, inputs, te.compute((1,), lambda i: tir.const(1.0, "float64")))
    build = tvm.build(te.create_prim_func([*inputs, out]), target="llvm")

    def at(point):
        arrays = [tvm.nd.array(np.array([v])) for v in point] + [tvm.nd.empty((1,), "float64")]
        build(*arrays)
        return arrays[-1].numpy()[0]

    for i, gradient in enumerate(gradients):
        used = [x for x in inputs if any(x == t for t in reads(gradient))]
        arrays = [tvm.nd.array(np.array([values[inputs.index(x)]])) for x in used] + [tvm.nd.empty((1,), "float64")]
        tvm.build(te.create_prim_func([*used, gradient]), target="llvm")(*arrays)
        step = np.eye(len(values))[i] * 1e-6
        want = (at(values + step) - at(values - step)) / 2e-6
        np.testing.assert_allclose(arrays[-1].numpy()[0], want, rtol=1e-6, atol=1e-8)


def reads(tensor):
    """The tensors without inputs that a tensor is computed of."""
    inner = list(tensor.op.input_tensors)
    return [tensor] if not inner and "Placeholder" in type(tensor.op).__name__ else [t for one in inner for t in reads(one)]


def test_what_has_no_derivative_says_why():
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: tir.reinterpret("float32", tir.reinterpret("int32", x[i])), name="y")
    with pytest.raises(tvm.error.UnsupportedError, match=r"te.gradient: no derivative of `tir.reinterpret`: it takes bits"):
        te.gradient(tvm.topi.sum(y), [x])


def test_a_jump_of_what_has_no_derivative_is_constant():
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: tir.floor(tir.reinterpret("float32", tir.reinterpret("int32", x[i]))) + x[i], name="y")
    assert te.gradient(tvm.topi.sum(y), [x])


def test_an_intrinsic_without_a_row_is_pure_and_unknown_to_generators():
    tvm.ir.register_op_attr("tir.test_without_row", "TCallEffectKind", tir.CallEffectKind.Pure)
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: tir.call_intrin("float32", "tir.test_without_row", x[i]), name="y")
    with pytest.raises(tvm.error.CompileError, match="does not know the intrinsic tir.test_without_row for float32"):
        tvm.build(te.create_prim_func([x, y]), target="llvm")
    with pytest.raises(tvm.error.UnsupportedError, match="does not know the intrinsic tir.test_without_row"):
        tir._ffi_api.Interpret(te.create_prim_func([x, y]), [tvm.nd.empty((4,)), tvm.nd.empty((4,))])
    with pytest.raises(tvm.error.UnsupportedError, match="te.gradient: no derivative of `tir.test_without_row`"):
        te.gradient(tvm.topi.sum(y), [x])


@pytest.mark.parametrize("call", ["tir.trace([i, A[i]], 'test.row_traced')", "tir.call_packed('test.row_traced', i, A[i], dtype='float32')"])
def test_a_function_is_called_once_an_element_whatever_the_loop(call):
    seen = []
    tvm.register_func("test.row_traced", lambda *values: seen.append(values[0]), override=True)
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: eval(call, {"tir": tir, "A": A, "i": i}), name="B")
    b = tvm.nd.empty((64,))
    tvm.build(te.create_schedule(B.op), [A, B], "llvm")(tvm.nd.array(np.ones(64, "float32")), b)
    assert sorted(seen) == list(range(64))
