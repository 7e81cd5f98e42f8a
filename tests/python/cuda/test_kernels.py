# SPDX-License-Identifier: Apache-2.0
"""Kernels as PTX: an interpreter runs them beside NumPy, and finds faults that are planted in them."""

import re

import numpy as np
import pytest
import run_ptx  # these are on the path by conftest.py
from kernel_texts import EXPRESSIONS, PROGRAMS, X
from run_text import run
from thread_programs import add_one, backwards, product, program

import baton
from baton import relay, te, tir


def ptx(s, args, target="cuda"):
    f = baton.build(s, args, target)
    (kernels,) = f.imported_modules
    assert kernels.type_key == "cuda"
    return kernels.get_source()


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_threads(name):
    made, x, want = PROGRAMS[name]
    np.testing.assert_array_equal(run(ptx(*made()), x.copy(), np.zeros_like(want)), want)


@pytest.mark.parametrize("n, tile", [(32, 2), (48, 3)])
def test_a_product_in_shared_memory(n, tile):
    a, b = np.random.default_rng(0).random((2, n, n), "float32")
    out = run(ptx(*product(n, tile=tile)), a, b, np.zeros((n, n), "float32"))
    np.testing.assert_allclose(out, a @ b, rtol=1e-5)


def text_of(a, out, target="cuda"):
    f = te.create_prim_func([*a, out], target=target).with_attr("global_symbol", "f")
    return baton.build(baton.IRModule({"f": f}), target=target).imported_modules[0].get_source()


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_tensor_expressions(name):
    dtype, made, meaning = EXPRESSIONS[name]
    a = te.placeholder((7, 33), dtype, "a")
    x = np.random.default_rng(0).integers(0 if dtype == "uint8" else -9, 9, (7, 33)).astype(dtype)
    want = meaning(x)
    np.testing.assert_allclose(run(text_of([a], made(a)), x, np.zeros_like(want)), want, rtol=1e-6)


def test_division_of_narrow_integers():
    x = np.arange(-128, 128, dtype="int8")
    a = te.placeholder((256,), "int8", "a")
    got = run(text_of([a], te.compute((256,), lambda i: tir.floordiv(a[i], tir.const(3, "int8")))), x, np.zeros_like(x))
    np.testing.assert_array_equal(got, x // np.int8(3))


def values(low, high, dtype):
    rng = np.random.default_rng(1)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 1e-30, 1e30])
    return np.concatenate([rng.uniform(low, high, 500), special]).astype(dtype)


# Functions that PTX has no instruction for: range of arguments, and the error of float64.
FUNCTIONS = {
    "exp": (-700, 700), "exp2": (-1000, 1000), "log": (0, 1e6), "log2": (0, 1e6), "log10": (0, 1e6), "log1p": (-0.9, 3),
    "sin": (-1e7, 1e7), "cos": (-1e7, 1e7), "tan": (-1e7, 1e7), "sinh": (-50, 50), "cosh": (-50, 50), "tanh": (-3, 3),
    "asin": (-1, 1), "acos": (-1, 1), "atan": (-50, 50), "asinh": (-1e3, 1e3), "acosh": (1, 1e3), "atanh": (-1, 1), "erf": (-4, 4),
}  # fmt: skip
NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}


def of_numpy(name):
    if name == "erf":
        import math

        return np.vectorize(math.erf, otypes=["float64"])
    return getattr(np, NAMES.get(name, name))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_mathematics(name, dtype):
    low, high = FUNCTIONS[name]
    x = values(low if dtype == "float64" else max(low, -80), high if dtype == "float64" else min(high, 1e30), dtype)
    if name in ("sin", "cos", "tan") and dtype == "float64":
        x = np.concatenate([x, [1e22, 2.0**60 + 2**9, 1e300, 6381956970095103 * 2.0**797]])
    a = te.placeholder(x.shape, dtype, "a")
    with np.errstate(all="ignore"):
        want = of_numpy(name)(x.astype("float64")).astype(dtype)
    got = run(text_of([a], te.compute(x.shape, lambda i: getattr(tir, name)(a[i]))), x, np.zeros_like(x))
    np.testing.assert_allclose(got, want, rtol=4e-7 if dtype == "float32" else 2e-14, atol=0 if dtype == "float64" else 1e-38)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["pow", "fmod", "atan2"])
