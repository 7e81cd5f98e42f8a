# SPDX-License-Identifier: Apache-2.0
"""Systems of linear equations and inequalities over integers."""

import math
from fractions import Fraction

from ..error import UnsupportedError
from ..ir import Range
from ..tir import Var, op
from .analyzer import Analyzer
from .bound import detect_linear_equation


class IntGroupBounds:
    """Known facts of a variable times `coef`: bounds from below (`lower`) and above (`upper`), and values (`equal`), all expressions of
    other variables."""

    def __init__(self, coef, lower, equal, upper):
        self.coef, self.lower, self.equal, self.upper = op.convert(coef), list(lower), list(equal), list(upper)

    @staticmethod
    def from_range(rng):
        """The bounds of a variable in a Range."""
        return IntGroupBounds(1, [rng.min], [], [Analyzer().canonical_simplify(rng.min + rng.extent - 1)])

    def find_best_range(self, ranges=None):
        """The smallest Range that is known; None where a bound is missing."""
        analyzer = Analyzer()
        for var, rng in (ranges or {}).items():
            analyzer.bind(var, rng)
        low, high = [*self.lower, *self.equal], [*self.upper, *self.equal]
        if not low or not high:
            return None
        least, most = low[0], high[0]
        for e in low[1:]:
            least = op.max(least, e)
        for e in high[1:]:
            most = op.min(most, e)
        least, most = op.floordiv(least + (self.coef - 1), self.coef), op.floordiv(most, self.coef)
        return Range.from_min_extent(analyzer.canonical_simplify(least), analyzer.simplify(most - least + 1))


class IntConstraints:
    """Variables, their ranges, and relations that hold between them."""

    def __init__(self, variables, ranges, relations):
        self.variables, self.ranges, self.relations = list(variables), dict(ranges or {}), list(relations)


class IntConstraintsTransform:
    """The same solutions in other variables: `src_to_dst` has a value for each variable of `src`, in variables of `dst`, and `dst_to_src`
    the other way."""

    def __init__(self, src, dst, src_to_dst, dst_to_src):
        self.src, self.dst, self.src_to_dst, self.dst_to_src = src, dst, dict(src_to_dst), dict(dst_to_src)


def _given(equations, variables, ranges):
    if isinstance(equations, IntConstraints):
        return equations
    equations = list(equations) if isinstance(equations, (list, tuple)) or hasattr(equations, "__len__") else [equations]
    relations = [e.asobject() if hasattr(e, "asobject") else e for e in equations]
    return IntConstraints(list(variables or ranges or ()), ranges, relations)


def _numbers(expr, variables):
    """Coefficients of variables and the rest of an expression, or None where the coefficients are not numbers."""
    found = [Analyzer().canonical_simplify(e) for e in detect_linear_equation(expr, variables)]
    if len(found) != len(variables) + 1:
        return None
    values = [getattr(e, "value", None) for e in found[:-1]]
    return None if None in values else ([int(v) for v in values], found[-1])


