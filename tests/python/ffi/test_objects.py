# SPDX-License-Identifier: Apache-2.0
"""Classes of objects, without the compiler."""

import pytest

import baton
from baton import _core


def test_identity():
    a, b = baton.convert([1]), baton.convert([1])
    again = baton.get_global_func("testing.echo")(a)
    assert a.same_as(again) and not a.same_as(b) and not a.same_as(3)
    assert a.handle == again.handle != b.handle and a.type_key == "runtime.Array"
    f = baton.convert(len)
    assert f == baton.get_global_func("testing.echo")(f) and f != baton.convert(len) and hash(f) == hash(baton.get_global_func("testing.echo")(f))


def test_use_count():
    count = baton.get_global_func("testing.object_use_count")
    a = baton.convert([1])
    before = count(a)
    b = baton.convert([a])
    assert count(a) == before + 1 and a._use_count() == 2
    del b
    assert count(a) == before


def test_object_without_value():
    empty = _core.Object.__new__(_core.Object)
    assert "not initialised" in repr(empty)
    for use in (lambda: baton.get_global_func("testing.echo")(empty), lambda: len(_core.Array.__new__(_core.Array))):
        with pytest.raises(ValueError, match="not initialised"):
            use()
    with pytest.raises(ValueError, match="holds no function"):
        _core.PackedFunc.__new__(_core.PackedFunc)()
    with pytest.raises(TypeError, match="cannot be made by its fields"):
        _core.Object()


def test_unknown_attribute_names_the_type():  # RF-007
    with pytest.raises(AttributeError, match="`runtime.Array` has no attribute `nothing`"):
        _ = baton.convert([1]).nothing


def test_register_object_wants_a_class_of_objects():
    with pytest.raises(TypeError, match="derived from"):
        _core.register_class("runtime.Array", int)
    with pytest.raises(TypeError, match="cannot stand for"):
        _core.register_class("runtime.PackedFunc", _core.Array)


def test_class_that_waits_for_its_type():
    @baton.register_object("test.NeverRegistered")
    class Never(baton.Object):
        pass

    assert _core.registered_class("test.NeverRegistered") is None and not _core.type_known("test.NeverRegistered")


def test_objects_arrive_as_a_registered_class():  # RF-017
    class MyArray(_core.Array):
        __slots__ = ()

        def first(self):
            return self[0]

    try:
        _core.register_class("runtime.Array", MyArray)
        assert baton.convert([5]).first() == 5
    finally:
        _core.register_class("runtime.Array", _core.Array)
    assert type(baton.convert([5])) is _core.Array
