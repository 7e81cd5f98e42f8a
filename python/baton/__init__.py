# SPDX-License-Identifier: Apache-2.0
"""Baton, a deep-learning compiler with the design of Relay.

    import baton
    model = baton.compile("model.onnx")
    y = model(x)

or, as Relay's users know it (`import baton as tvm`):

    mod, params = baton.relay.frontend.from_onnx(onnx_model)
    with baton.transform.PassContext(opt_level=3):
        lib = baton.relay.build(mod, target="llvm", params=params)

Importing this loads the runtime library alone; the compiler is loaded by the first use of something of it.
"""

import importlib

from . import _core, error  # noqa: F401
from ._ffi import get_global_func, list_global_func_names, register_extension, register_func, register_object
from ._ffi.base import BatonError, Error, TVMError
from .error import *  # noqa: F403
from .error import __all__ as _errors
from .runtime import (  # noqa: E501
    DataType,
    DataTypeCode,
    Device,
    NDArray,
    Object,
    PackedFunc,
    cl,
    convert,
    cpu,
    cuda,
    ext_dev,
    gpu,
    hexagon,
    metal,
    mtl,
    opencl,
    rocm,
    vpi,
    vulkan,
    webgpu,
)
from .runtime import ndarray as nd
from .runtime.devices import device
from .runtime.ndarray import from_dlpack

_MODULES = frozenset(["arith", "autotvm", "auto_scheduler", "capsule", "cli", "compat", "config", "container", "contrib", "demo", "driver",
                      "exec", "explorer", "guard", "history", "instrument", "ir", "micro", "parser", "relay", "rpc", "runtime", "script", "support",
                      "target",
                      "te", "testing", "tir", "topi", "transform"])
# Name here -> module that has it.
_NAMES = {"IRModule": "ir", "placeholder": "te", "compile": "driver", "load": "driver", "build": "driver", "lower": "driver",
          "History": "history", "Capsule": "capsule", "bisect": "guard"}


def _version():
    import os
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "cmake", "Baton", "BatonConfigVersion.cmake")
    try:
        with open(path, encoding="utf-8") as f:
            for line in f:
                if line.startswith("set(PACKAGE_VERSION "):
                    return line.split('"')[1]
    except FileNotFoundError:
        pass
    from importlib.metadata import version
    return version("baton-compiler")


def __getattr__(name):
    if name in _MODULES:
        try:
            return importlib.import_module("baton." + name)
        except ModuleNotFoundError as missing:
            if missing.name != "baton." + name:
                raise
            raise AttributeError(f"module 'baton' has no module `{name}` yet") from None
    if name in _NAMES:
        value = getattr(importlib.import_module("baton." + _NAMES[name]), name)
    elif name == "__version__":
        value = _version()
    else:
        raise AttributeError(f"module 'baton' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_NAMES, "__version__", *(m for m in _MODULES if importlib.util.find_spec("baton." + m))})


__all__ = ["BatonError", "DataType", "DataTypeCode", "Device", "Error", "NDArray", "Object", "PackedFunc", "TVMError", "cl", "convert", "cpu",
           "cuda", "device", "error", "ext_dev", "from_dlpack", "get_global_func", "gpu", "hexagon", "list_global_func_names", "metal", "mtl", "nd", "opencl",
           "register_extension", "register_func", "register_object", "rocm", "vpi", "vulkan", "webgpu", *_errors]

