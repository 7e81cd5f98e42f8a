# SPDX-License-Identifier: Apache-2.0
"""Relay text and passes by name: what `baton opt` and `baton inspect` need. Loads the compiler."""

from __future__ import annotations

import contextlib

from .._ffi import get_global_func, list_global_func_names
from .._ffi.base import load_compiler

load_compiler()
_PREFIXES = ("relay._transform.", "tir.transform.")
# Registered beside the passes, but no passes.
_NOT_PASSES = ("Make", "Create")


def names() -> list[str]:
    """The names of all passes that can be made by name, sorted."""
    out = set()
    for name in map(str, list_global_func_names()):
        for prefix in _PREFIXES:
            short = name.removeprefix(prefix)
            if (
                short != name
                and short[:1].isupper()
                and not short.startswith(_NOT_PASSES)
                and not short.endswith("Expr")
            ):
                out.add(short)
    return sorted(out)


def make(name: str, options: dict):
    """A pass with options by name. TypeError where it does not take them."""
    if options:
        from .. import relay, tir

        maker = getattr(relay.transform, name, None) or getattr(tir.transform, name)
        return maker(**options)
    return get_global_func("transform.GetPass")(name)


def run(one, module):
    """The module after a pass."""
    return get_global_func("transform.RunPass")(one, module)


@contextlib.contextmanager
def context(opt_level: int, config: dict, disabled_pass: list[str]):
    """A pass context, entered."""
    from .compiler import Options

    with Options(None, opt_level, config, disabled_pass).context():
        yield


def parse(text: str, label: str = "<text>"):
    """The module that a Relay text says. ParseError with the place where it says none."""
    return get_global_func("parser.ParseModule")(label, text)


def text(module) -> str:
    """Relay text, which `parse` reads."""
    return str(get_global_func("ir.AsText")(module))


def _row(name: str, type_) -> dict:
    shape = getattr(type_, "shape", None)
    if shape is None:
        return {"name": name, "dtype": str(type_), "shape": None}
    dims = [int(d.value) if hasattr(d, "value") else None for d in map(_prim, shape)]
    return {"name": name, "dtype": str(type_.dtype), "shape": dims}


def _prim(dim):
    class Plain:
        def __init__(self, value):
            self.value = value

    return Plain(dim) if isinstance(dim, int) else dim


def describe(module) -> dict:
    """Inputs, outputs and operators of a module's `main`, in the words of `baton inspect`."""
    from .. import relay

    module = run(get_global_func("transform.GetPass")("InferType"), module)
    main = module["main"]
    inputs = [_row(str(p.name_hint), p.checked_type) for p in main.params]
    result = main.body.checked_type
    fields = list(getattr(result, "fields", [])) or [result]
    kinds: dict[str, int] = {}

    def count(node):
        if isinstance(node, relay.Call):
            name = str(getattr(node.op, "name", type(node.op).__name__))
            kinds[name] = kinds.get(name, 0) + 1

    relay.analysis.post_order_visit(main, count)
    outputs = [_row(f"output{i}", field) for i, field in enumerate(fields)]
    return {"inputs": inputs, "outputs": outputs, "operators": kinds}
