# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices as compressed rows, of elements (CSR: data (n,)) or of blocks (BSR: data (n, rows, columns)): `data`, the columns
`indices`, and `indptr`, where each row begins. They are computed as dense ones: the form saves memory of a model, not time."""

from ... import error as errors
from ..expr import Tuple, TupleWrapper, const, infer_type
from .composed import COMPOSED, CONVOLUTION
from .make import input_expr, operator


def _parts(matrix):
    """(data, indices, indptr) as expressions, of a triple or of a matrix of SciPy's kind."""
    if hasattr(matrix, "indptr"):
        matrix = (matrix.data, matrix.indices, matrix.indptr)
    data, indices, indptr = map(input_expr, matrix)
    return data, operator("cast")(indices, dtype="int64"), operator("cast")(indptr, dtype="int64")


def _shape(expr):
    return [int(d) for d in infer_type(expr).shape]


def _row_of_each(indptr, count):
    """The row of each element."""
    order = operator("arange")(const(0, "int64"), const(count, "int64"), const(1, "int64"), dtype="int64")
    begins = operator("strided_slice")(indptr, begin=[1], end=[2**31 - 1])
    before = operator("less_equal")(operator("expand_dims")(begins, axis=0), operator("expand_dims")(order, axis=1))
    return operator("sum")(operator("cast")(before, dtype="int64"), axis=[1])


def sparse_to_rows(matrix, columns):
    """The dense matrix of a sparse one that has so many columns."""
    data, indices, indptr = _parts(matrix)
    dtype = str(infer_type(data).dtype)
    count, *block = _shape(data)
    rows = _shape(indptr)[0] - 1
    across = columns // block[1] if block else columns
    zeros = operator("zeros")(shape=[rows, across, *block], dtype=dtype)
    places = operator("stack")(Tuple([_row_of_each(indptr, count), indices]), axis=0)
    dense = operator("scatter_nd")(zeros, places, data, mode="add")
    if block:
        dense = operator("reshape")(operator("transpose")(dense, axes=[0, 2, 1, 3]), newshape=[rows * block[0], columns])
    return dense


def sparse_dense(dense_mat, sparse_mat, sparse_lhs=False):
    """dense_mat @ sparse_mat.T, or with `sparse_lhs` sparse_mat @ dense_mat.T. `sparse_mat`: (data, indices, indptr), or a matrix of SciPy's."""
    dense_mat = input_expr(dense_mat)
    matrix = sparse_to_rows(sparse_mat, _shape(dense_mat)[1])
    return operator("nn.dense")(*((matrix, dense_mat) if sparse_lhs else (dense_mat, matrix)))


def check_window(kernel_size):
    """Sparse convolutions have a window of one element."""
    if {*(kernel_size if isinstance(kernel_size, (list, tuple)) else [kernel_size])} != {1}:
        raise errors.UnsupportedError(f"a sparse convolution has a window of one element, not {kernel_size}; {CONVOLUTION} takes any")


def sparse_conv2d(dense_mat, sparse_mat, layout="NHWC", kernel_size=1):
    """A convolution with a window of one element, whose weight is a sparse matrix with a row for each output channel. `layout`: of `dense_mat`,
    "NHWC" or "NCHW"."""
    check_window(kernel_size)
    if layout not in ("NHWC", "NCHW"):
        raise errors.ValueError(f'sparse_conv2d: layout is "{layout}"; it is "NHWC" or "NCHW"')
    dense_mat = input_expr(dense_mat)
    matrix = sparse_to_rows(sparse_mat, _shape(dense_mat)[layout.index("C")])
    if layout == "NHWC":
        weight = operator("expand_dims")(operator("transpose")(matrix, axes=[1, 0]), axis=0, num_newaxis=2)
    else:
        weight = operator("expand_dims")(matrix, axis=2, num_newaxis=2)
    given = {"data_layout": layout, "kernel_layout": "HWIO" if layout == "NHWC" else "OIHW"}
    return operator(CONVOLUTION)(dense_mat, weight, kernel_size=[1, 1], channels=_shape(matrix)[0], **given)


def sparse_transpose(x):
    """(data, indices, indptr) of the transpose of a square sparse matrix of elements."""
    data, indices, indptr = _parts(x)
    (count,), size = _shape(data), _shape(indptr)[0] - 1
    order = operator("argsort")(indices, axis=0, is_ascend=True, dtype="int64")
    moved = [operator("take")(v, order, axis=0) for v in (data, _row_of_each(indptr, count))]
    columns = operator("arange")(const(0, "int64"), const(size + 1, "int64"), const(1, "int64"), dtype="int64")
    before = operator("less")(operator("expand_dims")(indices, axis=0), operator("expand_dims")(columns, axis=1))
    begins = operator("sum")(operator("cast")(before, dtype="int64"), axis=[1])
    return TupleWrapper(Tuple([moved[0], *(operator("cast")(v, dtype="int32") for v in (moved[1], begins))]), 3)


def sparse_add(dense_mat, sparse_mat):
    """dense_mat + sparse_mat."""
    dense_mat = input_expr(dense_mat)
    return operator("add")(dense_mat, sparse_to_rows(sparse_mat, _shape(dense_mat)[1]))


for _f in (sparse_to_rows, sparse_dense, sparse_conv2d, sparse_transpose, sparse_add):
    COMPOSED["nn." + _f.__name__] = _f

__all__ = ["CONVOLUTION", "check_window", "sparse_add", "sparse_conv2d", "sparse_dense", "sparse_to_rows", "sparse_transpose"]
