# SPDX-License-Identifier: Apache-2.0
"""Scripts: the same function of tensors, compiled, and of arrays, in Python."""
# ruff: noqa: F821 - scripts call functions that are known within them alone

import numpy as np
import pytest

import baton as tvm
from baton import te


def f32(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")


def run(script, *args):
    """What the script gives for arrays and numbers, compiled; beside what it gives in Python."""
    tensors = [te.placeholder(a.shape, dtype=str(a.dtype), name=f"p{i}") if isinstance(a, np.ndarray) else tvm.runtime.convert(a) for i, a in enumerate(args)]
    made = script(*tensors)
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    ins = [(t, a) for t, a in zip(tensors, args, strict=True) if isinstance(a, np.ndarray)]
    outs = [tvm.nd.empty([int(d) for d in m.shape], str(m.dtype)) for m in made]
    tvm.build(te.create_schedule([m.op for m in made]), [*(t for t, _ in ins), *made], "llvm")(*(tvm.nd.array(a) for _, a in ins), *outs)
    plain = script(*args)
    for got, want in zip(outs, plain if isinstance(plain, (list, tuple)) else [plain], strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)
    return [o.numpy() for o in outs]


def test_an_outer_product():
    @te.hybrid.script
    def outer(a, b):
        """Each by each."""
        c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
        for i in range(a.shape[0]):
            for j in range(b.shape[0]):
                assert i < 3 and j < 4 if False else True
                c[i, j] = a[i] * b[j]
        return c

    a, b = f32(3), f32(4, seed=1)
    np.testing.assert_allclose(run(outer, a, b)[0], np.outer(a, b), rtol=1e-6)


def test_variables_branches_and_compound_assignment():
    @te.hybrid.script
    def smooth(a, n):
        b = output_tensor((10,), "float32")
        for i in range(n):
            total = 0.0
            count = 0
            for k in range(3):
                if likely(i + k - 1 >= 0 and i + k - 1 < n):
                    total += a[max(i + k - 1, 0)]
                    count += 1
                else:
                    total = total + float32(0)
            b[i] = total / float32(count) if i % 2 == 0 else -total
        return b

    run(smooth, f32(10), 10)


def test_several_results_and_memory_of_its_own():
    @te.hybrid.script
    def both(a):
        twice = allocate(a.shape, "float32")
        c, d = output_tensor(a.shape, "float32"), output_tensor(a.shape, "int32")
        for i in parallel(a.shape[0]):
            twice[i] = a[i] * 2.0
        for i in serial(0, a.shape[0]):
            c[i] = min(max(twice[i], 0.0), 1.0) + exp(a[i]) - tanh(a[i]) * sqrt(2.0)
            d[i] = int32(twice[i] * 4.0)
        return c, d

    c, d = run(both, f32(8))
    assert c.dtype == "float32" and d.dtype == "int32"


def test_what_is_known_now():
    width = 3

    @te.hybrid.script
    def unrolled(a):
        b = output_tensor((a.shape[0],), "float32")
        n = a.shape[0]
        if len(a.shape) == 2:
            for i in range(n):
                b[i] = 0.0
                for j in const_range(width):
                    b[i] += a[i, j] ** 2.0
        else:
            nothing()
        return b

    a = f32(4, 3)
    np.testing.assert_allclose(run(unrolled, a)[0], (a * a).sum(1), rtol=1e-5)


def test_a_tuple_of_tensors():
    @te.hybrid.script
    def total(xs):
        c = output_tensor(xs[0].shape, xs[0].dtype)
        for i in range(xs[0].shape[0]):
            c[i] = xs[0][i]
            for k in const_range(1, len(xs)):
                c[i] += xs[k][i]
        return c

    xs = [te.placeholder((5,), name=f"x{i}") for i in range(3)]
    made, out = total(xs), tvm.nd.empty((5,))
    values = [f32(5, seed=i) for i in range(3)]
    tvm.build(te.create_schedule(made.op), [*xs, made], "llvm")(*map(tvm.nd.array, values), out)
    np.testing.assert_allclose(out.numpy(), sum(values), rtol=1e-6)


def test_a_script_among_other_tensors():
    @tvm.te.hybrid.script
    def shifted(a):
        b = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            if i > 0:
                b[i] = a[i - 1]
            else:
                b[i] = a[a.shape[0] - 1]
        return b

    x = te.placeholder((6,), name="x")
    made = te.compute((6,), lambda i: shifted(te.compute((6,), lambda i: x[i] * 2.0))[i] + 1.0)
    out, value = tvm.nd.empty((6,)), f32(6)
    tvm.build(te.create_schedule(made.op), [x, made], "llvm")(tvm.nd.array(value), out)
    np.testing.assert_allclose(out.numpy(), np.roll(2 * value, 1) + 1, rtol=1e-6)


def test_what_a_script_has_not():
    @te.hybrid.script
    def bound(a):
        b = output_tensor(a.shape, a.dtype)
        for i in bind("threadIdx.x", a.shape[0]):
            b[i] = a[i]
        return b

    @te.hybrid.script
    def nothing(a):
        b = output_tensor(a.shape, a.dtype)
        b[0] = unknown

    x = te.placeholder((6,), name="x")
    with pytest.raises(tvm.error.UnsupportedError, match="`bound`, line .*no loop over `bind"):
        bound(x)
    with pytest.raises(tvm.error.UnsupportedError, match="`unknown` is not known here"):
        nothing(x)


def test_a_schedule_is_written_as_a_script(tmp_path):
    n = 16
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((n, n), lambda i, j: tvm.tir.if_then_else(i > j, tvm.tir.max(c[i, j], tvm.tir.const(0.5, "float32")), tvm.tir.exp(a[i, j])), name="D")
    s = te.create_schedule(d.op)
    outer, column, _, _ = s[d].tile(*d.op.axis, 4, 5)
    s[c].compute_at(s[d], column)
    s[d].parallel(outer)
    module = te.hybrid.build(s, [a, b], [d], name="matmul")
    assert module.name == "matmul" and module.get_source().startswith("def matmul(A, B):\n    D = output_tensor((16, 16), 'float32')\n")
    module.save(tmp_path / "saved")
    loaded = te.hybrid.HybridModule()
    with pytest.raises(RuntimeError, match="no script yet"):
        loaded(f32(n, n))
    loaded.load(tmp_path / "saved.py")
    x, y = f32(n, n), f32(n, n, seed=1)
    want = np.where(np.arange(n)[:, None] > np.arange(n), np.maximum(x @ y, 0.5), np.exp(x))
    for m in (module, loaded):
        np.testing.assert_allclose(run(m, x, y)[0], want, rtol=1e-4)


def test_sizes_of_a_written_script_are_those_of_its_tensors():
    n = te.var("n")
    x = te.placeholder((n,), name="X")
    y = te.compute((n,), lambda i: x[i] * 2, name="Y")
    module = te.hybrid.build(te.create_schedule(y.op), [x], [y])
    np.testing.assert_array_equal(module(np.arange(3, dtype="float32")), [0, 2, 4])


def test_functions_of_scripts_by_name():
    from baton.te.hybrid.runtime import HYBRID_GLOBALS

    assert HYBRID_GLOBALS is te.hybrid.HYBRID_GLOBALS
    assert HYBRID_GLOBALS["output_tensor"]((2, 3), "int8").shape == (2, 3) and HYBRID_GLOBALS["ceil_div"](7, 2) == 4
    assert list(HYBRID_GLOBALS["bind"]("threadIdx.x", 3)) == [0, 1, 2]
    assert "output_tensor" not in globals()


def test_assertions_of_what_is_not_known():
    @te.hybrid.script
    def checked(n, a):
        b = output_tensor((n,), a.dtype)
        for i in range(n):
            assert a[i] > 0.0, "not positive"
            b[i] = a[i] * 2.0
        return b

    n = te.size_var("n")
    a = te.placeholder((n,), name="a")
    b = checked(n, a)
    function, out = tvm.build(te.create_schedule(b.op), [n, a, b], "llvm"), tvm.nd.empty((3,))
    function(3, tvm.nd.array(np.ones(3, "float32")), out)
    assert out.numpy().tolist() == [2] * 3
    with pytest.raises(RuntimeError, match="not positive"):
        function(3, tvm.nd.array(np.zeros(3, "float32")), out)


@te.hybrid.script
def _outer_product(a, b):
    c = output_tensor((60, 50), a.dtype)
    for i in range(60):
        for j in range(50):
            c[i, j] = a[i] * b[j]
    return c


def _tiled(stage, i, j):
    outer, inner = stage.split(i, 4)
    stage.parallel(inner)
    j_outer, j_inner = stage.split(j, 4)
    outer_of_j, inner_of_j = stage.split(j_outer, 4)
    stage.vectorize(j_inner)
    stage.reorder(inner, outer, outer_of_j, inner_of_j, j_inner)


@pytest.mark.parametrize(
    "change",
    [
        _tiled,
        lambda stage, i, j: stage.reorder(j, i),
        lambda stage, i, j: stage.parallel(stage.fuse(i, j)),
        lambda stage, i, j: stage.unroll(j),
        lambda stage, i, j: stage.tile(i, j, 7, 6),
        lambda stage, i, j: None,
    ],
    ids=["tiled", "reordered", "fused", "unrolled", "by 7 and 6", "as it is"],
)
def test_loops_of_a_script_are_scheduled(change):
    a, b = te.placeholder((60,), name="a"), te.placeholder((50,), name="b")
    c = _outer_product(a, b)
    assert [x.var.name for x in c.op.axis] == ["i", "j"]
    s, out, x, y = te.create_schedule(c.op), tvm.nd.empty((60, 50)), f32(60), f32(50, seed=1)
    change(s[c], *c.op.axis)
    tvm.build(s, [a, b, c], "llvm")(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), np.outer(x, y), rtol=1e-6)


