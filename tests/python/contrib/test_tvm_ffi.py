# SPDX-License-Identifier: Apache-2.0
"""Functions and tensors exchanged with the real apache-tvm-ffi, both ways."""

import gc
import weakref

import numpy as np
import pytest

import baton

tvm_ffi = pytest.importorskip("tvm_ffi")
from baton.contrib import tvm_ffi as exchange  # noqa: E402

their_echo = tvm_ffi.get_global_func("testing.echo")
our_echo = baton.get_global_func("testing.echo")


@pytest.mark.parametrize("value", [None, True, -(1 << 63), 2.5, "text \N{GREEK SMALL LETTER ALPHA}", b"a\0b", [1, ["x", None]], {"a": 1, "b": [2.0]}])
def test_values_cross_both_ways(value):
    there = exchange.to_tvm_ffi(baton.convert(value))
    assert exchange.from_tvm_ffi(there) == value
    assert exchange.from_tvm_ffi(their_echo)(value) == value
    assert exchange.from_tvm_ffi(exchange.to_tvm_ffi(our_echo)(exchange.to_tvm_ffi(value))) == value


def test_devices_and_types_cross():
    assert exchange.from_tvm_ffi(exchange.to_tvm_ffi(baton.cpu(0))) == baton.cpu(0)
    assert exchange.from_tvm_ffi(exchange.to_tvm_ffi(baton.cuda(3))) == baton.cuda(3)
    there = exchange.to_tvm_ffi(baton.DataType("bfloat16"))
    assert isinstance(there, tvm_ffi.dtype)
    assert exchange.from_tvm_ffi(there) == "bfloat16"


def test_tensors_share_memory():
    ours = baton.nd.array(np.arange(6, dtype="float32").reshape(2, 3))
    theirs = exchange.to_tvm_ffi(ours)
    assert isinstance(theirs, tvm_ffi.Tensor)
    view = np.from_dlpack(theirs)
    ours[1, 2] = 42
    assert view[1, 2] == 42
    back = exchange.from_tvm_ffi(theirs)
    assert isinstance(back, baton.NDArray)
    assert back.data_ptr == ours.data_ptr
    del ours, theirs
    gc.collect()
    assert view[1, 2] == 42, "memory lives as long as a view of it"
    # Without this module, too: each side takes what knows DLPack.
    assert our_echo(exchange.to_tvm_ffi(back)).numpy().tolist() == back.numpy().tolist()
    assert np.from_dlpack(their_echo(back)).tolist() == back.numpy().tolist()


def test_our_function_called_through_theirs():
    @baton.register_func("test.exchange.add", override=True)
    def add(a, b):
        assert isinstance(a, baton.NDArray)
        return baton.nd.array(a.numpy() + b.numpy())

    exchange.register_to_tvm_ffi("test.exchange.add", override=True)
    f = tvm_ffi.get_global_func("test.exchange.add")
    x = tvm_ffi.from_dlpack(np.ones(3, "float32"))
    out = f(x, x)
    assert isinstance(out, tvm_ffi.Tensor)
    assert np.from_dlpack(out).tolist() == [2, 2, 2]
    baton._core.remove_global("test.exchange.add")


def test_their_function_called_from_ours():
    exchange.register_from_tvm_ffi("test.exchange.echo", their_echo, override=True)
    f = baton.get_global_func("test.exchange.echo")
    assert isinstance(f, baton.PackedFunc)
    a = baton.nd.array([1.0, 2.0])
    assert f(a).data_ptr == a.data_ptr
    # Called by C++, not by Python: a callback from the runtime.
    assert baton.get_global_func("testing.call_times")(exchange.from_tvm_ffi(their_echo), 5) == 4
    baton._core.remove_global("test.exchange.echo")


def test_callbacks_cross_as_arguments():
    apply = exchange.to_tvm_ffi(baton.get_global_func("testing.call"))
    assert apply(tvm_ffi.convert(lambda x: x * 2), 21) == 42
    theirs = exchange.from_tvm_ffi(tvm_ffi.convert(lambda f, x: f(x)))
    assert theirs(lambda x: x + 1, 41) == 42


def test_errors_cross_with_kind_and_text():
    def fails(_):
        raise KeyError("not here")

    with pytest.raises(KeyError, match="not here"):
        exchange.to_tvm_ffi(baton.convert(fails))(1)
    with pytest.raises(KeyError, match="not here"):
        exchange.from_tvm_ffi(tvm_ffi.convert(fails))(1)
    with pytest.raises(Exception, match="takes 2 arguments, got 1"):
        exchange.to_tvm_ffi(baton.get_global_func("testing.add"))(1)


def test_what_has_no_counterpart_is_named():
    with pytest.raises(TypeError, match=r"relay\.Var of Baton has no counterpart"):
        exchange.to_tvm_ffi(baton.relay.var("x"))
    with pytest.raises(TypeError, match="has no counterpart in Baton"):
        exchange.from_tvm_ffi(object())


def test_functions_are_freed_on_both_sides():
    class Call:
        def __call__(self):
            return 1

    ours, theirs = Call(), Call()
    alive = [weakref.ref(ours), weakref.ref(theirs)]
    there, here = exchange.to_tvm_ffi(baton.convert(ours)), exchange.from_tvm_ffi(tvm_ffi.convert(theirs))
    del ours, theirs
    assert (there(), here()) == (1, 1)
    del there, here
    gc.collect()
    baton._core.flush_dropped()
    assert [a() for a in alive] == [None, None]
