# SPDX-License-Identifier: Apache-2.0
"""Global functions: get, register, list; and what Python values become on their way."""

import sys

from .. import _core, error
from . import base

# Prefixes of names that the compiler library registers; asking for one loads it.
_COMPILER = (
    "ir.",
    "relay.",
    "tir.",
    "te.",
    "topi.",
    "transform.",
    "instrument.",
    "target.",
    "driver.",
    "arith.",
    "node.",
    "frontend.",
    "codegen.",
    "schedule.",
    "autotvm.",
    "printer.",
)
# Calls that take long run without Python's lock.
_LONG = {
    "transform.RunPass",
    "transform.CallPass",
    "relay._transform.RunPass",
    "relay.build",
    "relay.optimize",
    "relay.build_module.Build",
    "runtime.ModuleLoadFromFile",
    "runtime.LoadModule",
    # Of arrays, modules and devices of another machine, that wait for it.
    "runtime.ModuleGetFunction",
    "runtime.NDArrayCopyFrom",
    "runtime.NDArrayCopyTo",
    "runtime.NDArrayEmpty",
    "runtime.DeviceExists",
    "runtime.DeviceSync",
    "node.SaveJSON",
    "node.LoadJSON",
    "relay.parser.ParseModule",
    "relay.frontend.FromONNX",
    "tir.build",
    "ir.AsText",
}
_LONG_PREFIXES = ("driver.", "codegen.", "frontend.")


def _flag(name, func):
    if name in _LONG or name.startswith(_LONG_PREFIXES):
        func.release_gil = True
    return func


def get_global_func(name, allow_missing=False):
    """The global function of this name, whichever language registered it.

    Raises ValueError for an unknown name, or gives None with `allow_missing`.
    """
    func = _core.get_global(name)
    if func is None and not base.compiler_loaded() and name.startswith(_COMPILER):
        base.load_compiler()
        func = _core.get_global(name)
    if func is None:
        if allow_missing:
            return None
        import difflib

        near = difflib.get_close_matches(name, _core.list_globals(""), 3)
        raise error.ValueError(f"no global function is called `{name}`" + (f"; near: {', '.join(near)}" if near else ""))
    return _flag(name, func)


def register_func(func_name, f=None, override=False):
    """Registers a Python function under a name that every language sees.

        @baton.register_func("my.add")
        def add(a, b): return a + b

    A taken name raises ValueError unless `override`. Without a name, the function's own is used.
    """
    if callable(func_name):
        f, func_name = func_name, func_name.__name__

    def register(fn):
        _core.register_global(func_name, fn, override)
        return fn

    return register(f) if f is not None else register


def remove_global_func(name):
    """Removes a name from the registry; references to the function stay valid."""
    _core.remove_global(name)


def list_global_func_names():
    """Names of all global functions, sorted."""
    return _core.list_globals("")


class _Int(int):
    """An int of an Array, a Map or attributes: Python's, with `value` as literals of TIR have it."""

    __slots__ = ()
    value = property(int, doc="The number.")

    def __reduce__(self):
        return int, (int(self),)


class _Float(float):
    """A float of an Array, a Map or attributes: Python's, with `value` as literals of TIR have it."""

    __slots__ = ()
    value = property(float, doc="The number.")

    def __reduce__(self):
        return float, (float(self),)


_core.set_number_classes(_Int, _Float)


def convert(value):
    """Returns a value as it comes back from C++: a callable becomes a PackedFunc, a list or tuple an Array,
    a dict a Map, a NumPy array an NDArray; others stay."""
    made = _core.convert(value)
    return _Int(made) if type(made) is int else _Float(made) if type(made) is float else made


convert_to_object = convert


def register_extension(type_key=None):
    """Class decorator: instances of this plain class pass through C++, in arguments, results and containers, and come out as the
    very same objects. C++ sees an object of the type key; a function that wants another type says both names.

        @baton.register_extension("my.Matrix")
        class Matrix: ...

    Without a key, the class's module and name are it. A C++ extension type (baton/runtime/extension.h) gets its Python class by
    `register_object`, since its instances are objects of C++.
    """

    def register(cls):
        key = type_key if isinstance(type_key, str) else f"{cls.__module__}.{cls.__qualname__}" if isinstance(cls, type) else ""
        _core.register_extension(key, cls)
        return cls

    return register(type_key) if isinstance(type_key, type) else register


def _init_api(namespace, target_module_name=None):
    """Lets a module give the global functions `namespace.X` as X. Looked up when used, so the order of loading is free."""
    module = sys.modules[target_module_name or "baton." + namespace]
    prefix = namespace + "."
    before = getattr(module, "__getattr__", None)

    def __getattr__(name):
        if not name.startswith("__"):
            func = _core.get_global(prefix + name)
            if func is None and not base.compiler_loaded() and prefix.startswith(_COMPILER):
                base.load_compiler()
                func = _core.get_global(prefix + name)
            if func is not None:
                setattr(module, name, _flag(prefix + name, func))
                return getattr(module, name)
        if before is not None:
            return before(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}: no global function `{prefix}{name}`")

    def __dir__():
        return sorted({*vars(module), *(n[len(prefix) :] for n in _core.list_globals(prefix) if "." not in n[len(prefix) :])})

    module.__getattr__ = __getattr__
    module.__dir__ = __dir__
