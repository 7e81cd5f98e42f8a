# SPDX-License-Identifier: Apache-2.0
"""Values that cross the border and come back."""

import enum
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import baton

echo = baton.get_global_func("testing.echo")
kind_of = baton.get_global_func("testing.kind_of")

plain = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.binary()
nested = st.recursive(plain, lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=20)


@given(nested)
def test_round_trip(value):  # PF-009, PF-030
    back = echo(value)
    assert back == value
    assert isinstance(back, bool) == isinstance(value, bool)
    assert isinstance(back, float) == isinstance(value, float)


def test_float_bits():
    assert math.isnan(echo(math.nan))
    assert math.copysign(1, echo(-0.0)) == -1
    assert echo(5e-324) == 5e-324


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**40])
def test_int_that_does_not_fit(value):
    with pytest.raises(OverflowError, match="64 bits"):
        echo(value)


def test_text_keeps_zero_bytes_and_lone_surrogates():
    assert echo("a\0b") == "a\0b"
    assert echo("naïve ☃ \U0001f600") == "naïve ☃ \U0001f600"
    assert echo("\udc80x") == "\udc80x"


def test_bytes_stay_bytes():
    assert echo(b"a\0b") == b"a\0b"
    assert echo(bytearray(b"xy")) == b"xy"
    assert echo(memoryview(b"xyz")[1:]) == b"yz"
    assert baton.get_global_func("testing.is_string")(b"four") == 4


def test_tuple_is_array():
    back = echo((1, [2, (3,)]))
    assert isinstance(back, baton.runtime.Array)
    assert back == [1, [2, [3]]]


def test_dtype():
    back = echo(baton.DataType("bfloat16"))
    assert kind_of(baton.DataType("int8")) == "dtype"
    assert back == "bfloat16" and isinstance(back, baton.DataType)
    assert echo(np.dtype("float16")) == "float16" and echo(np.float32) == "float32"
    # Where text is wanted, a dtype is its name.
    assert baton.get_global_func("testing.is_string")(baton.DataType("int8")) == 4
    with pytest.raises(TypeError, match="counterpart"):
        echo(np.dtype("datetime64[s]"))


@pytest.mark.parametrize(
    "name, bits, lanes, code, size",
    [
        ("float32", 32, 1, 2, 4),
        ("int8x4", 8, 4, 0, 4),
        ("uint1", 8, 1, 6, 1),
        ("bool", 8, 1, 6, 1),
        ("bfloat16", 16, 1, 4, 2),
        ("handle", 64, 1, 3, 8),
        ("float8_e4m3fn", 8, 1, 10, 1),
        ("float4_e2m1fn", 4, 1, 17, 1),
    ],
)
def test_dtype_parts(name, bits, lanes, code, size):
    t = baton.DataType(name)
    assert (t.bits, t.lanes, t.type_code, t.itemsize) == (bits, lanes, code, size)


def test_device():
    assert echo(baton.cpu(1)) == baton.cpu(1) != baton.cpu(0)
    assert baton.device("cuda", 2) == baton.cuda(2) == baton.device("cuda:2")
    assert baton.device("llvm -mcpu=native") == baton.cpu()
    assert repr(baton.cpu(0)) == "cpu(0)" and baton.cpu().device_type == 1 and len({baton.cpu(0), baton.cpu(0)}) == 1
    with pytest.raises(ValueError, match="no device is called `warp`"):
        baton.device("warp")


def test_handle():
    h = baton.runtime.Handle(0xDEADBEEF)
    assert echo(h) == h and echo(h).value == 0xDEADBEEF
    assert kind_of(h) == "handle"


def test_numpy_scalars():
    assert echo(np.int64(-5)) == -5 and kind_of(np.uint8(5)) == "int"
    assert echo(np.float32(0.5)) == 0.5 and kind_of(np.float16(1)) == "float"
    assert echo(np.bool_(True)) is True
    with pytest.raises(OverflowError):
        echo(np.uint64(2**64 - 1))


def test_subclasses_of_plain_types():
    class Colour(enum.IntEnum):
        RED = 3

    class Word(str):
        pass

    assert echo(Colour.RED) == 3 and echo(Word("x")) == "x"


def test_what_cannot_pass_says_its_type():
    with pytest.raises(TypeError, match="complex"):
        echo(1j)
    with pytest.raises(TypeError, match="set"):
        echo([{1}])


def test_nesting_without_end_is_an_error():
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        echo(endless)


def test_wrapper_with_asobject():
    class Wrapper:
        def __init__(self, inner):
            self.inner = inner

        def asobject(self):
            return self.inner

    array = baton.convert([1, 2])
    assert echo(Wrapper(array)).same_as(array)
    with pytest.raises(TypeError, match="which is no Object"):
        echo(Wrapper(3))


def test_no_keywords():
    with pytest.raises(TypeError, match="keyword"):
        echo(x=1)


def test_many_arguments():
    call = baton.get_global_func("testing.call")
    assert call(lambda *a: sum(a), *range(100)) == sum(range(100))
    strings = [str(i) + "\0" for i in range(30)] + [bytes([i]) for i in range(30)]
    assert call(lambda *a: list(a), *strings) == strings
    arrays = [np.full(3, i) for i in range(12)]
    assert call(lambda *a: [int(x.numpy().sum()) for x in a], *arrays) == [3 * i for i in range(12)]


def test_typed_function_names_what_it_wanted():  # PF-023
    add = baton.get_global_func("testing.add")
    assert add(1, 2) == 3
    with pytest.raises(TypeError, match="expected int, got str"):
        add("1", 2)
    with pytest.raises(TypeError, match="takes 2 arguments, got 3"):
        add(1, 2, 3)
    with pytest.raises(baton.Error):
        add(1)
