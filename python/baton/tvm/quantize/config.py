# SPDX-License-Identifier: Apache-2.0
"""Options of `relay.quantize`."""

import threading
import warnings

from ... import error as errors
from ...error import did_you_mean


class QAnnotateKind:
    """The kind of a `simulated_quantize`: nothing, an operand in few bits, a weight, or sums in many bits."""

    IDENTITY = 0
    INPUT = 1
    WEIGHT = 2
    ACTIVATION = 3


_WORDS = {QAnnotateKind.INPUT: "input", QAnnotateKind.WEIGHT: "weight", QAnnotateKind.ACTIVATION: "activation", QAnnotateKind.IDENTITY: "identity"}


def kind2str(kind):
    """The word for a QAnnotateKind, as "weight"."""
    if kind not in _WORDS:
        raise errors.ValueError(f"{kind!r} is not a QAnnotateKind")
    return _WORDS[kind]


# Fields of QConfig and their defaults.
_DEFAULTS = {
    "nbit_input": 8,
    "nbit_weight": 8,
    "nbit_activation": 32,
    "dtype_input": "int8",
    "dtype_weight": "int8",
    "dtype_activation": "int32",
    "calibrate_mode": "global_scale",
    "global_scale": 8.0,
    "weight_scale": "power2",
    "skip_dense_layer": True,
    "skip_conv_layers": [0],
    "do_simulation": False,
    "round_for_shift": True,
    "debug_enabled_ops": None,
    "rounding": "UPWARD",
    "calibrate_chunk_by": -1,
    "partition_conversions": "disabled",
}
_CHOICES = {
    "dtype_input": ("int8", "int16"),
    "dtype_weight": ("int8", "int16"),
    "dtype_activation": ("int32",),
    "calibrate_mode": ("global_scale", "kl_divergence", "percentile"),
    "weight_scale": ("power2", "max"),
    "rounding": ("UPWARD", "TONEAREST"),
    "partition_conversions": ("disabled", "enabled", "fully_integral"),
}
_stacks = threading.local()


class QConfig:
    """Settings of `relay.quantize`; `qconfig` makes one. Within `with`, passes of this thread follow it."""

    _node_defaults = _DEFAULTS

    def __init__(self, **values):
        self.__dict__.update(_DEFAULTS)
        for name, value in values.items():
            if name not in _DEFAULTS:
                warnings.warn(f"qconfig has no `{name}`, which is left out{did_you_mean(name, list(_DEFAULTS))}", stacklevel=3)
                continue
            if name in _CHOICES and value not in _CHOICES[name]:
                raise errors.ValueError(f"qconfig: {name} is {value!r}; it is {' or '.join(map(repr, _CHOICES[name]))}")
            self.__dict__[name] = value
        for word in ("input", "weight"):
            bits, dtype = self.__dict__[f"nbit_{word}"], self.__dict__[f"dtype_{word}"]
            if not 2 <= bits <= int(dtype[3:]):
                raise errors.ValueError(f"qconfig: nbit_{word} is {bits}, where {dtype} holds 2 to {dtype[3:]}")
        if not self.global_scale > 0:
            raise errors.ValueError(f"qconfig: global_scale is {self.global_scale}; it is above 0")

    def __setattr__(self, name, value):
        raise errors.AttributeError(f"'{type(self).__name__}' object: cannot set attribute '{name}': make another by qconfig(...)")

    def get_nbit_by_kind(self, kind):
        """Bits of what a QAnnotateKind marks."""
        return getattr(self, "nbit_" + kind2str(kind))

    def get_dtype_by_kind(self, kind):
        """Dtype that holds what a QAnnotateKind marks."""
        return getattr(self, "dtype_" + kind2str(kind))

    def guard(self, ref_call):
        """Whether a call's operator may be quantized, as `debug_enabled_ops` says."""
        return self.debug_enabled_ops is None or ref_call.op.name in self.debug_enabled_ops

    def __enter__(self):
        _stack().append(self)
        return self

    def __exit__(self, *_):
        _stack().pop()

    def __repr__(self):
        return f"qconfig({', '.join(f'{name}={self.__dict__[name]!r}' for name in _DEFAULTS)})"


def _stack():
    if not hasattr(_stacks, "configs"):
        _stacks.configs = [QConfig()]
    return _stacks.configs


def current_qconfig():
    """The innermost `with qconfig(...)` of this thread, or the defaults."""
    return _stack()[-1]


def qconfig(**kwargs):
    """Settings of quantization, for `with`.

    nbit_input, nbit_weight, nbit_activation: bits of operands, weights and sums. dtype_input, dtype_weight, dtype_activation: what holds
    them. nbit_dict: bits by QAnnotateKind, instead.
    calibrate_mode: "global_scale" (every operand reaches to `global_scale`), or what a data set says: "kl_divergence", the range whose
    integers lose least information, or "percentile", that of all but one in 100,000 values.
    weight_scale: a weight reaches to its largest element ("max"), or to the next power of two ("power2"), so that scales divide by shifts.
    skip_conv_layers: numbers of `nn.conv2d` that stay float, from 0 in order of the program; None or []: none.
    skip_dense_layer: `nn.dense` stays float.
    do_simulation: floats that are rounded as integers would be, for measuring what quantization costs.
    round_for_shift: shifts to the right round; without it they go down. rounding: halves go up ("UPWARD"), or away from zero ("TONEAREST").
    debug_enabled_ops: names of the operators that may be quantized; None: all.
    calibrate_chunk_by: values collected at once, in numbers of operands; -1: all.
    partition_conversions: "enabled" makes functions of the conversion to integers, the network between and the conversion back;
    "fully_integral" also raises an error where something between is not an integer; "disabled": one function.

        with relay.quantize.qconfig(calibrate_mode="percentile", weight_scale="max", skip_conv_layers=[]):
            quantized = relay.quantize.quantize(mod, params, dataset)
    """
    nbit_dict = kwargs.pop("nbit_dict", None) or {}
    bits = {"nbit_" + kind2str(kind): n for kind, n in nbit_dict.items()}
    return QConfig(**{**bits, **kwargs})


__all__ = ["QAnnotateKind", "QConfig", "current_qconfig", "kind2str", "qconfig"]
