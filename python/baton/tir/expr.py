# SPDX-License-Identifier: Apache-2.0
"""Expressions of TIR. Python's operators on them are those of `baton.ir.PrimExpr`, their base."""

from .._core import Object, convert
from ..ir import make_node
from ..ir.expr import EqualOp, NotEqualOp, PrimExpr, in_types
from ..ir.type import PrimType
from . import _ffi_api


class Var(PrimExpr, key="tir.Var"):
    """A variable. Each new object is another variable, whatever its name. `dtype` may be a pointer's type."""

    __slots__ = ()

    def __init__(self, name, dtype="int32", span=None):
        self.__init_handle_by_constructor__(_ffi_api.Var, name, dtype)

    @property
    def name(self):
        """The name that it is printed with."""
        return self.name_hint

    def same_as(self, other):
        """Whether both are one variable; so is a variable of narrow integers and the one of int64 that stands for it in the shapes of types."""
        if super().same_as(other):
            return True
        return isinstance(other, Var) and other.dtype != self.dtype and in_types(self).handle == in_types(other).handle

    @property
    def type_annotation(self):
        """Its type: of a scalar the PrimType of its dtype."""
        given = self._field("type_annotation")
        return PrimType(self.dtype) if given is None else given


class SizeVar(Var, key="tir.SizeVar"):
    """A variable that is not negative: an extent."""

    __slots__ = ()

    def __init__(self, name, dtype="int32", span=None):
        self.__init_handle_by_constructor__(_ffi_api.SizeVar, name, dtype)


class ConstExpr(PrimExpr):
    """Base of literals."""

    __slots__ = ()


class IntImm(ConstExpr, key="IntImm"):
    """An integer literal; also bool."""

    __slots__ = ()

    def __init__(self, dtype, value, span=None):
        self.__init_handle_by_constructor__(_ffi_api.IntImm, dtype, value)

    def __hash__(self):
        return hash(self.value)

    def __int__(self):
        return self.value

    __index__ = __int__

    def __float__(self):
        return float(self.value)

    def __bool__(self):
        return self.value != 0


class FloatImm(ConstExpr, key="FloatImm"):
    """A floating literal."""

    __slots__ = ()

    def __init__(self, dtype, value, span=None):
        self.__init_handle_by_constructor__(_ffi_api.FloatImm, dtype, float(value))

    def __hash__(self):
        return hash(self.value)

    def __float__(self):
        return self.value

    def __bool__(self):
        return self.value != 0


class StringImm(ConstExpr, key="tir.StringImm"):
    """A text."""

    __slots__ = ()

    def __init__(self, value, span=None):
        self.__init_handle_by_constructor__(_ffi_api.StringImm, value)

    def __eq__(self, other):
        return (self.value == other.value) if isinstance(other, StringImm) else self.value == other

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self.value)

    def __str__(self):
        return self.value


class Cast(PrimExpr, key="tir.Cast"):
    """A value converted to a dtype."""

    __slots__ = ()

    def __init__(self, dtype, value, span=None):
        self.__init_handle_by_constructor__(_ffi_api.Cast, dtype, value)


class BinaryOpExpr(PrimExpr):
    """Base of operations on two operands, `a` and `b`."""

    __slots__ = ()


def _as_wide(literal, other):
    """A literal with the dtype of the other operand: a number of Python always, an integer literal where the other is an integer."""
    if isinstance(literal, (int, float)) and not isinstance(literal, bool) and isinstance(other, PrimExpr):
        dtype = str(other.dtype)
        if "x" not in dtype:  # vectors take no literals
            return _ffi_api.const(literal, dtype) if isinstance(literal, int) or dtype.startswith(("float", "bfloat")) else literal
    if not isinstance(literal, IntImm) or not isinstance(other, PrimExpr) or literal.dtype == other.dtype:
        return literal
    return IntImm(other.dtype, literal.value) if literal.dtype.startswith("int") and other.dtype in ("int32", "int64") else literal


