# SPDX-License-Identifier: Apache-2.0
"""Why calls of a program are not in a region for another compiler: which of its patterns nearly matched, and at which part each failed."""

from ..ir import GlobalVar, Op
from .analysis import post_order_visit
from .dataflow_pattern import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    ExprPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
)
from .expr import Call, Constant, Tuple, TupleGetItem, Var
from .function import Function
from .op.contrib.register import get_pattern_table
from .op.op import get as get_op
from .op.op import list_op_names
from .transform import InferType, MergeComposite


def takes_nothing(compiler):
    """Whether nothing says of any operator that a compiler takes it: neither a table of patterns nor an attribute `target.NAME`."""
    return not get_pattern_table(compiler) and not any(get_op(n).has_attr(f"target.{compiler}") for n in list_op_names())


def left_out(mod, compiler, table=None):
    """Rows for the calls of operators that a compiler does not take: `function`, `place`, `expression`, `compiler` and `because`.

    `table` has the compiler's patterns as MergeComposite takes them; without it those registered for its name are asked. Calls in regions,
    and in functions that are for a compiler, have no row. A pattern whose last operator is not the call's says nothing of it.
    """
    table = [(*row, None)[:3] for row in (get_pattern_table(compiler) if table is None else table) or ()]
    mod = InferType()(mod)
    if table:
        mod = InferType()(MergeComposite([(n, p, c) if c else (n, p) for n, p, c in table])(mod))
    rows = []
    for v, func in mod.functions.items():
        if isinstance(func, Function) and not (func.attrs and "Compiler" in func.attrs.keys()):
            rows += [_row(v, call, compiler, why) for call in _calls(func) if (why := why_left_out(call, compiler, table))]
    return rows


def why_left_out(call, compiler, table):
    """Why a call with inferred types is in no region for a compiler; "" where it is taken."""
    name = str(call.op.name)
    says = call.op.get_attr(f"target.{compiler}") if call.op.has_attr(f"target.{compiler}") else None
    if says is not None and says(call):
        return ""
    why = [text for row in table if (text := _why_no_composite(call, *row))]
    if says is not None:
        types = ", ".join(str(a.checked_type) for a in call.args)
        why.append(f"its attribute `target.{compiler}` says no for ({types})")
    elif not why:
        why.append(f"no pattern of `{compiler}` ends in `{name}`, and the operator has no attribute `target.{compiler}`")
    return "; ".join(why)


def _row(function, call, compiler, why):
    span = call.span
    place = f"{span.source_name.name}:{span.line}:{span.column}" if span is not None else ""
    return {"function": str(function.name_hint), "place": place, "expression": str(call.op.name), "compiler": compiler, "because": why}


def _calls(func):
    """Calls of operators in a function, in order, without those in composites and in regions that are functions within."""
    found, within = [], set()

    def visit(e):
        if isinstance(e, Function) and e.attrs and ("Composite" in e.attrs.keys() or "Compiler" in e.attrs.keys()):
            post_order_visit(e.body, within.add)
        elif isinstance(e, Call) and isinstance(e.op, Op) and not str(e.op.name).startswith("annotation.compiler_"):
            found.append(e)

    post_order_visit(func.body, visit)
    return [c for c in found if c not in within]


def _why_no_composite(call, name, pattern, check):
    """Why a row of a table does not take a call that its pattern could end in; "" for a pattern that ends in something else."""
    score, text = mismatch(pattern, call)
    if text is None:
        if check is not None and not check(call):
            return f"pattern `{name}` matches, and its check says no"
        return f"pattern `{name}` matches, and a value inside of it is used outside of it, or is part of an earlier match"
    return f"pattern `{name}`: {text}" if score else ""


def mismatch(pattern, expr, where="it"):
    """(number of the pattern's calls whose operators match, the first part that does not match as a text, None where all does)."""
    explain = _EXPLAIN.get(type(pattern))
    if explain is None:  # functions, lets, ifs, dominators: as a whole
        return 0, None if pattern.match(expr) else f"{where} is {_seen(expr)}, which `{pattern}` does not match"
    return explain(pattern, expr, where)


def _call(pattern, expr, where):
    if not isinstance(expr, Call) or not pattern.op.match(expr.op):
        return 0, f"{where} is {_seen(expr)}, where {_wanted(pattern)} is wanted"
    if pattern.args is None:
        return 1, None
    args, name = list(expr.args), _seen(expr)
    if len(pattern.args) != len(args):
        return 1, f"{name} has {len(args)} arguments, where {len(pattern.args)} are wanted"
    tries = [_parts(pattern.args, args, [f"argument {i} of {name}" for i in range(len(args))])]
    if tries[0][1] is not None and len(args) == 2 and _commutes(pattern.op, expr):
        tries.append(_parts(pattern.args, args[::-1], [f"argument {i} of {name}" for i in (1, 0)]))
    score, text = next((t for t in tries if t[1] is None), None) or max(tries, key=lambda t: t[0])
    if text is None and not pattern.match(expr):
        return 1 + score, f"parts of {name} differ that are one value in the pattern"
    return 1 + score, text


def _commutes(op, call):
    """Whether patterns of an operator match the arguments of its call in both orders: the matcher tells."""
    return CallPattern(op, [ExprPattern(a) for a in reversed(list(call.args))]).match(call)


