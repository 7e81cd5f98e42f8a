# SPDX-License-Identifier: Apache-2.0
"""Analysis of integer expressions: simplification, intervals, solutions."""

import pytest

import baton as tvm
from baton import arith, te, tir

x, y, z = te.var("x"), te.var("y"), te.var("z")
fld, flm, tdiv, tmod = te.floordiv, te.floormod, te.truncdiv, te.truncmod


def test_vec():
    r = arith.Analyzer().rewrite_simplify(tir.Ramp(x, 1, 4) + tir.Ramp(y, 2, 4))
    assert tvm.ir.structural_equal(r, tir.Ramp(x + y, 3, 4))
    r = arith.Analyzer().rewrite_simplify(tir.Broadcast(x, 4) + tir.Broadcast(y, 4))
    assert tvm.ir.structural_equal(r, tir.Broadcast(x + y, 4))


def test_update_bounds():
    a = arith.Analyzer()
    a.update(x, arith.ConstIntBound(0, 7))
    assert tvm.ir.structural_equal(a.simplify(fld(x, 8)), 0) and tvm.ir.structural_equal(a.simplify(flm(x, 8)), x)
    a.update(x, arith.ConstIntBound(0, 100), override=True)
    assert not tvm.ir.structural_equal(a.simplify(fld(x, 8)), 0)


def test_dtype_bound():
    b = arith.Analyzer().const_int_bound(te.var("u", "uint8"))
    assert (b.min_value, b.max_value) == (0, 255)
    b = arith.Analyzer().const_int_bound(te.var("u", "int8") + 0)
    assert b.min_value == -128


def test_size_var_bound():
    b = arith.Analyzer().const_int_bound(te.size_var("n"))
    assert b.min_value == 0


def test_intset_ops():
    a = arith.Analyzer()
    d = {x: arith.IntervalSet(0, 10), y: arith.IntervalSet(1, 11)}
    for e, lo, hi in [
        (x + y, 1, 21),
        (x - y, -11, 9),
        (x * 2, 0, 20),
        (tir.min(x, y), 0, 10),
        (tir.max(x, y), 1, 11),
        (tir.Select(x > 0, x - 1, x + 1), -1, 11),
        (fld(x, 3), 0, 3),
        (flm(x, 10), 0, 9),
    ]:
        s = a.int_set(e, d)
        assert tvm.ir.structural_equal(s.min_value, lo) and tvm.ir.structural_equal(s.max_value, hi), (e, s.min_value, s.max_value)


def test_int_set_all():
    s = arith.Analyzer().int_set(x + y, {x: arith.IntervalSet(0, 3)})
    assert tvm.ir.structural_equal(s.min_value, y) and tvm.ir.structural_equal(s.max_value, y + 3)


def test_iter_map_split():
    r = arith.detect_iter_map([fld(x, 3), flm(x, 3)], {x: tvm.ir.Range(0, 12)})
    assert len(r) == 2 and r[0].args[0].lower_factor.value == 3 and r[1].args[0].extent.value == 3
    assert len(arith.detect_iter_map([x * 2 + y], {x: tvm.ir.Range(0, 3), y: tvm.ir.Range(0, 3)})) == 0


def test_detect_clip2():
    m = arith.detect_clip_bound(tir.all(x * 2 < 8, x > 1, y < 3), [x])
    assert len(m) in (0, 2)


def test_linear2():
    m = arith.detect_linear_equation(x * 4 + y * 6 * 7 + x, [x])
    assert m[0].value == 5 and tvm.ir.structural_equal(arith.Analyzer().simplify(m[1] - y * 42), 0)
    m = arith.detect_linear_equation(y * 3 + 7, [])
    assert len(m) == 1


def test_solve_ineq():
    s = arith.solve_linear_inequalities([tir.GE(x, 1), tir.LE(x, 5)], [x], {x: tvm.ir.Range(0, 10)})
    assert s is not None


def test_bounds():
    a = tvm.arith.Analyzer()
    x = te.var("x")
    a.update(x, tvm.arith.ConstIntBound(0, 3))
    b = a.const_int_bound(x + 1)
    assert b.min_value == 1 and b.max_value == 4
    b = tvm.arith.Analyzer().const_int_bound(te.var("x", "int64"))
    assert b.min_value == b.NEG_INF and b.max_value == b.POS_INF and tvm.arith.ConstIntBound.POS_INF == (1 << 63) - 1


def test_modular():
    a = tvm.arith.Analyzer()
    x = te.var("x")
    m = a.modular_set(x * 4 + 3)
    assert m.coeff == 4 and m.base == 3