def _beside(a, b):
    """Two operands, literals of each other's dtype; of two numbers as `tir.const` makes them."""
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        dtype = "float32" if isinstance(a, float) or isinstance(b, float) else "bool" if isinstance(a, bool) and isinstance(b, bool) else "int32"
        return _ffi_api.const(a, dtype), _ffi_api.const(b, dtype)
    return _as_wide(a, b), _as_wide(b, a)


def _binary(name, doc):
    def __init__(self, a, b, span=None):
        self.__init_handle_by_constructor__(getattr(_ffi_api, name), *_beside(a, b))

    body = {"__slots__": (), "__doc__": doc, "__init__": __init__, "__module__": __name__}
    cls = type(PrimExpr)(name, (BinaryOpExpr,), body)
    from .._ffi import register_object

    return register_object("tir." + name)(cls)


Add = _binary("Add", "a + b.")
Sub = _binary("Sub", "a - b.")
Mul = _binary("Mul", "a * b.")
Div = _binary("Div", "a / b; integers truncate.")
Mod = _binary("Mod", "Remainder of Div.")
FloorDiv = _binary("FloorDiv", "floor(a / b).")
FloorMod = _binary("FloorMod", "a - floor(a / b) * b.")
Min = _binary("Min", "The smaller.")
Max = _binary("Max", "The larger.")
EQ = _binary("EQ", "a == b.")
NE = _binary("NE", "a != b.")
LT = _binary("LT", "a < b.")
LE = _binary("LE", "a <= b.")
GT = _binary("GT", "a > b.")
GE = _binary("GE", "a >= b.")
And = _binary("And", "a and b.")
Or = _binary("Or", "a or b.")


class Not(PrimExpr, key="tir.Not"):
    """Not a."""

    __slots__ = ()

    def __init__(self, a, span=None):
        self.__init_handle_by_constructor__(_ffi_api.Not, a)


class Select(PrimExpr, key="tir.Select"):
    """One of two values; both may be evaluated."""

    __slots__ = ()

    def __init__(self, condition, true_value, false_value, span=None):
        self.__init_handle_by_constructor__(_ffi_api.Select, condition, *_beside(true_value, false_value))


class BufferLoad(PrimExpr, key="tir.BufferLoad"):
    """`buffer[indices]`."""

    __slots__ = ()

    def __init__(self, buffer, indices, span=None):
        self.__init_handle_by_constructor__(_ffi_api.BufferLoad, buffer, list(indices))

    @property
    def index(self):
        """Its place behind the buffer's pointer, in elements."""
        return self.buffer.offset_of(self.indices)

    @property
    def buffer_var(self):
        """The buffer's pointer."""
        return self.buffer.data

    @property
    def predicate(self):
        """True in each lane."""
        return true_of(self.dtype)


_VIEWS = {}  # (handle of a pointer, dtype) -> (the pointer, which it keeps alive; the flat buffer on it)


def view_of(pointer, dtype):
    """The flat buffer of elements of a dtype behind a pointer: of a pointer and a dtype always the same one."""
    key = pointer.handle, str(dtype)
    if key not in _VIEWS:
        shape = [SizeVar(f"{pointer.name}_size")]
        _VIEWS[key] = pointer, make_node("tir.Buffer", data=pointer, dtype=str(dtype), shape=shape, name=pointer.name)
    return _VIEWS[key][1]


class _OnPointers(type):
    """Of classes for accesses by a pointer and one index: those of a buffer of one dimension."""

    def __instancecheck__(cls, node):
        return isinstance(node, cls._access) and len(node.buffer.shape) == 1


def true_of(dtype):
    """True, in as many lanes as a dtype has."""
    _, _, lanes = str(dtype).partition("x")
    true = IntImm("bool", 1)
    return Broadcast(true, int(lanes)) if lanes else true


