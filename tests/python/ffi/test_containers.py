# SPDX-License-Identifier: Apache-2.0
"""Array as a list, Map as a dict (IR-012)."""

import collections.abc

import pytest
from hypothesis import given
from hypothesis import strategies as st

import baton


@given(st.lists(st.integers(-100, 100)), st.slices(12), st.integers(-15, 15))
def test_array_is_a_list(items, cut, place):
    array = baton.convert(items)
    assert len(array) == len(items) and list(array) == items and array == items and array == baton.convert(items)
    assert array[cut] == items[cut] and list(reversed(array)) == items[::-1]
    assert (place in array) == (place in items)
    try:
        want = items[place]
    except IndexError:
        with pytest.raises(IndexError):
            array[place]
    else:
        assert array[place] == want and array.index(want) == items.index(want) and array.count(want) == items.count(want)
    assert array + [1] == items + [1] and bool(array) == bool(items)
    assert repr(array) == repr(items)


def test_array_of_objects_keeps_identity():
    inner = baton.convert([1])
    outer = baton.convert([inner, inner])
    assert outer[0].same_as(inner) and outer[1].same_as(outer[0])
    assert isinstance(outer, collections.abc.Sequence)


def test_equal_arrays_have_equal_hashes():
    assert hash(baton.convert([1, "a"])) == hash(baton.convert([1, "a"]))
    assert baton.convert([1]) != [2] and baton.convert([1]) != 3


def test_array_index_errors():
    array = baton.convert([1])
    with pytest.raises(TypeError, match="int or slice"):
        array["0"]
    with pytest.raises(IndexError, match="index 7 is outside an Array of 1"):
        array[7]


@given(st.dictionaries(st.text() | st.integers(-9, 9), st.integers(0, 9)))
def test_map_is_a_dict(items):
    made = baton.convert(items)
    assert len(made) == len(items) and made == items
    assert list(made) == list(items) and made.keys() == list(items) and made.values() == list(items.values())
    assert made.items() == list(items.items()) and dict(made.items()) == items
    for key, value in items.items():
        assert key in made and made[key] == value and made.get(key) == value
    assert made.get("\0nowhere") is None and made.get("\0nowhere", 5) == 5 and "\0nowhere" not in made
    with pytest.raises(KeyError):
        made["\0nowhere"]


def test_map_by_identity_of_objects():
    a, b = baton.convert([1]), baton.convert([1])
    made = baton.convert({a: "a"})
    assert made[a] == "a" and b not in made
    assert isinstance(made, collections.abc.Mapping) and 1j not in made
    assert repr(baton.convert({"a": [1]})) == "{'a': [1]}"


def test_made_by_class():
    assert baton.runtime.Array(range(3)) == [0, 1, 2]
    assert baton.runtime.Map(a=1) == {"a": 1}
    assert baton.runtime.tuple_object([1, 2]) == [1, 2]
