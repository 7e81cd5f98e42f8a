# SPDX-License-Identifier: Apache-2.0
"""What a rule works with: the tensors of a node, and how calls of Relay are made for it."""

from __future__ import annotations

import numbers

import numpy as np

from ...error import UnsupportedError
from ...ir import RelayExpr
from ...relay import Call, Tuple, TupleGetItem, const
from ...relay.op.make import operator
from .dtypes import is_float, relay_dtype
from .sizes import Sizes, expression, is_one, known, same

END = 2**62  # behind the end of each axis


class Value:
    """A tensor: its Relay expression, and its shape and dtype as PyTorch knows them. `node` is the node of the graph that made it."""

    __slots__ = ("dtype", "expr", "fake", "node", "shape")

    def __init__(self, expr, fake, node=None):
        self.expr, self.fake, self.node = expr, fake, node
        self.shape, self.dtype = tuple(fake.shape), relay_dtype(fake.dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def axis(self, dim: int) -> int:
        """An axis that may count from the end, from the front; 0 for a tensor without dimensions."""
        return dim + self.ndim if dim < 0 and self.ndim else max(dim, 0)

    def axes(self, dims) -> list[int]:
        """Axes from the front; all of them where `dims` is None or empty."""
        return (
            list(range(self.ndim))
            if dims is None or not isinstance(dims, int) and not len(dims)
            else sorted({self.axis(d) for d in ([dims] if isinstance(dims, int) else dims)} if self.ndim else ())
        )

    @property
    def is_bool(self) -> bool:
        """Whether its elements are bools."""
        return self.dtype == "bool"


class Context:
    """Makes the calls of one node. `c("nn.relu", x)` is a call of an operator; `c.shape` and `c.dtype` are those of the node's
    (first) result."""

    def __init__(self, node, fake, sizes: Sizes, span=None, scalar=None, is_given=None):
        """scalar: gives (a size as a value, its dtype). is_given: tells whether inputs say a size, so that a type can hold it."""
        self.node, self.fake, self.span, self._sizes, self._scalar, self._is_given = node, fake, span, sizes, scalar, is_given

    @property
    def results(self):
        """The results as PyTorch knows them, one for each."""
        return list(self.fake) if isinstance(self.fake, (list, tuple)) else [self.fake]

    is_complex = False  # whether results are pairs of real and imaginary parts

    @property
    def shape(self):
        """The shape of the first result."""
        return tuple(self.results[0].shape)

    @property
    def dtype(self) -> str:
        """The dtype of the first result."""
        return relay_dtype(self.results[0].dtype)

    def used(self, index: int) -> bool:
        """Whether something uses this one of several results."""
        import operator as python

        return any(u.target is not python.getitem or u.args[1] == index for u in self.node.users)

    def __call__(self, name: str, *inputs, **attrs):
        """A call of the operator of Relay, with the place of the node."""
        call = operator(name)(*[i.expr if isinstance(i, Value) else i for i in inputs], **attrs)
        return call if self.span is None else Call(call.op, call.args, call.attrs, span=self.span)

    def tuple(self, values):
        """A tuple of expressions."""
        return Tuple([v.expr if isinstance(v, Value) else v for v in values])

    def item(self, value, index: int):
        """A field of a tuple."""
        return TupleGetItem(value, index)

    def const(self, value, dtype: str):
        """A number or an array as a constant; a size with symbols as a value that is computed from shapes."""
        if isinstance(value, RelayExpr):
            return value
        if hasattr(value, "node"):
            return self.size_value(value, dtype)
        if isinstance(value, numbers.Number) and not is_float(dtype) and dtype != "bool":
            value = int(value)
            bits = int("".join(ch for ch in dtype if ch.isdigit()))
            value = (value + (0 if dtype[0] == "u" else 2 ** (bits - 1))) % 2**bits - (0 if dtype[0] == "u" else 2 ** (bits - 1))
        if dtype == "bfloat16":
            return const(np.asarray(value, "float32"), "bfloat16")
        with np.errstate(all="ignore"):
            return const(np.asarray(value).astype(dtype), dtype)

    def size_value(self, size, dtype: str):
        """The value of a size, or of a number that a tensor holds, as a scalar."""
        if self._scalar is None or not hasattr(size.node, "expr"):
            raise UnsupportedError("a size is used as a value here")
        return self.convert(*self._scalar(expression(size)), dtype)

    def convert(self, x, have: str, want: str):
        """An expression of one dtype in another."""
        return x if have == want else self("cast", x, dtype=want)

    def cast(self, x, dtype: str):
        """A tensor, or a number, as an expression of a dtype."""
        return self.convert(x.expr, x.dtype, dtype) if isinstance(x, Value) else self.const(x, dtype)

    def truth(self, x):
        """Whether elements are not 0."""
        return self.cast(x, "bool")

    def promoted(self, *xs) -> str:
        """The dtype that PyTorch computes in, of tensors and numbers together."""
        import torch

        kinds = torch._prims_common.ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
        args = [x.fake if isinstance(x, Value) else x for x in xs if x is not None]
        return relay_dtype(torch._prims_common.elementwise_dtypes(*args, type_promotion_kind=kinds)[1])

    def is_given(self, size) -> bool:
        """Whether a size is a number or a formula of inputs' extents; other sizes are values that the graph computes."""
        return known(size) or self._is_given is None or self._is_given(expression(size))

    def extents(self, sizes):
        """Sizes as extents of types and attributes. Raises UnsupportedError for one that a value gives."""
        for size in sizes:
            self.need(self.is_given(size), f"the extent `{size}` depends on values, where an extent of the inputs is needed")
        return self._sizes.extents(sizes)

    def extent(self, size):
        """A size as an extent."""
        return self.extents([size])[0]

    def _values(self, shape):
        """A shape as a tensor."""
        return self("stack", self.tuple([self.const(size, "int64") for size in shape]), axis=0)

    def arange(self, count, dtype: str = "int64"):
        """0 to a size."""
        length = {"length": self.extent(count)} if self.is_given(count) else {}
        return self("arange", self.const(0, dtype), self.const(count, dtype), self.const(1, dtype), dtype=dtype, **length)

    def reshape(self, x, shape):
        """`x` under another shape, which has no special numbers."""
        if isinstance(x, Value) and len(x.shape) == len(shape) and all(map(same, x.shape, shape)):
            return x.expr
        if all(map(self.is_given, shape)):
            return self("reshape", x, newshape=self.extents(shape), allowzero=True)
        rest = [size for size in shape if self.is_given(size)]
        if len(rest) + 1 == len(shape) and all(known(size) and int(size) for size in rest):
            return self("reshape", x, newshape=[int(size) if self.is_given(size) else -1 for size in shape])
        return self("dyn.reshape", x, self._values(shape), allowzero=True)

    def broadcast(self, x, shape):
        """`x` broadcast to a shape."""
        if isinstance(x, Value) and len(x.shape) == len(shape) and all(map(same, x.shape, shape)):
            return x.expr
        if all(map(self.is_given, shape)):
            return self("broadcast_to", x, shape=self.extents(shape))
        return self("dyn.broadcast_to", x, self._values(shape))

    def full(self, value, shape, dtype: str):
        """A tensor of one value."""
        value = self.const(value, dtype)
        if len(shape) and not all(map(self.is_given, shape)):
            value = self("broadcast_to", value, shape=[self.extent(size) if self.is_given(size) else 1 for size in shape])
        return self.broadcast(value, shape) if len(shape) else value

    def transpose(self, x, axes):
        """Axes in another order."""
        axes = list(axes)
        return (x.expr if isinstance(x, Value) else x) if axes == list(range(len(axes))) else self("transpose", x, axes=axes)

    def slice(self, x, axis: int, begin, end, step: int = 1):
        """`x[begin:end:step]` along an axis."""
        if not self.is_given(begin) or not self.is_given(end):
            axes = self.const(np.asarray([axis]), "int64")
            return self("dyn.strided_slice", x, self._values([begin]), self._values([end]), self.const(np.asarray([step]), "int64"), axes)
        begin, end = self.extents([begin, end])
        return self("strided_slice", x, begin=[begin], end=[end], strides=[step], axes=[axis])

    def squeeze(self, x, axes):
        """`x` without axes of extent 1."""
        return self("squeeze", x, axis=list(axes)) if len(axes) else x

    def expand_dims(self, x, axis: int, count: int = 1):
        """`x` with new axes of extent 1 from `axis` on."""
        return self("expand_dims", x, axis=axis, num_newaxis=count)

    def need(self, holds, why: str) -> None:
        """Raises UnsupportedError unless a condition holds."""
        if not holds:
            raise UnsupportedError(why)

    def known(self, *sizes) -> list[int]:
        """Sizes that have to be numbers."""
        self.need(all(map(known, sizes)), "it needs known extents here")
        return list(map(int, sizes))

    def add(self, a, b):
        """a + b."""
        return self("add", a, b)

    def sub(self, a, b):
        """a - b."""
        return self("subtract", a, b)

    def mul(self, a, b):
        """a * b."""
        return self("multiply", a, b)

    def div(self, a, b):
        """a / b."""
        return self("divide", a, b)

    def where(self, condition, a, b):
        """condition ? a : b."""
        return self("where", condition, a, b)


__all__ = ["END", "Context", "Value", "is_one", "known", "same"]
