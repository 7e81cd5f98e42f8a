# SPDX-License-Identifier: Apache-2.0
"""Exchange with apache-tvm-ffi: its functions and tensors here, ours there. Needs `pip install apache-tvm-ffi`.

    from baton.contrib import tvm_ffi as exchange
    f = exchange.to_tvm_ffi(baton.get_global_func("my.func"))     # a tvm_ffi.Function
    g = exchange.from_tvm_ffi(tvm_ffi.get_global_func("their.func"))  # a baton.PackedFunc

Tensors share memory both ways. Numbers, text, bytes, None, devices, data types, functions, and lists and dicts of all these cross;
other objects are a TypeError that names them. A call costs one turn through Python on its way: for work, not for loops.
"""

import tvm_ffi as _tvm

from .. import _core
from ..error import Error, own_class
from ..runtime import DataType, NDArray, PackedFunc
from ..runtime.container import Array, Map
from ..runtime.ndarray import from_dlpack

_PLAIN = (type(None), bool, int, float, str, bytes)


class _Crossing:
    """A function of one side as a Python callable of the other: arguments go over, the result comes back."""

    __slots__ = ("back", "function", "over")

    def __init__(self, function, over, back):
        self.function, self.over, self.back = function, over, back

    def __call__(self, *args):
        try:
            return self.back(self.function(*[self.over(a) for a in args]))
        except Error as error:
            if own_class(error) is type(error):
                raise
            # Both sides tell errors by the names of their classes.
            raise own_class(error)(*error.args) from error


def to_tvm_ffi(x):
    """Returns a value of Baton as one of apache-tvm-ffi. Tensors share memory. Raises TypeError for a value without a counterpart."""
    if isinstance(x, _core.Device):
        return _tvm.device(str(x).split("(", maxsplit=1)[0], x.device_id)
    if isinstance(x, DataType):
        return _tvm.dtype(str(x))
    if isinstance(x, _PLAIN):
        return x
    if isinstance(x, NDArray):
        return _tvm.from_dlpack(x)
    if isinstance(x, PackedFunc):
        return _tvm.convert(_Crossing(x, from_tvm_ffi, to_tvm_ffi))
    if isinstance(x, (list, tuple, Array)):
        return _tvm.convert([to_tvm_ffi(item) for item in x])
    if isinstance(x, (dict, Map)):
        return _tvm.convert({to_tvm_ffi(k): to_tvm_ffi(v) for k, v in x.items()})
    if hasattr(type(x), "__dlpack__"):
        return _tvm.from_dlpack(x)
    if callable(x) and not isinstance(x, _core.Object):
        return _tvm.convert(_Crossing(x, from_tvm_ffi, to_tvm_ffi))
    raise TypeError(f"a {getattr(x, 'type_key', type(x).__name__)} of Baton has no counterpart in apache-tvm-ffi")


def from_tvm_ffi(x):
    """Returns a value of apache-tvm-ffi as one of Baton. Tensors share memory. Raises TypeError for a value without a counterpart."""
    if isinstance(x, _tvm.Device):
        return _core.Device(int(x.dlpack_device_type()), x.index)
    if isinstance(x, _tvm.dtype):
        return DataType(str(x))
    if isinstance(x, _PLAIN):
        return x
    if isinstance(x, _tvm.Tensor):
        return from_dlpack(x)
    if isinstance(x, _tvm.Function):
        return PackedFunc(_Crossing(x, to_tvm_ffi, from_tvm_ffi))
    if isinstance(x, (list, tuple, _tvm.Array, _tvm.List, _tvm.Shape)):
        return _core.convert([from_tvm_ffi(item) for item in x])
    if isinstance(x, (dict, _tvm.Map, _tvm.Dict)):
        return _core.convert({from_tvm_ffi(k): from_tvm_ffi(v) for k, v in x.items()})
    raise TypeError(f"a {type(x).__module__}.{type(x).__name__} of apache-tvm-ffi has no counterpart in Baton")


def register_to_tvm_ffi(name, function=None, override=False):
    """Registers a function of Baton, by default the global one of this name, as a global function of apache-tvm-ffi."""
    from .._ffi import get_global_func

    f = function if function is not None else get_global_func(name)
    _tvm.register_global_func(name, _Crossing(f, from_tvm_ffi, to_tvm_ffi), override=override)


def register_from_tvm_ffi(name, function=None, override=False):
    """Registers a function of apache-tvm-ffi, by default its global one of this name, as a global function of Baton."""
    from .._ffi import register_func

    f = function if function is not None else _tvm.get_global_func(name)
    register_func(name, from_tvm_ffi(f), override=override)


__all__ = ["from_tvm_ffi", "register_from_tvm_ffi", "register_to_tvm_ffi", "to_tvm_ffi"]
