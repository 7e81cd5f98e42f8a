# SPDX-License-Identifier: Apache-2.0
"""Analysis of integers: bounds, sets, moduli, linear forms; variables of int32."""

import pytest

import baton as tvm
import baton.contrib.utils
import baton.testing
from baton import arith, te, tir
from baton.ir import structural_equal


def test_analyzer_add():
    ana = arith.Analyzer()
    x = te.var('x')
    y = te.var('y')
    assert structural_equal(ana.simplify(x + y - x), y, True) and ana.simplify(x + y - x).same_as(y) or ana.simplify(x + y - x).name == 'y'


def test_const_int_bound():
    ana = arith.Analyzer()
    x = te.var('x', 'int32')
    b = ana.const_int_bound(x + 1)
    assert b.min_value == -(2**31) + 1 and b.max_value in (2**31, arith.ConstIntBound.POS_INF, 2**31 - 1)


def test_dtype_bound():
    ana = arith.Analyzer()
    x = te.var('x', 'int64')
    b = ana.const_int_bound(x)
    assert b.min_value == b.NEG_INF and b.max_value == b.POS_INF


def test_dtype_bound8():
    ana = arith.Analyzer()
    x = te.var('x', 'int8')
    b = ana.const_int_bound(x)
    assert b.min_value == -128 and b.max_value == 127
    x = te.var('x', 'uint8')
    b = ana.const_int_bound(x)
    assert b.min_value == 0 and b.max_value == 255


def test_update_bound():
    ana = arith.Analyzer()
    x = te.var('x')
    y = te.var('y')
    ana.update(x, arith.ConstIntBound(0, 4))
    ana.update(y, arith.ConstIntBound(1, 10))
    b = ana.const_int_bound(x + y)
    assert (b.min_value, b.max_value) == (1, 14)
    ana.update(x, arith.ConstIntBound(0, arith.ConstIntBound.POS_INF), override=True)
    b = ana.const_int_bound(x + y)
    assert b.min_value == 1 and b.max_value == b.POS_INF


def test_bound_div():
    ana = arith.Analyzer()
    x = te.var('x')
    y = te.var('y')
    ana.update(x, arith.ConstIntBound(-9, 4))
    ana.update(y, arith.ConstIntBound(4, 10))
    b = ana.const_int_bound(tir.truncdiv(x, y))
    assert b.min_value == -2 and b.max_value == 1


def test_bound_mod():
    ana = arith.Analyzer()
    x = te.var('x')
    y = te.var('y')
    ana.update(x, arith.ConstIntBound(-9, 4))
    ana.update(y, arith.ConstIntBound(4, 10))
    b = ana.const_int_bound(tir.truncmod(x, y))
    assert b.min_value == -9 and b.max_value == 4
    b = ana.const_int_bound(tir.floormod(x, y))
    assert b.min_value == 0 and b.max_value == 9


def test_bound_minmax():
    ana = arith.Analyzer()
    x = te.var('x')
    y = te.var('y')
    ana.update(x, arith.ConstIntBound(-9, 11))
    ana.update(y, arith.ConstIntBound(4, 10))
    b = ana.const_int_bound(tir.min(x, y))
    assert b.min_value == -9 and b.max_value == 10
    b = ana.const_int_bound(tir.max(x, y))
    assert (b.min_value, b.max_value) == (4, 11)


def test_bound_mul():
    ana = arith.Analyzer()
    x = te.var('x')
    ana.update(x, arith.ConstIntBound(-2, 4))
    y = te.var('y')
    ana.update(y, arith.ConstIntBound(4, 10))
    b = ana.const_int_bound(x * y + 20)
    assert (b.min_value, b.max_value) == (0, 60)


def test_bind_expr():
    ana = arith.Analyzer()
    i = te.var('i')
    k = te.var('k')
    ana.bind(i, k + 1)
    assert structural_equal(ana.simplify(i), k + 1) and ana.simplify(i - k).value == 1 and ana.can_prove(i > k)