def test_functions_of_two_arguments(name, dtype):
    x, y = (v.reshape(-1) for v in np.meshgrid(values(-4, 4, dtype)[-40:], values(-3, 3, dtype)[-40:]))
    a, b = te.placeholder(x.shape, dtype, "a"), te.placeholder(x.shape, dtype, "b")
    with np.errstate(all="ignore"):
        want = {"pow": np.power, "fmod": np.fmod, "atan2": np.arctan2}[name](x.astype("float64"), y.astype("float64")).astype(dtype)
    got = run(text_of([a, b], te.compute(x.shape, lambda i: getattr(tir, name)(a[i], b[i]))), x, y, np.zeros_like(x))
    np.testing.assert_allclose(got, want, rtol=4e-7 if dtype == "float32" else 1e-12, atol=0)


def test_remainders_of_far_numbers_are_exact():
    x, y = np.array([1e300, 3.0, -1e308, 5e-324, 1e22]), np.array([3.7e-200, 1e300, 7.0, 5e-324, np.pi])
    a, b = te.placeholder((5,), "float64", "a"), te.placeholder((5,), "float64", "b")
    got = run(text_of([a, b], te.compute((5,), lambda i: tir.fmod(a[i], b[i]))), x, y, np.zeros_like(x))
    np.testing.assert_array_equal(got, np.fmod(x, y))


# ---- Texts


def test_kinds_of_modules(tmp_path):
    """Kernels for CUDA, Metal and OpenCL, and shared libraries."""
    for kind in ("cuda", "metal", "opencl"):
        (kernels,) = baton.build(*add_one(64), kind).imported_modules
        assert kernels.type_key == kind and kernels["default_function"] is not None
    baton.build(*add_one_of_the_host(), "llvm").export_library(tmp_path / "f.so")
    x, y = (baton.nd.array(v) for v in (X[:64], np.zeros(64, "float32")))
    baton.runtime.load_module(tmp_path / "f.so")(x, y)
    np.testing.assert_array_equal(y.numpy(), X[:64] + 1)


def add_one_of_the_host():
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] + 1.0, name="B")
    return te.create_schedule(b.op), [a, b]


def test_formats_and_chips(tmp_path):
    f = baton.build(*add_one(64), "cuda -arch=sm_90a")
    text = f.get_source()
    assert ".target sm_90a" in text and text.startswith('// baton-cuda {"arch":"sm_90a"') and ".maxntid 64" in text
    assert "target triple = \"nvptx64-nvidia-cuda\"" in f.get_source("ll") and "__global__" in f.get_source("cu")
    f.save(str(tmp_path / "f.ptx"))
    assert (tmp_path / "f.ptx").read_text() == text == baton.runtime.load_module(str(tmp_path / "f.ptx")).get_source("ptx")
    assert ".target sm_75" in ptx(*add_one(64), "cuda -arch=sm_75")
    with pytest.raises(ValueError, match='unknown chip "sm_81" in target option -arch.*there are sm_60, .*newer chips run the code of older ones'):
        ptx(*add_one(64), "cuda -arch=sm_81")


def test_the_same_text_each_time():
    assert len({ptx(*product(32)) for _ in range(3)}) == 1


def test_products_and_sums_are_not_joined():
    a = te.placeholder((8,), "float32", "a")
    text = text_of([a], te.compute((8,), lambda i: a[i] * a[i] + a[i]))
    assert "mul.rn.f32" in text and "fma" not in text


def test_a_program_of_relay(tmp_path):
    x, w = relay.var("x", shape=(1, 64)), relay.var("w", shape=(32, 64))
    lib = relay.build(baton.IRModule.from_expr(relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w)))), target="cuda")
    text = lib.get_source("ptx")
    assert text.count(".entry") >= 2 and lib.get_source("cuda").count("__global__") == text.count(".entry")
    lib.export_library(tmp_path / "m.so")
    assert baton.runtime.load_module(tmp_path / "m.so").imported_modules[0].get_source() == text


def test_memory_that_is_too_large():
    def write(ib, a, b):
        kept = ib.allocate("float32", (20000,), name="kept", scope="shared")
        kept[0] = a[0]
        b[0] = kept[0]

    def threads(ib, a, b):
        axis = te.thread_axis("threadIdx.x")
        ib.scope_attr(axis, "thread_extent", 64)
        write(ib, a, b)

    with pytest.raises(baton.error.BatonError, match="blocks share 80000 bytes, and a device has 49152"):
        ptx(*program((64,), "float32", threads))
    with pytest.raises(baton.error.BatonError, match="its blocks have 2048 threads, and a device takes at most 1024"):
        ptx(*add_one(4096, 2048))


# ---- Faults that are planted


def without(pattern, by="", count=1, at=0):
    """A change of a text: one of the places of a pattern."""

    def change(text):
        places = list(re.finditer(pattern, text))
        assert places, pattern
        m = places[at]
        return text[: m.start()] + m.expand(by) + text[m.end() :]

    return change