def test_deduce():
    a, b = te.var("a"), te.var("b")
    s = tvm.arith.deduce_bound(a, a + b > 3, {b: tvm.arith.IntervalSet(0, 3)}, {})
    assert s.max_value is not None and s.min_value is not None


def test_iter_map():
    x = te.var("x"), 3
    y = te.var("y"), 4
    r = tvm.arith.detect_iter_map([x[0] * 4 + y[0]], {x[0]: tvm.ir.Range(0, 3), y[0]: tvm.ir.Range(0, 4)})
    assert len(r) == 1 and isinstance(r[0], tvm.arith.IterSumExpr)


def test_solve():
    x, y = te.var("x"), te.var("y")
    s = tvm.arith.solve_linear_equations([tir.EQ(x + y, 20), tir.EQ(x - y, 10)], [x, y])
    assert s.src_to_dst[x].value == 15 and s.src_to_dst[y].value == 5
    assert len(s.dst.variables) == 0


@pytest.mark.parametrize(
    ("made", "want"),
    [
        ((x + 3) * 2 - x * 2, 6),
        (fld(x * 6 + y * 3, 3), x * 2 + y),
        (flm(x * 6 + 5, 6), 5),
        (x - x, 0),
        (tir.Max(x, x + 1), x + 1),
        (tir.Min(x + 1, x + 10), x + 1),
        (x < x + 1, tir.const(True)),
        (x - y < 0, x < y),
        (tir.Not(x < y), y <= x),
        (x * 4 < y * 4, x < y),
        (x * 4 < 17, x < 5),
        (x * 4 <= 17, x <= 4),
        (x * 4 > 17, x > 4),
        (x * 4 >= 17, x >= 5),
        (x * -4 < 17, tir.LT(tir.const(-5), x)),
        (x + 8 < 20, x < 12),
        (tir.EQ(x * 4, 8), tir.EQ(x, 2)),
        (tir.EQ(x * 4, 7), tir.const(False)),
        (tir.NE(x * 4, 7), tir.const(True)),
        (fld(fld(x, 2), 3), fld(x, 6)),
        (flm(x + 8, 4), flm(x, 4)),
        (tir.Cast("int32", tir.Cast("int32", x)), x),
    ],
)
def test_simplify(made, want):
    found = arith.Analyzer().simplify(made)
    assert tvm.ir.structural_equal(found, want), f"{made} is {found}"


@pytest.mark.parametrize("low", range(-9, 10, 3))
def test_comparisons_keep_their_truth(low):
    """Each comparison has the truth of what it is simplified to, at every place."""
    for factor in (1, 2, 4, -3):
        for make in (lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b, lambda a, b: a >= b, tir.EQ, tir.NE):
            condition = make(x * factor + 1, tir.const(low))
            found = arith.Analyzer().simplify(condition)
            for value in range(-8, 9):
                at = {x: tir.const(value)}
                both = [arith.Analyzer().simplify(tir.stmt_functor.substitute(e, at)) for e in (condition, found)]
                assert bool(both[0]) == bool(both[1]), (str(condition), str(found), value)


@pytest.mark.parametrize(
    ("made", "low", "high"),
    [
        (x + y, -5, 14),
        (x * y, -90, 40),
        (tdiv(x, y), -2, 1),
        (fld(x, y), -3, 1),
        (tmod(x, y), -9, 4),
        (flm(x, y), 0, 9),
        (tir.Max(x, y), 4, 10),
        (tir.Select(x > 1, x, y), -9, 10),
        (y >> 1, 2, 5),
        (x >> 1, -5, 2),
        (y & 3, 0, 3),
        (x & 3, 0, 3),
    ],
)
def test_bounds_of_operations(made, low, high):
    analyzer = arith.Analyzer()
    analyzer.update(x, arith.ConstIntBound(-9, 4))
    analyzer.update(y, arith.ConstIntBound(4, 10))
    assert analyzer.const_int_bound(made) == (low, high)


def test_remainders_of_variables():
    analyzer = arith.Analyzer()
    analyzer.update(x, arith.ModularSet(8, 3))
    assert analyzer.modular_set(x + 1) == (8, 4) and int(analyzer.simplify(flm(x, 8))) == 3
    with pytest.raises(ValueError, match="override"):
        analyzer.update(x, arith.ModularSet(4, 0))
    with analyzer.constraint_scope(tir.EQ(flm(y, 2), 1)):
        assert analyzer.modular_set(y) == (2, 1)
    assert analyzer.modular_set(y) == (1, 0)