def on_pointer(name, pointer, dtype, predicate):
    """The flat buffer behind a pointer that `name` reads or writes."""
    from ..error import UnsupportedError

    element = str(dtype).partition("x")[0]
    if predicate is not None and not (isinstance(getattr(predicate, "value", predicate), int) or isinstance(predicate, Broadcast)):
        raise UnsupportedError(f"tir.{name} with a predicate: put the condition into tir.IfThenElse or tir.if_then_else")
    return view_of(pointer, element)


class Load(metaclass=_OnPointers):
    """`Load(dtype, buffer_var, index)` is the BufferLoad of the flat buffer behind a pointer; instances are loads of one index."""

    _access = BufferLoad

    def __new__(cls, dtype, buffer_var, index, predicate=None, span=None):
        return BufferLoad(on_pointer("Load", buffer_var, dtype, predicate), [index])


class Ramp(PrimExpr, key="tir.Ramp"):
    """The vector base, base + stride, ..."""

    __slots__ = ()

    def __init__(self, base, stride, lanes, span=None):
        self.__init_handle_by_constructor__(_ffi_api.Ramp, _as_wide(base, stride), _as_wide(stride, base), lanes)


class Broadcast(PrimExpr, key="tir.Broadcast"):
    """A scalar in every lane."""

    __slots__ = ()

    def __init__(self, value, lanes, span=None):
        self.__init_handle_by_constructor__(_ffi_api.Broadcast, value, lanes)


class Shuffle(PrimExpr, key="tir.Shuffle"):
    """Lanes of vectors, picked by number."""

    __slots__ = ()

    def __init__(self, vectors, indices, span=None):
        self.__init_handle_by_constructor__(_ffi_api.Shuffle, list(vectors), [int(i) for i in indices])


class Let(PrimExpr, key="tir.Let"):
    """`let var = value in body`."""

    __slots__ = ()

    def __init__(self, var, value, body, span=None):
        self.__init_handle_by_constructor__(_ffi_api.Let, var, _as_wide(value, var), body)


class Call(PrimExpr, key="tir.Call"):
    """A call of an intrinsic (by name or Op) or of a function of the module."""

    __slots__ = ()

    def __init__(self, dtype, op, args, span=None):
        self.__init_handle_by_constructor__(_ffi_api.Call, dtype, op, list(args))


_TAGS = {}  # handle of a variable -> (the variable, which it keeps alive; its threads)


class IterVar(Object, key="tir.IterVar"):
    """A loop variable of a tensor expression, with its domain. Serves as an expression."""

    __slots__ = ()
    DataPar, ThreadIndex, CommReduce, Ordered, DimInfo, Unrolled, Vectorized, Parallelized, Tensorized = range(9)

    def __init__(self, dom, var, iter_type, thread_tag="", span=None):
        from ..ir import Range

        if isinstance(dom, (list, tuple)):
            dom = Range(*dom)
        super().__init__(dom=dom, var=Var(var) if isinstance(var, str) else var, iter_type=iter_type)
        if thread_tag:
            _TAGS[self.var.handle] = (self.var, str(thread_tag))

    def __str__(self):
        tag = f", {self.thread_tag}" if self.thread_tag else ""
        return f"iter_var({self.var.name}, {self.dom or ''}{tag})"

    __repr__ = __str__

    @property
    def thread_tag(self):
        """The threads that it runs over, as "threadIdx.x"; "" for none."""
        return _TAGS.get(self.var.handle, (None, ""))[1]

    def __getattr__(self, name):
        # Arithmetic on it is that of its variable.
        raise AttributeError(f"`tir.IterVar` has no attribute `{name}`; it has dom, var, iter_type")


def _lend_operators():
    for name in (
        "__add__",
        "__radd__",
        "__sub__",
        "__rsub__",
        "__mul__",
        "__rmul__",
        "__floordiv__",
        "__rfloordiv__",
        "__mod__",
        "__rmod__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__neg__",
        "astype",
        "equal",
    ):

        def method(self, *args, _name=name):
            return getattr(self.var, _name)(*args)

        setattr(IterVar, name, method)


