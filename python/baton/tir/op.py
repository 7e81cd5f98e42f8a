# SPDX-License-Identifier: Apache-2.0
"""Building expressions: operators that fold literals, and intrinsics."""

import builtins
import functools
import inspect

from .._ffi import get_global_func, register_func
from . import _ffi_api


def _api(name):
    return get_global_func("tir.op." + name)


def arithmetic(name, *operands):
    """An operator of this module by name, on expressions and numbers; called by Python's operators on expressions."""
    return _api(name)(*operands)


def const(value, dtype=None, span=None):
    """A literal. Without a dtype an int is int32 (int64 where it does not fit), a float float32, a bool bool."""
    if dtype is None:
        whole = "int32" if isinstance(value, int) and -(2**31) <= value < 2**31 else "int64"
        dtype = "bool" if isinstance(value, bool) else whole if isinstance(value, int) else "float32"
    return _ffi_api.const(value, str(dtype))


def convert(expr):
    """A number as a literal; an expression stays."""
    return const(expr) if isinstance(expr, (bool, int, float)) else expr


def _literals(args):
    """Arguments of which all are numbers, as literals: beside an expression a number takes its dtype."""
    return [convert(a) for a in args] if builtins.all(isinstance(a, (bool, int, float)) for a in args) else args


@functools.cache
def _signature(*parameters):
    kinds = inspect.Parameter
    return inspect.Signature([*(kinds(p, kinds.POSITIONAL_OR_KEYWORD) for p in parameters), kinds("span", kinds.POSITIONAL_OR_KEYWORD, default=None)])


def _function(name, parameters):
    """A function of this module that makes a call, from its name and the names of its parameters."""
    signature = _signature(*parameters)

    def call(*args, **kwargs):
        if kwargs or len(args) != len(parameters):
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError as e:
                raise TypeError(f"tir.{name} takes {', '.join(parameters)}: {e}") from None
            args = [given[p] for p in parameters]
        return _api(name)(*_literals(args))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{name}({', '.join(parameters)}), literals folded."
    call.__module__ = __name__
    call.__signature__ = signature
    return call


_INT_BINARY = "truncdiv truncmod floordiv floormod ceildiv".split()
_INTRINSICS = {str(name): [str(p) for p in parameters] for name, *parameters in _ffi_api.IntrinFunctions()}  # rows of src/tir/intrin
globals().update({name: _function(name, parameters) for name, parameters in _INTRINSICS.items()})
globals().update({name: _function(name, ["a", "b"]) for name in _INT_BINARY})
_LIBM = "hypot copysign nextafter".split()


def power(x, y, span=None):
    """x to the power of y."""
    return _api("pow")(*_literals([x, y]))


pow = power  # noqa: A001


def div(a, b, span=None):
    """a / b; integers truncate, as in C."""
    from .expr import PrimExpr

    a, b = convert(a), convert(b)
    whole = isinstance(a, PrimExpr) and a.dtype.startswith(("int", "uint"))
    return _api("truncdiv" if whole else "div")(a, b)


def exp10(x):
    """10 to the power of x."""
    return power(const(10.0, x.dtype), x)


def ldexp(x1, x2):
    """x1 times 2 to the power of the integer x2."""
    return convert(x1) * globals()["exp2"](cast(x1.dtype, x2))


def _of_libm(name):
    def call(x1, x2):
        x1, x2 = convert(x1), convert(x2)
        if x1.dtype not in ("float32", "float64"):
            raise TypeError(f"tir.{name} takes float32 or float64, got {x1.dtype}")
        return call_pure_extern(x1.dtype, name + ("f" if x1.dtype == "float32" else ""), x1, x2)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{name}(x1, x2) of the C library."
    return call


globals().update({name: _of_libm(name) for name in _LIBM})


def clz(x):
    """How many leading bits are zero, as int32."""
    from .expr import Let, Var

    x = convert(x)
    bits = int("".join(c for c in x.dtype if c.isdigit()))
    value, step, steps = cast(f"uint{bits}", x), 1, []
    while step < bits:
        var = Var(f"clz{step}", value.dtype)
        steps.append((var, value))
        value, step = var | (var >> const(step, var.dtype)), step * 2
    result = const(bits, "int32") - cast("int32", globals()["popcount"](value))
    for var, value in reversed(steps):
        result = Let(var, value, result)
    return result


def likely(cond, span=None):
    """A condition that mostly holds. The hint is not used: returns the condition."""
    return convert(cond)


def q_multiply_shift(x, y, q, s):
    """x * y of fixed-point numbers with `q` bits behind the point, times 2 to the power of `s`, rounded half up: int32."""
    shift = int(q) - int(s)
    product = cast("int64", x) * cast("int64", convert(y))
    rounded = product + const(1 << (shift - 1), "int64") if shift > 0 else product
    return cast("int32", rounded >> const(shift, "int64") if shift > 0 else rounded << const(-shift, "int64"))


_LLVM = {
    "ctpop": "popcount",
    "ctlz": "clz",
    "minnum": "min",
    "maxnum": "max",
    "rint": "nearbyint",
    "copysign": "copysign",
    **{name: name for name in _INTRINSICS},
}


