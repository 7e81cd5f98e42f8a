# SPDX-License-Identifier: Apache-2.0
"""The contents of the tables of C++: types with their fields, operators, passes, options, functions."""

import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re

import baton

from .. import _core
from .._ffi import generated_class, get_global_func, list_global_func_names, load_compiler

# Flags of fields, as runtime/reflection.h numbers them.
REQUIRED, BINDS, IGNORED, FREE, NULLABLE, TRANSIENT, SOURCE = 1, 2, 4, 8, 16, 32, 64
# Parts of the package that are programs, not for others to import.
PROGRAMS = ("baton.cli", "baton.demo", "baton.describe", "baton.exec", "baton.__main__")


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of a type."""

    name: str
    kind: str  # "int", "Array<relay.Expr>", "runtime.String"
    doc: str
    flags: int
    default: object
    lower: object = None
    upper: object = None

    @property
    def required(self):
        """Must be given when an object is made."""
        return bool(self.flags & REQUIRED)

    @property
    def nullable(self):
        """May be None."""
        return bool(self.flags & NULLABLE)

    @property
    def ignored(self):
        """Not part of the value: comes last among the arguments of the constructor, counts for nothing in comparing."""
        return bool(self.flags & IGNORED)


@dataclasses.dataclass(frozen=True)
class NodeType:
    """A type of C++ that has a table of fields."""

    key: str
    parent: str
    doc: str
    abstract: bool
    fields: tuple
    cls: type

    @property
    def module(self):
        """The Python module that has the class."""
        return self.cls.__module__

    @property
    def name(self):
        """The name of the class."""
        return self.cls.__name__

    def arguments(self):
        """Fields in the order of the constructor's arguments."""
        return [f for f in self.fields if not f.ignored] + [f for f in self.fields if f.ignored]


def _import_all():
    """Everything that registers types: the compiler, the virtual machine's library, the modules with classes."""
    load_compiler()
    baton._ffi.base.load_vm()
    for name in python_modules():
        importlib.import_module(name)


@functools.cache
def python_modules():
    """Names of the package's modules, programs left out."""
    found = ["baton"]
    for info in pkgutil.walk_packages(baton.__path__, "baton."):
        last = info.name.rsplit(".", 1)[-1]
        if not info.name.startswith(PROGRAMS) and (not last.startswith("_") or last in ("_ffi", "_ffi_api")) and _importable(info.name):
            found.append(info.name)
    return tuple(sorted(found))


def _importable(name):
    try:
        importlib.import_module(name)
    except ImportError:
        return False  # it wants a package that is not here
    return True


def node_types():
    """All types with a table, by key, in the order of their names."""
    _import_all()
    bounds = get_global_func("node.FieldBounds")
    out = {}
    for key, parent, doc, abstract, fields in get_global_func("node.ListTypes")():
        cls = generated_class(key)
        limits = dict(bounds(key).items())
        made = tuple(Field(n, k, d, f, v, *limits.get(n, (None, None))) for n, k, d, f, v in fields)
        # A class written by hand says it in Python.
        own = vars(cls).get("__doc__") or ""
        own = inspect.cleandoc(own.split("\nFields:")[0]) if own else ""
        out[key] = NodeType(key, parent, own or doc, abstract, made, cls)
    for key, node in out.items():
        if node.abstract:
            out[key] = dataclasses.replace(node, fields=_shared_fields(key, out))
    return dict(sorted(out.items()))


def _shared_fields(key, types):
    """The fields of an abstract type: what all types below it begin with."""
    cls = types[key].cls
    below = [t.fields for t in types.values() if not t.abstract and t.cls is not cls and issubclass(t.cls, cls)]
    shared = []
    for same in zip(*below, strict=False) if len(below) > 1 else ():
        if len({(f.name, f.kind) for f in same}) > 1:
            break
        shared.append(same[0])
    return tuple(shared)


def operators():
    """Relay's operators by name: functions with `op`, `inputs`, `attrs`, `parameters`. Those of TIR are left out."""
    from ..relay.op.make import operator

    found = (n for n in baton.ir.Op.list_op_names() if baton.ir.Op.get(n).get_attr("output") is not None)
    return {n: operator(n) for n in sorted(found)}


def call_path(name):
    """How programs write an operator's function: "relay.nn.relu"."""
    from .. import relay

    if name.startswith("qnn."):
        return f"relay.qnn.op.{name[len('qnn.') :]}"
    found = relay
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"relay.{name}" if found is not None else f"relay.op.{name}"


def intrinsics():
    """Operators of TIR, by name."""
    found = (n for n in baton.ir.Op.list_op_names() if baton.ir.Op.get(n).get_attr("output") is None)
    return {n: baton.ir.Op.get(n) for n in sorted(found)}


def passes():
    """Name -> (what it does, its options, PassInfo or None where it cannot be made without arguments).

    An option is (name, type, what it means, flags, default)."""
    _import_all()
    out = {}
    for name in map(str, get_global_func("transform.PassNames")()):
        try:
            info = get_global_func("transform.GetPass")(name).info
        except baton.BatonError:
            info = None
        module, last = pass_function(name)
        function = getattr(importlib.import_module(module), last)
        doc = (str(info.doc) if info is not None else "") or inspect.getdoc(function) or ""
        options = baton.ir.transform.PassFunction(("tir.transform." if name.startswith("tir.") else "relay._transform.") + last, module).options
        out[name] = (doc, options, info)
    return dict(sorted(out.items()))


def pass_function(name):
    """(module, name in it) of the Python function that makes a pass."""
    return ("baton.tir.transform", name[4:]) if name.startswith("tir.") else ("baton.relay.transform", name)


def options():
    """Options of PassContext: key -> (type, what it means)."""
    doc = get_global_func("transform.ConfigDoc")
    listed = get_global_func("transform.ListConfigs")()
    return {str(k): (str(listed[k]), str(doc(k))) for k in sorted(map(str, listed))}


def packed_functions(prefix=""):
    """Global functions by name -> signature "(int, str) -> float", or None for one that looks at its arguments itself."""
    names = (n for n in list_global_func_names() if n.startswith(prefix))
    return {n: get_global_func(n).signature for n in sorted(names)}


def split_signature(text):
    """("(int, Map<str, int>) -> str") -> (["int", "Map<str, int>"], "str")."""
    inside, result = text[1:].rsplit(") -> ", 1)
    return split_words(inside), result


def split_words(text):
    """Splits at commas outside of brackets."""
    out, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "<[(") - (c in ">])")
        if c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*out, last] if last else out


def is_identifier(name):
    """Whether Python code can say it."""
    import keyword

    return name.isidentifier() and not keyword.iskeyword(name)


def attribute_names(cls):
    """Public attributes of a class's objects: what `dir` of one gives."""
    return [n for n in dir(cls) if not n.startswith("_")]


def described(key):
    """Whether C++ has a table for a key."""
    return _core.describe_type(key) is not None


def one_line(text):
    """Text without line breaks."""
    return re.sub(r"\s+", " ", text).strip()
