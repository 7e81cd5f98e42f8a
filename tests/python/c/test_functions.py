# SPDX-License-Identifier: Apache-2.0
"""`baton.build(..., target="c")`: functions as C99, compiled, saved and loaded; and without a compiler."""

import numpy as np
import pytest
from strict import accept, needs_compiler, same_bits

import baton as tvm
from baton import te


def scaled(dtype="float32"):
    a, b = te.placeholder((5, 7), dtype, "a"), te.placeholder((7,), dtype, "b")
    return te.create_prim_func([a, b, te.compute((5, 7), lambda i, j: a[i, j] * b[j] + te.exp(a[i, j]), name="c")], target="c")


def arguments():
    rng = np.random.default_rng(3)
    return rng.standard_normal((5, 7)).astype("float32"), rng.standard_normal(7).astype("float32")


def run(module, *arrays, name="main"):
    out = tvm.nd.array(np.zeros_like(arrays[0]))
    module[name](*map(tvm.nd.array, arrays), out)
    return out.numpy()


@needs_compiler
def test_a_function_and_its_file(tmp_path):
    func = scaled()
    by_c, by_llvm = (tvm.build(func, target=t) for t in ("c", "llvm"))
    x, y = arguments()
    np.testing.assert_allclose(run(by_c, x, y), x * y + np.exp(x), rtol=1e-4, atol=1e-6)
    assert same_bits(run(by_c, x, y), run(by_llvm, x, y)), "the same loops"
    source = by_c.get_source()
    assert "for (int64_t" in source and source == by_c.get_source("c")
    by_c.export_library(tmp_path / "f.so")
    assert same_bits(run(tvm.runtime.load_module(tmp_path / "f.so"), x, y), run(by_c, x, y))
    by_c.save(tmp_path / "f.c")
    assert (tmp_path / "f.c").read_text() == source
    accept(tmp_path / "f.c", tmp_path)
    with pytest.raises(tvm.error.UnsupportedError, match="there are tir, c"):
        by_c.get_source("llvm")


def test_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.delenv("BATON_CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    module = tvm.build(scaled(), target="c")
    assert "for (int64_t" in module.get_source("c"), "the source is there"
    for use in (lambda: run(module, *arguments()), lambda: module.export_library(tmp_path / "f.so")):
        with pytest.raises(tvm.error.UnsupportedError, match="no C compiler .*apt-get install gcc"):
            use()
    x = tvm.relay.var("x", shape=(4,))
    model = tvm.relay.build(tvm.IRModule.from_expr(tvm.relay.Function([x], tvm.relay.exp(x))), target="c")
    assert "expf" in model.get_source("c") or "baton_ldexp" in model.get_source("c")
    with pytest.raises(tvm.error.UnsupportedError, match="no C compiler"):
        model["default"](tvm.cpu())
    model.save(tmp_path / "m.c")
    assert "m_run" in (tmp_path / "m.c").read_text()


def test_a_compiler_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("BATON_CC", str(tmp_path / "mycc"))
    with pytest.raises(tvm.error.UnsupportedError, match="BATON_CC names .*mycc`, which is no program"):
        run(tvm.build(scaled(), target="c"), *arguments())


@needs_compiler
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_integers_wrap_and_never_trap(dtype, tmp_path):
    a, b = te.placeholder((64,), dtype, "a"), te.placeholder((64,), dtype, "b")
    outs = [te.compute((64,), lambda i, f=f: f(a[i], b[i]), name=f"o{k}") for k, f in enumerate(
        (lambda x, y: x + y, lambda x, y: x * y, te.truncdiv, te.truncmod, te.floordiv, te.floormod, lambda x, y: x << y, lambda x, y: x >> y, te.min))]  # fmt: skip
    func = te.create_prim_func([a, b, *outs], target="c")
    made = [tvm.build(func, target=t) for t in ("c", "llvm")]
    info, rng = np.iinfo(dtype), np.random.default_rng(5)
    x = rng.integers(info.min, info.max, 64, dtype=dtype, endpoint=True)
    y = np.resize(np.array([0, 1, info.max, info.min, 3, -1 if info.min else 7, 8, 31, 32, 63, 64, 5], "int64").astype(dtype), 64)
    results = []
    for module in made:
        arrays = [tvm.nd.array(np.zeros(64, dtype)) for _ in outs]
        module["main"](tvm.nd.array(x), tvm.nd.array(y), *arrays)
        results.append([r.numpy() for r in arrays])
    for got, want in zip(*results, strict=True):
        assert same_bits(got, want)
    made[0].save(tmp_path / "f.c")
    accept(tmp_path / "f.c", tmp_path)


@needs_compiler
def test_faults_are_errors_of_the_call():
    """An index out of range, a callback that throws."""
    text = '#[version = "0.0.5"]\ndef @main(%i: Tensor[(2), int32]) { contrib_check_index(%i, extents=[4], axis=0, place="here") }'
    model = tvm.relay.build(tvm.relay.fromtext(text), target="c")["default"](tvm.cpu())
    assert model["run_with"](tvm.nd.array(np.array([0, -4], "int32")))[0].numpy() == 0
    with pytest.raises(IndexError, match="here.*index 7 lies outside axis 0 of 4 elements"):
        model["run_with"](tvm.nd.array(np.array([0, 7], "int32")))

    @tvm.register_func("tests.c.double", override=True)
    def double(x, out):
        out.copyfrom(x.numpy() * 2)

    x = te.placeholder((3,), name="x")
    out = te.extern((3,), [x], lambda ins, outs: tvm.tir.call_packed("tests.c.double", ins[0], outs[0]), name="o", dtype="float32")
    module = tvm.build(te.create_prim_func([x, out], target="c"), target="c")
    np.testing.assert_array_equal(run(module, np.array([1, 2, 3], "float32")), [2, 4, 6])
