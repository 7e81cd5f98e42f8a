# SPDX-License-Identifier: Apache-2.0
"""First values of a network's parameters."""

import numpy as np

from ...ir import IRModule
from ...runtime import ndarray as nd
from ...runtime.data_type import numpy_dtype
from ..transform import InferType


class Initializer:
    """Fills arrays by the names of parameters."""

    def __call__(self, desc, arr, rng):
        if desc.endswith("weight"):
            self.init_weight(arr, rng)
        elif desc.endswith(("gamma", "var")):
            arr[...] = 1
        elif desc.endswith(("bias", "beta", "mean")):
            arr[...] = 0
        else:
            self.init_weight(arr, rng)

    def init_weight(self, arr, rng):
        """Fills the weights of a layer."""
        raise NotImplementedError


class Xavier(Initializer):
    """Random values whose spread suits the number of inputs and outputs."""

    def __init__(self, rnd_type="uniform", factor_type="avg", magnitude=3):
        self.rnd_type, self.factor_type, self.magnitude = rnd_type, factor_type, float(magnitude)

    def init_weight(self, arr, rng):
        area = np.prod(arr.shape[2:]) if arr.ndim > 2 else 1
        fan_in, fan_out = (arr.shape[1] if arr.ndim > 1 else arr.size) * area, (arr.shape[0] if arr.ndim else 1) * area
        factor = {"avg": (fan_in + fan_out) / 2, "in": fan_in, "out": fan_out}[self.factor_type]
        scale = np.sqrt(self.magnitude / max(factor, 1))
        arr[...] = rng.uniform(-scale, scale, arr.shape) if self.rnd_type == "uniform" else rng.normal(0, scale, arr.shape)


class Constant(Initializer):
    """One value everywhere."""

    def __init__(self, value):
        self.value = value

    def init_weight(self, arr, rng):
        arr[...] = self.value


def create_workload(net, initializer=None, seed=0):
    """(module, parameters) of a network: random values for all parameters of `net` but `data`."""
    mod = InferType()(IRModule.from_expr(net))
    rng = np.random.default_rng(seed)
    initializer = initializer or Xavier()
    params = {}
    for param in mod["main"].params:
        if param.name_hint == "data":
            continue
        ty = param.checked_type
        values = np.zeros(ty.concrete_shape, "float64")
        initializer(param.name_hint, values, rng)
        params[param.name_hint] = nd.array(values.astype(numpy_dtype(ty.dtype)))
    return mod, params
