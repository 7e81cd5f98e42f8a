# SPDX-License-Identifier: Apache-2.0
"""Chooses the scales of a program that simulates integers."""

import collections.abc

import numpy as np

from ... import error as errors
from ...driver.relay_build import create_executor
from ...ir import IRModule, Op
from ...ir.transform import PassContext, module_pass
from ...relay.analysis import post_order_visit
from ...relay.expr import Call, Constant, Tuple
from ...relay.expr_functor import ExprMutator
from ...relay.function import Function
from ...relay.transform import InferType
from . import scales
from .annotate import simulated_quantize
from .config import QAnnotateKind, current_qconfig
from .rules import SIMULATED


def _is_simulated(expr):
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == SIMULATED


def _marks(func):
    """The calls of simulated_quantize in a function, inputs first."""
    found = []
    post_order_visit(func, lambda e: found.append(e) if _is_simulated(e) and e.attrs["kind"] != QAnnotateKind.IDENTITY else None)
    return found


def _by_samples(call):
    """Whether a data set says how far a value reaches."""
    return call.attrs["kind"] != QAnnotateKind.WEIGHT


class _Floats(ExprMutator):
    """The program without rounding."""

    def visit_call(self, call):
        new = super().visit_call(call)
        return new.args[0] if _is_simulated(new) else new


def _again(dataset, more_than_once):
    return list(dataset) if more_than_once and isinstance(dataset, collections.abc.Iterator) else dataset


def collect_stats(mod, dataset, chunk_by=-1):
    """Returns the values of @main that `simulated_quantize` marks, weights aside: arrays of one dimension, inputs first.

    dataset: dicts of arrays by name of @main's parameters; it is passed over for every `chunk_by` values (-1: once for all)."""
    func = mod["main"]
    calls = [c for c in _marks(func) if _by_samples(c)]
    step = chunk_by if chunk_by > 0 else max(1, len(calls))
    dataset = _again(dataset, step < len(calls))
    for first in range(0, len(calls), step):
        chunk = calls[first : first + step]
        floats = _Floats()
        whole = IRModule(dict(mod.functions.items()), dict(mod.type_definitions.items()))
        whole["main"] = Function(func.params, Tuple([floats.visit(c.args[0]) for c in chunk]))
        with PassContext(opt_level=3):
            run = create_executor("graph", InferType()(whole), target="llvm").evaluate()
        samples = [[] for _ in chunk]
        for batch in dataset:
            for kept, value in zip(samples, run(**{p.name_hint: batch[p.name_hint] for p in func.params}), strict=True):
                kept.append(value.numpy().ravel())
        if not samples[0]:
            raise errors.ValueError("calibrate: the data set is empty")
        yield from map(np.concatenate, samples)


def _reaches(mod, calls, dataset, config):
    """How far each value reaches that is not a weight."""
    if config.calibrate_mode == "global_scale":
        return [config.global_scale] * len(calls)
    if dataset is None:
        raise errors.ValueError(f'calibrate: calibrate_mode "{config.calibrate_mode}" needs a data set: quantize(mod, params, dataset)')
    bits = [config.get_nbit_by_kind(c.attrs["kind"]) for c in calls]
    samples = collect_stats(mod, dataset, config.calibrate_chunk_by)
    if config.calibrate_mode == "percentile":
        return [scales.by_percentile(s) for s in samples]
    return [scales.by_kl_divergence(s, b) for s, b in zip(samples, bits, strict=True)]


def _weight_reach(call, config):
    weight = call.args[0]
    if not isinstance(weight, Constant):
        raise errors.CompileError("calibrate: a weight is not a constant; give its value as a parameter: quantize(mod, params)")
    return (scales.power2_scale if config.weight_scale == "power2" else scales.max_scale)(weight.data.numpy())


def _scalar(value):
    return float(np.float32(value))


class _SetScales(ExprMutator):
    def __init__(self, reaches, config):
        super().__init__()
        self.reaches, self.config = reaches, config

    def visit_call(self, call):
        new = super().visit_call(call)
        reach = self.reaches.get(call)
        if reach is None:
            return new
        kind, sign = call.attrs["kind"], call.attrs["sign"]
        levels = 2 ** (self.config.get_nbit_by_kind(kind) - bool(sign))
        high = float(levels - 1)
        return simulated_quantize(new.args[0], _scalar(reach / levels), -high if sign else 0.0, high, kind, sign, call.attrs["rounding"])


def calibrate(dataset=None):
    """The pass that sets scale and bounds of each `simulated_quantize` of @main, as the current configuration says. A value of n bits reaches
    from 1 - 2**(n-1) to 2**(n-1) - 1 steps, of what it reaches by 2**(n-1) each.

    dataset: dicts of arrays by name of @main's parameters, for the modes "kl_divergence" and "percentile"."""

    @module_pass(opt_level=1, required=["InferType"], name="QuantizeCalibrate")
    def run(mod, ctx):
        config, func = current_qconfig(), mod["main"]
        calls = _marks(func)
        known = [c for c in calls if _by_samples(c)]
        reaches = dict(zip(known, _reaches(mod, known, dataset, config), strict=True))
        reaches.update((c, _weight_reach(c, config)) for c in calls if not _by_samples(c))
        made = IRModule(dict(mod.functions.items()), dict(mod.type_definitions.items()))
        made["main"] = _SetScales(reaches, config).visit(func)
        return made

    return run


__all__ = ["calibrate", "collect_stats"]
