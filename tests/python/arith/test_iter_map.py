# SPDX-License-Identifier: Apache-2.0
"""Iterators that are found are what the indices are, and independent, by all rounds of small loops."""

import itertools
import random

import pytest

import baton as tvm
from baton import arith, te, tir
from baton.arith import detect_iter_map

X, Y, Z, N = te.var("x"), te.var("y"), te.var("z"), te.var("n")


def number(expr, values):
    done = arith.Analyzer().simplify(tir.stmt_functor.substitute(expr, {v: tir.const(n, v.dtype) for v, n in values.items()}))
    return int(done.value)


def ranges(**extents):
    by_name = {"x": X, "y": Y, "z": Z}
    return {by_name[k]: tvm.ir.Range(0, n) if isinstance(n, int) else tvm.ir.Range(*n) for k, n in extents.items()}


def shape(found):
    """(extent, scale, base) of each iterator."""
    return [(int(s.args[0].extent) if len(s.args) else 1, int(s.args[0].scale) if len(s.args) else 0, int(s.base)) for s in found]


def rounds(iters, predicate=None):
    for values in itertools.product(*(range(int(r.min), int(r.min) + int(r.extent)) for r in iters.values())):
        at = dict(zip(iters, values, strict=True))
        if predicate is None or number(predicate, at):
            yield at


def check(indices, iters, predicate=None, bijective=False):
    """Whether iterators are found; if so, that they are right."""
    found = detect_iter_map(indices, iters, True if predicate is None else predicate, bijective)
    if len(found) == 0:
        return False
    all_rounds = list(rounds(iters, predicate))
    seen = set()
    for at in all_rounds:
        seen.add(tuple(number(e, at) for e in indices))
        for e, s in zip(indices, found, strict=True):
            assert number(e, at) == number(arith.normalize_iter_map_to_expr(s), at), (e, at)
    every = [[base + scale * k for k in range(extent)] for extent, scale, base in shape(found)]
    assert seen == set(itertools.product(*every)), (indices, shape(found))
    assert not bijective or len(seen) == len(all_rounds)
    return True


