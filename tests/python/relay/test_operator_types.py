# SPDX-License-Identifier: Apache-2.0
"""Types of operators as users of Relay write them down: with sizes that are variables, weights whose types follow from their use,
and the forms of arguments that the reference of operators names."""

import numpy as np
import pytest
from building import tensor, var

import baton as tvm
from baton import relay, te, tir

N, C, H, W, T, D = (te.size_var(name) for name in "nchwtd")
WW, WH = te.size_var("ww"), te.size_var("wh")


def parts(*types):
    return relay.TupleType(list(types))


def any_dim():
    return relay.Any()


def row(name, make, want, *args):
    """`args`: (number of an argument, its type), of what follows from the use."""
    return pytest.param(make, want, args, id=name)


ROWS = [
    # A variable stays what it is, and arithmetic on it is arithmetic.
    row("log", lambda: relay.log(var(N, T, D)), tensor(N, T, D)),
    row("add", lambda: var(N) + var(N), tensor(N)),
    row("add, an expression", lambda: var(N + 1, 3) + var(N + 1, 3), tensor(N + 1, 3)),
    row("add, 1 broadcasts", lambda: var(N, 4) * var(1, 4), tensor(N, 4)),
    row("concatenate, off the axis", lambda: relay.concatenate((var(N, T, 100), var(N, T, 100)), axis=-1), tensor(N, T, 200)),
    row("concatenate, on the axis", lambda: relay.concatenate((var(N, T, 100), var(N, T, 100)), axis=1), tensor(N, T + T, 100)),
    row("concatenate, both kinds", lambda: relay.concatenate([var(N, 2), var(3, 2), var(4, 2)], axis=0), tensor(N + 7, 2)),
    row("concatenate, unknown", lambda: relay.concatenate([var(N, 2), var(any_dim(), 2), var(4, 2)], axis=0), tensor(any_dim(), 2)),
    row("repeat", lambda: relay.repeat(var(N, T, 100), repeats=2, axis=1), tensor(N, T * 2, 100)),
    row("tile", lambda: relay.tile(var(N, 3), reps=(2, 1)), tensor(N * 2, 3)),
    row("stack", lambda: relay.stack((var(N, T, 100), var(N, T, 100)), axis=2), tensor(N, T, 2, 100)),
    row("pad", lambda: relay.nn.pad(var(N, C, H, W), ((1, 1), (2, 2), (3, 3), (0, 0))), tensor(N + 2, C + 4, H + 6, W)),
    row("batch_flatten", lambda: relay.nn.batch_flatten(var(N, C, D)), tensor(N, C * D)),
    row("batch_flatten, mixed", lambda: relay.nn.batch_flatten(var(3, C, 3)), tensor(3, C * 3)),
    row("split in parts", lambda: relay.split(var(N, T, 100), 4, axis=1).astuple(), parts(*[tensor(N, tir.indexdiv(T, 4), 100)] * 4)),
    row("split at places", lambda: relay.split(var(N, T), (2, 7), axis=1).astuple(), parts(tensor(N, 2), tensor(N, 5), tensor(N, T - 7))),
    row("yolo_reorg", lambda: relay.vision.yolo_reorg(var(N, C, H, W), stride=2), tensor(N, C * 2 * 2, tir.indexdiv(H, 2), tir.indexdiv(W, 2))),
    row("depth_to_space", lambda: relay.nn.depth_to_space(var(N, 8, H, W), 2), tensor(N, 2, H * 2, W * 2)),
    row("space_to_depth", lambda: relay.nn.space_to_depth(var(N, C, 8, 8), 2), tensor(N, C * 4, 4, 4)),
    row("transpose", lambda: relay.transpose(var(N, T, 100), axes=(1, 0, 2)), tensor(T, N, 100)),
    row("expand_dims", lambda: relay.expand_dims(var(N, T), axis=2), tensor(N, T, 1)),
    row("sum", lambda: relay.sum(var(N, T, D), axis=(0, 1), keepdims=True), tensor(1, 1, D)),
    row("sum, excluded", lambda: relay.sum(var(N, T, D), 1, False, True), tensor(T)),
    row("argmax", lambda: relay.argmax(var(N, C, H, W), axis=(1,)), tensor(N, H, W, dtype="int32")),
    row("take", lambda: relay.take(var(N, C), var(H, W, dtype="int32"), axis=1), tensor(N, H, W)),
    row("softmax", lambda: relay.nn.softmax(var(N, T), axis=1), tensor(N, T)),
    row("dropout", lambda: relay.nn.dropout(var(N, T, D), rate=0.75), tensor(N, T, D)),
    row("dense, numbers and variables", lambda: relay.nn.dense(var(N, C, H, 2), var(WW, WH)), tensor(N, C, H, WW)),
    row("batch_matmul", lambda: relay.nn.batch_matmul(var(N, H, T), var(N, W, T)), tensor(N, H, W)),
    row("max_pool2d", lambda: relay.nn.max_pool2d(var(N, 10, 224, 224), pool_size=(2, 2), strides=(2, 2)), tensor(N, 10, 112, 112)),
    row(
        "avg_pool2d", lambda: relay.nn.avg_pool2d(var(N, C, 224, 224), pool_size=(3, 3), strides=(2, 2), padding=(1, 1), ceil_mode=True), tensor(N, C, 113, 113)
    ),
    row("global_max_pool2d", lambda: relay.nn.global_max_pool2d(var(N, H, W, C), layout="NHWC"), tensor(N, 1, 1, C)),
    row("adaptive_avg_pool2d", lambda: relay.nn.adaptive_avg_pool2d(var(N, C, H, W), (1, 1)), tensor(N, C, 1, 1)),
    row(
        "conv2d",
        lambda: relay.nn.conv2d(var(N, 10, 224, 224), relay.var("w"), kernel_size=(3, 3), padding=(1, 1), channels=2),
        tensor(N, 2, 224, 224),
        (1, tensor(2, 10, 3, 3)),
    ),
    row(
        "conv2d, int8",
        lambda: relay.nn.conv2d(var(N, 10, 9, 9, dtype="uint8"), var(2, 10, 3, 3, dtype="int8"), out_dtype="int32"),
        tensor(N, 2, 7, 7, dtype="int32"),
    ),
    row(
        "conv2d, NHWC",
        lambda: relay.nn.conv2d(var(N, 8, 8, 32), relay.var("w"), kernel_size=(3, 3), channels=16, data_layout="NHWC", kernel_layout="HWIO"),
        tensor(N, 6, 6, 16),
        (1, tensor(3, 3, 32, 16)),
    ),
    row(
        "conv1d", lambda: relay.nn.conv1d(var(N, 10, 224), relay.var("w"), kernel_size=3, padding=(1, 1), channels=2), tensor(N, 2, 224), (1, tensor(2, 10, 3))
    ),
    row(
        "conv3d",
        lambda: relay.nn.conv3d(var(N, 10, 8, 8, 8), relay.var("w"), kernel_size=(3, 3, 3), padding=(1, 1, 1), channels=2),
        tensor(N, 2, 8, 8, 8),
        (1, tensor(2, 10, 3, 3, 3)),
    ),
    # Weights whose types follow from the use.
    row(
        "conv2d_transpose",
        lambda: relay.nn.conv2d_transpose(var(N, 10, 10, 12), relay.var("w", relay.IncompleteType()), kernel_size=(3, 3), padding=(1, 1), channels=15),
        tensor(N, 15, 10, 12),
        (1, tensor(10, 15, 3, 3)),
    ),
    row(
        "conv2d_transpose in groups",
        lambda: relay.nn.conv2d_transpose(var(1, 8, 4, 4), relay.var("w"), kernel_size=(3, 3), groups=4, channels=12),
        tensor(1, 12, 6, 6),
        (1, tensor(8, 3, 3, 3)),
    ),
    row(
        "conv2d_transpose, NHWC",
        lambda: relay.nn.conv2d_transpose(var(N, 10, 10, 12), var(12, 11, 5, 5), output_padding=(1, 1), channels=11, data_layout="NHWC"),
        tensor(N, 15, 15, 11),
    ),
    row(
        "conv1d_transpose",
        lambda: relay.nn.conv1d_transpose(var(N, 10, 12), relay.var("w"), kernel_size=(3,), padding=(1,), channels=15),
        tensor(N, 15, 12),
        (1, tensor(10, 15, 3)),
    ),
    row(
        "conv3d_transpose",
        lambda: relay.nn.conv3d_transpose(var(N, 10, 6, 6, 6), relay.var("w"), kernel_size=(3, 3, 3), padding=(1, 1, 1), channels=2),
        tensor(N, 2, 6, 6, 6),
        (1, tensor(10, 2, 3, 3, 3)),
    ),
    row(
        "deformable_conv2d",
        lambda: relay.nn.deformable_conv2d(
            var(1, 4, 16, 16), relay.var("o"), relay.var("w"), kernel_size=(3, 3), padding=(1, 1), deformable_groups=2, channels=6
        ),
        tensor(1, 6, 16, 16),
        (1, tensor(1, 36, 16, 16)),
        (2, tensor(6, 4, 3, 3)),
    ),
    row("prelu", lambda: relay.nn.prelu(var(N, C, H, W), relay.var("alpha"), axis=1), tensor(N, C, H, W), (1, tensor(C))),
    row("bias_add", lambda: relay.nn.bias_add(var(10, 2, 3, 4), relay.var("b")), tensor(10, 2, 3, 4), (1, tensor(2))),
    # Forms of arguments.
    row("where of numbers", lambda: relay.where(var(3, 4), var(3, 4), var(3, 4)), tensor(3, 4)),
    row("strided_slice, a short end", lambda: relay.strided_slice(var(3, 4, 3), [1, 1, 0], [4, 4]), tensor(2, 3, 3)),
    row("strided_slice, a short begin", lambda: relay.strided_slice(var(3, 4, 3), [1, 1], [4, 4, 2]), tensor(2, 3, 2)),
    row("strided_slice, backwards", lambda: relay.strided_slice(var(3, 4), [2, 3], [0], [-1, -2]), tensor(2, 2)),
    row("strided_slice by sizes", lambda: relay.strided_slice(var(3, 4), [1, 1], [2], slice_mode="size"), tensor(2, 3)),
    row("argwhere", lambda: relay.argwhere(var(2, 3, dtype="bool")), tensor(any_dim(), 2, dtype="int32")),
    row(
        "roi_align, NHWC",
        lambda: relay.vision.roi_align(var(1, 16, 16, 4), var(32, 5), pooled_size=(7, 7), spatial_scale=1.0, layout="NHWC"),
        tensor(32, 7, 7, 4),
    ),
    row(
        "threefry_generate",
        lambda: relay.random.threefry_generate(relay.random.threefry_key(1), (12,)).astuple(),
        parts(tensor(10, dtype="uint64"), tensor(12, dtype="uint64")),
    ),
    row("threefry_split", lambda: relay.random.threefry_split(relay.random.threefry_key(1)).astuple(), parts(*[tensor(10, dtype="uint64")] * 2)),
    row(
        "contrib_conv2d_nchwc",
        lambda: relay.nn.contrib_conv2d_nchwc(
            var(1, 4, 8, 8, 8), var(2, 4, 3, 3, 8, 8), kernel_size=(3, 3), channels=16, padding=(1, 1), data_layout="NCHW8c", kernel_layout="OIHW8i8o"
        ),
        tensor(1, 2, 8, 8, 8),
    ),
    row(
        "sparse_reshape",
        lambda: relay.op.sparse_reshape(var(5, 2, dtype="int64"), var(2, dtype="int64"), var(3, dtype="int64")).astuple(),
        parts(tensor(5, 3, dtype="int64"), tensor(3, dtype="int64")),
    ),
]


