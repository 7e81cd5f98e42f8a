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
import importlib.util

from . import _core, error  # noqa: F401
from ._ffi import get_global_func, list_global_func_names, register_extension, register_func, register_object
from ._ffi.base import BatonError, Error, TVMError
from ._ffi.hook import answer as _answer
from ._ffi.object import place_classes as _place_classes
from .error import *  # noqa: F403
from .error import __all__ as _errors
from .runtime import (  # noqa: E501
    DataType,
    DataTypeCode,
    Device,
    NDArray,
    Object,
    PackedFunc,
    convert,
    cpu,
    cuda,
    ext_dev,
    hexagon,
    metal,
    opencl,
    rocm,
    vpi,
    vulkan,
    webgpu,
)
from .runtime import ndarray as nd
from .runtime.devices import device
from .runtime.ndarray import from_dlpack

# Where classes live: those that are made from reflection, by what their type key begins with, and those that are written by hand.
_place_classes(
    {
        "relay.attrs": "baton.relay.op.op_attrs",
        "relay": "baton.relay",
        "tir.transform": "baton.tir.transform",
        "tir": "baton.tir",
        "te": "baton.te",
        "transform": "baton.ir.transform",
        "instrument": "baton.ir.instrument",
        "runtime": "baton.runtime",
        "target": "baton.target",
        "attrs": "baton.ir",
        "": "baton.ir",
    },
    ["baton.ir", "baton.tir", "baton.te", "baton.relay", "baton.target"],
)
# Answers of higher layers to lower ones, which do not know them.
_answer(
    {
        "_ffi.attrs_doc": "baton.ir.op:attrs_doc",
        "ir.annotated_text": "baton.relay.expr:annotated_text",
        "ir.typed_text": "baton.relay.expr:typed_text",
        "ir.arithmetic": "baton.tir.op:arithmetic",
        "ir.make_call": "baton.relay.expr:Call",
        "ir.function_of": "baton.relay.function:function_of",
        "ir.import_std": "baton.relay.prelude:import_std",
        "ir.enter": "baton.relay.prelude:enter",
        "ir.make_loop_call": "baton.tir.op:call_global",
        "ir.prim_expr_annotated_text": "baton.tir.text:annotated",
        "ir.prim_expr_text": "baton.tir.text:text",
        "relay.partitioned": "baton.relay.transform.partition:partitioned",
        "relay.from_pytorch": "baton.contrib.torch:from_pytorch",
        "relay.evaluator": "baton.driver.relay_build:evaluator",
        "runtime.rpc_function": "baton.rpc.library:function",
        "runtime.read_archive": "baton.driver.archive:read",
        "runtime.graph_of": "baton.driver.graph_executor_codegen:graph_of",
        "te.arithmetic": "baton.relay.op.on_tensors:arithmetic",
        "driver.torch_program": "baton.contrib.torch:load_program",
        "driver.torch_parts": "baton.contrib.torch:compile_parts",
        "driver.torch_nodes": "baton.contrib.torch:nodes_of",
        "driver.torch_alone": "baton.contrib.torch:write_alone",
        "driver.capsule": "baton.capsule:from_environment",
        "rpc.register_server": "baton.rpc.tracker:register_server",
        "rpc.door": "baton.rpc.tracker.registration:Door",
        "rpc.linked": "baton.contrib.cc:linked",
        "rpc.join_proxy": "baton.rpc.proxy:Link",
    }
)

_MODULES = frozenset(
    [
        "arith",
        "autotvm",
        "auto_scheduler",
        "cache",
        "capsule",
        "cli",
        "config",
        "contrib",
        "demo",
        "driver",
        "exec",
        "explorer",
        "guard",
        "history",
        "instrument",
        "ir",
        "micro",
        "relay",
        "rpc",
        "runtime",
        "script",
        "support",
        "target",
        "te",
        "testing",
        "tir",
        "transform",
    ]
)
# Name here -> module that has it.
_NAMES = {
    "IRModule": "ir",
    "placeholder": "te",
    "compile": "driver",
    "Dim": "driver",
    "Limits": "driver",
    "give": "driver",
    "load": "driver",
    "build": "driver",
    "lower": "driver",
    "History": "history",
    "Capsule": "capsule",
    "bisect": "guard",
    "torch": "contrib",
}


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
        value = importlib.import_module("baton.config").version()
    else:
        from .error import did_you_mean

        near = "" if name.startswith("_") else did_you_mean(name, __dir__())
        raise AttributeError(f"module 'baton' has no attribute {name!r}{near}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_NAMES, "__version__", *(m for m in _MODULES if importlib.util.find_spec("baton." + m))})


__all__ = [
    "BatonError",
    "DataType",
    "DataTypeCode",
    "Device",
    "Error",
    "NDArray",
    "Object",
    "PackedFunc",
    "TVMError",
    "cl",
    "convert",
    "cpu",
    "cuda",
    "device",
    "error",
    "ext_dev",
    "from_dlpack",
    "get_global_func",
    "gpu",
    "hexagon",
    "list_global_func_names",
    "metal",
    "mtl",
    "nd",
    "opencl",
    "register_extension",
    "register_func",
    "register_object",
    "rocm",
    "vpi",
    "vulkan",
    "webgpu",
    *_errors,
]

from . import tvm  # noqa: E402, F401 - old spellings, for programs written for Relay; nothing else asks for it