@pytest.mark.parametrize(
    ("indices", "extents", "want"),
    [
        ([X], {"x": 3}, [(3, 1, 0)]),
        ([X * 2 + 5], {"x": 3}, [(3, 2, 5)]),
        ([X * 10 + Y], {"x": 3, "y": 10}, [(30, 1, 0)]),
        ([X + Y * 3], {"x": 3, "y": 10}, [(30, 1, 0)]),
        ([X // 4, X % 4], {"x": 16}, [(4, 1, 0), (4, 1, 0)]),
        ([(X * 6 + Y) // 9, (X * 6 + Y) % 9], {"x": 3, "y": 6}, [(2, 1, 0), (9, 1, 0)]),
        ([(X * 8 + Y) // 4, Y % 4 + 2], {"x": 3, "y": 8}, [(6, 1, 0), (4, 1, 2)]),
        ([(X * 4 + Y) // 4, Y], {"x": 3, "y": 4}, [(3, 1, 0), (4, 1, 0)]),
        ([X * 4 + Y * 2], {"x": 3, "y": 2}, [(6, 2, 0)]),
        ([X - 3], {"x": (3, 8)}, [(5, 1, 0)]),
        ([X // 2 * 2 + X % 2], {"x": 8}, [(8, 1, 0)]),
        ([Y, X, X * 0 + 7], {"x": 2, "y": 3}, [(3, 1, 0), (2, 1, 0), (1, 0, 7)]),
        ([X + 4], {"x": 1}, [(1, 0, 4)]),
        ([X % 2], {"x": 8}, [(2, 1, 0)]),
        ([(X * 2 + 9) // 4], {"x": 6}, [(3, 1, 2)]),
    ],
    ids=str,
)
def test_found(indices, extents, want):
    found = detect_iter_map(indices, ranges(**extents))
    assert shape(found) == want and all(isinstance(s, arith.IterSumExpr) for s in found)
    assert check(indices, ranges(**extents))


@pytest.mark.parametrize(
    ("indices", "extents"),
    [
        ([X + Y], {"x": 3, "y": 10}),
        ([X, X], {"x": 3}),
        ([X * 10 + Y], {"x": 3, "y": 11}),
        ([X // 4, X % 4], {"x": 15}),
        ([X // 2, X], {"x": 4}),
        ([X * X], {"x": 4}),
        ([X * 10 + Y, Y], {"x": 3, "y": 10}),
        ([-X], {}),
        ([(X * 10 + Y) // 4, Y % 5], {"x": 3, "y": 10}),
        ([X // 4, X // 8], {"x": 16}),
        ([tir.Max(X, 2)], {"x": 4}),
    ],
    ids=str,
)
def test_not_found(indices, extents):
    iters = ranges(**extents) if extents else {X: tvm.ir.Range(0, N)}
    assert len(detect_iter_map(indices, iters)) == 0


def test_what_no_two_rounds_share():
    iters = ranges(x=3, y=4)
    assert check([X, Y], iters, bijective=True) and check([X * 4 + Y], iters, bijective=True)
    for indices in ([X], [X, Y % 2], [X, Y // 2]):
        assert check(indices, iters) and len(detect_iter_map(indices, iters, True, True)) == 0


def test_predicates():
    iters = ranges(x=4, y=4)
    fused = X * 4 + Y
    assert shape(detect_iter_map([fused], iters, fused < 14)) == [(14, 1, 0)] and check([fused], iters, fused < 14)
    assert check([fused // 2, fused % 2], iters, fused < 14) and check([fused // 2, fused % 2], iters, fused <= 13, True)
    assert not check([fused // 4, fused % 4], iters, fused < 14) and not check([X, Y], iters, fused < 14)
    assert check([X, Y], iters, X < 3) and check([fused], iters, tir.all(X < 3, fused < 11)) and not check([fused], iters, Y < 3)
    assert not check([X, Y], iters, X != 1) and not check([X], iters, X + Y < 3)


def test_parts():
    (found,) = detect_iter_map([(X * 6 + Y) // 9], ranges(x=3, y=6))
    (split,) = found.args
    assert (int(split.lower_factor), int(split.extent), int(split.scale), int(split.source.extent)) == (9, 2, 1, 18)
    assert isinstance(split, arith.IterSplitExpr) and isinstance(split.source, arith.IterMark) and isinstance(split.source.source, arith.IterSumExpr)
    mark = arith.IterMark(X, 12)
    made = arith.IterSumExpr([arith.IterSplitExpr(mark, 2, 3, 5)], 7)
    assert [number(arith.normalize_iter_map_to_expr(made), {X: x}) for x in range(12)] == [x // 2 % 3 * 5 + 7 for x in range(12)]


def random_indices(rng, variables):
    def expr(depth):
        if depth == 0:
            return rng.choice(variables)
        e = expr(depth - 1)
        c = rng.choice([1, 2, 3, 4, 6])
        return rng.choice(
            [lambda: e * c, lambda: e // c, lambda: tir.floormod(e, c), lambda: e * c + expr(depth - 1), lambda: e + rng.randint(-4, 8), lambda: e]
        )()

    return [expr(rng.randint(0, 4)) for _ in range(rng.randint(1, 3))]


@pytest.mark.parametrize("bijective", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_found_is_right(seed, bijective):
    rng, found = random.Random(seed), 0
    for _ in range(150):
        iters = ranges(x=rng.choice([1, 2, 4, 6]), y=rng.choice([2, 3, 4, (2, 4)]))
        predicate = rng.choice([None, None, X * 4 + Y < rng.randint(2, 20), X < 3])
        found += check(random_indices(rng, [X, Y]), iters, predicate, bijective)
    assert found > (4 if bijective else 25)


def test_regions():
    found = arith.estimate_region_lower_bound([tvm.ir.Range.from_min_extent(X * 4 + 1, 4), tvm.ir.Range.from_min_extent(Y, 2)], ranges(x=3, y=5), True)
    assert [(int(s.min_value), int(s.max_value)) for s in found] == [(1, 12), (0, 5)]
    gaps = [tvm.ir.Range.from_min_extent(X * 4, 3)]
    assert arith.estimate_region_lower_bound(gaps, ranges(x=3), True) is None
    tied = [tvm.ir.Range.from_min_extent(X, 1), tvm.ir.Range.from_min_extent(X, 1)]
    assert arith.estimate_region_lower_bound(tied, ranges(x=3), True) is None
