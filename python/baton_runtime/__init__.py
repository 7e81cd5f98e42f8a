# SPDX-License-Identifier: Apache-2.0
"""Runs models that Baton compiled and saved; nothing here compiles.

    import baton_runtime
    model = baton_runtime.load("model.so")
    y = model(x).numpy()

`python -m baton_runtime` prints flags for C and C++ programs that link the same library.
"""

from .library import Error, global_func
from .model import GraphModule, Model, Module, TensorInfo, load, load_module
from .tensor import Device, NDArray, cpu, opencl

__all__ = ["Device", "Error", "GraphModule", "Model", "Module", "NDArray", "TensorInfo", "cpu", "global_func", "load", "load_module", "opencl"]


def __getattr__(name):
    if name == "__version__":
        from importlib.metadata import version

        return version("baton-runtime")
    raise AttributeError(f"module 'baton_runtime' has no attribute {name!r}")
