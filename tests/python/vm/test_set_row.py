# SPDX-License-Identifier: Apache-2.0
"""`contrib_set_row` writes in place where no other value can see it."""

import numpy as np
import pytest

import baton

HEAD = '#[version = "0.0.5"]\n'
X, R = np.arange(6, dtype="float32").reshape(3, 2), np.array([10, 20], "float32")


def rows(x, *changes):
    out = x.copy()
    for at, row in changes:
        out[at] = row
    return out


def test_what_is_read_again_stays():
    made = baton.compile(
        HEAD
        + """def @main(%x: Tensor[(3, 2), float32], %r: Tensor[(2), float32]) {
  let %a = contrib_set_row(%x, %r, 0i64);
  let %b = contrib_set_row(%a, add(%r, 1f), 1i64);
  let %c = contrib_set_row(%b, %r, 2i64);
  let %d = contrib_set_row(%a, %r, 2i64);
  (%a, %b, %c, %d)
}"""
    )
    x = X.copy()
    for _ in range(2):
        a, b, c, d = (v.numpy() for v in made(x, R))
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(a, rows(X, (0, R)))
        np.testing.assert_array_equal(b, rows(X, (0, R), (1, R + 1)))
        np.testing.assert_array_equal(c, rows(X, (0, R), (1, R + 1), (2, R)))
        np.testing.assert_array_equal(d, rows(X, (0, R), (2, R)))


def test_a_view_keeps_what_it_shows():
    made = baton.compile(
        HEAD
        + """def @main(%x: Tensor[(3, 2), float32], %r: Tensor[(2), float32]) {
  let %a = contrib_set_row(%x, %r, 0i64);
  let %v = reshape(%a, newshape=[6]);
  let %b = contrib_set_row(%a, add(%r, 1f), 1i64);
  let %w = reshape(%v, newshape=[3, 2]);
  let %c = contrib_set_row(%w, %r, 2i64);
  (%v, %b, %c)
}"""
    )
    v, b, c = (v.numpy() for v in made(X, R))
    np.testing.assert_array_equal(v.reshape(3, 2), rows(X, (0, R)))
    np.testing.assert_array_equal(b, rows(X, (0, R), (1, R + 1)))
    np.testing.assert_array_equal(c, rows(X, (0, R), (2, R)))


def test_values_in_data_and_closures_stay():
    made = baton.compile(
        HEAD
        + """def @fill(%i: int64, %x: Tensor[(3, 2), float32], %r: Tensor[(2), float32]) -> (Tensor[(3, 2), float32], Tensor[(3, 2), float32]) {
  let %y = contrib_set_row(%x, %r, %i);
  if (equal(%i, 2i64)) { (%x, %y) } else { @fill(add(%i, 1i64), %y, add(%r, 1f)) }
}
def @main(%x: Tensor[(3, 2), float32], %r: Tensor[(2), float32]) { @fill(0i64, %x, %r) }"""
    )
    for _ in range(2):
        before, after = (v.numpy() for v in made(X, R))
        np.testing.assert_array_equal(before, rows(X, (0, R), (1, R + 1)))
        np.testing.assert_array_equal(after, rows(X, (0, R), (1, R + 1), (2, R + 2)))


@pytest.mark.parametrize("at", [-1, 3, 1 << 40])
def test_a_row_that_is_not_there(at):
    made = baton.compile(HEAD + "def @main(%x: Tensor[(3, 2), float32], %r: Tensor[(2), float32], %i: int64) { contrib_set_row(%x, %r, %i) }")
    with pytest.raises(baton.error.RuntimeError, match=f"row {at} of 3"):
        made(X, R, np.array(at, "int64"))
