# SPDX-License-Identifier: Apache-2.0
"""Which executor and runtime a program asks for; kept so that programs which say so run. There is one engine."""

from .. import error
from .._core import Object
from ..tir import IntImm

_TYPES = {"Bool": (bool, int, IntImm), "IntImm": (int, IntImm), "String": (str,)}
_WORDS = {"Bool": "IntImm", "IntImm": "IntImm", "String": "runtime.String"}  # by which an error calls the type of an option


_FOUND = {bool: "IntImm", int: "IntImm", float: "FloatImm", str: "runtime.String"}


class _Choice:
    """A name and options, which are checked."""

    _options = {}

    def __init__(self, name, options=None):
        self._types = self.list_registered_options(name)
        self.name, self.attrs = str(name), {}
        for key, value in dict(options or {}).items():
            kind = self._type_of(key)
            if not isinstance(value, _TYPES[kind]):
                found = value.type_key if isinstance(value, Object) else _FOUND.get(type(value), type(value).__name__)
                raise error.ValueError(f'Attribute "{key}" should have type "{_WORDS[kind]}" but instead found "{found}"')
            self.attrs[key] = bool(value) if kind == "Bool" else int(value) if kind == "IntImm" else value

    def _type_of(self, key):
        if key not in self._types:
            raise error.ValueError(f'Attribute "{key}" is not available on this {type(self).__name__}; there are {", ".join(self._types) or "none"}')
        return self._types[key]

    @property
    def options(self):
        """The options that are given."""
        return self.attrs

    @classmethod
    def list_registered(cls):
        """The names there are."""
        return sorted(cls._options)

    @classmethod
    def list_registered_options(cls, name):
        """Options by name, with the names of their types, of a name or an object. Raises an error for a name that is not there."""
        name = getattr(name, "name", name)
        if name not in cls._options:
            raise error.ValueError(f'{cls.__name__} "{name}" is not defined; there are {", ".join(sorted(cls._options))}')
        return dict(cls._options[name])

    def __contains__(self, name):
        return name in self.attrs

    def __getitem__(self, name):
        """An option; where it is not given, False of one that is on or off, else None. Raises an error for a name that is not there."""
        kind = self._type_of(name)
        return self.attrs.get(name, False if kind == "Bool" else None)

    def get(self, name, default=None):
        """An option; the default where it is not given."""
        return self.attrs.get(name, default)

    def __eq__(self, other):
        return type(self) is type(other) and (self.name, self.attrs) == (other.name, other.attrs)

    def __hash__(self):
        return hash((self.name, tuple(sorted(self.attrs.items()))))

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"{type(self).__name__}({self.name!r}, {self.attrs!r})"


class Executor(_Choice):
    """An executor by name, as `Executor("aot", {"unpacked-api": True})`."""

    _options = {
        "aot": {
            "link-params": "Bool",
            "unpacked-api": "Bool",
            "interface-api": "String",
            "workspace-byte-alignment": "IntImm",
            "constant-byte-alignment": "IntImm",
        },
        "graph": {"link-params": "Bool"},
        "vm": {},
    }

    @staticmethod
    def list_executors():
        """The names there are."""
        return Executor.list_registered()

    @staticmethod
    def list_executor_options(executor):
        """Options of an executor, with their types."""
        return Executor.list_registered_options(executor)


class Runtime(_Choice):
    """A runtime by name, as `Runtime("cpp", {"system-lib": True})`."""

    _options = {name: {"system-lib": "Bool"} for name in ("c", "cpp", "crt")}

    @staticmethod
    def list_runtimes():
        """The names there are."""
        return Runtime.list_registered()

    @staticmethod
    def list_runtime_options(runtime):
        """Options of a runtime, with their types."""
        return Runtime.list_registered_options(runtime)


__all__ = ["Executor", "Runtime"]
