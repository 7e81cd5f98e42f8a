# SPDX-License-Identifier: Apache-2.0
"""Tensors computed by loops that are written in Python.

@te.hybrid.script
def outer(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c

C = outer(A, B)        # of tensors: a tensor, or several
outer(x, y)            # of NumPy's arrays: runs in Python, to try it out
"""

from .module import HybridModule, build
from .script import decorate, script


def __getattr__(name):
    # NumPy is loaded by their first use.
    if name != "HYBRID_GLOBALS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .emulation import names

    globals()[name] = names()
    return globals()[name]


__all__ = ["HYBRID_GLOBALS", "HybridModule", "build", "decorate", "script"]  # noqa: F822 - HYBRID_GLOBALS is made on first use
