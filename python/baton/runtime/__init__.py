# SPDX-License-Identifier: Apache-2.0
"""Objects, functions, arrays, devices and modules of the runtime; no compiler."""

from .._core import Device, Handle, Object, PackedFunc
from .._ffi import convert
from .._ffi.object import generated_class
from . import container, data_type, devices, module, ndarray, object
from .container import ADT, Array, Map, ShapeTuple, String, tuple_object
from .data_type import DataType, DataTypeCode
from .devices import cpu, cuda, device, ext_dev, hexagon, metal, opencl, rocm, vpi, vulkan, webgpu
from .given import create_module, load_plugin
from .module import BenchmarkResult, Module, enabled, load_module, system_lib
from .ndarray import NDArray
from .object import ObjectGeneric
from .params import load_param_dict, save_param_dict


def __getattr__(name):
    if name in ("packed_func", "params", "profiler_vm", "profiling", "vm"):
        import importlib

        return importlib.import_module(__name__ + "." + name)
    cls = None if name.startswith("_") else generated_class("runtime." + name)
    if cls is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return cls


def convert_to_object(value, span=None):
    """The value as an object: containers, texts, numbers."""
    return convert(value)


__all__ = [
    "ADT",
    "Array",
    "BenchmarkResult",
    "DataType",
    "DataTypeCode",
    "Device",
    "Handle",
    "Map",
    "Module",
    "NDArray",
    "Object",
    "ObjectGeneric",
    "PackedFunc",
    "ShapeTuple",
    "String",
    "container",
    "convert",
    "convert_to_object",
    "cpu",
    "create_module",
    "cuda",
    "data_type",
    "device",
    "devices",
    "enabled",
    "ext_dev",
    "hexagon",
    "load_module",
    "load_param_dict",
    "load_plugin",
    "metal",
    "module",
    "ndarray",
    "object",
    "opencl",
    "rocm",
    "save_param_dict",
    "system_lib",
    "tuple_object",
    "vpi",
    "vulkan",
    "webgpu",
]
