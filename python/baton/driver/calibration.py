# SPDX-License-Identifier: Apache-2.0
"""Values at the border of functions for other compilers."""

from ..ir import IRModule
from ..relay.expr import Tuple
from ..relay.expr_functor import ExprMutator
from ..relay.function import Function
from ..relay.transform import InferType
from .relay_build import create_executor


def get_calibration_data(mod, data):
    """Returns the inputs and outputs of functions of a module that carry `Compiler`: by GlobalVar, a dict with the arrays of `inputs` and `outputs`.

    mod: a module whose main calls such functions, each with tensors, without control flow. data: arrays by name of main's parameters.
    """
    calls = []

    class Keep(ExprMutator):
        def visit_call(self, call):
            new = super().visit_call(call)
            func = mod[call.op] if hasattr(call.op, "name_hint") and call.op.name_hint in mod else None
            if isinstance(func, Function) and func.attrs is not None and "Compiler" in func.attrs:
                calls.append((call.op, new))
            return new

    main = mod["main"]
    Keep().visit(main.body)
    outputs = [Tuple([Tuple(list(call.args)), call]) for _, call in calls]
    whole = IRModule({v: f for v, f in mod.functions.items() if v.name_hint != "main"}, dict(mod.type_definitions.items()))
    whole["main"] = Function(main.params, Tuple(outputs))
    values = create_executor("graph", InferType()(whole)).evaluate()(**{p.name_hint: data[p.name_hint] for p in main.params})
    found = {}
    for (var, _), (inputs, result) in zip(calls, values, strict=True):
        found[var] = {"inputs": list(inputs), "outputs": list(result) if hasattr(result, "__iter__") and not hasattr(result, "numpy") else [result]}
    return found


__all__ = ["get_calibration_data"]
