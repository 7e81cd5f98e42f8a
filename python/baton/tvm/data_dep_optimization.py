# SPDX-License-Identifier: Apache-2.0
"""Changes of a program that depend on the values of its weights: `bsr_dense.convert(func, params, ...)` and
`simplify_fc_transpose.convert(func, params)` give the function and the parameters that go with it."""

import types

import numpy as np

from ..ir import IRModule, Op
from ..ir.transform import Sequential
from ..relay import transform
from ..relay.analysis import post_order_visit, search_fc_transpose
from ..relay.expr import Call, Var
from ..relay.op.composed import CONVOLUTION
from ..runtime import NDArray
from ..runtime import ndarray as nd


def _numpy(value):
    return value.numpy() if isinstance(value, NDArray) else np.asarray(value)


def optimize(func, passes):
    """A function after passes."""
    return Sequential([transform.InferType(), *passes])(IRModule.of_main(func))["main"]


def _simplify(func, params):
    """`nn.dense(x, transpose(w))` with `w` of `params`: the weight is transposed once, as the parameter `w.T`."""
    names = search_fc_transpose(func)
    made = {name: value for name, value in params.items() if name not in names}
    made.update((f"{name}.T", nd.array(np.ascontiguousarray(_numpy(params[name]).T))) for name in names if name in params)
    return optimize(func, [transform.SimplifyFCTranspose([name for name in names if name in params])]), made


def _weights_of(func, op):
    names = {}

    def look(expr):
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == op and isinstance(expr.args[1], Var):
            names[expr.args[1].name_hint] = expr

    post_order_visit(func, look)
    return names


def _rows(weight, call, layout):
    """A weight with a row for each output, if it can be sparse: of a product, or of a convolution whose window is one element."""
    if layout is None:
        return weight
    a = call.attrs
    if {int(x) for x in (*a.strides, *a.dilation, a.groups)} != {1} or any(int(x) for x in a.padding) or a.data_layout != layout:
        return None
    if layout == "NHWC":
        return weight[0, 0].T if a.kernel_layout == "HWIO" and weight.shape[:2] == (1, 1) else None
    return weight[:, :, 0, 0] if a.kernel_layout == "OIHW" and weight.shape[2:] == (1, 1) else None


def _blocks(weight, size):
    """(data, indices, indptr) of the blocks that are not all zero."""
    rows, columns = weight.shape[0] // size[0], weight.shape[1] // size[1]
    blocks = weight.reshape(rows, size[0], columns, size[1]).transpose(0, 2, 1, 3)
    kept = (blocks != 0).any(axis=(2, 3))
    data = blocks[kept]
    return (data[:, 0, 0] if size == (1, 1) else data), np.nonzero(kept)[1].astype("int32"), np.concatenate([[0], kept.sum(1).cumsum()]).astype("int32")


def sparse_weights(func, params, blocksize, sparsity_threshold, layout=None):
    """(parameters with weights of `nn.dense`, or with a layout of convolutions, in parts where their share of zeros is at least the threshold,
    their names, the shapes of the parts)."""
    made, names, shapes = dict(params), [], []
    for name, call in _weights_of(func, "nn.dense" if layout is None else CONVOLUTION).items():
        weight = _rows(_numpy(params[name]), call, layout) if name in params else None
        if weight is None or any(d % b for d, b in zip(weight.shape, blocksize, strict=True)) or (weight == 0).mean() < sparsity_threshold:
            continue
        parts = _blocks(weight, tuple(blocksize))
        del made[name]
        made.update((f"{name}.{part}", nd.array(np.ascontiguousarray(value))) for part, value in zip(("data", "indices", "indptr"), parts, strict=True))
        names.append(name)
        shapes.append([value.shape for value in parts])
    return made, names, shapes


def _to_sparse(func, params, blocksize, sparsity_threshold):
    """Weights of `nn.dense` whose share of zeros is at least `sparsity_threshold` become sparse, in blocks of `blocksize`."""
    made, names, shapes = sparse_weights(func, params, blocksize, sparsity_threshold)
    return optimize(func, [transform.DenseToSparse(names, shapes)] if names else []), made


def _convolutions_to_sparse(func, params, blocksize, sparsity_threshold, layout="NHWC", kernel_size=1):
    """The same for weights of convolutions with a window of one element: matrices with a row for each output channel."""
    made, names, shapes = sparse_weights(func, params, blocksize, sparsity_threshold, layout)
    return optimize(func, [transform.Conv2dToSparse(names, shapes, layout, kernel_size)]), made


simplify_fc_transpose = types.SimpleNamespace(convert=_simplify)
bsr_dense = types.SimpleNamespace(convert=_to_sparse)
bsr_conv2d = types.SimpleNamespace(convert=_convolutions_to_sparse)

__all__ = ["bsr_conv2d", "bsr_dense", "optimize", "simplify_fc_transpose", "sparse_weights"]