def barriers_of(text):
    return len(re.findall(r"bar\.sync\s+\d+;", text))


@pytest.mark.parametrize("made, arrays, needed", [
    (lambda: program((64,), "float32", backwards), (X[:64],), 1),
    (lambda: product(32), np.random.default_rng(0).random((2, 32, 32), "float32"), 3),
], ids=["backwards", "product"])  # fmt: skip
def test_each_lost_barrier_is_found(made, arrays, needed):
    """The result without it is right where other barriers are enough."""
    text, found = ptx(*made()), 0
    want = run(text, *arrays, np.zeros_like(arrays[0]))
    for i in range(barriers_of(text)):
        try:
            out = run(text, *arrays, np.zeros_like(arrays[0]), change=without(r"bar\.sync\s+\d+;", at=i))
        except run_ptx.Fault as e:
            found += "with no barrier between them" in str(e)
            continue
        np.testing.assert_array_equal(out, want)
    assert found == needed


def test_a_barrier_that_some_do_not_reach():
    text = ptx(*program((64,), "float32", backwards))
    change = without(r"(bar\.sync\s+\d+;)", r"mov.u32 %r1, %tid.x;\n setp.gt.u32 %p1, %r1, 3;\n @%p1 bra $away;\n\1\n$away:")

    def with_registers(text):
        return change(text).replace("{\n", "{\n.reg .pred %p<2>;\n", 1)

    with pytest.raises(run_ptx.Fault, match="wait at a barrier that the others do not reach|no barrier between them"):
        run(text, X[:64], X[:64].copy(), change=with_registers)


# Instructions, and what each is changed to: another comparison, a constant that is larger, another axis, a branch the other way, another
# operation, the neighbour's place.
CHANGES = [
    (r"setp\.lt\.", "setp.le."),
    (r"setp\.gt\.", "setp.ge."),
    (r"setp\.eq\.", "setp.ne."),
    (r"setp\.ne\.", "setp.eq."),
    (r"(shl\.b\d+\s+%\w+, %\w+, )(\d+)", lambda m: m[1] + str(int(m[2]) + 1)),
    (r"((?:add|sub|xor|or|and)\.[sb]\d+\s+%\w+, %\w+, )(-?\d+)(?=;)", lambda m: m[1] + str(int(m[2]) + 4)),
    (r"(setp\.\w+\.[us]\d+\s+%\w+, %\w+, )(-?\d+)(?=;)", lambda m: m[1] + str(int(m[2]) + 8)),
    (r"(mul\.(?:wide|lo)\.[us]\d+\s+%\w+, %\w+, )(\d+)(?=;)", lambda m: m[1] + str(int(m[2]) + 1)),
    (r"%tid\.x", "%tid.y"),
    (r"%tid\.y", "%tid.x"),
    (r"%ctaid\.x", "%ctaid.y"),
    (r"%ctaid\.y", "%ctaid.x"),
    (r"@(%p\d+ bra)", r"@!\1"),
    (r"\badd\.rn\.f32", "sub.rn.f32"),
    (r"\bmul\.rn\.f32", "add.rn.f32"),
    (r"((?:ld|st)\.(?:global|shared)[.\w]*\s+[^;\[]*\[%\w+)\]", r"\1+4]"),
    (r"((?:ld|st)\.global[.\w]*\s+[^;\[]*\[%\w+)\]", r"\1+2]"),
]


def with_one_fault(text):
    for pattern, by in CHANGES:
        for m in re.finditer(pattern, text):
            new = m.expand(by) if isinstance(by, str) else by(m)
            yield f"{m[0]} -> {new}", text[: m.start()] + new + text[m.end() :]


def test_every_planted_fault_is_found():
    a, b = np.random.default_rng(0).random((2, 32, 32), "float32")
    planted, missed = 0, []
    for name, (made, x, want) in {**PROGRAMS, "product": (lambda: product(32), None, None)}.items():
        text, arrays = ptx(*made()), (a, b) if x is None else (x.copy(),)
        want = run(text, a, b, np.zeros_like(a)) if want is None else want
        for what, changed in with_one_fault(text):
            planted += 1
            try:
                out = run(text, *arrays, np.full_like(want, 77), change=lambda _, changed=changed: changed)
            except run_ptx.Fault:
                continue
            if np.array_equal(out, want):
                missed.append(f"{name}: {what}")
    assert planted > 100 and not missed


def test_an_instruction_that_is_not_known():
    text = ptx(*add_one(64)).replace("add.rn.f32", "sin.approx.f32", 1)
    with pytest.raises(run_ptx.Fault, match="sin.approx.f32.*not understood"):
        run(text, X[:64], X[:64].copy(), change=lambda t: text)
