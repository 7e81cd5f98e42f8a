# SPDX-License-Identifier: Apache-2.0
"""Intervals, bounds from conditions and linear forms: each against all values of small domains."""

import itertools
import random

import pytest

import baton as tvm
from baton import arith, te, tir
from baton.arith import IntervalSet

X, Y, Z, N = (te.var(name, "int64") for name in "xyzn")


def number(expr, **values):
    """The value of an expression of numbers."""
    by_name = {"x": X, "y": Y, "z": Z, "n": N}
    done = arith.Analyzer().simplify(
        tir.stmt_functor.substitute(
            tir.convert(expr) if isinstance(expr, int) else expr, {by_name[k]: tir.const(v, by_name[k].dtype) for k, v in values.items()}
        )
    )
    return int(done.value)


def ends(found, **values):
    return (
        None if found.min_value.same_as(arith.int_set.neg_inf()) else number(found.min_value, **values),
        None if found.max_value.same_as(arith.int_set.pos_inf()) else number(found.max_value, **values),
    )


@pytest.mark.parametrize(
    ("expr", "want"),
    [
        (X + Y, (-3, 13)),
        (X - Y, (-3, 13)),
        (X * 3 - 1, (-1, 29)),
        (X * -2, (-20, 0)),
        (X // 3, (0, 3)),
        (X % 4, (0, 3)),
        (tir.Min(X, Y), (-3, 3)),
        (tir.Max(X, Y), (0, 10)),
        (tir.Select(X < 3, X + 1, Y - 1), (-4, 11)),
        (tir.floormod(X + 16, 32), (16, 26)),
        (X * Y, (-30, 30)),
        (tir.if_then_else(X < 3, X, Y), (-3, 10)),
        (tir.truncdiv(Y, 2), (-1, 1)),
        (tir.truncmod(Y, 2), (-1, 1)),
        (X // -3, (-4, 0)),
    ],
    ids=str,
)
def test_sets_of_expressions(expr, want):
    assert ends(arith.Analyzer().int_set(expr, {X: IntervalSet(0, 10), Y: IntervalSet(-3, 3)})) == want


def test_symbolic_and_open_ends():
    a = arith.Analyzer()
    found = a.int_set(X * 2 + N, {X: IntervalSet(N, N + 4)})
    assert [ends(found, n=n) for n in (0, 3)] == [(0, 8), (9, 17)]
    half = a.int_set(X + 1, {X: IntervalSet(3, arith.int_set.pos_inf())})
    assert ends(half) == (4, None) and not half.is_everything() and not half.is_nothing()
    assert a.int_set(X * Y, {X: IntervalSet(0, arith.int_set.pos_inf()), Y: IntervalSet(-1, 1)}).is_everything()
    assert a.int_set(te.exp(X.astype("float32")), {X: IntervalSet(0, 1)}).is_everything()
    empty = IntervalSet(arith.int_set.pos_inf(), arith.int_set.neg_inf())
    assert empty.is_nothing() and a.int_set(X + 1, {X: empty}).is_nothing()
    assert ends(a.int_set(Y + 2, {X: IntervalSet(0, 1)}), y=5) == (7, 7)


def test_points_vectors_and_unions():
    assert ends(arith.IntSet.single_point(7)) == (7, 7)
    assert ends(arith.IntSet.vector(tir.Ramp(3, 2, 4))) == (3, 9) and ends(arith.IntSet.vector(tir.Ramp(3, -2, 4))) == (-3, 3)
    union = arith.int_set.union_lower_bound
    assert ends(union([IntervalSet(0, 3), IntervalSet(4, 7), IntervalSet(20, 30)])) == (0, 7)
    assert ends(union([IntervalSet(0, arith.int_set.pos_inf()), IntervalSet(-2, 1)])) == (-2, None)
    assert union([]).is_nothing()


def random_expr(rng, depth, leaves):
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([*leaves, tir.const(rng.randint(-6, 6), "int64")])
    kind = rng.randrange(9)
    a, b = random_expr(rng, depth - 1, leaves), random_expr(rng, depth - 1, leaves)
    c = rng.choice([1, 2, 3, 5])
    return [
        lambda: a + b,
        lambda: a - b,
        lambda: a * rng.choice([-3, -1, 2, 4]),
        lambda: tir.floordiv(a, c),
        lambda: tir.floormod(a, c),
        lambda: tir.Min(a, b),
        lambda: tir.Max(a, b),
        lambda: tir.Select(a < b, a, b),
        lambda: tir.truncmod(a, c),
    ][kind]()


@pytest.mark.parametrize("seed", range(8))
def test_no_value_is_outside(seed):
    """And some are at the ends, else everything would pass."""
    rng, tight = random.Random(seed), 0
    for _ in range(25):
        expr = random_expr(rng, 3, [X, Y])
        if isinstance(expr, int):
            continue
        (a, b), (c, d) = sorted(rng.sample(range(-5, 6), 2)), sorted(rng.sample(range(-5, 6), 2))
        lo, hi = ends(arith.Analyzer().int_set(expr, {X: IntervalSet(a, b), Y: IntervalSet(c, d)}))
        values = [number(expr, x=x, y=y) for x in range(a, b + 1) for y in range(c, d + 1)]
        assert lo is None or lo <= min(values), (expr, a, b, c, d)
        assert hi is None or hi >= max(values), (expr, a, b, c, d)
        tight += lo == min(values) and hi == max(values)
    assert tight >= 5


@pytest.mark.parametrize(
    ("cond", "want"),
    [
        (X + 3 < 10, (None, 6)),
        (X * 2 >= 7, (4, None)),
        (X * -2 >= 7, (None, -4)),
        (5 - X > 2, (None, 2)),
        (10 <= X, (10, None)),
        (X // 3 <= 2, (None, 8)),
        (X // 3 >= 2, (6, None)),
        (tir.all(X > 2, X * 3 < 20), (3, 6)),
        (X * 2 - 5 < X, (None, 4)),
        (X == 4, (4, 4)),
    ],
    ids=str,
)
def test_bounds_of_a_variable(cond, want):
    assert ends(arith.deduce_bound(X, cond, {}, {})) == want


def test_what_cannot_be_deduced_is_nothing():
    for cond in (X * Y < 3, X % 3 < 2, X * X < 9, Y < 3, X != 2, tir.any(X < 3, X > 7), X * 2 == 3, X + Z < 4):
        relax = {Z: IntervalSet(arith.int_set.neg_inf(), arith.int_set.pos_inf())}
        assert arith.deduce_bound(X, cond, {}, relax).is_nothing(), cond
    assert ends(arith.deduce_bound(X, X * Y < 3, {Y: IntervalSet(1, 4)}, {}), y=2) == (None, 1)


@pytest.mark.parametrize("seed", range(8))
def test_conditions_hold_for_all_that_is_deduced(seed):
    """For each value of the other variables. Where no division rounds, all such values are found."""
    rng, found = random.Random(seed), 0
    for _ in range(25):
        expr = X
        for _ in range(rng.randint(1, 3)):
            other = rng.choice([Y, Y * 2 - 1, tir.const(rng.randint(-5, 5), "int64")])
            expr = rng.choice([expr + other, expr - other, other - expr, expr * rng.choice([-3, -1, 2]), tir.floordiv(expr, rng.choice([2, 3]))])
        bound = rng.choice([tir.const(rng.randint(-9, 9), "int64"), Y + 2])
        cond = rng.choice([expr < bound, expr <= bound, expr > bound, expr >= bound, bound < expr, bound >= expr])
        c, d = sorted(rng.sample(range(-4, 5), 2))
        deduced = arith.deduce_bound(X, cond, {}, {Y: IntervalSet(c, d)})
        holds = {x for x in range(-60, 61) if all(number(cond, x=x, y=y) for y in range(c, d + 1))}
        if deduced.is_nothing():
            continue
        lo, hi = ends(deduced)
        inside = {x for x in range(-60, 61) if (lo is None or x >= lo) and (hi is None or x <= hi)}
        assert inside <= holds, (cond, c, d, lo, hi)
        found += inside == holds
    assert found >= 8


def test_linear_equations():
    assert [number(e, n=5) for e in arith.detect_linear_equation(X * 4 + N * 2 + 7 - Y, [X, Y])] == [4, -1, 17]
    assert [number(e, n=5, y=3) for e in arith.detect_linear_equation(X * N + Y - X * 2, [X])] == [3, 3]
    assert [number(e) for e in arith.detect_linear_equation((X + 3) * 4 - (X - Y) * 2, [X, Y])] == [2, 2, 12]
    for expr in (X * X, X // 2, X % 3, X * Y, tir.Max(X, Y), tir.Select(X < 1, Y, Y), X.astype("float32")):
        assert len(arith.detect_linear_equation(expr, [X, Y])) == 0
    assert len(arith.detect_linear_equation(Y * Y + X, [X])) == 2


@pytest.mark.parametrize("seed", range(5))
def test_linear_equations_are_equal(seed):
    rng, linear = random.Random(seed), 0
    for _ in range(30):
        expr = X
        for _ in range(rng.randint(1, 5)):
            other = rng.choice([X, Y, N, tir.const(rng.randint(-4, 4), "int64"), Y * N])
            expr = rng.choice([expr + other, expr - other, other - expr, expr * rng.randint(-3, 3), expr * N])
        parts = arith.detect_linear_equation(expr, [X, Y])
        if len(parts) == 0:
            continue
        linear += 1
        for x, y, n in itertools.product((-2, 0, 3), repeat=3):
            a, b, rest = (number(e, n=n) for e in parts)
            assert a * x + b * y + rest == number(expr, x=x, y=y, n=n), expr
    assert linear > 10


def test_clip_bounds():
    found = arith.detect_clip_bound(tir.all(X * 2 < 7, X >= 1, Y * -3 <= N), [X, Y])
    assert [number(found[0]), number(found[1]), [number(found[2], n=n) for n in (4, 3, -3)], found[3]] == [1, 3, [-1, -1, 1], None]
    for cond in (X + Y < 3, tir.any(X < 1, X > 3), X * N < 3, X % 2 < 1, X != 1, N < 3):
        assert len(arith.detect_clip_bound(cond, [X, Y])) == 0


@pytest.mark.parametrize("seed", range(5))
def test_clip_bounds_are_the_values_that_hold(seed):
    rng = random.Random(seed)
    for _ in range(20):
        conds = [
            rng.choice([a < b, a <= b, a > b, a >= b, a == b])
            for a, b in (
                (X * rng.choice([-3, -2, -1, 1, 2, 5]) + rng.randint(-9, 9), X * rng.choice([0, 7]) + rng.randint(-9, 9)) for _ in range(rng.randint(1, 3))
            )
        ]
        cond = tir.all(*conds) if len(conds) > 1 else conds[0]
        found = arith.detect_clip_bound(cond, [X])
        assert len(found) == 2, cond
        lo, hi = (None if e is None else number(e) for e in found)
        for x in range(-40, 41):
            assert ((lo is None or x >= lo) and (hi is None or x <= hi)) == bool(number(cond, x=x)), (cond, x)


def test_names_that_are_not_there_say_what_to_use():
    with pytest.raises(AttributeError, match="detect_iter_map|iter_map"):
        tvm.arith.subspace_divide  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        tvm.arith.Nothing  # noqa: B018
