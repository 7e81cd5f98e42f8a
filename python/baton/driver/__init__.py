# SPDX-License-Identifier: Apache-2.0
"""From a model to something that is called: `baton.compile`, `baton.load`."""

from .dims import Dim
from .donation import give
from .executable import Executable, TensorInfo, load
from .limits import Limits


def __getattr__(name):
    # The compiler is loaded by its first use, not by `baton.load`.
    if name == "compile":
        from .compiler import compile

        return compile
    if name in ("build", "build_module", "lower"):
        from importlib import import_module

        module = import_module(".build_module", __name__)
        return module if name == "build_module" else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["Dim", "Executable", "Limits", "TensorInfo", "build", "compile", "give", "load", "lower"]  # noqa: F822 - made on first use
