# SPDX-License-Identifier: Apache-2.0
"""Identities of integer arithmetic, in both widths: results of `Analyzer.rewrite_simplify`."""

import random

import pytest

import baton as tvm
from baton import arith, te, tir

lo, hi, fld, flm, tdiv, tmod = tir.min, tir.max, tir.floordiv, tir.floormod, tir.truncdiv, tir.truncmod
WIDTHS = ["int64", "int32"]


def identities(dtype):
    """Name -> an expression, and what it becomes; an int is a literal."""
    x, y, z, b1 = te.var("x", dtype), te.var("y", dtype), te.var("z", dtype), te.var("b1", "bool")

    def lit(value):
        return tir.const(value, dtype)

    # fmt: off
    return {
        "sub_self": (x - x, 0),
        "add_sub": (x + y - x, y),
        "sub_add": (x - y + y, x),
        "xmx": ((x - y) - x, 0 - y),
        "3": ((x + 1) + 2, x + 3),
        "mulfac": (x * 2 + x * 3, x * 5),
        "xx": (x + x, x * 2),
        "fac": (x * y + x * 10, x * (y + 10)),
        "fac2": (y * x + x * 10, x * (y + 10)),
        "min_add": (lo(x, y) + 0, lo(x, y)),
        "minmax": (lo(x, y) + hi(x, y), x + y),
        "maxmin": (hi(x, y) - lo(x, y) * 0, hi(x, y)),
        "minsub": (lo(x + y, z) - x, lo(y, z - x)),
        "minsub2": (lo(x - y, z) + y, lo(x, z + y)),
        "max_sub": (hi(x + y, z) - x, hi(y, z - x)),
        "sel_add": (tir.Select(x > 0, y, z) + tir.Select(x > 0, z, y), tir.Select(tir.LT(0, x), y + z, z + y)),
        "sel_same": (tir.Select(x > 0, y, y), y),
        "sel_t": (tir.Select(tir.const(True), x, y), x),
        "sel_not": (tir.Select(tir.Not(b1), x, y), tir.Select(b1, y, x)),
        "mul0": (x * 0, 0),
        "mul1": (x * 1, x),
        "mulc": ((x * 2) * 3, x * 6),
        "mulac": ((x + 2) * 3, x * 3 + 6),
        "submulneg": ((x - y) * -2, (y - x) * 2),
        "addmul": (x + y * -1 , x - y),
        "minmul": (lo(x, y) * hi(x, y), x * y),
        "fd1": (fld(x, 1), x),
        "fm1": (flm(x, 1), 0),
        "fdm": (fld(x, 8) * 8 + flm(x, 8), x),
        "fmul": (fld(x * 4, 2), x * 2),
        "fmul2": (fld(x * 2, 4), fld(x, 2)),
        "fdfd": (fld(fld(x, 2), 3), fld(x, 6)),
        "fdadd": (fld(x * 8 + y, 4), x * 2 + fld(y, 4)),
        "fdadd2": (fld(x + 8, 4), fld(x, 4) + 2),
        "fmadd": (flm(x + 8, 4), flm(x, 4)),
        "fmmul": (flm(x * 8, 4), 0),
        "fmmul2": (flm(x * 8 + y, 4), flm(y, 4)),
        "fmfm": (flm(flm(x, 8), 4), flm(x, 4)),
        "fmmul3": (flm(x * 2, 4), flm(x, 2) * 2),
        "fdfm": (fld(flm(x, 4), 4), 0),
        "fdself": (fld(x * y, y) * 0, 0),
        "fdneg": (fld(x, -1), x * -1),
        "fdmin": (fld(lo(x * 4, y), 2), lo(x * 2, fld(y, 2))),
        "fdmax": (fld(hi(x * 4, y), 2), hi(x * 2, fld(y, 2))),
        "fdc": (fld(tir.const(-5, dtype), 2), -3),
        "fmc": (flm(tir.const(-5, dtype), 3), 1),
        "tdc": (tdiv(tir.const(-5, dtype), 2), -2),
        "tmc": (tmod(tir.const(-5, dtype), 3), -2),
        "tdself": (tdiv(x * 4, 2), x * 2),
        "tdtd": (tdiv(tdiv(x, 2), 3), tdiv(x, 6)),
        "tdm": (tdiv(x, 3) * 3 + tmod(x, 3), x),
        "tmself": (tmod(x * 4, 2), 0),
        "minself": (lo(x, x), x),
        "minc": (lo(x + 1, x + 10), x + 1),
        "minc2": (lo(x + 111, x + 10), x + 10),
        "min3": (lo(lo(x, 10), 5), lo(x, 5)),
        "minmax2": (lo(hi(x, y), x), x),
        "maxmin2": (hi(lo(x, y), x), x),
        "minneg": (lo(10 - x, 11 - x), 10 - x),
        "minmul4": (lo(x * 4, y * 4), lo(x, y) * 4),
        "minmuln": (lo(x * -4, y * -4), hi(x, y) * -4),
        "minadd": (lo(x + y, x + z), lo(y, z) + x),
        "minsubc": (lo(x - y, x - z), x - hi(y, z)),
        "maxself": (hi(x + 1, x + 10), x + 10),
        "maxadd": (hi(x + y, x + z), hi(y, z) + x),
        "maxmul": (hi(x * 4, y * 4), hi(x, y) * 4),
        "fdmulmin": (lo(fld(x + 3, 4) * 4, x), x),
        "fdmulmax": (hi(fld(x + 3, 4) * 4, x), fld(x + 3, 4) * 4),
        "minfd": (lo(fld(x, 4), fld(y, 4)), fld(lo(x, y), 4)),
        "maxfd": (hi(fld(x, 4), fld(y, 4)), fld(hi(x, y), 4)),
        "minmin": (lo(lo(x, y), x), lo(x, y)),
        "mindist": (lo(hi(x, y), hi(x, z)), hi(lo(y, z), x)),
        "maxdist": (hi(lo(x, y), lo(x, z)), lo(hi(y, z), x)),
        "eq": (tir.EQ(x * 10, 0), tir.EQ(x, 0)),
        "eqs": (tir.EQ(x - 10, 0), tir.EQ(x, 10)),
        "eqs2": (tir.EQ(10 - x, 0), tir.EQ(x, 10)),
        "eqm": (tir.EQ(x * y, 0), tir.Or(tir.EQ(x, 0), tir.EQ(y, 0))),
        "ltadd": (x + 1 < y + 1, x < y),
        "ltmul": (x * 2 < y * 2, x < y),
        "ltmuln": (y * -4 < x * -4, x < y),
        "ltsub": (x - y < 0, x < y),
        "lt10": (x + 10 < 0, x < -10),
        "ltmul0": (x * 2 < 3, x < 2),
        "ltmulneg": (x * -2 < 4, tir.LT(-2, x)),
        "0ltmul": (0 < x * 2, tir.LT(0, x)),
        "ltfd": (fld(x, 2) < 3, x < 6),
        "ltfd0": (-1 < fld(x, 2), tir.LT(-1, x)),
        "maxlt": (hi(x, y) < z, tir.And(x < z, y < z)),
        "minlt": (lo(x, y) < z, tir.Or(x < z, y < z)),
        "xltx": (x < x + 1, tir.const(True)),
        "leself": (x <= x, tir.const(True)),
        "gt": (x > y, y < x),
        "ge": (x >= y, y <= x),
        "le": (x < y, x < y),
        "andself": (tir.And(b1, tir.const(True)), b1),
        "andnot": (tir.And(tir.EQ(x, 1), tir.NE(x, 1)), tir.const(False)),
        "andlt": (tir.And(x <= 1, 2 < x), tir.const(False)),
        "ornot": (tir.Or(tir.EQ(x, 1), tir.NE(x, 1)), tir.const(True)),
        "orlt": (tir.Or(x < 1, 0 < x), tir.const(True)),
        "not": (tir.Not(x < 4), tir.LE(4, x)),
        "notnot": (tir.Not(tir.Not(b1)), b1),
        "notand": (tir.Not(tir.And(x < 4, y < 2)), tir.Or(tir.LE(4, x), tir.LE(2, y))),
        "noteq": (tir.Not(tir.EQ(x, y)), tir.NE(x, y)),
        "let": (tir.Let(x, 1, x + 2), 3),
        "cast": (tir.Cast("int16", lit(5)), tir.const(5, "int16")),
        "castnop": (tir.Cast(dtype, x), x),
        "ite": (tir.if_then_else(tir.const(True), x, y), x),
        "shift": (tir.const(4, dtype) << 2, 16),
        "likely": (tir.likely(tir.const(True)), tir.const(True)),
        "fmsub": (flm(x - 1, 2), flm(x + 1, 2)),
        "fmneg": (flm(x * -2, 2), 0),
        "subfm": (x - flm(x, 8), fld(x, 8) * 8),
        "fd8sub": (x - fld(x, 8) * 8, flm(x, 8)),
        "addfd": (fld(x, 2) + flm(x, 2) * 0, fld(x, 2)),
        "fdfloor": (fld(x + 1, 2) - fld(x - 1, 2), 1),
        "ramp": (tir.Ramp(x, 1, 4) + tir.Ramp(y, 2, 4), tir.Ramp(x + y, 3, 4)),
        "bc": (tir.Broadcast(x, 4) + tir.Broadcast(y, 4), tir.Broadcast(x + y, 4)),
        "rampb": (tir.Ramp(x, 1, 4) + tir.Broadcast(y, 4), tir.Ramp(x + y, 1, 4)),
        "rampm": (tir.Ramp(x, 2, 4) * tir.Broadcast(y, 4), tir.Ramp(x * y, y * 2, 4)),
        "negsub": (x - (-5), x + 5),
    }
    # fmt: on


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("name", identities("int64"))
def test_identity(name, dtype):
    expr, want = identities(dtype)[name]
    found = arith.Analyzer().rewrite_simplify(expr)
    want = tir.const(want, str(expr.dtype)) if isinstance(want, int) else want
    assert tvm.ir.structural_equal(found, want), f"{expr} -> {found}, not {want}"


