# SPDX-License-Identifier: Apache-2.0
"""Systems of linear equations and inequalities over integers, compared with all values tried."""

import itertools
import random

import pytest

import baton as tvm
from baton import arith, te, tir

X, Y, Z = te.var("x"), te.var("y"), te.var("z")


def value(expr, of):
    """An expression as a number, its variables having values."""
    found = arith.Analyzer().simplify(tir.stmt_functor.substitute(expr, {k: tir.const(v, str(k.dtype)) for k, v in of.items()}))
    return found.value


def test_one_solution():
    solution = arith.solve_linear_equations([X + Y == 20, X - Y == 10], [X, Y])
    assert list(solution.dst.variables) == [] and list(solution.dst.relations) == []
    assert value(solution.src_to_dst[X], {}) == 15 and value(solution.src_to_dst[Y], {}) == 5


def test_one_solution_in_another_variable():
    solution = arith.solve_linear_equations(X * 3 == Z * 6 + 3, [X])
    assert value(solution.src_to_dst[X], {Z: 4}) == 9 and list(solution.dst.relations) == []
    solution = arith.solve_linear_equations(X * 2 == Z, [X])
    (condition,) = solution.dst.relations
    assert value(condition, {Z: 4}) == 1 and value(condition, {Z: 5}) == 0


def test_solutions_in_a_free_variable():
    solution = arith.solve_linear_equations([X + Y == 20], [X, Y], {X: tvm.ir.Range(0, 7)})
    (n,) = solution.dst.variables
    for at in range(-5, 5):
        x, y = (value(solution.src_to_dst[v], {n: at}) for v in (X, Y))
        assert x + y == 20 and value(solution.dst_to_src[n], {X: x, Y: y}) == at


@pytest.mark.parametrize("equations", [[X + Y == 1, X + Y == 2], [X * 2 == 3], [X * 0 + Y * 2 == Y * 2 + 5]])
def test_no_solution(equations):
    relations = arith.solve_linear_equations(equations, [X, Y]).dst.relations
    assert any(getattr(e, "value", None) == 0 for e in relations)


@pytest.mark.parametrize("seed", range(12))
def test_systems(seed):
    generator = random.Random(seed)
    variables = [te.var(f"v{i}") for i in range(generator.randint(1, 4))]
    hidden = [generator.randint(-5, 5) for _ in variables]
    equations = []
    for _ in range(generator.randint(1, 4)):
        factors = [generator.randint(-3, 3) for _ in variables]
        left = tir.const(0, "int64")
        for f, v in zip(factors, variables, strict=True):
            left = left + v * f
        equations.append(tir.EQ(left, tir.const(sum(f * h for f, h in zip(factors, hidden, strict=True)), "int64")))
    solution = arith.solve_linear_equations(equations, variables)
    assert not any(getattr(e, "value", None) == 0 for e in solution.dst.relations)
    at = {n: value(solution.dst_to_src[n], dict(zip(variables, hidden, strict=True))) for n in solution.dst.variables}
    assert [value(solution.src_to_dst[v], at) for v in variables] == hidden
    other = {n: generator.randint(-9, 9) for n in solution.dst.variables}
    there = {v: tir.const(value(solution.src_to_dst[v], other), "int64") for v in variables}
    for e in equations:
        assert arith.Analyzer().simplify(tir.stmt_functor.substitute(e, there)).value == 1


def test_inequalities():
    solution = arith.solve_linear_inequalities([X >= 2, X <= 10 - Y, Y >= 0, Y < 4], [X, Y])
    x, y = solution.ranges[X], solution.ranges[Y]
    assert value(x.min, {}) == 2 and value(x.extent, {Y: 3}) == 6 and (y.min.value, y.extent.value) == (0, 4)
    assert list(solution.relations) == []
    assert any(e.value == 0 for e in arith.solve_linear_inequalities([X >= 5, X <= 4], [X]).relations)
    bounds = arith.IntGroupBounds.from_range(tvm.ir.Range(3, 9))
    assert (bounds.lower[0].value, bounds.upper[0].value, bounds.coef.value) == (3, 8, 1)
    assert bounds.find_best_range().extent.value == 6


@pytest.mark.parametrize("seed", range(8))
def test_inequalities_hold_where_their_ranges_say(seed):
    generator = random.Random(seed)
    variables = [te.var("a"), te.var("b")]
    relations, plain = [], []
    for _ in range(3):
        p, q, r = generator.choice([-2, -1, 1, 2]), generator.choice([-2, -1, 1, 2]), generator.randint(-6, 12)
        relations.append(variables[0] * p + variables[1] * q <= r)
        plain.append((p, q, r))
    ranges = {v: tvm.ir.Range(-5, 6) for v in variables}
    solution = arith.solve_linear_inequalities(relations, variables, ranges)
    true = [(a, b) for a, b in itertools.product(range(-5, 6), repeat=2) if all(p * a + q * b <= r for p, q, r in plain)]
    if any(getattr(e, "value", None) == 0 for e in solution.relations):
        assert not true
        return
    inner, outer = solution.ranges[variables[0]], solution.ranges[variables[1]]
    found = []
    for b in range(value(outer.min, {}), value(outer.min, {}) + value(outer.extent, {})):
        low = value(inner.min, {variables[1]: b})
        found += [(a, b) for a in range(low, low + value(inner.extent, {variables[1]: b}))]
    assert sorted(found) == true


def test_variables_that_begin_at_zero():
    made = arith.solve_linear_inequalities([X >= 2, X < 6, Y >= X, Y <= X + 2], [Y, X], deskew_range=True)
    ranges = [(made.dst.ranges[v].min.value, made.dst.ranges[v].extent.value) for v in made.dst.variables]
    assert sorted(ranges) == [(0, 3), (0, 4)]
    for at in itertools.product(range(4), range(3)):
        of = {v: n for v in made.dst.variables for n in at if made.dst.ranges[v].extent.value == 4 and n == at[0]}
        of |= {v: at[1] for v in made.dst.variables if made.dst.ranges[v].extent.value == 3}
        x, y = value(made.src_to_dst[X], of), value(made.src_to_dst[Y], of)
        assert 2 <= x < 6 and x <= y <= x + 2