def test_loops_of_a_script_that_follow_each_other():
    @te.hybrid.script
    def two(a):
        b = output_tensor((30,), a.dtype)
        c = output_tensor((30,), a.dtype)
        for i in range(2, 30):
            b[i] = a[i] + 1.0
            for k in range(3):  # noqa: B007
                b[i] += a[i - 2]
        b[0] = 0.0
        b[1] = 0.0
        for j in range(30):
            c[j] = a[j] * 2.0
        return b, c

    a, x = te.placeholder((30,), name="a"), f32(30)
    b, c = two(a)
    want = x + 1
    want[2:] += 3 * x[:-2]
    want[:2] = 0

    def check(change):
        s, first, second = te.create_schedule(b.op), tvm.nd.empty((30,)), tvm.nd.empty((30,))
        change(s[b], *b.op.axis)
        tvm.build(s, [a, b, c], "llvm")(tvm.nd.array(x), first, second)
        np.testing.assert_allclose(first.numpy(), want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(second.numpy(), x * 2, rtol=1e-6)

    check(lambda stage, i, k, j: stage.split(i, 4))
    check(lambda stage, i, k, j: (stage.unroll(k), stage.vectorize(stage.split(j, 4)[1]), stage.parallel(i)))
    with pytest.raises(tvm.error.UnsupportedError, match="joins loops that do not stand right within each other"):
        check(lambda stage, i, k, j: stage.fuse(k, j))
