# SPDX-License-Identifier: Apache-2.0
"""Expressions: construction, and Python's operators on them."""

import numbers

from .. import error as errors
from .._ffi import get_global_func
from ..error import CompileError
from ..ir import GlobalVar, Op, RelayExpr, make_node
from ..ir.base import astext
from ..ir.tensor_type import TensorType
from ..runtime import NDArray
from ..runtime import ndarray as nd
from ..runtime.values import constant_array
from .base import Id

Expr = RelayExpr


def _op(name):
    return Op.get(name)


_OTHER_DTYPE = frozenset(["cast", "equal", "less", "greater", "where"])
_LOOKS = 64  # calls whose arguments are looked at before types are inferred


def _dtype_of(expr):
    """dtype of an expression if it is known from its arguments, or can be inferred; else None."""
    stack, looks = [expr], 0
    while stack:
        e = stack.pop()
        found = e.checked_type_
        if found is None and isinstance(e, Var):
            found = e.type_annotation
        if isinstance(found, TensorType):
            return found.dtype
        if isinstance(e, Constant):
            return e.data.dtype
        if isinstance(e, Call):
            name, looks = str(getattr(e.op, "name", "")), looks + 1
            if looks > _LOOKS or name.startswith("qnn.") or getattr(e.attrs, "out_dtype", "void") not in ("void", ""):
                return _inferred_dtype(e)
            if name not in _OTHER_DTYPE:
                stack += reversed(e.args)
    return None


def _inferred_dtype(expr):
    try:
        found = infer_type(expr)
    except CompileError:
        return None
    return found.dtype if isinstance(found, TensorType) else None


def infer_type(expr):
    """The type of an expression, without a module."""
    return get_global_func("relay._transform.InferTypeLocal")(expr)


class ExprWithOp(RelayExpr):
    """Base of expressions that Python's operators work on. Numbers on one side become constants of the other's dtype."""

    __slots__ = ()

    def _other(self, value):
        if isinstance(value, RelayExpr):
            return value
        if isinstance(value, numbers.Number):
            dtype = _dtype_of(self)
            if dtype is None:
                raise errors.TypeError(f"the dtype for `{value}` is not known here; write relay.const({value}, dtype)")
            return const(value, dtype)
        return const(value)

    def _binary(self, name, other, swapped=False):
        other = self._other(other)
        return Call(_op(name), [other, self] if swapped else [self, other])

    def astype(self, dtype):
        """The elements converted to a dtype."""
        return Call(_op("cast"), [self], make_node("relay.attrs.CastAttrs", dtype=str(dtype)))

    def __neg__(self):
        return Call(_op("negative"), [self])

    def __lt__(self, other):
        return self._binary("less", other)

    def __gt__(self, other):
        return self._binary("greater", other)

    def __ge__(self, other):
        return self._binary("greater_equal", other)

    def __le__(self, other):
        return self._binary("less_equal", other)

    def __add__(self, other):
        return self._binary("add", other)

    def __radd__(self, other):
        return self._binary("add", other, True)

    def __sub__(self, other):
        return self._binary("subtract", other)

    def __rsub__(self, other):
        return self._binary("subtract", other, True)

    def __mul__(self, other):
        return self._binary("multiply", other)

    def __rmul__(self, other):
        return self._binary("multiply", other, True)

    def __truediv__(self, other):
        return self._binary("divide", other)

    def __rtruediv__(self, other):
        return self._binary("divide", other, True)

    __div__, __rdiv__ = __truediv__, __rtruediv__

    def __floordiv__(self, other):
        return self._binary("floor_divide", other)

    def __mod__(self, other):
        return self._binary("mod", other)

    def __pow__(self, other):
        return self._binary("power", other)

    def __call__(self, *args):
        """A call of the value, which is a function."""
        return Call(self, args)

    def astext(self, show_meta_data=True, annotate=None, show_types=True):
        """The text form, as that of a module."""
        return astext(self, show_meta_data, annotate, show_types)


class Constant(ExprWithOp, key="relay.Constant"):
    """A tensor known at compile time."""

    __slots__ = ()

    def __init__(self, data, span=None):
        super().__init__(data=data if isinstance(data, NDArray) else nd.array(data), span=span)


