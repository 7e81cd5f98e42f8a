# SPDX-License-Identifier: Apache-2.0
"""The import hook of the floor: modules by the paths that they had, and the old names of modules as these are loaded."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec

from .tables import ABSENT, INSTEAD, MODULES, NAMES, PACKAGES, REGISTERS, WITH_FILES, current, instead_of


def find(module, name):
    """Returns a module's object of an old name; raises KeyError where it has none."""
    path, _, attribute = NAMES[module][name].partition(":")
    found = import_module(path)
    return getattr(found, attribute) if attribute else found


def _show_names(module):
    """Lets a module find its old names. Its attributes come first, as always; its own `__getattr__` last."""
    refused = INSTEAD.get(module.__name__, {})
    old, own_getattr, own_dir = NAMES[module.__name__], module.__dict__.get("__getattr__"), module.__dict__.get("__dir__")

    def __getattr__(name):
        if name in old:
            value = find(module.__name__, name)
            setattr(module, name, value)
            return value
        if name in refused:
            raise AttributeError(f"{module.__name__}.{name} is not there: {refused[name]}")
        try:
            if own_getattr is None:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            return own_getattr(name)
        except AttributeError:
            found = import_module("baton.tvm.deep_paths").below(module, name) if module.__name__ in WITH_FILES else None
            if found is None:
                raise
            return found

    def __dir__():
        return sorted({*(vars(module) if own_dir is None else own_dir()), *old})

    module.__getattr__, module.__dir__ = __getattr__, __dir__


def _serve(module):
    """Adds to a loaded module what programs look for in it."""
    if not hasattr(module, "__path__") and any(path.rpartition(".")[0] == module.__name__ for path in (*PACKAGES, *MODULES, *ABSENT)):
        module.__path__ = []  # an old path goes through it
    _show_names(module)
    if module.__name__ in WITH_FILES:
        import_module("baton.tvm.deep_paths").enter(module)
    if module.__name__ in REGISTERS:
        import_module(REGISTERS[module.__name__])


class _Alias:
    """Loads a module by another path: it stays the one object that it is."""

    @staticmethod
    def create_module(spec):
        module = import_module(MODULES.get(spec.name) or current(spec.name))
        spec.loader_state = module.__spec__
        return module

    @staticmethod
    def exec_module(module):
        # Importing has put the alias's spec on the module.
        name = module.__spec__.name
        module.__spec__ = module.__spec__.loader_state
        new = current(name)
        if new != name:
            _enter(new, name)


def _enter(own, name):
    """Makes the modules that are loaded below `own` known below `name`: loading them by that path would set them as attributes of their package, and
    hide what it has by their names."""
    for path, found in list(sys.modules.items()):
        if path.startswith(own + "."):
            sys.modules.setdefault(name + path.removeprefix(own), found)


class _WithNames:
    """Loads a module as its own loader does, then adds its old names."""

    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        _serve(module)


class _Shared:
    """Loads a module of the package by its path under another name of the package: it stays the one object that it is."""

    @staticmethod
    def create_module(spec):
        module = import_module("baton" + spec.name[spec.name.index(".") :])
        spec.loader_state = module.__spec__
        return module

    @staticmethod
    def exec_module(module):
        name = module.__spec__.name
        _Alias.exec_module(module)
        _enter(f"baton{name[name.index('.') :]}", name)


class _Finder:
    """Finds modules by their old paths, and adds the old names to modules as they are loaded."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        head, _, rest = name.partition(".")
        if rest and head != "baton" and sys.modules.get(head) is sys.modules["baton"]:
            return cls._shared(name, rest)
        if head != "baton":
            return None
        if name in MODULES:
            return ModuleSpec(name, _Alias, is_package=True)
        if instead_of(name) is not None:
            return ModuleSpec(name, import_module("baton.tvm.absent"), is_package=True)
        if (new := current(name)) != name:
            return ModuleSpec(name, _Alias, is_package=True) if _exists(new) else None
        if name not in NAMES:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not cls and hasattr(finder, "find_spec") else None
            if spec is not None:
                spec.loader = _WithNames(spec.loader)
                return spec
        return None

    @staticmethod
    def _shared(name, rest):
        try:
            module = import_module("baton." + rest)
        except ModuleNotFoundError as e:
            if e.name is None or not f"baton.{rest}".startswith(e.name):
                raise  # another module is missing, of which this one knows
            return None
        return ModuleSpec(name, _Shared, is_package=hasattr(module, "__path__"))


def _exists(name):
    """Whether a module is there. Loads the packages that it is in."""
    from importlib.util import find_spec

    try:
        return name in sys.modules or find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def install():
    """Serves old paths and names from here on, before any other finder, and those of the modules that are loaded already."""
    sys.meta_path.insert(0, _Finder)
    for name in [*NAMES]:
        if name in sys.modules:
            _serve(sys.modules[name])
