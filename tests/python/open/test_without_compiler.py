# SPDX-License-Identifier: Apache-2.0
"""Operators whose extents are open, or follow from values, need no compiler when they run: beside NumPy, or beside the same program for
fixed shapes."""

import numpy as np
import pytest

import baton

HEAD = '#[version = "0.0.5"]\n'


def f32(*shape):
    return np.random.default_rng(list(shape)).standard_normal(shape).astype("float32")


def of(*values, dtype="int64"):
    return np.array(values, dtype)


def arrays(result):
    return [v.numpy() for v in result] if isinstance(result, tuple) else [result.numpy()]


# Text, lists of arguments; what NumPy says, or None: the program for these shapes.
PROGRAMS = {
    "topk": (
        'def @main(%x: Tensor[(3, 9), float32], %k: Tensor[(), int64]) { dyn.topk(%x, %k, ret_type="values") }',
        [(f32(3, 9), np.array(k)) for k in (1, 4, 9)],
        lambda x, k: -np.sort(-x, 1)[:, : int(k)],
    ),
    "expand_dims": (
        "def @main(%x: Tensor[(n, 2), float32], %a: Tensor[(), int64]) { dyn.expand_dims(%x, %a, num_newaxis=1) }",
        [(f32(n, 2), np.array(a)) for n, a in ((0, 0), (3, 1), (3, -1))],
        lambda x, a: np.expand_dims(x, int(a)),
    ),
    "squeeze": (
        "def @main(%x: Tensor[(1, n, 1), float32], %a: Tensor[(1), int64]) { dyn.squeeze(%x, %a) }",
        [(f32(1, n, 1), of(a)) for n, a in ((2, 0), (5, 2), (5, -1))],
        lambda x, a: x.squeeze(int(a[0])),
    ),
    "sparse_to_dense": (
        "def @main(%i: Tensor[(n, 2), int64], %v: Tensor[(n), float32], %d: Tensor[(), float32], %s: Tensor[(2), int64]) { dyn.sparse_to_dense(%i, %v, %d, %s) }",
        [(of(0, 1, 2, 3).reshape(2, 2), f32(2), f32(), of(3, 4)), (of().reshape(0, 2), f32(0), f32(), of(2, 1))],
        lambda i, v, d, s: np.array([[next((v[k] for k in range(len(v)) if tuple(i[k]) == (r, c)), d) for c in range(s[1])] for r in range(s[0])], "float32"),
    ),
    "pad": (
        'def @main(%x: Tensor[(n, 3), float32], %p: Tensor[(2, 2), int64], %v: Tensor[(), float32]) { dyn.nn.pad(%x, %p, %v) }',
        [(f32(n, 3), of(*p).reshape(2, 2), f32()) for n, p in ((2, (1, 0, 0, 2)), (4, (0, 0, 0, 0)), (1, (3, 1, 2, 0)))],
        lambda x, p, v: np.pad(x, p, constant_values=v),
    ),
    "strided_slice by steps": (
        "def @main(%x: Tensor[(n, 4), float32], %b: Tensor[(2), int64], %e: Tensor[(2), int64], %s: Tensor[(2), int64]) { dyn.strided_slice(%x, %b, %e, %s) }",
        [(f32(n, 4), of(*b), of(*e), of(*s)) for n, b, e, s in ((5, (0, 1), (9, 3), (2, 1)), (3, (-1, 3), (-9, -9), (-1, -2)))],
        lambda x, b, e, s: x[tuple(slice(int(i), int(j) if j > -9 else None, int(k)) for i, j, k in zip(b, e, s, strict=True))],
    ),
    "arange": (
        'def @main(%a: Tensor[(), float32], %b: Tensor[(), float32], %s: Tensor[(), float32]) { exp(arange(%a, %b, %s, dtype="float32")) }',
        [tuple(np.array(v, "float32") for v in row) for row in ((0, 2, 0.5), (1, 0, 0.5), (3, 1, -0.75))],
        lambda a, b, s: np.exp(np.arange(a, b, s, dtype="float32")),
    ),
    "resize2d by values": (
        'def @main(%x: Tensor[(1, 2, 4, 5), float32], %s: Tensor[(2), int64]) { dyn.image.resize2d(%x, %s, method="nearest_neighbor", coordinate_transformation_mode="asymmetric", rounding_method="floor") }',
        [(f32(1, 2, 4, 5), of(8, 10)), (f32(1, 2, 4, 5), of(4, 15))],
        lambda x, s: x.repeat(s[0] // 4, 2).repeat(s[1] // 5, 3),
    ),
    "upsampling by values": (
        "def @main(%x: Tensor[(1, 2, 4, 5), float32], %h: Tensor[(), float32], %w: Tensor[(), float32]) { dyn.nn.upsampling(%x, %h, %w) }",
        [(f32(1, 2, 4, 5), np.array(2, "float32"), np.array(3, "float32"))],
        lambda x, h, w: x.repeat(2, 2).repeat(3, 3),
    ),
    "collapse_sum_like": (
        "def @main(%x: Tensor[(n, 4), float32], %y: Tensor[(m, 4), float32]) { collapse_sum_like(%x, %y) }",
        [(f32(3, 4), f32(1, 4)), (f32(3, 4), f32(3, 4)), (f32(1, 4), f32(1, 4))],
        lambda x, y: x.sum(0, keepdims=True) if len(y) == 1 else x,
    ),
    "upsampling": (
        'def @main(%x: Tensor[(n, 2, h, w), float32]) { nn.relu(nn.upsampling(%x, scale_h=2f64, scale_w=1.5f64, method="METHOD")) }',
        [(f32(1, 2, 3, 4),), (f32(2, 2, 5, 2),), (f32(1, 2, 1, 1),)],
        None,
    ),
    "resize2d": (
        'def @main(%x: Tensor[(n, 2, h, w), float32]) { image.resize2d(%x, size=[5, 6], method="linear", coordinate_transformation_mode="MODE", rounding_method="") }',
        [(f32(1, 2, 3, 4),), (f32(2, 2, 5, 6),), (f32(1, 2, 9, 1),)],
        None,
    ),
    "conv2d_transpose": (
        "def @main(%x: Tensor[(n, 4, h, w), float32], %w: Tensor[(4, 3, 3, 3), float32]) { nn.relu(nn.conv2d_transpose(%x, %w, channels=6, groups=2, kernel_size=[3, 3], strides=[2, 2], padding=[1, 1], output_padding=[1, 0])) }",
        [(f32(1, 4, 3, 5), f32(4, 3, 3, 3)), (f32(2, 4, 1, 2), f32(4, 3, 3, 3))],
        None,
    ),
    "avg_pool2d_grad": (
        "def @main(%g: Tensor[(n, 3, h, w), float32], %x: Tensor[(n, 3, p, q), float32]) { nn.avg_pool2d_grad(%g, %x, pool_size=[3, 2], strides=[2, 2], padding=[1, 0, 1, 0]) }",
        [(f32(1, 3, 4, 4), f32(1, 3, 8, 8)), (f32(2, 3, 2, 3), f32(2, 3, 4, 7))],
        None,
    ),
    "max_pool2d_grad": (
        "def @main(%g: Tensor[(n, 3, h, w), float32], %x: Tensor[(n, 3, p, q), float32]) { nn.max_pool2d_grad(%g, %x, pool_size=[2, 2], strides=[2, 2]) }",
        [(f32(1, 3, 4, 4), f32(1, 3, 8, 8)), (f32(2, 3, 2, 3), f32(2, 3, 4, 7))],
        None,
    ),
    "space_to_batch_nd": (
        "def @main(%x: Tensor[(n, h, 4, 2), float32]) { nn.space_to_batch_nd(%x, block_shape=[2, 2], paddings=[[1, 1], [0, 0]]) }",
        [(f32(1, 2, 4, 2),), (f32(3, 6, 4, 2),)],
        None,
    ),
}  # fmt: skip
METHODS = [("METHOD", v) for v in ("nearest_neighbor", "bilinear", "bicubic")]
MODES = [("MODE", v) for v in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")]
ROWS = [(name, old, new) for name, (text, *_) in PROGRAMS.items() for old, new in next((m for m in (METHODS, MODES) if m[0][0] in text), [("", "")])]


@pytest.mark.parametrize("name, old, new", ROWS, ids=[" ".join(filter(None, (n, new))) for n, _, new in ROWS])
def test_values(name, old, new, tmp_path):
    text, calls, numpy_says = PROGRAMS[name]
    model = baton.compile(HEAD + (text.replace(old, new) if old else text))
    assert model.called_back == ()
    model.save(tmp_path / "m.so")
    for run in (model, baton.load(tmp_path / "m.so")):
        for args in calls:
            if numpy_says:
                want = numpy_says(*args)
            else:
                (want,) = arrays(model.specialize({i.name: a.shape for i, a in zip(model.inputs, args, strict=True)})(*args))
            (got,) = arrays(run(*args))
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_a_plan_that_memory_does_not_hold_is_not_kept():
    """Bytes that a call could not have are not asked for by the next one."""
    for text in ("nn.relu(%x)", "dyn.tile(%x, %s)"):
        model = baton.compile(HEAD + f"def @main(%x: Tensor[(n, 2), float32], %s: Tensor[(2), int64]) {{ sqrt(abs(nn.softmax({text}))) }}")
        if "tile" in text:
            with pytest.raises(MemoryError):
                model(f32(2, 2), of(1 << 34, 4))
        for n in (1, 3):
            assert model(f32(n, 2), of(2, 1)).numpy().shape == ((2 * n if "tile" in text else n), 2)