class Tuple(ExprWithOp, key="relay.Tuple"):
    """A tuple."""

    __slots__ = ()

    def __init__(self, fields, span=None):
        super().__init__(fields=list(fields), span=span)

    def __getitem__(self, index):
        """A field."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is outside a tuple of {len(self)}")
        return self.fields[index]

    def __len__(self):
        return len(self.fields)

    def __iter__(self):
        return iter(self.fields)

    def astype(self, _):
        raise errors.TypeError("a tuple has no dtype; convert its fields")


class Var(ExprWithOp, key="relay.Var"):
    """A local variable. Each new object is another variable, whatever its name."""

    __slots__ = ()

    def __init__(self, name_hint, type_annotation=None, span=None):
        super().__init__(vid=name_hint if isinstance(name_hint, Id) else Id(name_hint), type_annotation=type_annotation, span=span)

    @property
    def name_hint(self):
        """The name that it is printed with."""
        return self.vid.name_hint

    @property
    def type_annotation(self):
        """The type that is written down; where there is none, the one that was inferred, or None."""
        written = self._field("type_annotation")
        return self.checked_type_ if written is None else written


class Call(ExprWithOp, key="relay.Call"):
    """`op(args)` with attributes."""

    __slots__ = ()

    def __init__(self, op, args, attrs=None, type_args=None, span=None):
        super().__init__(op=op, args=list(args), attrs=attrs, type_args=list(type_args or ()), span=span)

    @property
    def type_args(self):
        """Type arguments: those that are written down, or what inference found. For an operator, the types of the arguments."""
        written = self._field("type_args")
        return written if len(written) or self.checked_type_ is None else get_global_func("relay.ir.CallTypeArgs")(self)


class Let(ExprWithOp, key="relay.Let"):
    """`let variable = value; body`."""

    __slots__ = ()

    def __init__(self, variable, value, body, span=None):
        super().__init__(var=variable, value=value, body=body, span=span)


class If(ExprWithOp, key="relay.If"):
    """`if cond then true_branch else false_branch`; `cond` is a scalar bool."""

    __slots__ = ()

    def __init__(self, cond, true_branch, false_branch, span=None):
        super().__init__(cond=cond, true_branch=true_branch, false_branch=false_branch, span=span)


class TupleGetItem(ExprWithOp, key="relay.TupleGetItem"):
    """A field of a tuple."""

    __slots__ = ()

    def __init__(self, tuple_value, index, span=None):
        super().__init__(tuple=tuple_value, index=index, span=span)

    @property
    def tuple_value(self):
        """The tuple."""
        return self.tuple


class RefCreate(ExprWithOp, key="relay.RefCreate"):
    """A new reference to a value."""

    __slots__ = ()

    def __init__(self, value, span=None):
        super().__init__(value=value, span=span)


class RefRead(ExprWithOp, key="relay.RefRead"):
    """The value that a reference refers to."""

    __slots__ = ()

    def __init__(self, ref, span=None):
        super().__init__(ref=ref, span=span)


class RefWrite(ExprWithOp, key="relay.RefWrite"):
    """Lets a reference refer to another value."""

    __slots__ = ()

    def __init__(self, ref, value, span=None):
        super().__init__(ref=ref, value=value, span=span)


class TempExpr(ExprWithOp):
    """Base of expressions that stand for others while a pass runs. Passes here keep what they know beside the program, so there are none:
    a class of a program's own may derive from it, and say in `realize` what it stands for."""

    def realize(self):
        """The expression that it stands for."""
        raise NotImplementedError(f"{type(self).__name__} has no realize()")


class TupleWrapper:
    """A tuple of known length: unpacks and indexes as Python's, and serves as an expression."""

    def __init__(self, tuple_value, size):
        self.tuple_value, self.size = tuple_value, size

    def astuple(self):
        """The tuple as an expression."""
        return self.tuple_value

    asobject = astuple

    def astext(self):
        """The text form of the tuple."""
        return self.tuple_value.astext()

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.size))]
        if not -self.size <= index < self.size:
            raise IndexError(f"index {index} is outside a tuple of {self.size}")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self):
        return self.size

    def __iter__(self):
        return (self[i] for i in range(self.size))

    def __repr__(self):
        return f"TupleWrapper({self.tuple_value!r}, {self.size})"

    def astype(self, _):
        raise errors.TypeError("a tuple has no dtype; convert its fields")


def var(name_hint, type_annotation=None, shape=None, dtype="float32", span=None) -> "Var":
    """A new variable. Its type is `type_annotation`, or a tensor of `shape` and `dtype`, or left to inference.

    x = relay.var("x", shape=(1, 3, 224, 224))
    y = relay.var("y", relay.TensorType((10,), "int32"))
    """
    if type_annotation is not None and shape is not None:
        raise errors.ValueError("give either a type or a shape, not both")
    if shape is not None:
        type_annotation = TensorType(shape, dtype)
    elif isinstance(type_annotation, str):
        type_annotation = TensorType((), type_annotation)
    return Var(name_hint, type_annotation, span)


def const(value, dtype=None, span=None) -> "Constant":
    """A constant of a number, nested lists or an array. Python's numbers are int32, float32 and bool unless `dtype` says
    otherwise; arrays keep their own."""
    return Constant(constant_array(value, dtype), span)


def typed_text(node, show_meta_data):
    """Text with the types that are known in comments."""
    return get_global_func("relay.ir.AsText")(node, show_meta_data, True)


def annotated_text(node, show_meta_data, annotate):
    """The text form with a comment behind each call, which `annotate(call)` gives."""
    return get_global_func("relay.ir.AnnotatedText")(node, show_meta_data, annotate)


def bind(expr, binds):
    """The expression with free variables replaced, as the dict `binds` says."""
    return get_global_func("relay.analysis.bind")(expr, dict(binds))


__all__ = [
    "Call",
    "Constant",
    "Expr",
    "ExprWithOp",
    "GlobalVar",
    "If",
    "Let",
    "RefCreate",
    "RefRead",
    "RefWrite",
    "RelayExpr",
    "TempExpr",
    "Tuple",
    "TupleGetItem",
    "TupleWrapper",
    "Var",
    "bind",
    "const",
    "var",
]
