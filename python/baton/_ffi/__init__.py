# SPDX-License-Identifier: Apache-2.0
"""The border to C++: functions by name, classes by type key, errors by kind."""

from .base import BatonError, TVMError, compiler_loaded, load_compiler, register_error
from .object import attach_classes, generated_class, register_object
from .registry import (
    _init_api,
    convert,
    convert_to_object,
    get_global_func,
    list_global_func_names,
    register_extension,
    register_func,
    remove_global_func,
)

__all__ = [
    "BatonError",
    "TVMError",
    "attach_classes",
    "compiler_loaded",
    "convert",
    "convert_to_object",
    "generated_class",
    "get_global_func",
    "list_global_func_names",
    "load_compiler",
    "register_error",
    "register_extension",
    "register_func",
    "register_object",
    "remove_global_func",
    "_init_api",
]
