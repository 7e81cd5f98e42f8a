# SPDX-License-Identifier: Apache-2.0
"""Bridges to the interfaces of other projects."""

import importlib
import importlib.util


def __getattr__(name):
    if name.startswith("_") or importlib.util.find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
