# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(module, backend="baton")`.

PyTorch's AOTAutograd differentiates and makes graphs functional; each graph is compiled by Baton, but for operators without a rule, which
are left to PyTorch (`islands.py`).
"""

from __future__ import annotations

import difflib
import time

import torch
from torch._dynamo.backends.common import aot_autograd

from ..._ffi import get_global_func
from ...error import UnsupportedError
from .compiled import compile_graph, compile_packed
from .decompose import house_rows
from .islands import split
from .reports import GRAPHS, GraphReport

_FALLBACKS = ("eager", "error")
_OPTIONS = ("config", "fallback", "freeze", "opt_level", "precision", "target", "threads")


class Options:
    """What `torch.compile(..., options={...})` may say.

    fallback: "eager" leaves operators without a rule to PyTorch, "error" raises one UnsupportedError about all of them. freeze: weights
    are constants of the compiled code: faster, and later changes of them are not seen; for inference alone. precision: what products and
    convolutions of float32 are computed in, "exact", "bf16" or "f16"; it, opt_level, config and target are as `baton.compile` takes them.
    threads: how many threads compiled code of this process uses.

    Raises ValueError for anything else.
    """

    def __init__(self, given=None):
        given = dict(given or {})
        if unknown := [name for name in given if name not in _OPTIONS]:
            near = difflib.get_close_matches(str(unknown[0]), _OPTIONS, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"backend \"baton\" has no option {', '.join(map(repr, unknown))}{hint}; it has {', '.join(_OPTIONS)}")
        self.fallback = given.get("fallback", "eager")
        self.freeze = given.get("freeze", False)
        self.threads = given.get("threads")
        self.compile = {name: given[name] for name in ("opt_level", "config", "precision", "target") if name in given}
        if self.fallback not in _FALLBACKS:
            raise ValueError(f"option fallback is {self.fallback!r}; it is \"eager\" or \"error\"")
        if not isinstance(self.freeze, bool):
            raise ValueError(f"option freeze is {self.freeze!r}; it is True or False")
        if self.threads is not None and (isinstance(self.threads, bool) or not isinstance(self.threads, int) or not 1 <= self.threads <= 1024):
            raise ValueError(f"option threads is {self.threads!r}; it is a number from 1 to 1024")


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
    weights = _weights(module, examples)
    if options.threads is not None:
        get_global_func("driver.SetNumThreads")(options.threads)

    def compiled(kind, weights):
        def of(graph, inputs):
            return _compile(graph, kind, options, weights)

        return of

    if options.freeze and torch.is_grad_enabled() and any(t.requires_grad for t in weights.values()):
        raise UnsupportedError("freeze=True is for inference: compile and call the module under torch.inference_mode() or torch.no_grad()")
    return aot_autograd(
        fw_compiler=compiled("forward", {}),
        bw_compiler=compiled("backward", {}),
        inference_compiler=compiled("inference", weights),
        decompositions=house_rows(),
    )(module, examples)


def _compile(graph, kind, options, weights):
    """A function of a list of inputs, which compiled code runs as far as there are rules."""
    report = GraphReport(kind, sum(n.op == "call_function" for n in graph.graph.nodes))

    def compile_part(part, held):
        if options.freeze or not held:
            return compile_graph(part, held, options.compile)
        return compile_packed(part, held, options.compile)

    run = split(graph, compile_part, weights, options.fallback, report)
    GRAPHS.append(report)
    clock = time.perf_counter

    def call(inputs):
        begin = clock()
        out = run(*inputs)
        report.seconds += clock() - begin
        report.calls += 1
        return out

    call._boxed_call = True
    return call


def register() -> None:
    """Makes the name "baton" known to `torch.compile` where Baton is not installed, as in a checkout: an installed one is found by
    its entry point."""
    if "baton" not in torch._dynamo.list_backends(None):
        torch._dynamo.register_backend(baton, name="baton")