def _smith(matrix, right):
    """Makes a matrix diagonal by unimodular steps: rows together with the right side, columns together with the inverse pair (v, w)."""
    rows, columns = len(matrix), len(matrix[0]) if matrix else 0
    v = [[int(i == j) for j in range(columns)] for i in range(columns)]  # old = v @ new
    w = [[int(i == j) for j in range(columns)] for i in range(columns)]  # new = w @ old

    def add_column(to, of, times):
        for row in matrix:
            row[to] += times * row[of]
        for row in v:
            row[to] += times * row[of]
        w[of] = [a - times * b for a, b in zip(w[of], w[to], strict=True)]

    def swap_columns(i, j):
        for row in (*matrix, *v):
            row[i], row[j] = row[j], row[i]
        w[i], w[j] = w[j], w[i]

    for step in range(min(rows, columns)):
        while True:
            places = [(abs(matrix[i][j]), i, j) for i in range(step, rows) for j in range(step, columns) if matrix[i][j]]
            if not places:
                return v, w
            _, i, j = min(places)
            matrix[step], matrix[i], right[step], right[i] = matrix[i], matrix[step], right[i], right[step]
            swap_columns(step, j)
            pivot = matrix[step][step]
            for i in range(step + 1, rows):
                times = matrix[i][step] // pivot
                matrix[i] = [a - times * b for a, b in zip(matrix[i], matrix[step], strict=True)]
                right[i] = right[i] - right[step] * times if times else right[i]
            for j in range(step + 1, columns):
                if matrix[step][j] // pivot:
                    add_column(j, step, -(matrix[step][j] // pivot))
            if not any(matrix[i][step] for i in range(step + 1, rows)) and not any(matrix[step][j] for j in range(step + 1, columns)):
                break
    return v, w


def solve_linear_equations(equations, variables=None, ranges=None):
    """The integer solutions of equations, as an IntConstraintsTransform to new variables that are free of each other.

        solution = tvm.arith.solve_linear_equations([x + y == 20, x - y == 10], [x, y])
        solution.src_to_dst[x]    # 15

    Relations of the result are conditions on other variables, and the ranges of `variables` said of the new ones; a relation that is false
    says that there is no solution.
    """
    given, simplify = _given(equations, variables, ranges), Analyzer().canonical_simplify
    variables, rest, matrix, right = given.variables, [], [], []
    for e in given.relations:
        found = _numbers(e.a - e.b, variables) if e.type_key == "tir.EQ" else None
        if found is None:
            rest.append(e)
        else:
            matrix.append(found[0])
            right.append(simplify(found[1] * -1))
    v, w = _smith(matrix, right) if matrix else ([[int(i == j) for j in range(len(variables))] for i in range(len(variables))],) * 2
    values, fresh, relations, back = [], [], [], {}
    for j in range(len(variables)):
        pivot = matrix[j][j] if j < len(matrix) else 0
        if pivot:
            if pivot < 0:
                pivot, right[j] = -pivot, simplify(right[j] * -1)
            relations.append(simplify((right[j] % pivot).equal(0)) if pivot > 1 else op.const(True))
            values.append(simplify(right[j] // pivot))
        else:
            var = Var(f"n{len(fresh)}", str(variables[j].dtype))
            fresh.append(var)
            values.append(var)
            back[var] = simplify(_sum(w[j], variables))
    for i in range(len(variables), len(matrix)):
        relations.append(simplify(right[i].equal(0)))
    relations += [simplify(right[i].equal(0)) for i in range(min(len(matrix), len(variables))) if not matrix[i][i]]
    forward = {var: simplify(_sum(row, values)) for var, row in zip(variables, v, strict=True)}
    new_ranges = {}
    for var, rng in given.ranges.items():
        value = forward.get(var)
        if value is None or var not in variables:
            new_ranges[var] = rng
        elif len(fresh) and any(value.same_as(f) for f in fresh):
            new_ranges[value] = rng
        else:
            relations += [simplify(value >= rng.min), simplify(value < rng.min + rng.extent)]
    from ..tir.stmt_functor import substitute

    relations += [simplify(substitute(e, forward)) for e in rest]
    relations = [e for e in relations if getattr(e, "value", None) != 1]
    false = [e for e in relations if getattr(e, "value", None) == 0]
    dst = IntConstraints(fresh, new_ranges, false[:1] or relations)
    return IntConstraintsTransform(given, dst, forward, back)


def _sum(factors, values):
    total = None
    for factor, value in zip(factors, values, strict=True):
        if factor:
            total = value * factor if total is None else total + value * factor
    return op.const(0, str(values[0].dtype) if values else "int64") if total is None else total


def _at_most(e, variables):
    """Rows (coefficients, rest) of comparisons that say coefficients @ variables + rest <= 0; None for another relation."""
    kind = e.type_key
    if kind == "tir.EQ":
        sides = [(e.a - e.b), (e.b - e.a)]
    elif kind in ("tir.LE", "tir.LT"):
        sides = [e.a - e.b + (1 if kind == "tir.LT" else 0)]
    elif kind in ("tir.GE", "tir.GT"):
        sides = [e.b - e.a + (1 if kind == "tir.GT" else 0)]
    else:
        return None
    rows = [_numbers(s, variables) for s in sides]
    return None if None in rows else rows


def solve_linear_inequalities(equations, variables=None, ranges=None, deskew_range=False):
    """Solves inequalities for each variable, by elimination (Fourier and Motzkin): the bounds of a variable are expressions of those
    behind it in `variables`.

    Gives IntConstraints, whose ranges are those of the variables and whose relations what is left over; with `deskew_range` an
    IntConstraintsTransform to variables that begin at 0.
    """
    given, analyzer = _given(equations, variables, ranges), Analyzer()
    simplify = analyzer.canonical_simplify
    for var, rng in given.ranges.items():
        if var not in given.variables:
            analyzer.bind(var, rng)
    variables, rest, rows = given.variables, [], []
    conditions = list(given.relations)
    conditions += [c for var, rng in given.ranges.items() if var in variables for c in (var >= rng.min, var < rng.min + rng.extent)]
    for e in conditions:
        found = _at_most(e, variables)
        if found is None:
            rest.append(e)
        else:
            rows += found
    bounds = {}
    for j, var in enumerate(variables):
        above, below, others = [r for r in rows if r[0][j] > 0], [r for r in rows if r[0][j] < 0], [r for r in rows if not r[0][j]]
        factor = math.lcm(*(abs(r[0][j]) for r in (*above, *below)), 1)
        if len(others) + len(above) * len(below) > 4096:
            raise UnsupportedError("solve_linear_inequalities: the elimination gives more than 4,096 inequalities")
        # factor * var is at most, or at least, what the others say.
        sides = {}
        for name, some in (("upper", above), ("lower", below)):
            sides[name] = []
            for numbers, e in some:
                times = Fraction(factor, -numbers[j])
                left = [int(n * times) if k != j else 0 for k, n in enumerate(numbers)]
                bound = simplify(_sum(left, variables) + e * int(times))
                if not any(analyzer.can_prove_equal(bound, b) for b in sides[name]):
                    sides[name].append(bound)
        for numbers, e in above:
            for also, f in below:
                p, q = -also[j], numbers[j]
                others.append(([p * a + q * b for a, b in zip(numbers, also, strict=True)], simplify(e * p + f * q)))
        equal = [b for b in sides["lower"] if any(analyzer.can_prove_equal(b, c) for c in sides["upper"])]

        def without(side, equal=equal):
            return [b for b in side if not any(analyzer.can_prove_equal(b, e) for e in equal)]

        bounds[var] = IntGroupBounds(factor, without(sides["lower"]), equal, without(sides["upper"]))
        rows = others
    relations = [simplify(e <= 0) for _, e in rows] + rest
    relations = [e for e in relations if getattr(e, "value", None) != 1]
    found = {var: rng for var in variables if (rng := bounds[var].find_best_range(given.ranges)) is not None}
    result = IntConstraints(variables, {**{v: r for v, r in given.ranges.items() if v not in variables}, **found}, relations)
    result.bounds = bounds
    return _from_zero(given, result, simplify) if deskew_range else result


def _from_zero(given, solved, simplify):
    """The constraints in variables that begin at 0; of one value only, in none."""
    from ..tir.stmt_functor import substitute

    forward, back, fresh, ranges = {}, {}, [], {}
    for var in reversed(solved.variables):
        rng = solved.ranges.get(var)
        if rng is None:
            fresh.append(var)
            forward[var] = back[var] = var
            continue
        low, extent = simplify(substitute(rng.min, forward)), simplify(substitute(rng.extent, forward))
        if getattr(extent, "value", None) == 1:
            forward[var] = low
            continue
        new = Var(var.name + ".shifted", str(var.dtype))
        fresh.insert(0, new)
        ranges[new] = Range.from_min_extent(op.const(0, str(extent.dtype)), extent)
        forward[var], back[new] = simplify(low + new), simplify(var - rng.min)
    relations = [simplify(substitute(e, forward)) for e in solved.relations]
    return IntConstraintsTransform(given, IntConstraints(fresh, ranges, [e for e in relations if getattr(e, "value", None) != 1]), forward, back)


__all__ = [
    "IntConstraints",
    "IntConstraintsTransform",
    "IntGroupBounds",
    "solve_linear_equations",
    "solve_linear_inequalities",
]
