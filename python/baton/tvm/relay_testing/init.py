# SPDX-License-Identifier: Apache-2.0
"""First values of a network's parameters."""

import numpy as np

from ...ir import IRModule
from ...relay.transform import InferType
from ...runtime import ndarray as nd
from ...runtime.data_type import numpy_dtype


class Initializer:
    """Fills arrays by the names of parameters: `initializer(name, array)`. A class of a program overrides `_init_weight(name, array)` and
    its like."""

    _KINDS = {"weight": "_init_weight", "bias": "_init_bias", "gamma": "_init_gamma", "beta": "_init_beta", "mean": "_init_mean", "var": "_init_var"}

    def __call__(self, desc, arr):
        for ending, method in self._KINDS.items():
            if desc.endswith(ending):
                return getattr(self, method)(desc, arr)
        return self._init_default(desc, arr)

    def _init_bias(self, _, arr):
        arr[...] = 0

    _init_beta = _init_mean = _init_bias

    def _init_gamma(self, _, arr):
        arr[...] = 1

    _init_var = _init_gamma

    def _init_weight(self, name, arr):
        raise NotImplementedError(f"{type(self).__name__} has no `_init_weight`, which `{name}` needs")

    def _init_default(self, name, arr):
        self._init_weight(name, arr)


class Xavier(Initializer):
    """Random values of NumPy whose spread suits the number of inputs and outputs."""

    def __init__(self, rnd_type="uniform", factor_type="avg", magnitude=3):
        self.rnd_type, self.factor_type, self.magnitude = rnd_type, factor_type, float(magnitude)

    def _init_weight(self, name, arr):
        area = np.prod(arr.shape[2:]) if arr.ndim > 2 else 1
        fan_in, fan_out = (arr.shape[1] if arr.ndim > 1 else arr.size) * area, (arr.shape[0] if arr.ndim else 1) * area
        factor = {"avg": (fan_in + fan_out) / 2, "in": fan_in, "out": fan_out}[self.factor_type]
        scale = np.sqrt(self.magnitude / max(factor, 1))
        arr[...] = np.random.uniform(-scale, scale, arr.shape) if self.rnd_type == "uniform" else np.random.normal(0, scale, arr.shape)


class Constant(Initializer):
    """One value everywhere."""

    def __init__(self, value):
        self.value = value

    def _init_weight(self, name, arr):
        arr[...] = self.value


def create_workload(net, initializer=None, seed=0):
    """(module, parameters) of a network: values for all parameters of `net` but `data`, by `initializer(name, array)`; Xavier's random ones
    by default. Seeds NumPy with `seed`."""
    mod = InferType()(IRModule.from_expr(net))
    np.random.seed(seed)
    initializer = initializer or Xavier()
    params = {}
    for param in mod["main"].params:
        if param.name_hint == "data":
            continue
        ty = param.checked_type
        values = np.zeros(ty.concrete_shape, numpy_dtype(ty.dtype))
        initializer(param.name_hint, values)
        params[param.name_hint] = nd.array(values)
    return mod, params
