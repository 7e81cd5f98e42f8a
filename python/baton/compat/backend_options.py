# SPDX-License-Identifier: Apache-2.0
"""Which executor and runtime a program asks for; kept so that programs which say so run. There is one engine."""

from .. import error
from .._core import Object
from ..tir import IntImm

_TYPES = {"Bool": (bool, int, IntImm), "String": (str,)}
_WORDS = {"Bool": "IntImm", "String": "runtime.String"}


class _Choice:
    """A name and options, which are checked."""

    _options = {}

    def __init__(self, name, options=None):
        own = type(self).__name__
        if name not in self._options:
            raise error.ValueError(f'{own} "{name}" is not defined; there are {", ".join(sorted(self._options))}')
        self.name, self.attrs = str(name), {}
        for key, value in dict(options or {}).items():
            kind = self._options[name].get(key)
            if kind is None:
                raise error.ValueError(f'Attribute "{key}" is not available on this {own}; there are {", ".join(self._options[name]) or "none"}')
            if not isinstance(value, _TYPES[kind]):
                found = value.type_key if isinstance(value, Object) else "runtime.String" if isinstance(value, str) else type(value).__name__
                raise error.ValueError(f'Attribute "{key}" should have type "{_WORDS[kind]}" but instead found "{found}"')
            self.attrs[key] = bool(value) if kind == "Bool" else value

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
        """Options by name, with their types. Raises an error for a name that is not there."""
        if name not in cls._options:
            raise error.ValueError(f'{cls.__name__} "{name}" is not defined; there are {", ".join(sorted(cls._options))}')
        return dict(cls._options[name])

    def __contains__(self, name):
        return name in self.attrs

    def __getitem__(self, name):
        return self.attrs[name]

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

    _options = {"aot": {"link-params": "Bool", "unpacked-api": "Bool", "interface-api": "String"}, "graph": {"link-params": "Bool"}, "vm": {}}

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

    _options = {"cpp": {"system-lib": "Bool"}, "crt": {"system-lib": "Bool"}}

    @staticmethod
    def list_runtimes():
        """The names there are."""
        return Runtime.list_registered()

    @staticmethod
    def list_runtime_options(runtime):
        """Options of a runtime, with their types."""
        return Runtime.list_registered_options(runtime)


__all__ = ["Executor", "Runtime"]
