# SPDX-License-Identifier: Apache-2.0
"""Quantized operators: `relay.qnn.op.quantize(...)`."""

import importlib


def __getattr__(name):
    if name in ("op", "transform"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
