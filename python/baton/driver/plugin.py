# SPDX-License-Identifier: Apache-2.0
"""Programs divided for an accelerator whose plug-in `runtime.load_plugin` has loaded."""

from .._ffi import get_global_func
from ..error import UnsupportedError, ValueError
from ..ir import IRModule, TupleType, register_op_attr
from ..relay.expr import Call, var
from ..relay.function import Function
from ..relay.op import list_op_names
from ..relay.transform import InferType
from ..relay.transform.partition import partitioned
from .json_graph import graph_of

_annotated = set()


def partition_for_plugin(mod, key, params=None, patterns=()):
    """The program with a function for each region that the plug-in `key` takes, as it says of each call of an operator; its code is made by
    `relay.build` and the others. `params` become constants; `patterns` are composites, as `MergeComposite` takes them. ValueError for a
    plug-in that is not loaded."""
    if get_global_func(f"runtime.json_takes.{key}", True) is None:
        raise ValueError(f"no plug-in `{key}` is loaded; baton.runtime.load_plugin(path) loads one")
    if key not in _annotated:
        _annotated.add(key)
        for name in list_op_names():
            register_op_attr(name, f"target.{key}", lambda call: _takes(key, call))
    return partitioned(mod, params, key, list(patterns))


def _takes(key, call):
    """Whether the plug-in says that it takes a call: it is asked of a graph of this call alone."""
    if any(isinstance(a.checked_type, TupleType) for a in call.args):
        return False
    params = [var(f"x{i}", a.checked_type) for i, a in enumerate(call.args)]
    func = Function(params, Call(call.op, params, call.attrs))
    try:
        text, constants = graph_of(InferType()(IRModule.from_expr(func))["main"])
    except UnsupportedError:
        return False
    return bool(get_global_func(f"runtime.json_takes.{key}")(text, constants))


__all__ = ["partition_for_plugin"]
