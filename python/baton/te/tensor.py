# SPDX-License-Identifier: Apache-2.0
"""Tensors of tensor expressions, and the operations that compute them."""

import numbers

from .._core import Object
from .._ffi.hook import Hook
from ..error import TypeError
from ..ir import PrimExpr, make_node
from ..tir.expr import IterVar
from . import _ffi_api
from .reads import tensors_read

# An operator on tensors, elementwise and broadcasting, is topi's: `_arithmetic("add", a, b)`, where one may be a number.
_arithmetic = Hook("te.arithmetic")


class Operation(Object, key="te.Operation"):
    """An operation, which computes tensors."""

    __slots__ = ()

    def output(self, index=0):
        """One of its outputs."""
        return _ffi_api.OutputOf(self, index)

    @property
    def num_outputs(self):
        """How many tensors it computes."""
        return 1


class PlaceholderOp(Operation, key="te.PlaceholderOp"):
    """An input."""

    __slots__ = ()
    input_tensors = ()


class ComputeOp(Operation, key="te.ComputeOp"):
    """A value for each element."""

    __slots__ = ()

    @property
    def num_outputs(self):
        """How many tensors it computes."""
        return len(self.body)

    @property
    def reduce_axis(self):
        """The axes of its reduction; none where it has no reduction."""
        return self.body[0].axis if self.body[0].type_key == "tir.Reduce" else []

    @property
    def input_tensors(self):
        """The tensors that it reads."""
        return tensors_read(self.body)


class ExternOp(Operation, key="te.ExternOp"):
    """A statement over whole buffers."""

    __slots__ = ()
    axis = reduce_axis = ()

    @property
    def num_outputs(self):
        """How many tensors it computes."""
        return len(self.output_buffers)

    @property
    def input_tensors(self):
        """The tensors that it reads."""
        return list(self.inputs)

    def output(self, index=0):
        """One of its outputs."""
        buffer = self.output_buffers[index]
        return make_node("te.Tensor", shape=list(buffer.shape), dtype=str(buffer.dtype), op=self, value_index=index)


class TensorSlice:
    """A tensor with some of its indices: `A[i]` of a matrix, waiting for the rest."""

    def __init__(self, tensor, indices):
        self.tensor, self.indices = tensor, tuple(indices)

    def __getitem__(self, indices):
        return self.tensor[(*self.indices, *(indices if isinstance(indices, tuple) else (indices,)))]

    def asobject(self):
        """The element, once there are enough indices."""
        return self.tensor(*self.indices)

    @property
    def dtype(self):
        """dtype of an element."""
        return self.tensor.dtype


class Tensor(Object, key="te.Tensor"):
    """One output of an operation. `A[i, j]` and `A(i, j)` are an element."""

    __slots__ = ()

    @property
    def ndim(self):
        """Number of dimensions."""
        return len(self.shape)

    @property
    def name(self):
        """Name of its operation."""
        return self.op.name

    @property
    def axis(self):
        """The axes of its operation."""
        return self.op.axis

    def __call__(self, *indices):
        indices = [i.var if isinstance(i, IterVar) else i for i in indices]
        for i in indices:
            if not isinstance(i, (int, PrimExpr)):
                raise TypeError(f"an index is an int or an expression, not {type(i).__name__}")
        return _ffi_api.Load(self, indices)

    def __getitem__(self, indices):
        indices = indices if isinstance(indices, tuple) else (indices,)
        return self(*indices) if len(indices) >= self.ndim else TensorSlice(self, indices)

    def _with(self, name, other, swapped=False):
        if not isinstance(other, (Tensor, numbers.Number)):
            return NotImplemented
        return _arithmetic(name, other, self) if swapped else _arithmetic(name, self, other)

    def __add__(self, other):
        return self._with("add", other)

    def __radd__(self, other):
        return self._with("add", other, swapped=True)

    def __sub__(self, other):
        return self._with("subtract", other)

    def __rsub__(self, other):
        return self._with("subtract", other, swapped=True)

    def __mul__(self, other):
        return self._with("multiply", other)

    def __rmul__(self, other):
        return self._with("multiply", other, swapped=True)

    def __truediv__(self, other):
        return self._with("divide", other)

    def __rtruediv__(self, other):
        return self._with("divide", other, swapped=True)

    def __neg__(self):
        return _arithmetic("negative", self)

    def __repr__(self):
        return f"Tensor(shape=[{', '.join(map(str, self.shape))}], op.name={self.op.name})"

    __str__ = __repr__

    def __eq__(self, other):
        return isinstance(other, Tensor) and self.op.same_as(other.op) and self.value_index == other.value_index

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((self.op, self.value_index))
