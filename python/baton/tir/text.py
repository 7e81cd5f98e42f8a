# SPDX-License-Identifier: Apache-2.0
"""The text of expressions, as `str` gives it."""

import re

from .._ffi import get_global_func

_MOST_NODES = 20_000  # of expressions that are written here; others are written by C++, which shares what occurs often
_INFIX = {"Add": " + ", "Sub": " - ", "Mul": "*", "Div": "/", "Mod": " % ", "EQ": " == ", "NE": " != ", "LT": " < ", "LE": " <= ", "GT": " > ", "GE": " >= ",
          "And": " && ", "Or": " || "}  # fmt: skip
_VARIABLES = ("Var", "SizeVar")
_FUNCTIONS = {"Min": "min", "Max": "max", "FloorDiv": "floordiv", "FloorMod": "floormod"}


def annotated(expr):
    """The text of an expression. In those of operators a variable has its dtype where it first occurs: `(x: int32 < (x + 1))`; a variable alone is
    its name, and calls and casts stay as `text` writes them."""
    if _kind(expr) not in _WITH_DTYPES:
        return text(expr)
    seen = set()

    def name(mark):
        dtype = "" if mark[2] in seen else f": {mark[3]}"
        seen.add(mark[2])
        return mark[1] + dtype

    return re.sub("\x01(.*?)\x02(.*?)\x02(.*?)\x01", name, text(expr, lambda e: f"\x01{e.name_hint}\x02{e.handle}\x02{e.dtype}\x01"))


def text(expr, variable=lambda e: str(e.name_hint)):
    """The text of an expression; `variable` gives that of a variable."""
    from ..ir import PrimExpr
    from .stmt_functor import _parts

    done, stack, count = {}, [(expr, None)], 0
    while stack:
        node, parts = stack.pop()
        if node.handle in done:
            continue
        if parts is None:
            count += 1
            if count > _MOST_NODES:
                return get_global_func("tir.AsText")(expr)
            parts = [p for p in _parts(node) if isinstance(p, PrimExpr)]
            stack.append((node, parts))
            stack += [(p, None) for p in parts]
        else:
            done[node.handle] = variable(node) if _kind(node) in _VARIABLES else _one(node, [done[p.handle] for p in parts])
            if len(done[node.handle]) > 50 * _MOST_NODES:
                return get_global_func("tir.AsText")(expr)
    return done[expr.handle]


def _kind(e):
    return e.type_key.rpartition(".")[2]


def _one(e, parts):
    """The text of a node of these parts' texts, in the order of fields."""
    kind = _kind(e)
    if kind in _INFIX:
        return f"({parts[0]}{_INFIX[kind]}{parts[1]})"
    if kind in _FUNCTIONS:
        return f"{_FUNCTIONS[kind]}({parts[0]}, {parts[1]})"
    write = _WRITERS.get(kind)
    return write(e, parts) if write else str(get_global_func("tir.AsText")(e))


def _int(e, parts):
    dtype = str(e.dtype)
    return str(e.value) if dtype in ("int32", "int64") else f"({dtype}){int(e.value)}"


def _float(e, parts):
    return f"{e.value:g}" + {"float32": "f", "float16": "h"}.get(str(e.dtype), "")


def _call(e, parts):
    name = getattr(e.op, "name", None) or "@" + str(e.op.name_hint)
    return f"{name}({', '.join(parts)})"


def _reduce(e, parts):
    axes, n = [str(a) for a in e.axis], len(e.source)
    where = parts[n] if len(parts) > n else "(bool)1"
    return f"reduce(combiner={e.combiner}, source=[{', '.join(parts[:n])}], init=[], axis=[{', '.join(axes)}], where={where}, value_index={e.value_index})"


_WRITERS = {
    "IntImm": _int,
    "FloatImm": _float,
    "StringImm": lambda e, parts: '"' + str(e.value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"',
    "Cast": lambda e, parts: f"{e.dtype}({parts[0]})",
    "Not": lambda e, parts: f"!{parts[0]}",
    "Select": lambda e, parts: f"select({', '.join(parts)})",
    "Ramp": lambda e, parts: f"ramp({parts[0]}, {parts[1]}, {e.lanes})",
    "Broadcast": lambda e, parts: f"x{e.lanes}({parts[0]})",
    "Let": lambda e, parts: f"(let {parts[0]} = {parts[1]} in {parts[2]})",
    "BufferLoad": lambda e, parts: f"{e.buffer.name}[{', '.join(parts)}]",
    "ProducerLoad": lambda e, parts: f"{e.producer.op.name}[{', '.join(parts)}]",
    "Any": lambda e, parts: "?",
    "Call": _call,
    "Reduce": _reduce,
}

_WITH_DTYPES = {*_INFIX, *_FUNCTIONS, "Not", "Select", "Ramp"}

__all__ = ["annotated", "text"]