@pytest.mark.parametrize(("make", "want", "args"), ROWS)
def test_type(make, want, args):
    call = relay.testing.run_infer_type(make())
    assert call.checked_type == want, f"{call.checked_type}, where {want} is wanted"
    for i, found in args:
        assert call.args[i].checked_type == found


def test_sizes_that_may_agree_do():
    """`n + n` and `2 * n` are no equal expressions, and may be equal sizes; literals that differ are an error."""
    x, y = var(N * 2, 3), var(N + N, 3, name="y")
    assert relay.testing.run_infer_type(relay.concatenate([x, y], axis=1)).checked_type.shape[1] == 6
    with pytest.raises(tvm.TVMError, match="differ off axis 1"):
        relay.testing.run_infer_type(relay.concatenate([var(2, 3), var(4, 3, name="y")], axis=1))


@pytest.mark.parametrize("count", [3, 100])
def test_a_long_sum_is_a_product(count):
    x = var(N, 1)
    for _ in range(count):
        x = relay.concatenate([x, var(N, 1)], axis=0)
    assert relay.testing.run_infer_type(x).checked_type == tensor(N * (count + 1), 1)


def test_a_long_formula_is_an_unknown_size():
    names = [te.size_var(f"n{i}") for i in range(200)]
    x = relay.concatenate([var(n, 1, name=str(n)) for n in names], axis=0)
    assert isinstance(relay.testing.run_infer_type(x).checked_type.shape[0], tir.Any)


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_programs_with_sizes_that_are_variables_run(kind):
    x = var(N, 2)
    out = relay.repeat(relay.concatenate([x, relay.nn.pad(x, ((1, 0), (0, 0)))], axis=0), repeats=2, axis=1)
    given = np.arange(6, dtype="float32").reshape(3, 2)
    found = relay.create_executor(kind, device=tvm.cpu(), target="llvm").evaluate(relay.Function([x], out))(given)
    want = np.repeat(np.concatenate([given, np.pad(given, ((1, 0), (0, 0)))]), 2, axis=1)
    tvm.testing.assert_allclose(found.numpy(), want)