def test_constraint_scope():
    ana = arith.Analyzer()
    x = te.var('x')
    with ana.constraint_scope(x >= 3):
        assert ana.const_int_bound(x).min_value == 3
    assert ana.const_int_bound(x).min_value != 3
    with ana.constraint_scope(tir.all(x >= 0, x < 5)):
        assert ana.can_prove(x <= 4)


def test_constraint_mod():
    ana = arith.Analyzer()
    x = te.var('x')
    with ana.constraint_scope(tir.floormod(x, 4) == 0):
        m = ana.modular_set(x + 1)
        assert m.coeff == 4 and m.base == 1


def test_modular():
    ana = arith.Analyzer()
    x = te.var('x')
    y = te.var('y')
    m = ana.modular_set(x * 4 + y * 4 + 3)
    assert m.coeff == 4 and m.base == 3


def test_modular_const():
    m = arith.Analyzer().modular_set(tir.const(3, 'int32'))
    assert m.coeff == 0 and m.base == 3


def test_modular_cast_mul_add():
    ana = arith.Analyzer()
    x = te.var('x', 'int8')
    m = ana.modular_set(x.astype('uint32'))
    assert (m.coeff, m.base) == (1, 0)
    x, y = te.var('x'), te.var('y')
    m = ana.modular_set((x * 4 + 2) * (y * 6 + 1))
    assert (m.coeff, m.base) == (4, 2), (m.coeff, m.base)


def test_modular_minmax_select():
    ana = arith.Analyzer()
    x, y = te.var('x'), te.var('y')
    m = ana.modular_set(tir.min(x * 3, y * 9))
    assert (m.coeff, m.base) == (3, 0)
    m = ana.modular_set(tir.max(x * 3 + 1, y * 9 + 4))
    assert (m.coeff, m.base) == (3, 1)
    m = ana.modular_set(tir.Select(x > 0, x * 3 + 1, y * 9 + 2))
    assert (m.coeff, m.base) == (1, 0)


def test_modularset_fields():
    m = arith.Analyzer().modular_set(te.var('x'))
    assert isinstance(m, arith.ModularSet) and m.coeff == 1 and m.base == 0


def test_canonical():
    ana = arith.Analyzer()
    x = te.var('x')
    tir.const(3, 'int32')
    assert structural_equal(ana.canonical_simplify(x * 3 + x * 4), x * 7, True)


def test_canonical2():
    ana = arith.Analyzer()
    x = te.var('x')
    y = te.var('y')
    r = ana.canonical_simplify(x + y + x + y * 3 - x)
    tvm.testing.assert_prim_expr_equal(r, x + y * 4)


def test_canonical_mod():
    ana = arith.Analyzer()
    i = te.var('i')
    te.var('j')
    ana.update(i, arith.ConstIntBound(0, 15))
    r = ana.canonical_simplify(tir.floormod(i, 16))
    assert r.same_as(i)


def test_rewrite_simplify():
    ana = arith.Analyzer()
    x, y, _z = te.var('x'), te.var('y'), te.var('z')
    r = ana.rewrite_simplify((x - y) + y)
    assert structural_equal(r, x, True)
    r = ana.rewrite_simplify(tir.min(x, y) + (-1) * 0 + tir.max(x, y))
    assert structural_equal(r, x + y, True), str(r)


def test_rewrite_cmp():
    ana = arith.Analyzer()
    x, y = te.var('x'), te.var('y')

    def ck(e, w):
        r = ana.rewrite_simplify(e)
        assert structural_equal(r, w, True), (str(e), str(r), str(w))

    ck(x + 1 < y + 1, x < y)
    ck(x - 10 < 0, x < 10)
    ck(tir.all(x < 1, x < 1), x < 1)
    ck(tir.any(x < 1, tir.const(1, 'bool')), tir.const(1, 'bool'))
    ck(x * 2 < y * 2, x < y)


def test_simplify_steps():
    ana = arith.Analyzer()
    x = te.var('x')
    assert ana.simplify(x * 2 + x, steps=2) is not None
    assert ana.simplify(x, 3).same_as(x)


