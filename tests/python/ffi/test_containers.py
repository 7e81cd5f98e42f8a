# SPDX-License-Identifier: Apache-2.0
"""Array as a list, Map as a dict (IR-012)."""

import collections.abc
import sys

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


class TestLoops:
    """The first loop over an Array makes objects as it goes, and uses those again that were not kept."""

    def make(self, n=7):
        return baton.convert([baton.relay.var(f"x{i}") for i in range(n)])

    def test_every_element_in_order(self):
        array = self.make()
        for _ in range(3):
            assert [x.name_hint for x in array] == [f"x{i}" for i in range(7)]

    def test_what_is_kept_stays(self):
        kept, seen = [], []
        array = self.make(50)
        for i, x in enumerate(array):
            seen.append(x.name_hint)
            if i % 3 == 0:
                kept.append(x)
                assert array[i] is x
        for again in (array, list(array)):
            assert all(again[i * 3] is x for i, x in enumerate(kept))
        assert [x.name_hint for x in kept] == [f"x{i}" for i in range(0, 50, 3)]
        assert seen == [f"x{i}" for i in range(50)]
        assert len({id(x) for x in kept}) == len(kept)

    def test_elements_of_several_kinds(self):
        x = baton.relay.var("x")
        items = [x, 1, baton.relay.const(2), "text", x, None, baton.convert([x]), 2.5, baton.relay.Tuple([x]), x]
        array = baton.convert(items)
        assert [type(v) for v in array] == [type(v) for v in baton.convert(items)] == [type(array[i]) for i in range(len(items))]

    def test_loops_within_each_other(self):
        array = self.make(5)
        pairs = [(x.name_hint, y.name_hint) for x in array for y in array]
        assert pairs == [(f"x{i}", f"x{j}") for i in range(5) for j in range(5)]

    def test_a_loop_outlives_the_array_and_may_be_left(self):
        it = iter(self.make(3))
        assert it.__length_hint__() == 3
        first = next(it)
        second = next(it)
        del it
        assert (first.name_hint, second.name_hint) == ("x0", "x1")
        it = iter(self.make(1))
        next(it)
        for _ in range(2):
            with pytest.raises(StopIteration):
                next(it)
        assert it.__length_hint__() == 0

    def test_nothing_leaks(self):
        array = self.make(100)
        alive = sys.getallocatedblocks()
        for _ in range(20):
            for _x in self.make(100):
                pass
        assert sys.getallocatedblocks() - alive < 200
        assert len(array) == 100
