# SPDX-License-Identifier: Apache-2.0
"""Bounds, remainders, simplification and proofs of integer expressions."""

import pytest

import baton as tvm
from baton import te, tir
from baton.arith import ConstIntBound, ModularSet, modular, rules

X, Y = te.var("x", "int64"), te.var("y", "int64")


def analyzer(**ranges):
    made = tvm.arith.Analyzer()
    for name, (begin, end) in ranges.items():
        made.bind({"x": X, "y": Y}[name], tvm.ir.Range(begin, end))
    return made


@pytest.mark.parametrize(
    ("expr", "bound"),
    [
        (X, (0, 9)),
        (X + 1, (1, 10)),
        (X * 2 - Y, (-3, 17)),
        (X // 3, (0, 3)),
        (X % 4, (0, 3)),
        (tir.Min(X, Y), (0, 3)),
        (tir.Max(X, 5), (5, 9)),
        (5, (5, 5)),
        (X - X, (0, 0)),
        (te.var("z", "int64"), (ConstIntBound.NEG_INF, ConstIntBound.POS_INF)),
        (te.var("z"), (-(2**31), 2**31 - 1)),
        (te.var("z") + 1, (1 - 2**31, 2**31)),
    ],
    ids=str,
)
def test_bounds(expr, bound):
    found = analyzer(x=(0, 10), y=(1, 4)).const_int_bound(expr)
    assert (found.min_value, found.max_value) == bound and isinstance(found, ConstIntBound)


@pytest.mark.parametrize(
    ("expr", "want"), [(X * 4 + 3, (4, 3)), (X * 6 + Y * 4 + 9, (2, 1)), (tir.const(7, "int64"), (0, 7)), (X, (1, 0)), (X * 8 - 3, (8, 5))], ids=str
)
def test_remainders(expr, want):
    assert tuple(analyzer().modular_set(expr)) == want and isinstance(analyzer().modular_set(expr), ModularSet)


@pytest.mark.parametrize(
    ("expr", "want"), [(X + 0, X), (X - X + 3, 3), (X // 10, 0), (X % 10, X), ((X * 4 + 1) // 4, X), (tir.Select(X < 10, Y, X), Y)], ids=lambda e: str(e)
)
@pytest.mark.parametrize("method", ["simplify", "rewrite_simplify", "canonical_simplify"])
def test_simplify(method, expr, want):
    found = getattr(analyzer(x=(0, 10)), method)(expr)
    tvm.ir.assert_structural_equal(found, tir.const(want, found.dtype) if isinstance(want, int) else want, map_free_vars=False)


def test_proofs_and_conditions():
    a = analyzer(x=(0, 10))
    assert a.can_prove(X < 10) and a.can_prove(X >= 0) and not a.can_prove(X < 9) and a.can_prove_equal(X + X, X * 2) and not a.can_prove_equal(X, Y)
    with a.constraint_scope(X < 5):
        assert a.can_prove(X < 5) and a.const_int_bound(X).max_value == 4
        with pytest.raises(ZeroDivisionError), a.constraint_scope(X > 3):
            assert a.const_int_bound(X) == ConstIntBound(4, 4)
            raise ZeroDivisionError
        assert a.const_int_bound(X).min_value == 0
    assert not a.can_prove(X < 5)


def test_what_is_known_may_change():
    a = tvm.arith.Analyzer()
    a.bind(X, 7)
    assert a.const_int_bound(X * 2) == (14, 14)
    a.update(Y, ConstIntBound(2, 5))
    assert a.const_int_bound(Y + X) == (9, 12)
    with pytest.raises(ValueError, match="override"):
        a.update(Y, ConstIntBound(0, 1))
    a.update(Y, ConstIntBound(0, 1), override=True)
    assert a.const_int_bound(Y) == (0, 1)
    with pytest.raises(TypeError, match="ConstIntBound"):
        a.update(Y, (0, 1))
    with pytest.raises(ValueError, match="two bounds"):
        a.update(Y, ConstIntBound(0, ConstIntBound.POS_INF), override=True)
    for wrong in (
        lambda: a.simplify("x"),
        lambda: a.const_int_bound(None),
        lambda: a.can_prove(X),
        lambda: a.bind(None, 3),
        lambda: a.bind(X + 1, 3),
        lambda: a.bind(X, None),
    ):
        with pytest.raises((TypeError, ValueError, AttributeError, tvm.TVMError)):
            wrong()


def test_rules_look_at_a_shared_part_once(monkeypatch):
    looked = []
    once = rules._once
    monkeypatch.setattr(rules, "_once", lambda e: looked.append(e) or once(e))
    x = [tir.Var(f"x{i}", "int64") for i in range(17)]
    e = x[0]
    for i in range(16):
        e = tir.Min(tir.Max(e, x[i + 1]), e)  # as a tree it has 65,000 parts
    tvm.arith.Analyzer().rewrite_simplify(e)
    assert len(looked) < 500


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_rules_take_deep_expressions(dtype):
    x, y = tir.Var("x", dtype), tir.Var("y", dtype)
    e = x
    for i in range(3000):
        e = e + tir.Min(y, tir.const(i, dtype))
    made = tvm.arith.Analyzer().rewrite_simplify(e - x)
    assert made.dtype == dtype
    at = tvm.tir.stmt_functor.substitute(made, {y: tir.const(2, dtype)})  # x is gone from it
    assert tvm.arith.Analyzer().simplify(at).value == 1 + 2 * 2998


def test_remainders_of_deep_and_shared_expressions():
    x = tir.Var("x", "int64")
    deep = shared = x * 4
    for _ in range(1500):
        deep = deep + 4
    for _ in range(40):
        shared = shared + shared * 3  # as a tree it has 2^40 parts
    analyzer = tvm.arith.Analyzer()
    assert analyzer.modular_set(deep) == ModularSet(4, 0)
    assert modular.modular_set(shared, lambda part: None).coeff % 4 == 0
