# SPDX-License-Identifier: Apache-2.0
"""Kernels out of PrimFuncs: `baton.build(..., target="opencl")` gives a module whose functions take OpenCL arrays."""

import numpy as np
import pytest

import baton
from baton import te, tir


def _build(inputs, output, name="f"):
    func = te.create_prim_func([*inputs, output], target="opencl").with_attr("global_symbol", name)
    return baton.build(baton.IRModule({name: func}), target="opencl")


def _run(mod, device, out, *arrays, name="f"):
    result = baton.nd.array(np.zeros_like(out), device)
    mod[name](*[baton.nd.array(a, device) for a in arrays], result)
    return result.numpy()


def test_a_function(device, tmp_path):
    a, b = te.placeholder((5, 7), "float32", "a"), te.placeholder((7,), "float32", "b")
    c = te.compute((5, 7), lambda i, j: a[i, j] * b[j] + 1)
    mod = _build([a, b], c)
    x, y = np.random.randn(5, 7).astype("float32"), np.random.randn(7).astype("float32")
    assert mod.imported_modules[0].type_key == "opencl" and "__kernel void" in mod.get_source()
    np.testing.assert_array_equal(_run(mod, device, x, x, y), x * y + 1)
    mod.save(tmp_path / "f.cl")
    again = baton.runtime.load_module(tmp_path / "f.cl")
    assert again.get_source() == mod.get_source()
    np.testing.assert_array_equal(_run(again, device, x, x, y), x * y + 1)


def test_a_reduction(device):
    a = te.placeholder((33, 65), "int32", "a")
    k = te.reduce_axis((0, 65), "k")
    c = te.compute((33,), lambda i: te.sum(a[i, k], axis=k))
    x = np.random.randint(-1000, 1000, (33, 65)).astype("int32")
    np.testing.assert_array_equal(_run(_build([a], c), device, np.zeros(33, "int32"), x), x.sum(1))


def test_serial_and_parallel_parts(device):
    """A function of a serial loop, a parallel one, and one with a buffer between them: kernels in order."""
    A, B = tir.decl_buffer((100,), "int64", "A"), tir.decl_buffer((100,), "int64", "B")
    i, j = tir.Var("i", "int64"), tir.Var("j", "int64")
    scan = tir.For(i, 1, 99, tir.ForKind.SERIAL, tir.BufferStore(A, tir.BufferLoad(A, [i - 1]) + tir.BufferLoad(A, [i]), [i]))
    double = tir.For(j, 0, 100, tir.ForKind.PARALLEL, tir.BufferStore(B, tir.BufferLoad(A, [j]) * 2, [j]))
    a, b = tir.Var("a", "handle"), tir.Var("b", "handle")
    func = tir.PrimFunc([a, b], tir.SeqStmt([scan, double]), buffer_map={a: A, b: B}).with_attr("global_symbol", "f")
    mod = baton.build(baton.IRModule({"f": func}), target="opencl")
    assert mod.get_source().count("__kernel void") == 2
    x = np.arange(100, dtype="int64")
    np.testing.assert_array_equal(_run(mod, device, x, x), 2 * np.cumsum(x))


def test_wrong_arguments(device):
    a = te.placeholder((4,), "float32", "a")
    mod = _build([a], te.compute((4,), lambda i: a[i] + 1))
    good = baton.nd.array(np.zeros(4, "float32"), device)
    with pytest.raises(TypeError, match="`f` takes 2 tensors, got 1"):
        mod["f"](good)
    with pytest.raises(ValueError, match=r"argument 0 \(`a`\) must be on an OpenCL device, it is on cpu\(0\)"):
        mod["f"](baton.nd.array(np.zeros(4, "float32")), good)
    with pytest.raises(ValueError, match=r"must be float32\[4\], got float32\[5\]"):
        mod["f"](good, baton.nd.array(np.zeros(5, "float32"), device))
    with pytest.raises(TypeError, match="must be a tensor, got"):
        mod["f"](good, 3)


def test_sizes_come_behind_the_tensors(device, tmp_path):
    """A function of open shapes is compiled once; what it is given must fit."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), "float32", "a")
    k = te.reduce_axis((0, m), "k")
    total = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), "total")
    mod = _build([a], te.compute((n, m), lambda i, j: a[i, j] - total[i] + te.floordiv(n, 2).astype("float32")))
    mod.save(tmp_path / "f.cl")
    for each in (mod, baton.runtime.load_module(tmp_path / "f.cl")):
        for shape in ((3, 4), (100, 7), (0, 4), (5, 0), (1, 1)):
            x = np.random.default_rng(0).standard_normal(shape).astype("float32")
            out = baton.nd.array(np.zeros_like(x), device)
            each["f"](baton.nd.array(x, device), out, *shape)
            np.testing.assert_allclose(out.numpy(), x - x.sum(1, keepdims=True) + shape[0] // 2, rtol=1e-4, atol=1e-5)
    good = baton.nd.array(np.zeros((3, 4), "float32"), device)
    with pytest.raises(TypeError, match="`f` takes 2 tensors and 2 sizes, got 2"):
        mod["f"](good, good)
    with pytest.raises(ValueError, match=r"argument 0 \(`a`\) must be float32\[3, 400\], got float32\[3, 4\]"):
        mod["f"](good, good, 3, 400)
    with pytest.raises(ValueError, match="negative|must be"):
        mod["f"](good, good, -3, 4)
    head = '// baton-opencl {"needs":[],"functions":[{"name":"f","sizes":1,"workspace":[],"params":[{"name":"a","dtype":"int8","shape":[%s]}],"kernels":[]}]}\n'
    for formula in ('["s1"]', '["s0","+"]', '["s0","s0"]', '["s0","1","?"]', '["x"]', "[]"):
        (tmp_path / "g.cl").write_text(head % formula)
        with pytest.raises(baton.error.TVMError, match="formula"):
            baton.runtime.load_module(tmp_path / "g.cl")


def test_what_opencl_cannot_do():
    a = te.placeholder((4,), "float32", "a")
    f = te.create_prim_func([a, te.compute((4,), lambda i: a[i] + 1)], target="opencl")
    for params in ([*f.params, tir.Var("s", "float32")], [tir.Var("s", "bool"), *f.params]):
        with pytest.raises(baton.error.UnsupportedError, match="`f` cannot be compiled for OpenCL: parameter .* must be known"):
            baton.build(baton.IRModule({"f": tir.PrimFunc(params, f.body, buffer_map=f.buffer_map)}), target="opencl")
    k = te.reduce_axis((0, 64), "k")
    b = te.placeholder((64,), "float32", "b")
    with pytest.raises(baton.error.UnsupportedError, match="written for a processor's vectors; write it for this target"):
        baton.build(baton.IRModule({"f": te.create_prim_func([b, te.compute((), lambda: te.sum(b[k], axis=k))])}), target="opencl")
    with pytest.raises(ValueError, match="target opencl has no options -mcpu"):
        baton.target.Target("opencl -mcpu=skylake")


def test_a_file_that_is_no_program(tmp_path):
    path = tmp_path / "x.cl"
    path.write_text("__kernel void f() {}\n")
    with pytest.raises(baton.error.RuntimeError, match="its first line does not say what functions it has"):
        baton.runtime.load_module(path)
    path.write_text('// baton-opencl {"needs":[],"functions":[{"name":"f"}]}\n')
    with pytest.raises(baton.error.RuntimeError, match="workspace"):
        baton.runtime.load_module(path)