def _parts(patterns, exprs, places):
    """The score of all parts, and the mismatch of the first."""
    found = [mismatch(p, e, where) for p, e, where in zip(patterns, exprs, places, strict=True)]
    return sum(score for score, _ in found), next((text for _, text in found if text is not None), None)


def _tuple(pattern, expr, where):
    if not isinstance(expr, Tuple):
        return 0, f"{where} is {_seen(expr)}, where a tuple is wanted"
    if pattern.fields is None:
        return 0, None
    if len(pattern.fields) != len(expr.fields):
        return 0, f"{where} has {len(expr.fields)} fields, where {len(pattern.fields)} are wanted"
    return _parts(pattern.fields, expr.fields, [f"field {i} of {where}" for i in range(len(expr.fields))])


def _item(pattern, expr, where):
    if not isinstance(expr, TupleGetItem):
        return 0, f"{where} is {_seen(expr)}, where a field of a tuple is wanted"
    if pattern.index not in (-1, expr.index):
        return 0, f"{where} is field {expr.index}, where field {pattern.index} is wanted"
    return mismatch(pattern.tuple, expr.tuple, f"the tuple of {where}")


def _either(pattern, expr, where):
    tries = [mismatch(p, expr, where) for p in (pattern.left, pattern.right)]
    found = next((t for t in tries if t[1] is None), None)
    if found:
        return found
    if tries[0][0] == tries[1][0] == 0:
        return 0, f"{where} is {_seen(expr)}, where {_wanted(pattern)} is wanted"
    return max(tries, key=lambda t: t[0])


def _attributes(pattern, expr, where):
    score, text = mismatch(pattern.pattern, expr, where)
    if text is not None:
        return score, text
    for key, value in pattern.attrs.items():
        if not AttrPattern(pattern.pattern, {str(key): value}).match(expr):
            attrs = expr.attrs if isinstance(expr, (Call, Function)) else None
            has = attrs is not None and str(key) in [str(k) for k in attrs.keys()]
            seen = f"is {_plain(attrs[str(key)])}" if has else "is not there"
            return score, f"attribute `{key}` of {_seen(expr)} {seen}, where {_plain(value)} is wanted"
    return score, None


def _typed(pattern, expr, where):
    score, text = mismatch(pattern.pattern, expr, where)
    if text is not None or pattern.match(expr):
        return score, text
    wanted = pattern.type if isinstance(pattern, TypePattern) else pattern.dtype if isinstance(pattern, DataTypePattern) else f"shape {_plain(pattern.shape)}"
    return score, f"{where} has type {expr.checked_type}, where {wanted} is wanted"


def _leaf(pattern, expr, where):
    if pattern.match(expr):
        return 0, None
    return 0, f"{where} is {_seen(expr)}, where {_wanted(pattern)} is wanted"


_EXPLAIN = {
    CallPattern: _call,
    TuplePattern: _tuple,
    TupleGetItemPattern: _item,
    AltPattern: _either,
    AttrPattern: _attributes,
    TypePattern: _typed,
    DataTypePattern: _typed,
    ShapePattern: _typed,
    WildcardPattern: lambda pattern, expr, where: (0, None),
    ConstantPattern: _leaf,
    VarPattern: _leaf,
    ExprPattern: _leaf,
}


def _plain(value):
    return str(list(value)) if type(value).__name__ == "Array" else str(value)


def _seen(expr):
    """An expression in few words."""
    if isinstance(expr, Call):
        return _callee(expr.op)
    if isinstance(expr, Var):
        return f"the variable `%{expr.name_hint}`"
    known = {Constant: "a constant", Tuple: "a tuple", TupleGetItem: "a field of a tuple", Function: "a function", Op: "an operator"}
    return known.get(type(expr), f"an expression of kind {type(expr).__name__}")


def _callee(op):
    if isinstance(op, Op):
        return f"`{op.name}`"
    if isinstance(op, GlobalVar):
        return f"a call of `@{op.name_hint}`"
    composite = op.attrs["Composite"] if isinstance(op, Function) and op.attrs and "Composite" in op.attrs.keys() else None
    return f"the composite `{composite}`" if composite is not None else "a call of a function"


def _wanted(pattern):
    """A pattern in few words."""
    if isinstance(pattern, AltPattern):
        return f"{_wanted(pattern.left)} or {_wanted(pattern.right)}"
    if isinstance(pattern, CallPattern):
        op = pattern.op.expr if isinstance(pattern.op, ExprPattern) else None
        return _callee(op) if op is not None else "a call"
    if isinstance(pattern, (AttrPattern, TypePattern, DataTypePattern, ShapePattern)):
        return _wanted(pattern.pattern)
    if isinstance(pattern, VarPattern):
        return f"the variable `%{pattern.name}`" if pattern.name else "a variable"
    if isinstance(pattern, ExprPattern):
        return f"`{str(pattern.expr).strip().splitlines()[-1]}`"
    return {ConstantPattern: "a constant", TuplePattern: "a tuple", TupleGetItemPattern: "a field of a tuple"}.get(type(pattern), "another expression")


__all__ = ["left_out", "mismatch", "takes_nothing", "why_left_out"]
