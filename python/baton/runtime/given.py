# SPDX-License-Identifier: Apache-2.0
"""Modules that Python gives the functions of: accelerators of others, and loaders of what was saved of them."""

import os
from collections.abc import Callable, Mapping

from .._ffi import get_global_func
from .._ffi.base import load_vm


def create_module(type_key, functions, binary=None, source=None):
    """A runtime.Module of the kind `type_key`.

        @baton.register_func("runtime.module.loadbinary_toy")
        def load(data):
            graph = json.loads(data)
            return runtime.create_module("toy", {graph["name"]: lambda *arrays: run(graph, arrays)}, binary=data)

    functions: by name, or a function of a name that gives one or None; each is called with arrays: the arguments, then the results that it
    writes. binary: bytes, or a function that gives them; a compiled module that imports this one carries them, and whatever loads it calls
    the registered function `runtime.module.loadbinary_TYPE_KEY` with them. Without it the module cannot be saved. source: the text that
    `get_source` gives, or a function of a format. Raises ValueError for a kind that is taken.
    """
    load_vm()
    get = functions.get if isinstance(functions, Mapping) else functions
    if not isinstance(get, Callable):
        raise TypeError(f"functions: a dict by name or a function of a name, not {type(functions).__name__}")
    save = None if binary is None else (binary if callable(binary) else lambda: bytes(binary))
    text = None if source is None else (source if callable(source) else lambda fmt: source)
    return get_global_func("vm.CreateModule")(str(type_key), lambda name: get(name), save, text)


def load_plugin(path):
    """Loads an accelerator's plug-in, a library in plain C that exports `baton_json_plugin` (`baton/runtime/json_module.h`). Returns its key.

    Regions for that key (`Compiler="KEY"`) are its own from then on where models are compiled, and what was saved of them can be loaded.
    RuntimeError for a library other than a plug-in, or one of another version.
    """
    load_vm()
    return str(get_global_func("vm.LoadJsonPlugin")(os.path.abspath(os.fsdecode(path))))


__all__ = ["create_module", "load_plugin"]
