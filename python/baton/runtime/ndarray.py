# SPDX-License-Identifier: Apache-2.0
"""NDArray: tensors, exchanged with NumPy and others by DLPack."""

from .. import _core
from .._core import Device
from .._ffi import convert, get_global_func, register_object
from .data_type import DataType, numpy_dtype
from .devices import cpu, cuda, device, ext_dev, hexagon, metal, opencl, rocm, vpi, vulkan, webgpu

_NARROW = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
_PLAIN = frozenset(
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
)


class _Memory:
    """Lends memory to NumPy and keeps its owner."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner, interface):
        self.owner = owner
        self.__array_interface__ = interface


@register_object("runtime.NDArray")
class NDArray(_core.NDArrayBase):
    """A tensor: shape, dtype, device, elements.

        a = baton.nd.array(np.arange(6).reshape(2, 3))
        a.shape, a.dtype, a.device          # (2, 3), "int64", cpu(0)
        a.numpy()                           # a copy
        np.from_dlpack(a), np.asarray(a)    # the same memory

    Anything else that knows DLPack takes it too, without a copy. In expressions it behaves as its NumPy array, and gives NumPy
    arrays: `a + 1`, `a.max()`, `np.sin(a)`. `a == b` of two NDArrays says whether they are the same one, as in Relay.
    """

    __slots__ = ()

    def _interface(self):
        import numpy as np

        dtype = numpy_dtype(self.dtype)
        plain = dtype if self.dtype in _PLAIN else np.dtype(_NARROW[dtype.itemsize])
        return dtype, {
            "shape": self.shape,
            "typestr": plain.str,
            "data": (self.data_ptr, self.read_only),
            "version": 3,
            "strides": tuple(s * plain.itemsize for s in self.strides),
        }

    def __array__(self, dtype=None, copy=None):
        import numpy as np

        if self.device.device_type != 1:
            if copy is False:
                raise ValueError(f"the array is on {self.device}; NumPy needs a copy of it")
            return self.copyto(cpu()).__array__(dtype)
        own, interface = self._interface()
        # An empty array has no memory to lend.
        # A view that it lends has its own reference: this object may be emptied (`_move`) while NumPy reads.
        view = np.asarray(_Memory(self._again(), interface)).view(own) if self.size else np.empty(self.shape, own)
        if dtype is not None and np.dtype(dtype) != own:
            if copy is False:
                raise ValueError(f"the array has dtype {self.dtype}; {dtype} takes a copy")
            return view.astype(dtype)
        return view.copy() if copy else view

    def numpy(self):
        """The elements as a separate NumPy array. For the same memory: `np.from_dlpack(a)`, `np.asarray(a)`."""
        return self.__array__(copy=True)

    asnumpy = numpy

    def to_dlpack(self):
        """The array as a DLPack capsule, which shares its memory and which `from_dlpack` takes once."""
        return self.__dlpack__()

    def tolist(self):
        """The elements as nested lists."""
        return self.__array__().tolist()

    def item(self):
        """The one element of an array of size 1."""
        return self.__array__().item()

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of an array of rank 0")
        return self.shape[0]

    def __getitem__(self, key):
        return self.__array__()[key]

    def __setitem__(self, key, value):
        if self.read_only:
            raise ValueError("the array is read-only")
        if isinstance(value, NDArray):
            value = value.__array__()
        if self.device.device_type == 1:
            self.__array__()[key] = value
        else:
            host = self.numpy()
            host[key] = value
            self.copyfrom(host)

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        if self.size != 1 or "int" not in self.dtype:
            raise TypeError("only an integer array of size 1 serves as an index")
        return int(self.item())

    def __bool__(self):
        if self.size != 1:
            raise ValueError("the truth of an array with more than one element is not defined; use .numpy().any() or .all()")
        return bool(self.item())

    def __eq__(self, other):
        return self.__array__() == other if _is_value(other) else self.same_as(other)

    def __ne__(self, other):
        return self.__array__() != other if _is_value(other) else not self.same_as(other)

    def __hash__(self):
        return _core.Object.__hash__(self)

    def __reduce__(self):
        return array, (self.numpy(),)

    def __repr__(self):
        return f"<baton.NDArray shape={self.shape}, {self.device}>\n{self.numpy()!r}"

    def __str__(self):
        return str(self.numpy())

    def copyfrom(self, source_array):
        """Copies the elements of an array of the same shape and type into this one; gives this one."""
        if self.read_only:
            raise ValueError("the array is read-only")
        import numpy as np

        if not hasattr(source_array, "__dlpack__"):
            source_array = np.asarray(source_array)
        if isinstance(source_array, np.ndarray):
            source_array = np.ascontiguousarray(source_array, numpy_dtype(self.dtype)).reshape(source_array.shape)
            if source_array.shape != self.shape:
                raise ValueError(f"shapes differ: {source_array.shape} into {self.shape}")
        get_global_func("runtime.NDArrayCopyFrom")(self, source_array)
        return self

    def copyto(self, target, mem_scope=None):
        """Copies to an array, or to a device as a new array; gives the target."""
        if isinstance(target, Device):
            return get_global_func("runtime.NDArrayCopyTo")(self, target)
        return target.copyfrom(self)

    def _create_view(self, shape, dtype=None):
        """The same memory under another shape, and type if given."""
        return get_global_func("runtime.NDArrayCreateView")(self, convert(list(shape)), dtype or self.dtype)

    def reshape(self, *shape):
        """The same elements under another shape; one extent may be -1."""
        import numpy as np

        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        full = np.empty(self.shape, np.bool_).reshape(shape).shape if self.size < 1 << 20 else np.broadcast_to(np.bool_(), (self.size,)).reshape(shape).shape
        return self._create_view(full)


def _is_value(other):
    """Whether `==` compares elements: with numbers and arrays of other libraries."""
    return isinstance(other, (int, float, complex)) or (hasattr(other, "__array__") and not isinstance(other, NDArray))


def _operator(name):
    def apply(self, *others):
        if any(isinstance(o, _core.Object) and not isinstance(o, NDArray) for o in others):
            return NotImplemented  # an expression takes the array as a constant
        return getattr(self.__array__(), name)(*(o.__array__() if isinstance(o, NDArray) else o for o in others))

    apply.__name__, apply.__doc__ = name, "As of the NumPy array."
    return apply


def _method(name):
    def call(self, *args, **kwargs):
        return getattr(self.__array__(), name)(*args, **kwargs)

    call.__name__, call.__doc__ = name, f"`numpy.ndarray.{name}` of the elements."
    return call


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"):
    for _side in ("", "r"):
        setattr(NDArray, f"__{_side}{_name}__", _operator(f"__{_side}{_name}__"))
for _name in ("lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"):
    setattr(NDArray, f"__{_name}__", _operator(f"__{_name}__"))
for _name in (
    "all any argmax argmin argsort astype clip cumprod cumsum diagonal dot flatten max mean min nonzero prod ravel repeat round squeeze std "
    "sum swapaxes take tobytes trace transpose var"
).split():
    setattr(NDArray, _name, _method(_name))
NDArray.T = property(lambda self: self.__array__().T, doc="The elements with the dimensions in reverse order.")
del _name, _side


def array(arr, device=None, mem_scope=None):  # noqa: A002
    """An NDArray with a copy of what is given: an array of any kind, or nested lists. On the CPU unless told otherwise."""
    if not hasattr(arr, "__dlpack__"):
        import numpy as np

        arr = np.asarray(arr)
        if arr.dtype == object or arr.dtype.kind in "USMm":
            raise TypeError(f"an NDArray holds numbers, not {arr.dtype}")
    made = _core.tensor_copy(arr)
    return made if device is None or device == cpu() else made.copyto(device)


def empty(shape, dtype="float32", device=None, mem_scope=None):
    """An NDArray with elements of no particular value."""
    shape = (shape,) if isinstance(shape, int) else shape
    return get_global_func("runtime.NDArrayEmpty")([int(x) for x in shape], str(dtype), device or cpu())


def from_dlpack(dltensor):
    """An NDArray over the memory of a DLPack exporter (NumPy, PyTorch, JAX, ...) or capsule."""
    return _core.from_dlpack(dltensor)


__all__ = [
    "DataType",
    "Device",
    "NDArray",
    "array",
    "cpu",
    "cuda",
    "device",
    "empty",
    "ext_dev",
    "from_dlpack",
    "hexagon",
    "metal",
    "opencl",
    "rocm",
    "vpi",
    "vulkan",
    "webgpu",
]