def value_of(expr, values):
    made = arith.Analyzer().simplify(tir.stmt_functor.substitute(expr, values))
    return int(made.value)


@pytest.mark.parametrize("name", identities("int64"))
def test_identity_holds(name):
    expr, _ = identities("int64")[name]
    found = arith.Analyzer().rewrite_simplify(expr)
    free = {v.name: v for e in (expr, found) for v in variables(e)}
    draw = random.Random(name)
    for _ in range(0 if isinstance(expr, tir.Let) or "b1" in free or "x" in str(expr.dtype) else 12):
        values = {v: tir.const(draw.randint(-20, 20), "int64") for v in free.values()}
        assert value_of(expr, values) == value_of(found, values), (name, values)


def variables(expr):
    found = []
    tir.stmt_functor.post_order_visit(expr, lambda e: found.append(e) if isinstance(e, tir.Var) else None)
    return found


@pytest.mark.parametrize("dtype", WIDTHS)
def test_bounds_are_used(dtype):
    x, y = te.var("x", dtype), te.var("y", dtype)
    rows = [
        (fld(x, 8), 0), (flm(x, 8), x), (x < 8, tir.const(True)), (fld(y * 8 + x, 8), y), (flm(y * 8 + x, 8), x), (lo(x, 8), x), (hi(x, 0), x),
        (tdiv(x, 8), 0), (tmod(x, 8), x), (tir.EQ(x, 8), tir.const(False)), (tir.Select(x < 8, x, y), x),
    ]  # fmt: skip
    for expr, want in rows:
        analyzer = arith.Analyzer()
        analyzer.update(x, arith.ConstIntBound(0, 7))
        found = analyzer.rewrite_simplify(expr)
        assert tvm.ir.structural_equal(found, want), f"{expr} -> {found}"


