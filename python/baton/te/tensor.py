# SPDX-License-Identifier: Apache-2.0
"""Tensors of tensor expressions, and the operations that compute them."""

import numbers
import operator as _operator

from .. import _core
from .._core import Object
from .._ffi.hook import Hook
from ..error import TypeError
from ..ir import PrimExpr, Range, make_node
from ..tir.expr import IterVar
from ..tir.op import cast
from ..tir.stmt import For, Stmt
from ..tir.stmt_functor import _parts
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

    def __repr__(self):
        return f"placeholder({self.name}, {self.handle:#x})"

    __str__ = __repr__


class ComputeOp(Operation, key="te.ComputeOp"):
    """A value for each element."""

    __slots__ = ()

    def __repr__(self):
        body, axes, reduced = ([str(x) for x in xs] for xs in (map(repr, self.body), self.axis, self.reduce_axis))
        return f"compute({self.name}, body=[{', '.join(body)}], axis=[{', '.join(axes)}], reduce_axis=[{', '.join(reduced)}], tag={self.tag}, attrs={dict(self.attrs)})"

    __str__ = __repr__

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
    reduce_axis = ()

    @property
    def axis(self):
        """The loops of a script, in the order in which they are written; none of another statement."""
        if "script" not in self.attrs:
            return []
        found = []
        _visit_loops(self.body, found.append)
        return [IterVar(Range.from_min_extent(_wide(f.min), _wide(f.extent)), f.loop_var, IterVar.DataPar) for f in found]

    def __getattr__(self, name):
        # Of `te.scan`: the rows' axis, and the tensors that it was given.
        if name in _OF_SCANS and _OF_SCANS[name] in self.attrs:
            return self.attrs[_OF_SCANS[name]]
        raise AttributeError(f"`te.ExternOp` has no attribute `{name}`; it has {', '.join(field for field, *_ in _described(self))}")

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


_OF_SCANS = {"scan_axis": "scan_axis", "init": "scan_init", "update": "scan_update", "state_placeholder": "scan_state"}


def _described(operation):
    return _core.describe_type(operation.type_key)[2]


def _wide(e):
    return e if str(e.dtype) == "int64" else cast("int64", e)


def _visit_loops(stmt, f):
    """Calls `f` on each loop, those outside first."""
    stack = [stmt]
    while stack:
        node = stack.pop()
        if isinstance(node, For):
            f(node)
        stack += reversed([p for p in _parts(node) if isinstance(p, Stmt)])


class TensorSlice:
    """A tensor with some of its indices: `A[i]` of a matrix, waiting for the rest."""

    def __init__(self, tensor, indices):
        self.tensor, self.indices = tensor, tuple(indices)

    def __getitem__(self, indices):
        return self.tensor[(*self.indices, *(indices if isinstance(indices, tuple) else (indices,)))]

    def _with(self, name, other, swapped=False):
        mine, other = self.asobject(), other.asobject() if isinstance(other, TensorSlice) else other
        if isinstance(other, Tensor):
            return other._with(name, mine, not swapped)
        operator = getattr(_operator, name)
        return operator(other, mine) if swapped else operator(mine, other)

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
    takes_arithmetic = True  # of expressions with it

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
        if isinstance(other, (IterVar, TensorSlice)):
            other = other.var if isinstance(other, IterVar) else other.asobject()
        if not isinstance(other, (Tensor, numbers.Number, PrimExpr)):
            return NotImplemented
        return _arithmetic(name, other, self) if swapped else _arithmetic(name, self, other)

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


def _lend_operators():
    """Gives `+ - * /` to tensors and to their elements that wait for indices."""
    names = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide"}
    for cls in (Tensor, TensorSlice):
        for word, long in names.items():
            name = long if cls is Tensor else word
            setattr(cls, f"__{word}__", lambda self, other, _name=name: self._with(_name, other))
            setattr(cls, f"__r{word}__", lambda self, other, _name=name: self._with(_name, other, swapped=True))


_lend_operators()
