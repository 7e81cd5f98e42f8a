# SPDX-License-Identifier: Apache-2.0
"""The graph of a program: what `relay.build` gives as JSON, and the steps by which programs of Relay's graph executor made it."""

from .. import error as errors
from .._ffi import get_global_func
from ..ir import IRModule
from ..relay.backend.graph_plan import UnsupportedGraph, graph_json
from ..target import Target
from .targets import target_of


def graph_of(made):
    """The graph of what `relay.build` gave in this process as JSON, and its constants by name; None for programs that are more than a graph,
    or of several devices."""
    mod, target = getattr(made, "ir_mod", None), getattr(made, "target", None)
    if mod is None or not isinstance(target, Target):
        return None
    optimized = get_global_func("driver.Optimize")(mod, target)
    try:
        return graph_json(optimized["main"], getattr(made, "libmod_name", "default"))
    except (UnsupportedGraph, ValueError):
        return None


class GraphExecutorCodegen:
    """Makes the graph of a fused function: `GraphExecutorCodegen(None, target).codegen(mod, mod["main"])`."""

    def __init__(self, mod, target):
        if isinstance(target, dict):
            target = next(iter(target.values()), None)
        self._target = target_of(target)

    def codegen(self, ir_module, func):
        """(graph JSON, target -> module of lowered functions, constants by the names of their nodes)."""
        from ..relay import transform

        mod = ir_module if func.same_as(ir_module["main"]) else IRModule.of_main(func)
        mod = transform.InferType()(mod)
        try:
            graph, params = graph_json(mod["main"])
        except UnsupportedGraph as e:
            raise errors.UnsupportedError(f"the function is not a graph: {e}; relay.vm.compile takes any program") from None
        with self._target:
            lowered = transform.LowerToTIR()(transform.FuseOps()(mod))
        return graph, {self._target: lowered}, params


__all__ = ["GraphExecutorCodegen", "graph_of"]