def test_simplify_ifthenelse():
    ana = arith.Analyzer()
    x, y = te.var('x'), te.var('y')
    e = tir.if_then_else(x * 4 + y * 2 < 10 * 3, 1, 2)
    r = ana.simplify(e)
    assert r.dtype == 'int32'


def test_int_set():
    ana = arith.Analyzer()
    x, y = te.var('x'), te.var('y')
    s = ana.int_set(x + y, {x: arith.IntervalSet(0, 10)})
    assert isinstance(s, arith.IntervalSet)
    tvm.testing.assert_prim_expr_equal(s.min_value, y)
    tvm.testing.assert_prim_expr_equal(s.max_value, y + 10)


def test_interval_basic():
    s = arith.IntervalSet(2, 3)
    assert s.min_value.value == 2 and s.max_value.value == 3 and s.min_value == 2


def test_vector_set():
    s = arith.IntSet.vector(tir.Ramp(0, 1, 10))
    assert s.min_value.value == 0 and s.max_value.value == 9


def test_deduce_basic():
    a = te.var('a')
    r = arith.deduce_bound(a, a < 10, {}, {})
    assert isinstance(r, arith.IntervalSet) and r.max_value.value == 9 and "neg_inf" in str(r.min_value)


def test_deduce_ge():
    a = te.var('a')
    r = arith.deduce_bound(a, a >= 10, {}, {})
    assert r.min_value.value == 10 and 'pos_inf' in str(r.max_value)


def test_deduce_no():
    a = te.var('a')
    b = te.var('b')
    r = arith.deduce_bound(a, b < 10, {}, {})
    assert r.is_nothing() or r.is_everything()


def test_detect_linear():
    a = te.var('a')
    b = te.var('b')
    m = arith.detect_linear_equation(a * 4 + b * 6 + 7, [a])
    tvm.testing.assert_prim_expr_equal(m[0], tir.const(4, 'int32'))
    tvm.testing.assert_prim_expr_equal(m[1], b * 6 + 7)
    m = arith.detect_linear_equation(a * b + 7, [a])
    assert m[0].same_as(b) or structural_equal(m[0], b, True)
    m = arith.detect_linear_equation(b * 7, [a])
    assert m[0].value == 0
    m = arith.detect_linear_equation(a * a, [a])
    assert len(m) == 0


def test_detect_linear_multi():
    a, b = te.var('a'), te.var('b')
    m = arith.detect_linear_equation(a * 4 + b * 6 + 7, [a, b])
    assert m[0].value == 4 and m[1].value == 6 and m[2].value == 7
    m = arith.detect_linear_equation(b * 7, [])
    assert len(m) == 1


def test_iter_map():
    x = te.var('x')
    m = arith.detect_iter_map([x], {x: tvm.ir.Range(0, 3)})
    assert len(m) == 1 and isinstance(m[0], arith.IterSumExpr)


def test_iter_map_tuple_dom():
    x = te.var('x')
    m = arith.detect_iter_map([tir.floordiv(x, 4), tir.floormod(x, 4)], {x: tvm.ir.Range(0, 24)})
    assert len(m) == 2 and m[0].args[0].lower_factor.value == 4 and m[0].args[0].extent == 6 and m[1].args[0].extent == 4 and m[0].args[0].scale == 1
    assert m[0].args[0].source.extent == 24


def test_iter_map_fail():
    x = te.var('x')
    m = arith.detect_iter_map([x * x], {x: tvm.ir.Range(0, 3)})
    assert len(m) == 0


def test_iter_map_predicate():
    x, y = te.var('x'), te.var('y')
    m = arith.detect_iter_map([x * 10 + y], {x: tvm.ir.Range(0, 13), y: tvm.ir.Range(0, 10)}, predicate=x * 10 + y < 128)
    assert len(m) == 1
    m = arith.detect_iter_map([x * 10 + y], {x: tvm.ir.Range(0, 13), y: tvm.ir.Range(0, 10)}, x * 10 + y < 128, True)
    assert m is not None


