# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices in compressed rows: as arrays, and as placeholders of tensor expressions."""

from ... import te
from ...runtime import NDArray, cpu, ndarray

itype = "int32"


class CSRNDArray:
    """A sparse matrix: `data`, `indices` (their columns), `indptr` (where rows begin) and `shape`. Made of a dense array, or of those three."""

    def __init__(self, arg1, device=None, shape=None):
        import numpy as np

        device = device if device is not None else cpu(0)
        if isinstance(arg1, tuple):
            self.data, self.indices, self.indptr = (a if isinstance(a, NDArray) else ndarray.array(np.asarray(a), device) for a in arg1)
            if shape is None:
                raise ValueError("a sparse matrix of its parts needs its shape")
            self.shape = tuple(shape)
        else:
            dense = arg1.numpy() if isinstance(arg1, NDArray) else np.asarray(arg1)
            rows, columns = np.nonzero(dense)
            begins = np.concatenate([[0], np.bincount(rows, minlength=dense.shape[0]).cumsum()])
            self.data, self.indices, self.indptr = (
                ndarray.array(np.ascontiguousarray(a), device) for a in (dense[rows, columns], columns.astype(itype), begins.astype(itype))
            )
            self.shape = dense.shape
        self.stype, self.dtype = "csr", self.data.dtype

    def numpy(self):
        """The dense matrix."""
        import numpy as np

        full, begins = np.zeros(self.shape, self.data.numpy().dtype), self.indptr.numpy()
        rows = np.repeat(np.arange(self.shape[0]), np.diff(begins))
        full[rows, self.indices.numpy()] = self.data.numpy()
        return full

    asnumpy = numpy


def array(source_array, device=None, shape=None, stype="csr"):
    """A sparse matrix of a dense array, or of its parts."""
    if stype != "csr":
        raise NotImplementedError(f"stype={stype!r}: there are compressed rows, stype=\"csr\"")
    return CSRNDArray(source_array, device, shape)


class CSRPlaceholderOp:
    """Placeholders of a sparse matrix's parts: `data`, `indices`, `indptr`."""

    def __init__(self, shape, nonzeros, dtype, name):
        self.shape, self.dtype, self.name, self.stype = tuple(shape), dtype, name, "csr"
        self.data = te.placeholder((nonzeros,), dtype=dtype, name=name + "_data")
        self.indices = te.placeholder((nonzeros,), dtype=itype, name=name + "_indices")
        self.indptr = te.placeholder((self.shape[0] + 1,), dtype=itype, name=name + "_indptr")


def placeholder(shape, nonzeros=None, dtype=None, name="placeholder", stype=None):
    """A sparse matrix of so many elements, as placeholders of tensor expressions."""
    if stype not in (None, "csr"):
        raise NotImplementedError(f"stype={stype!r}: there are compressed rows, stype=\"csr\"")
    return CSRPlaceholderOp(shape, te.size_var("nonzeros") if nonzeros is None else nonzeros, dtype or "float32", name)


__all__ = ["CSRNDArray", "CSRPlaceholderOp", "array", "placeholder"]
