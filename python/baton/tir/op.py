# SPDX-License-Identifier: Apache-2.0
"""Building expressions: operators that fold literals, and intrinsics."""

from .._ffi import get_global_func
from . import _ffi_api


def _api(name):
    return get_global_func("tir.op." + name)


def arithmetic(name, *operands):
    """An operator of this module by name, on expressions and numbers; called by Python's operators on expressions."""
    return _api(name)(*operands)


def text(expr):
    """The text of an expression."""
    return get_global_func("tir.AsText")(expr)


def const(value, dtype=None, span=None):
    """A literal. Without a dtype an int is int64, a float float32, a bool bool."""
    if dtype is None:
        dtype = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
    return _ffi_api.const(value, str(dtype))


def convert(expr):
    """A number as a literal; an expression stays."""
    return const(expr) if isinstance(expr, (bool, int, float)) else expr


def _make(names, arity):
    letters = "abc"[:arity]

    def one(name):
        def call(*args, span=None):
            if len(args) != arity:
                raise TypeError(f"tir.{name} takes {arity} arguments, got {len(args)}")
            return _api(name)(*args)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = f"{name}({', '.join(letters)}), literals folded."
        call.__module__ = __name__
        return call

    return {name: one(name) for name in names}


_UNARY = (
    "exp exp2 log log2 log10 log1p sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh erf floor ceil trunc round "
    "nearbyint fabs isnan isinf isfinite popcount bitwise_not sigmoid abs"
).split()
_BINARY = "truncdiv truncmod floordiv floormod ceildiv fmod atan2 bitwise_and bitwise_or bitwise_xor shift_left shift_right".split()
globals().update(_make(_UNARY, 1))
globals().update(_make(_BINARY, 2))


def power(x, y, span=None):
    """x to the power of y."""
    return _api("pow")(x, y)


pow = power  # noqa: A001


def div(a, b, span=None):
    """a / b; integers truncate, as in C."""
    from .expr import PrimExpr

    a, b = convert(a), convert(b)
    whole = isinstance(a, PrimExpr) and a.dtype.startswith(("int", "uint"))
    return _api("truncdiv" if whole else "div")(a, b)


indexdiv, indexmod = globals()["floordiv"], globals()["floormod"]


def min(*args, span=None):  # noqa: A001
    """The smaller of two; over axes, the smallest of a tensor expression's elements: `min(source, axis=k)`."""
    return _api("min")(*args)


def max(*args, span=None):  # noqa: A001
    """The larger of two."""
    return _api("max")(*args)


def min_value(dtype, span=None):
    """The least value of a dtype."""
    return _api("min_value")(str(dtype))


def max_value(dtype, span=None):
    """The greatest value of a dtype."""
    return _api("max_value")(str(dtype))


def all(*args, span=None):  # noqa: A001
    """Whether every condition holds."""
    return _fold("logical_and", args)


def any(*args, span=None):  # noqa: A001
    """Whether a condition holds."""
    return _fold("logical_or", args)


def _fold(name, args):
    if not args:
        raise ValueError("at least one condition is needed")
    result = args[0]
    for arg in args[1:]:
        result = _api(name)(result, arg)
    return convert(result)


def if_then_else(cond, t, f, span=None):
    """One of two values; only the chosen one is evaluated."""
    return _api("if_then_else")(convert(cond), t, f)


def cast(dtype, value):
    """A value converted to a dtype."""
    return _api("cast")(str(dtype), value)


def reinterpret(dtype, value):
    """The same bits as another dtype."""
    return _api("reinterpret")(str(dtype), value)


def call_intrin(dtype, func_name, *args, span=None):
    """A call of an intrinsic by name."""
    from .expr import Call

    return Call(dtype, func_name, args)


def call_extern(dtype, func_name, *args, span=None):
    """A call of a C function of the process by name."""
    return _api("call_extern")(str(dtype), func_name, list(args))


def call_pure_extern(dtype, func_name, *args, span=None):
    """`call_extern` of a function without effects."""
    return call_extern(dtype, func_name, *args, span=span)


def call_packed(*args, dtype="int32", span=None):
    """A call of a PackedFunc by name: of a module that the built module imports, else one that is registered.

        tir.Evaluate(tir.call_packed("my.print", A, i))

    The function is looked up at the first call and kept. A Buffer arrives as a tensor, an expression as a number, a str as
    text. The value of the call has `dtype`; a value that is no number counts as 0.
    """
    from .buffer import Buffer
    from .expr import StringImm

    def argument(value):
        if isinstance(value, Buffer):
            return _api("stack_array")([value.data, const(0, value.dtype), *value.shape])
        return StringImm(value) if isinstance(value, str) else convert(value)

    if not args or not isinstance(args[0], str):
        raise TypeError("call_packed takes the name of a function first")
    return _api("call_packed")(dtype, [StringImm(args[0]), *map(argument, args[1:])])


__all__ = [
    "all",
    "any",
    "call_extern",
    "call_intrin",
    "call_packed",
    "call_pure_extern",
    "cast",
    "const",
    "convert",
    "div",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "max",
    "max_value",
    "min",
    "min_value",
    "pow",
    "power",
    "reinterpret",
    *_UNARY,
    *_BINARY,
]