def test_normalize():
    x = te.var('x')
    m = arith.detect_iter_map([tir.floordiv(x, 4)], {x: tvm.ir.Range(0, 24)}, require_bijective=False)
    e = arith.normalize_iter_map_to_expr(m[0])
    assert structural_equal(e, tir.floordiv(x, 4), True)


def test_itermark():
    x = te.var('x')
    m = arith.IterMark(x, tir.const(16, 'int32'))
    s = arith.IterSplitExpr(m, tir.const(1, 'int32'), tir.const(16, 'int32'), tir.const(1, 'int32'))
    assert s.source.same_as(m) and s.extent.value == 16
    t = arith.IterSumExpr([s], tir.const(0, 'int32'))
    assert len(t.args) == 1


def test_estimate_region():
    i = te.var('i')
    r = arith.estimate_region_lower_bound([tvm.ir.Range.from_min_extent(i, 1)], {i: tvm.ir.Range(0, 10)}, tir.const(True))
    assert len(r) == 1 and r[0].min_value.value == 0 and r[0].max_value.value == 9


def test_solve_linear():
    x, y = te.var('x'), te.var('y')
    r = arith.solve_linear_equations([tir.EQ(x + y, 20), tir.EQ(x - y, 10)], [x, y])
    assert len(r.dst.variables) == 0 and r.src_to_dst[x].value == 15 and r.src_to_dst[y].value == 5


def test_solve_linear_range():
    x, y = te.var('x'), te.var('y')
    r = arith.solve_linear_equations([tir.EQ(x + y, 0)], [x, y], {x: tvm.ir.Range(-5, 10), y: tvm.ir.Range(0, 10)})
    assert len(r.dst.variables) == 1


def test_intset_str():
    assert "IntervalSet" in str(arith.IntervalSet(1, 2))
    assert str(arith.IntervalSet(1, 2)) == "IntervalSet[1, 2]"


def test_intconstraints():
    x = te.var('x')
    c = arith.IntConstraints([x], {x: tvm.ir.Range(0, 3)}, [x < 3])
    assert len(c.variables) == 1 and len(c.relations) == 1 and c.ranges[x].extent == 3


def test_assert_prim_expr_equal():
    x = te.var('x')
    tvm.testing.assert_prim_expr_equal(x + 1, 1 + x)
    with pytest.raises(AssertionError):
        tvm.testing.assert_prim_expr_equal(x + 1, x + 2)


def test_analyzer_floordiv():
    ana = arith.Analyzer()
    x = te.var('x')
    ana.update(x, arith.ConstIntBound(0, 100))
    r = ana.simplify(tir.floordiv(x * 2 + 1, 2))
    assert r.same_as(x) or structural_equal(r, x, True)


def test_analyzer_index_split_fuse():
    ana = arith.Analyzer()
    i = te.var('i')
    j = te.var('j')
    ana.bind(j, tvm.ir.Range(0, 8))
    ana.bind(i, tvm.ir.Range(0, 100))
    assert structural_equal(ana.simplify(tir.floordiv(i * 8 + j, 8)), i, True) and structural_equal(ana.simplify(tir.floormod(i * 8 + j, 8)), j, True)
    assert structural_equal(ana.simplify(tir.floordiv(i, 8) * 8 + tir.floormod(i, 8)), i, True)


def test_proves():
    ana = arith.Analyzer()
    n = te.size_var('n')
    assert ana.can_prove(n >= 0)
    assert ana.can_prove(n + 1 > 0)


def test_floormod_neg():
    r = arith.Analyzer().simplify(tir.floormod(tir.const(-7, 'int32'), 3))
    assert r.value == 2


def test_simplify_logical():
    ana = arith.Analyzer()
    x = te.var('x')
    both = ana.simplify(tir.all(x < 5, x < 3))
    assert [ana.simplify(tir.stmt_functor.substitute(both, {x: tir.const(n)})).value for n in (2, 4)] == [1, 0]


def test_simplify_float():
    ana = arith.Analyzer()
    x = te.var('x', 'float32')
    r = ana.simplify(x * 0.0 + 1.0)
    r = ana.simplify(x + 0.0)
    assert r.dtype == 'float32'
