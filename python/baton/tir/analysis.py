# SPDX-License-Identifier: Apache-2.0
"""Facts about loop programs."""

from .._ffi import get_global_func


def expr_deep_equal(lhs, rhs):
    """Whether two expressions are built alike, of the same variables."""
    return bool(get_global_func("tir.analysis.expr_deep_equal")(lhs, rhs))


def __getattr__(name):
    func = None if name.startswith("_") else get_global_func("tir.analysis." + name, allow_missing=True)
    if func is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return func
