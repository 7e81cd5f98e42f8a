# SPDX-License-Identifier: Apache-2.0
"""Layouts by letters: what they say, and the way from one to another."""

import pytest

from baton import ir, te, tir


def test_a_layout():
    layout = tir.layout("NCHW16c")
    assert layout.name == str(layout) == "NCHW16c" and len(layout) == 5 and list(layout) == ["N", "C", "H", "W", "c"]
    assert "C" in layout and "c" in layout and "O" not in layout and layout[1] == "C" and layout[-1] == "c"
    assert layout.index_of("c") == 4 and layout.index_of("W") == 3 and layout.index_of("O") == -1
    assert layout.factor_of("c") == layout.factor_of("C") == 16 and layout.factor_of("N") == -1
    assert layout == tir.layout("NCHW16c") and layout != tir.layout("NCHW") and len(tir.layout("__undef__")) == 0


@pytest.mark.parametrize("name", ["NCHWc", "NN", "NCHW16d", "NC-HW", "n", "NC0c", "NC16C"])
def test_texts_that_are_no_layouts(name):
    with pytest.raises(ValueError, match="layout"):
        tir.layout(name)


def test_the_way_and_back():
    there = tir.bijective_layout("NCHW", "NCHW16c")
    n, c, h, w = (te.size_var(x) for x in "nchw")
    got = there.forward_index([n, c, h, w])
    for g, want in zip(got, [n, tir.indexdiv(c, 16), h, w, tir.indexmod(c, 16)], strict=True):
        ir.assert_structural_equal(g, want)
    inner = te.size_var("inner")
    ir.assert_structural_equal(there.backward_index([n, c, h, w, inner])[1], c * 16 + inner)
    assert there.forward_shape([1, 32, 7, 7]) == [1, 2, 7, 7, 16] and there.backward_shape([1, 2, 7, 7, 16]) == [1, 32, 7, 7]
    turned = tir.bijective_layout("NCHW", "HWCN")
    assert turned.forward_shape((1, 32, 7, 9)) == [7, 9, 32, 1]


@pytest.mark.parametrize(
    ("act", "match"),
    [
        (lambda: tir.bijective_layout("NCHW", "NCH"), "other letters"),
        (lambda: tir.bijective_layout("NCHW", "NHWC").forward_shape([1, 2]), "has 2 numbers"),
        (lambda: tir.bijective_layout("NCHW", "NHWC").backward_index([1, 2]), "has 2 numbers"),
    ],
)
def test_misuse(act, match):
    with pytest.raises(ValueError, match=match):
        act()


def test_expressions_have_a_text():
    x, y = te.var("x"), te.var("y")
    assert [str(e) for e in (x, x + y, (x + 1) * y, tir.max(x, y), x.astype("float32"), tir.const(1.5, "float32"))] == [
        "x",
        "(x: int32 + y: int32)",
        "((x: int32 + 1)*y: int32)",
        "max(x: int32, y: int32)",
        "float32(x)",
        "1.5f",
    ]
