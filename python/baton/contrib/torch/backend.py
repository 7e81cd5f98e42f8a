# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(module, backend="baton")`.

PyTorch's AOTAutograd differentiates and makes graphs functional; each graph is compiled by Baton, but for operators without a rule, which
are left to PyTorch (`islands.py`).
"""

from __future__ import annotations

import torch
from torch._dynamo.backends.common import aot_autograd

from ...error import UnsupportedError
from .compiled import compile_graph
from .decompose import house_rows
from .islands import split
from .reports import GRAPHS, GraphReport

_FALLBACKS = ("eager", "error")


class Options:
    """What `torch.compile(..., options={...})` may say.

    fallback: "eager" leaves operators without a rule to PyTorch, "error" raises one UnsupportedError about all of them. freeze: weights
    are constants of the compiled code: faster, and later changes of them are not seen; for inference alone. opt_level, config: as
    `baton.compile` takes them.
    """

    def __init__(self, given=None):
        given = dict(given or {})
        self.fallback = given.pop("fallback", "eager")
        self.freeze = bool(given.pop("freeze", False))
        self.compile = {name: given.pop(name) for name in ("opt_level", "config", "target") if name in given}
        if given:
            raise ValueError(f"backend \"baton\" has no option {', '.join(map(repr, given))}; it has fallback, freeze, opt_level, config, target")
        if self.fallback not in _FALLBACKS:
            raise ValueError(f"fallback is {self.fallback!r}; it is \"eager\" or \"error\"")


def _check(tensors):
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and tensor.device.type != "cpu":
            raise UnsupportedError(f"a tensor on {tensor.device}: backend \"baton\" compiles for the CPU; move the module and its inputs there")


def _weights(module, examples):
    """Which inputs of the graph are weights: parameters and buffers of modules."""
    found = {}
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    for i, (node, example) in enumerate(zip(placeholders, examples, strict=False)):
        static = getattr(example, "_dynamo_static_input_type", None) or node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")
        if isinstance(example, torch.nn.Parameter) or isinstance(example, torch.Tensor) and static:
            found[i] = example
    return found


def baton(module, examples, *, options=None):
    """The backend: compiles a graph of TorchDynamo.

        fast = torch.compile(module, backend="baton", options={"freeze": True})

    options: see `Options`. Gives a function of tensors. Raises UnsupportedError for tensors that are not on the CPU, and with
    fallback="error" for operators without a rule.
    """
    options = Options(options)
    _check(examples)
    weights = _weights(module, examples) if options.freeze else {}

    def compiled(kind, constants):
        def of(graph, inputs):
            return _compile(graph, kind, options, constants)

        return of

    if options.freeze and torch.is_grad_enabled() and any(t.requires_grad for t in weights.values()):
        raise UnsupportedError("freeze=True is for inference: compile and call the module under torch.inference_mode() or torch.no_grad()")
    return aot_autograd(
        fw_compiler=compiled("forward", {}),
        bw_compiler=compiled("backward", {}),
        inference_compiler=compiled("inference", weights),
        decompositions=house_rows(),
    )(module, examples)


def _compile(graph, kind, options, constants):
    """A function of a list of inputs, which compiled code runs as far as there are rules."""
    report = GraphReport(kind, sum(n.op == "call_function" for n in graph.graph.nodes))
    run = split(graph, lambda part, held: compile_graph(part, held, options.compile), constants, options.fallback, report)
    GRAPHS.append(report)

    def call(inputs):
        with report.timed():
            return run(*inputs)

    call._boxed_call = True
    return call


def register() -> None:
    """Makes the name "baton" known to `torch.compile` where Baton is not installed, as in a checkout: an installed one is found by
    its entry point."""
    if "baton" not in torch._dynamo.list_backends(None):
        torch._dynamo.register_backend(baton, name="baton")
