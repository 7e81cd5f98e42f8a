# SPDX-License-Identifier: Apache-2.0
"""A quantized @main in three functions: floats to integers, the network on integers, integers to floats."""

from ... import error as errors
from ...ir import GlobalVar, IRModule, Op, TensorType
from ...ir.transform import PassContext
from ...relay.analysis import post_order_visit
from ...relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from ...relay.expr_functor import ExprMutator
from ...relay.function import Function
from ...relay.transform import InferType

PREFIX, MIDDLE, SUFFIX = "quantize_inputs", "quantized_main", "dequantize_outputs"
# Operators of conversions: factors, offsets, rounding, bounds.
_CONVERSIONS = frozenset(["add", "subtract", "multiply", "divide", "round", "clip", "cast", "right_shift", "left_shift", "fixed_point_multiply"])


class NotIntegral(errors.CompileError, AssertionError):
    """A quantized network has operators between its conversions, or before or behind them, that compute on floats."""


def _children(expr):
    if isinstance(expr, Call):
        return [e for e in (expr.op, *expr.args) if not isinstance(e, (Op, GlobalVar))]
    if isinstance(expr, Tuple):
        return list(expr.fields)
    return [expr.tuple_value] if isinstance(expr, TupleGetItem) else []


def _is_float(expr):
    kind = expr.checked_type
    return isinstance(kind, TensorType) and str(kind.dtype).startswith(("float", "bfloat"))


def _is_integer(expr):
    kind = expr.checked_type
    return isinstance(kind, TensorType) and str(kind.dtype).startswith(("int", "uint"))


class _Cut(ExprMutator):
    """An expression with others in the place of some of its parts."""

    def __init__(self, parts):
        super().__init__()
        self.memo_map.update(parts)


class _Sections:
    """Which section of @main each expression belongs to."""

    def __init__(self, func):
        self.order, self.users = [], {}
        post_order_visit(func.body, self.order.append)
        self.order = [e for e in self.order if not isinstance(e, (Op, GlobalVar, Constant))]
        for e in self.order:
            for c in _children(e):
                self.users.setdefault(c, []).append(e)
        self.before = self._before(func.params)
        self.behind = self._behind()

    def _before(self, params):
        """Floats that depend on no integers, and the integers that they are cast to; parameters."""
        found = set(params)
        for e in self.order:
            children = [c for c in _children(e) if not isinstance(c, Constant)]
            if isinstance(e, Call) and children and all(c in found and (_is_float(c) or isinstance(c, Var)) for c in children):
                found.add(e)
        return found

    def _behind(self):
        """Floats and tuples that no integers depend on, other than those before."""
        found = set()
        for e in reversed(self.order):
            plain = isinstance(e, (Tuple, TupleGetItem)) or (isinstance(e, Call) and isinstance(e.op, Op))
            if plain and e not in self.before and not _is_integer(e) and all(u in found for u in self.users.get(e, ())):
                found.add(e)
        return found

    def read(self, section, outside, result):
        """Expressions of a section that are read outside, in order; `result` is read in any case."""
        return [e for e in self.order if section(e) and (e.same_as(result) or any(map(outside, self.users.get(e, ()))))]


def _check(sections):
    """Raises NotIntegral where floats are computed outside of conversions."""
    calls = [e for e in sections.order if isinstance(e, Call)]
    wrong = [
        c.op.name if isinstance(c.op, Op) else "a function"
        for c in calls
        if not (isinstance(c.op, Op) and (c.op.name in _CONVERSIONS if c in sections.before or c in sections.behind else not _computes_floats(c)))
    ]
    if wrong:
        raise NotIntegral(f"quantize: partition_conversions is \"fully_integral\", and these compute on floats: {', '.join(sorted(set(wrong)))}")


def _computes_floats(call):
    return _is_float(call) or any(_is_float(a) and not isinstance(a, Constant) for a in call.args)


def _variables(prefix, exprs):
    return [Var(e.name_hint if isinstance(e, Var) else f"{prefix}{i}", e.checked_type) for i, e in enumerate(exprs)]


def _together(exprs):
    return exprs[0] if len(exprs) == 1 else Tuple(exprs)


def _apart(call, count):
    return [call] if count == 1 else [TupleGetItem(call, i) for i in range(count)]


def partition_conversions(mod, fully_integral=False):
    """The module with @quantize_inputs, @quantized_main and @dequantize_outputs, which @main calls one after the other.

    fully_integral: raises an error where something else than conversions computes on floats."""
    func = mod["main"]
    sections = _Sections(func)
    if fully_integral:
        _check(sections)
    before, behind = sections.before.__contains__, sections.behind.__contains__
    result = None if behind(func.body) else func.body
    # Values that cross the two borders; one that is read behind both goes through the middle as it is.
    first = sections.read(before, lambda e: not before(e), result)
    second = sections.read(lambda e: not behind(e), behind, result)
    inner, outer = _variables("q", first), _variables("r", second)
    middle = _Cut(dict(zip(first, inner, strict=True)))
    made = IRModule(dict(mod.functions.items()), dict(mod.type_definitions.items()))
    made[PREFIX] = Function(func.params, _together(first))
    made[MIDDLE] = Function(inner, _together([middle.visit(e) for e in second]))
    made[SUFFIX] = Function(outer, _Cut(dict(zip(second, outer, strict=True))).visit(func.body))
    params = _variables("", func.params)
    quantized = _apart(Call(made.get_global_var(PREFIX), params), len(first))
    computed = _apart(Call(made.get_global_var(MIDDLE), quantized), len(second))
    made["main"] = Function(params, Call(made.get_global_var(SUFFIX), computed))
    with PassContext(opt_level=3):
        return InferType()(made)


__all__ = ["NotIntegral", "partition_conversions"]
