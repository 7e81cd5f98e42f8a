# SPDX-License-Identifier: Apache-2.0
"""Global functions by the names of modules: `baton.arith._ffi_api.CreateAnalyzer` is the function `arith.CreateAnalyzer`."""

from .._ffi import get_global_func


def __getattr__(name):
    found = (
        None if name.startswith("_") else next((f for prefix in ("runtime", "arith", "node", "ir") if (f := get_global_func(f"{prefix}.{name}", True))), None)
    )
    if found is None:
        raise AttributeError(f"no global function is called `{name}`")
    return found
