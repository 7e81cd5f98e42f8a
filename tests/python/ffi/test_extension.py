# SPDX-License-Identifier: Apache-2.0
"""Extension types: classes from outside pass through functions and containers."""

import gc
import os
import subprocess
import weakref
from pathlib import Path

import pytest

import baton

echo = baton.get_global_func("testing.echo")
ROOT = Path(__file__).resolve().parents[3]

PLUGIN = r"""
#include <baton/runtime/array.h>
#include <baton/runtime/extension.h>
#include <baton/runtime/map.h>
#include <baton/runtime/registry.h>

#include <vector>

using namespace baton::runtime;

struct IntVector {
  std::vector<int64_t> data;
};
BATON_EXTENSION_TYPE(IntVector, "plugin.IntVector")

BATON_REGISTER_GLOBAL("plugin.make").set_body_typed([](Array<int64_t> items) {
  return IntVector{items.ToVector()};
});
BATON_REGISTER_GLOBAL("plugin.sum").set_body_typed([](IntVector v) {
  int64_t sum = 0;
  for (int64_t x : v.data) sum += x;
  return sum;
});
BATON_REGISTER_GLOBAL("plugin.all").set_body_typed([](Array<IntVector> vectors) {
  IntVector out;
  for (const IntVector& v : vectors) out.data.insert(out.data.end(), v.data.begin(), v.data.end());
  return out;
});
BATON_REGISTER_GLOBAL("plugin.call").set_body_typed([](PackedFunc f, IntVector v) -> IntVector { return f(v); });
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    """A shared library built against the public headers alone, as a third party's would be."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "plugin.cpp").write_text(PLUGIN)
    lib = Path(baton.__path__[0]) / "lib"
    command = [
        os.environ.get("CXX", "g++"),
        "-std=c++20",
        "-O1",
        "-shared",
        "-fPIC",
        "-fno-strict-aliasing",
        f"-I{ROOT / 'include'}",
        str(folder / "plugin.cpp"),
        f"-L{lib}",
        "-lbaton_runtime",
        f"-Wl,-rpath,{lib}",
        "-o",
        str(folder / "plugin.so"),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    baton._core.load_library(str(folder / "plugin.so"))
    return baton.get_global_func


def test_cpp_type_from_a_separate_library(plugin):
    """EX-002 EX-005: a C++ class of another library is argument and result; Baton is not rebuilt for it."""
    v = plugin("plugin.make")([1, 2, 3])
    assert v.type_key == "plugin.IntVector"
    assert plugin("plugin.sum")(v) == 6
    assert plugin("plugin.sum").signature == "(plugin.IntVector) -> int"


def test_python_class_for_a_cpp_type(plugin):
    """EX-003: a value from C++ arrives as the registered class, and can be handed back."""

    @baton.register_object("plugin.IntVector")
    class IntVector(baton.Object):
        __slots__ = ()

        def __init__(self, items):
            self.__init_handle_by_constructor__(plugin("plugin.make"), list(items))

        def total(self):
            return plugin("plugin.sum")(self)

    v = plugin("plugin.make")([4, 5])
    assert type(v) is IntVector
    assert v.total() == 9
    assert IntVector([7]).total() == 7
    assert plugin("plugin.sum")(echo(v)) == 9
    assert plugin("plugin.call")(lambda x: IntVector([x.total()]), v).total() == 9


def test_cpp_values_in_and_out_of_containers(plugin):
    """EX-002 in containers."""
    make, total = plugin("plugin.make"), plugin("plugin.sum")
    array = echo([make([1]), make([2, 3])])
    assert [total(v) for v in array] == [1, 5]
    assert total(plugin("plugin.all")(array)) == 6
    assert total(echo({"a": make([8])})["a"]) == 8


def test_other_types_are_refused_by_name(plugin):
    """EX-004: both type names are said."""
    with pytest.raises(TypeError, match=r"argument 0 of `plugin\.sum`: expected plugin\.IntVector, got runtime\.Array"):
        plugin("plugin.sum")([1, 2])

    @baton.register_extension("test.Wrong")
    class Wrong:
        pass

    with pytest.raises(TypeError, match=r"expected plugin\.IntVector, got test\.Wrong"):
        plugin("plugin.sum")(Wrong())


@baton.register_extension("test.Matrix")
class Matrix:
    def __init__(self, rows):
        self.rows = rows

    def __call__(self):
        return "called"


def test_python_objects_come_back_as_they_were():
    """EX-001 EX-003: instances of a Python class pass through C++, and the very same objects come out."""
    m = Matrix([[1]])
    assert echo(m) is m
    assert baton.get_global_func("testing.kind_of")(m) == "test.Matrix"
    assert [x is m for x in echo([m, m])] == [True, True]
    assert echo({"m": m})["m"] is m
    assert baton.get_global_func("testing.call")(lambda x: x, m) is m

    class Derived(Matrix):
        pass

    d = Derived([])
    assert echo(d) is d


def test_python_objects_are_freed():
    """EX-002: no copy is left behind."""
    m = Matrix([])
    alive = weakref.ref(m)
    array = echo([m])
    del m
    gc.collect()
    assert alive() is not None
    del array
    gc.collect()
    assert alive() is None


def test_wrong_registrations():
    with pytest.raises(TypeError, match="takes a plain class"):
        baton.register_extension("test.NotPlain")(baton.Object)
    with pytest.raises(TypeError, match="takes a plain class"):
        baton.register_extension("test.NotPlain")(3)
    with pytest.raises(ValueError, match="is the key of a type that is no extension type"):
        baton.register_extension("runtime.Array")(type("X", (), {}))
