# SPDX-License-Identifier: Apache-2.0
"""Arrays and devices."""

import ctypes
from ctypes import POINTER, byref, c_int64, c_void_p

import numpy as np

from .library import CONVERTERS, WRAPPERS, DLDataType, DLDevice, DLTensor, Object, check, global_func, lib

_KINDS = {1: "cpu", 2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 12: "ext_dev", 15: "webgpu", 16: "hexagon"}
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_PREFIX = {0: "int", 1: "uint", 2: "float", 5: "complex", 6: "bool", 4: "bfloat"}


class Device(DLDevice):
    """A device by name and number: `Device("opencl", 0)`; `cpu()` is the first processor."""

    def __init__(self, kind="cpu", device_id=0):
        numbers = {name: number for number, name in _KINDS.items()}
        if isinstance(kind, str) and kind not in numbers:
            raise ValueError(f"there is no kind of device `{kind}`; known are {', '.join(numbers)}")
        super().__init__(numbers[kind] if isinstance(kind, str) else kind, device_id)

    @property
    def exist(self):
        """Whether this machine has it."""
        return bool(global_func("runtime.DeviceExists")(self))

    def __eq__(self, other):
        return isinstance(other, DLDevice) and (self.device_type, self.device_id) == (other.device_type, other.device_id)

    def __hash__(self):
        return hash((self.device_type, self.device_id))

    def __repr__(self):
        return f"{_KINDS.get(self.device_type, self.device_type)}({self.device_id})"


def cpu(device_id=0):
    """The processor."""
    return Device("cpu", device_id)


def opencl(device_id=0):
    """An OpenCL device."""
    return Device("opencl", device_id)


def dtype_name(dtype):
    """Name of a dtype, as "float32"."""
    name = _PREFIX.get(dtype.code, f"custom{dtype.code}_")
    return name if dtype.code == 6 else f"{name}{dtype.bits}"


def _numpy_dtype(dtype):
    if dtype.code == 4:
        try:
            import ml_dtypes
        except ImportError:
            raise TypeError("NumPy has no bfloat16; mend with: pip install ml_dtypes") from None
        return np.dtype(ml_dtypes.bfloat16)
    if dtype.lanes != 1 or dtype.code not in _PREFIX:
        raise TypeError(f"NumPy has no dtype {dtype_name(dtype)} with {dtype.lanes} lanes")
    return np.dtype(dtype_name(dtype))


_DTYPES = {}  # of NumPy -> DLDataType


def _dl_dtype(dtype):
    made = _DTYPES.get(dtype)
    if made is None:
        bfloat = dtype.name == "bfloat16"
        if not bfloat and dtype.kind not in _CODES:
            raise TypeError(f"an array of dtype {dtype} cannot be passed to the runtime")
        made = _DTYPES[dtype] = DLDataType(4 if bfloat else _CODES[dtype.kind], dtype.itemsize * 8, 1)
    return made


def _lent(value, kept):
    """The DLTensor of a NumPy array, or of an array of another library in the processor's memory; None for other values."""
    if not isinstance(value, (np.ndarray, np.generic)):
        if not hasattr(value, "__dlpack__"):
            return None
        value = np.from_dlpack(value)
    array = value if isinstance(value, np.ndarray) and value.flags.c_contiguous else np.asarray(value, order="C")
    shape = (c_int64 * array.ndim)(*array.shape)
    kept += [array, shape]
    return DLTensor(array.__array_interface__["data"][0], DLDevice(1, 0), array.ndim, _dl_dtype(array.dtype), ctypes.cast(shape, POINTER(c_int64)), None, 0)


CONVERTERS.append(_lent)


@ctypes.CFUNCTYPE(None, c_void_p)
def _drop_capsule(capsule):
    """Ends a DLPack capsule that no library took over."""
    if _IS_VALID(capsule, b"dltensor"):
        managed = _POINTER_OF(capsule, b"dltensor")
        # DLManagedTensor: the tensor, its context, its deleter.
        deleter = c_void_p.from_address(managed + ctypes.sizeof(DLTensor) + ctypes.sizeof(c_void_p))
        ctypes.CFUNCTYPE(None, c_void_p)(deleter.value)(managed)


_IS_VALID = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_POINTER_OF = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_NEW_CAPSULE = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))


class NDArray(Object):
    """An array on a device: `shape`, `dtype`, `device`, `numpy()`; other libraries take it by DLPack, without a copy."""

    __slots__ = ("_view",)

    def __init__(self, handle):
        super().__init__(handle)
        view = POINTER(DLTensor)()
        check(lib.BatonTensorView(handle, byref(view)))
        self._view = view.contents

    @property
    def shape(self):
        """Extents, as a tuple."""
        return tuple(self._view.shape[: self._view.ndim])

    @property
    def dtype(self):
        """Name of the element type, as "float32"."""
        return dtype_name(self._view.dtype)

    @property
    def device(self):
        """Where the elements are."""
        return Device(self._view.device.device_type, self._view.device.device_id)

    def copyto(self, device):
        """A copy on another device."""
        return global_func("runtime.NDArrayCopyTo")(self, device)

    def numpy(self):
        """A copy as a NumPy array."""
        here = self if self._view.device.device_type == 1 else self.copyto(cpu())
        view, dtype = here._view, _numpy_dtype(here._view.dtype)
        count = int(np.prod(here.shape, dtype=np.int64))
        if count == 0:
            return np.empty(here.shape, dtype)
        strides = [s * dtype.itemsize for s in view.strides[: view.ndim]] if view.strides else None
        size = dtype.itemsize + (sum((n - 1) * s for n, s in zip(here.shape, strides, strict=True)) if strides else (count - 1) * dtype.itemsize)
        memory = (ctypes.c_char * size).from_address(view.data + view.byte_offset)
        return np.ndarray(here.shape, dtype, buffer=memory, strides=strides).copy()

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, *, stream=None, **_):
        managed = c_void_p()
        check(lib.BatonTensorToDLPackLegacy(self.handle, byref(managed)))
        return _NEW_CAPSULE(managed.value, b"dltensor", ctypes.cast(_drop_capsule, c_void_p))

    def __dlpack_device__(self):
        return self._view.device.device_type, self._view.device.device_id

    def __repr__(self):
        return f"<baton_runtime.NDArray {self.dtype}{list(self.shape)} on {self.device}>"


WRAPPERS["runtime.NDArray"] = NDArray
