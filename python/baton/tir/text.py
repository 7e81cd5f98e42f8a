# SPDX-License-Identifier: Apache-2.0
"""The text of expressions, as `str` gives it."""

from .._ffi import get_global_func

_MOST_NODES = 20_000  # of expressions that are written here; others are written by C++, which shares what occurs often
_INFIX = {"Add": " + ", "Sub": " - ", "Mul": "*", "Div": "/", "Mod": " % ", "EQ": " == ", "NE": " != ", "LT": " < ", "LE": " <= ", "GT": " > ", "GE": " >= ",
          "And": " && ", "Or": " || "}  # fmt: skip
_FUNCTIONS = {"Min": "min", "Max": "max", "FloorDiv": "floordiv", "FloorMod": "floormod"}


def text(expr):
    """The text of an expression."""
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
            done[node.handle] = _one(node, [done[p.handle] for p in parts])
            if len(done[node.handle]) > 50 * _MOST_NODES:
                return get_global_func("tir.AsText")(expr)
    return done[expr.handle]


def _one(e, parts):
    """The text of a node of these parts' texts, which stand in the order of fields."""
    kind = e.type_key.rpartition(".")[2]
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
    return f"reduce(combiner={e.combiner}, source=[{', '.join(parts[:n])}], init=[], axis=[{', '.join(axes)}], where={parts[n]}, value_index={e.value_index})"


_WRITERS = {
    "Var": lambda e, parts: str(e.name_hint),
    "SizeVar": lambda e, parts: str(e.name_hint),
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

__all__ = ["text"]
