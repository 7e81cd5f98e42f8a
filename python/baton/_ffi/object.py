# SPDX-License-Identifier: Apache-2.0
"""Which Python class an object of C++ arrives as.

A class is written by hand only for behaviour. All others are made from the reflection tables when the first object of the
type arrives, or when the name is first looked up in a module.
"""

import importlib
import sys

from .. import _core
from . import base
from .hook import Hook

# Classes whose type C++ does not know (yet): a library that is loaded later may bring it.
_pending = {}
# Modules with hand-written classes, imported before the first class is made from reflection.
_class_modules = []
_class_modules_state = "none"

# Where a generated class lives, by what its key begins with. One of another library lives in that library's module: "gadget.Gadget"
# in `gadget`, which attaches its classes with `attach_classes("gadget", "gadget.")`.
_homes = {}
# Documentation of a class of attributes that says nothing itself: its operators.
_attrs_doc = Hook("_ffi.attrs_doc")


def place_classes(homes, modules):
    """Says where classes live: `homes`, the module of a generated class by what its key begins with; `modules`, those that have classes
    written by hand."""
    _homes.update(homes)
    _class_modules.extend(modules)


def _register(cls, key):
    if _core.register_class(key, cls):
        _pending.pop(key, None)
    else:
        _pending[key] = cls


def register_object(type_key=None):
    """Class decorator: objects of the type key arrive as this class.

        @baton._ffi.register_object("relay.Let")
        class Let(Expr): ...

    The class holds behaviour alone; fields come from C++. `class Let(Expr, key="relay.Let")` does the same. Types without
    their own class arrive as the nearest registered parent's, or as one made from reflection.
    """
    if isinstance(type_key, type):
        _register(type_key, type_key.__name__)
        return type_key

    def register(cls):
        _register(cls, type_key or cls.__name__)
        return cls

    return register


def _import_class_modules():
    global _class_modules_state
    if _class_modules_state == "none" and base.compiler_loaded():
        # While one of them is being imported, the others may not be: they import each other.
        if any(getattr(getattr(sys.modules.get(m), "__spec__", None), "_initializing", False) for m in ("baton", *_class_modules)):
            return
        _class_modules_state = "busy"
        for name in _class_modules:
            importlib.import_module(name)
        _class_modules_state = "done"


def _class_name(key):
    name = key.rsplit(".", 1)[-1]
    return name if name.isidentifier() else "".join(c if c.isalnum() else "_" for c in name)


def _home(key):
    """The module of a key's class."""
    prefix = key.rpartition(".")[0]
    return _homes.get(prefix) or _homes.get(prefix.split(".", 1)[0]) or prefix


def _rebuild(text):
    from .registry import get_global_func

    base.load_compiler()
    return get_global_func("node.LoadJSON")(text)


def _reduce(self):
    """How an object of a generated class is pickled: the class is not an attribute of a module that could be imported."""
    return _rebuild, (self.__getstate__(),)


def _resolve(key):
    """The class of a key that was not seen before: what waits for it, else one made from reflection, else None."""
    _import_class_modules()
    found = _core.registered_class(key)
    if found is not None:
        return found
    waiting = _pending.get(key)
    if waiting is not None:
        _register(waiting, key)
        return waiting
    described = _core.describe_type(key)
    if described is None:
        return None
    parent = _core.parent_key(key)
    base_class = _core.registered_class(parent) or _resolve(parent) or _core.Object
    doc, _, fields = described
    doc = doc or (_attrs_doc(key) if ".attrs." in key else "")
    lines = [doc] if doc else []
    if fields:
        lines += ["", "Fields:"] + [f"    {name} ({kind}): {text}" for name, kind, text, _, _ in fields]
    home = _home(key)
    cls = type(base_class)(_class_name(key), (base_class,), {"__slots__": (), "__doc__": "\n".join(lines), "__module__": home, "__reduce__": _reduce})
    _core.register_class(key, cls)
    return cls


def generated_class(key):
    """The class of a type key, made from reflection if there is no hand-written one; None for an unknown key."""
    if not _core.type_known(key):
        return None
    return _core.registered_class(key) or _resolve(key)


def attach_classes(module_name, prefix, names=None):
    """Gives a module a `__getattr__` that finds classes by type key: `baton.relay.Let` is "relay.Let"."""
    module = sys.modules[module_name]
    before = getattr(module, "__getattr__", None)

    def __getattr__(name):
        if not name.startswith("_"):
            for key in ((names or {}).get(name), prefix + name):
                cls = generated_class(key) if key else None
                if cls is not None:
                    setattr(module, name, cls)
                    return cls
        if before is not None:
            return before(name)
        raise AttributeError(f"module {module_name!r} has no attribute {name!r}")

    module.__getattr__ = __getattr__


_core.set_class_resolver(_resolve)
_core.set_subclass_hook(_register)
_core.register_class("runtime.PackedFunc", _core.PackedFunc)
_core.register_class("runtime.Array", _core.Array)
_core.register_class("runtime.Map", _core.Map)