_lend_operators()


class Any(PrimExpr, key="tir.Any"):
    """A dimension that is not known."""

    __slots__ = ()

    def __init__(self, span=None):
        super().__init__(dtype="int64", span=span)


def _of_variable(name):
    def call(self, *others):
        return getattr(self.var, name)(*others)

    call.__name__ = call.__qualname__ = name
    return call


for _name in (
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "floordiv",
    "rfloordiv",
    "mod",
    "rmod",
    "truediv",
    "rtruediv",
    "pow",
    "neg",
    "lt",
    "le",
    "gt",
    "ge",
    "lshift",
    "rshift",
    "and",
    "or",
    "xor",
    "invert",
):
    if hasattr(PrimExpr, f"__{_name}__"):
        setattr(IterVar, f"__{_name}__", _of_variable(f"__{_name}__"))


class Reduce(PrimExpr, key="tir.Reduce"):
    """A reduction, at the root of a tensor expression's body."""

    __slots__ = ()

    def __init__(self, combiner=None, src=None, rdom=(), condition=None, value_index=0, init=None, span=None):
        if not isinstance(combiner, CommReducer) or src is None:
            raise TypeError("tir.Reduce needs the field `combiner`, a CommReducer, and `src`, what is combined")
        if init:
            raise ValueError("tir.Reduce: `init` is not there; combine the result with it")
        source = [src] if isinstance(src, PrimExpr) else list(src)
        super().__init__(
            dtype=source[int(value_index)].dtype,
            combiner=combiner,
            source=source,
            axis=list(rdom),
            condition=IntImm("bool", 1) if condition is None or condition is True else condition,
            value_index=int(value_index),
        )

    @property
    def init(self):
        """No values: what a reduction begins with is combined into its first element."""
        return convert([])


class CommReducer(Object, key="tir.CommReducer"):
    """The combiner of a reduction."""

    __slots__ = ()

    def __init__(self, lhs, rhs, result, identity_element, span=None):
        super().__init__(lhs=list(lhs), rhs=list(rhs), result=list(result), identity_element=list(identity_element))

    def __repr__(self):
        parts = ", ".join(f"{name}={list(getattr(self, name))}" for name in ("result", "lhs", "rhs", "identity_element"))
        return f"comm_reducer({parts})"

    __str__ = __repr__

    def __call__(self, lhs, rhs):
        """The combination of two lists of values."""
        values = dict(zip([*self.lhs, *self.rhs], [*lhs, *rhs], strict=True))
        return convert([_ffi_api.Substitute(e, values) for e in self.result])


class ProducerLoad(PrimExpr, key="tir.ProducerLoad"):
    """An element of a tensor, as a value."""

    __slots__ = ()

    def __init__(self, producer, indices, span=None):
        super().__init__(dtype=str(producer.dtype), producer=producer, indices=list(indices))


class CallEffectKind:
    """The effects of a call besides its value."""

    ExprAnnotation, Pure, ReadState, UpdateState, SpecialCallArg, EmbedInfo, ControlJump = range(7)
    Opaque = UpdateState


__all__ = [
    "Add",
    "And",
    "Any",
    "BinaryOpExpr",
    "Broadcast",
    "BufferLoad",
    "Call",
    "CallEffectKind",
    "Cast",
    "CommReducer",
    "ConstExpr",
    "Div",
    "EQ",
    "EqualOp",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "GE",
    "GT",
    "IntImm",
    "IterVar",
    "LE",
    "LT",
    "Let",
    "Load",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "NE",
    "Not",
    "NotEqualOp",
    "Or",
    "PrimExpr",
    "ProducerLoad",
    "Ramp",
    "Reduce",
    "Select",
    "Shuffle",
    "SizeVar",
    "StringImm",
    "Sub",
    "Var",
]
