# SPDX-License-Identifier: Apache-2.0
"""Extents with names: types that are expressions, attributes that hold them, what is assumed of them, binding them."""

import re

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton._ffi import get_global_func


def typed(body, params="%x: Tensor[(n, 12), float32], %y: Tensor[(m, 12), float32]"):
    return relay.transform.InferType()(relay.fromtext(f'#[version = "0.0.5"]\ndef @main({params}) {{ {body} }}'))


def result(mod):
    return str(mod["main"].ret_type)


def guards(mod):
    attrs = mod["main"].attrs
    return [str(g[2]) for g in attrs["extent_guards"]] if attrs is not None and "extent_guards" in attrs else []


def bind(mod, **dims):
    return get_global_func("driver.BindDims")(mod, dims)


@pytest.mark.parametrize(
    "body,type",
    [
        ("reshape(%x, newshape=[-1])", "Tensor[(n*12), float32]"),
        ("reshape(%x, newshape=[0, -1])", "Tensor[(n, 12), float32]"),
        ("reshape(%x, newshape=[0, 3, 4])", "Tensor[(n, 3, 4), float32]"),
        ("reshape(%x, newshape=[-3])", "Tensor[(n*12), float32]"),
        ("reshape(%x, newshape=[0, -4, 3, -1])", "Tensor[(n, 3, 4), float32]"),
        ("reshape(%x, newshape=[n*2, 6])", "Tensor[(n*2, 6), float32]"),
        ("reshape(%x, newshape=[-1, 6])", "Tensor[(n*2, 6), float32]"),
        ("concatenate((%x, %y, %x))", "Tensor[(m + n*2, 12), float32]"),
        ("strided_slice(%x, begin=[0, 2], end=[n, 7])", "Tensor[(n, 5), float32]"),
        ("strided_slice(%x, begin=[0], end=[2])", "Tensor[(min(n, 2), 12), float32]"),
        ("strided_slice(%x, begin=[-1], end=[9223372036854775807])", "Tensor[(min(n, 1), 12), float32]"),
        ("zeros(shape=[n, m], dtype=\"float32\")", "Tensor[(n, m), float32]"),
        ("broadcast_to(%x, shape=[m, n, 12])", "Tensor[(m, n, 12), float32]"),
        ("tile(%x, reps=[2, 1])", "Tensor[(n*2, 12), float32]"),
        ("nn.pad(%x, 0f, pad_width=[[1, 2], [0, 0]])", "Tensor[(n + 3, 12), float32]"),
        ("transpose(add(%x, %x))", "Tensor[(12, n), float32]"),
        ("arange(0i64, 0i64, 1i64, dtype=\"int64\", length=n + m)", "Tensor[(m + n), int64]"),
    ],
)
def test_types_are_expressions(body, type):
    mod = typed(body)
    assert result(mod) == type
    assert guards(mod) == []
    again = relay.transform.InferType()(relay.fromtext(mod.astext()))
    tvm.ir.assert_structural_equal(mod, again, map_free_vars=True)
    assert result(again) == type


@pytest.mark.parametrize(
    "body,type,said",
    [
        ("add(%x, %y)", "Tensor[(select(n == 1, m, n), 12), float32]", ["extents m and n do not broadcast"]),
        ("concatenate((%x, %y), axis=1)", "Tensor[(n, 24), float32]", ["extents n and m must be equal"]),
        ("reshape(%x, newshape=[-1, 24])", "Tensor[(floordiv(n, 2), 24), float32]", ["must be equal"]),
        ("reshape(%x, newshape=[m, 12])", "Tensor[(m, 12), float32]", ["extents n*12 and m*12 must be equal"]),
        ("strided_slice(%x, begin=[m], end=[m + 2])", "Tensor[(2, 12), float32]", ["extent n - m - 2 must be at least 0"]),
        ("squeeze(expand_dims(strided_slice(%x, begin=[0, 0], end=[n, 1]), axis=0), axis=[1])", "Tensor[(1, 1), float32]", ["extents n and 1 must be equal"]),
    ],
)
def test_what_is_assumed_is_said(body, type, said):
    mod = typed(body)
    assert result(mod) == type
    found = guards(mod)
    assert found and all(any(text in g for g in found) for text in said), found
    twice = relay.transform.InferType()(relay.transform.SimplifyExpr()(mod))
    assert guards(twice) == found


def test_what_never_fits_is_an_error():
    with pytest.raises(tvm.error.TVMError, match="R4"):
        typed("concatenate((%x, concatenate((%x, %z))), axis=1)", "%x: Tensor[(k, 12), float32], %z: Tensor[(1, 12), float32]")
    with pytest.raises(tvm.error.TVMError, match="R3"):
        typed("reshape(%x, newshape=[n + 1, 12])")


def test_binding():
    mod = typed("add(reshape(%x, newshape=[n*2, 6]), reshape(%y, newshape=[-1, 6]))")
    bound = bind(mod, n=2, m=2)
    assert result(bound) == "Tensor[(4, 6), float32]" and guards(bound) == []
    assert re.search(r"newshape=\[4, 6\]", bound.astext())
    x, y = np.ones((2, 12), np.float32), np.full((2, 12), 2, np.float32)
    np.testing.assert_equal(relay.create_executor("debug", bound).evaluate()(x, y).numpy(), np.full((4, 6), 3, np.float32))
    with pytest.raises(ValueError, match=r"extents m\*2 and n\*2 must be equal; they are 6 and 4"):
        bind(mod, n=2, m=3)
    with pytest.raises(ValueError, match="no dimension `k`"):
        bind(mod, k=3)
    assert result(bind(typed("concatenate((%x, %y))"), n=3)) == "Tensor[(m + 3, 12), float32]"
    shapes = get_global_func("driver.BindShapes")(mod, {"x": [2, 12], "y": [2, 12]}, False)
    assert result(relay.transform.InferType()(shapes)) == "Tensor[(4, 6), float32]"


def test_numbers_in_attributes_stay_numbers():
    mod = typed("reshape(%x, newshape=[n, 3, 4])")
    attrs = mod["main"].body.attrs
    assert list(attrs.newshape)[1:] == [3, 4] and all(isinstance(v, int) for v in list(attrs.newshape)[1:])
    assert list(relay.reshape(relay.var("x", shape=(2, 6)), [3, 4]).attrs.newshape) == [3, 4]