@pytest.mark.parametrize("dtype", WIDTHS)
def test_proofs(dtype):
    x, y, analyzer = te.var("x", dtype), te.var("y", dtype), arith.Analyzer()
    analyzer.bind(x, tvm.ir.Range(0, 10))
    assert tuple(analyzer.const_int_bound(x * 2 + 1)) == (1, 19) and tuple(analyzer.modular_set(y * 4 + 3)) == (4, 3)
    found = analyzer.int_set(x + 1, {x: arith.IntervalSet(tir.const(0, dtype), tir.const(9, dtype))})
    assert found.min_value.value == 1 and found.max_value.value == 10
    assert analyzer.can_prove(x < 10) and not analyzer.can_prove(x < 9) and analyzer.can_prove_equal(x + x, x * 2)
    assert analyzer.can_prove_equal(lo(x, y) + hi(x, y), x + y)
    with analyzer.constraint_scope(tir.EQ(flm(y, 4), 2)):
        assert tuple(analyzer.modular_set(y + 1)) == (4, 3)
    with analyzer.constraint_scope(y > 3):
        assert analyzer.can_prove(y >= 4)


def test_bounds_of_int32():
    assert tuple(arith.Analyzer().const_int_bound(te.var("x", "int32"))) == (-(1 << 31), (1 << 31) - 1)


def test_both_widths_in_one_expression():
    n, x = te.var("n", "int64"), te.var("x", "int32")
    found = arith.Analyzer().simplify(n * 2 + x.astype("int64") - n)
    assert str(found.dtype) == "int64"


def test_canonical_sums_are_left_to_themselves():
    x, y = te.var("x"), te.var("y")
    assert tvm.ir.structural_equal(arith.Analyzer().canonical_simplify(lo(x, y) + hi(x, y)), lo(x, y) + hi(x, y))


def test_literals_beside_expressions():
    x, f, b = te.var("x", "int32"), te.var("f", "float32"), te.var("b", "bool")
    assert str(tir.EQ(x * 10, 0).b.dtype) == str(tir.Select(b, 1, x).true_value.dtype) == str(tir.Ramp(x, 1, 4).stride.dtype) == "int32"
    assert str(tir.Add(f, 2).b.dtype) == "float32" and str(tir.Let(x, 1, x).value.dtype) == "int32"