def call_llvm_intrin(dtype, name, *args, span=None):
    """An intrinsic of LLVM that this module has a function for, as "llvm.sqrt.f32"; the first argument, how many of them give its
    type, is left out. Raises UnsupportedError for others."""
    from ..error import UnsupportedError

    words = name.split(".")
    short = words[1] if words[0] == "llvm" and len(words) > 1 else name
    values = [convert(a) for a in args[1:]]
    if short in ("fma", "fmuladd"):
        return values[0] * values[1] + values[2]
    if short not in _LLVM:
        raise UnsupportedError(
            f"{name}: tir has functions for what processors compute, as tir.exp, tir.sqrt, tir.popcount; C functions are called by tir.call_extern"
        )
    values = values[:1] if short == "ctlz" else values
    found = globals()[_LLVM[short]](*values)
    return found if found.dtype == str(dtype) else cast(dtype, found)


call_llvm_pure_intrin = call_llvm_intrin


def trace(args, trace_action="tvm.default_trace_action"):
    """Gives the arguments to a registered function when the program computes this. Its result is the value; where it gives None, the last of
    the arguments is."""
    if not isinstance(args, (list, tuple)):
        raise TypeError("trace takes a list of expressions")
    if trace_action == "tvm.default_trace_action" and get_global_func(trace_action, allow_missing=True) is None:
        register_func(trace_action, _print_values)
    values = [convert(a) for a in args]
    return call_intrin(values[-1].dtype, "tir.tvm_call_trace_packed", trace_action, *values)


def _print_values(*values):
    print(list(values))
    return values[-1]


def ret(val, span=None):
    """Leaves the function with a number, which a call of it gives; as a statement: `tir.Evaluate(tir.ret(a + b))`."""
    val = convert(val)
    return call_intrin(val.dtype, "tir.ret", val)


def multiply(lhs, rhs, span=None):
    """lhs * rhs."""
    return _api("mul")(convert(lhs), convert(rhs))


def subtract(lhs, rhs, span=None):
    """lhs - rhs."""
    return _api("sub")(convert(lhs), convert(rhs))


def add(lhs, rhs, span=None):
    """lhs + rhs."""
    return _api("add")(convert(lhs), convert(rhs))


indexdiv, indexmod = globals()["floordiv"], globals()["floormod"]


def min(*args, span=None):  # noqa: A001
    """The smaller of two; over axes, the smallest of a tensor expression's elements: `min(source, axis=k)`."""
    return _api("min")(*_literals(args))


def max(*args, span=None):  # noqa: A001
    """The larger of two."""
    return _api("max")(*_literals(args))


def min_value(dtype, span=None):
    """The least value of a dtype."""
    return _api("min_value")(str(dtype))


def max_value(dtype, span=None):
    """The greatest value of a dtype."""
    return _api("max_value")(str(dtype))


def infinity(dtype, span=None):
    """Infinity of a floating dtype."""
    return const(float("inf"), str(dtype))


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
    return _api("if_then_else")(convert(cond), *_literals([t, f]))


def cast(dtype, value):
    """A value converted to a dtype."""
    return _api("cast")(str(dtype), value)


def reinterpret(dtype, value):
    """The same bits as another dtype."""
    return _api("reinterpret")(str(dtype), value)


def call_global(function, args):
    """A call of a function of the module, by its GlobalVar."""
    from .expr import Call

    return Call("void", function, [convert(a) for a in args])


def call_intrin(dtype, func_name, *args, span=None):
    """A call of an intrinsic by name."""
    from ..ir.op import intrinsic_op
    from .expr import Call, StringImm

    operator = intrinsic_op(func_name) if isinstance(func_name, str) else func_name
    return Call(dtype, operator, [StringImm(a) if isinstance(a, str) else convert(a) for a in args])


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
    text. The value of the call has `dtype`; a value other than a number counts as 0.
    """
    from .expr import StringImm

    def argument(value):
        if getattr(value, "type_key", "") == "tir.Buffer":
            return _api("stack_array")([value.data, const(0, value.dtype), *value.shape])
        return StringImm(value) if isinstance(value, str) else convert(value)

    if not args or not isinstance(args[0], str):
        raise TypeError("call_packed takes the name of a function first")
    return _api("call_packed")(dtype, [StringImm(args[0]), *map(argument, args[1:])])


__all__ = [
    "add",
    "all",
    "any",
    "call_extern",
    "call_intrin",
    "call_llvm_intrin",
    "call_llvm_pure_intrin",
    "call_packed",
    "call_pure_extern",
    "cast",
    "clz",
    "const",
    "convert",
    "div",
    "exp10",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "ldexp",
    "likely",
    "max",
    "max_value",
    "min",
    "min_value",
    "multiply",
    "power",
    "q_multiply_shift",
    "reinterpret",
    "ret",
    "subtract",
    "trace",
    *_INT_BINARY,
    *_INTRINSICS,
    *_LIBM,
]
