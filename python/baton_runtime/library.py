# SPDX-License-Identifier: Apache-2.0
"""The C interface of the runtime library (`baton/runtime/c_runtime_api.h`) by ctypes: values, objects, functions, errors."""

import builtins
import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

_HERE = os.path.dirname(os.path.abspath(__file__))
_NAME = "libbaton_runtime.so"
_ABI_VERSION = 1

NULL, INT, BOOL, FLOAT, HANDLE, DTYPE, DEVICE, STR, BYTES, TENSOR, OBJECT = *range(10), 64


class DLDevice(ctypes.Structure):
    """A device: DLPack's number of its kind, and its place among those."""

    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(ctypes.Structure):
    """A dtype."""

    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    """A tensor in memory; strides in elements, null where it is dense."""

    _fields_ = [
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _ByteArray(ctypes.Structure):
    _fields_ = [("data", c_char_p), ("size", c_size_t)]


class _Payload(ctypes.Union):
    _fields_ = [
        ("v_int64", c_int64),
        ("v_float64", ctypes.c_double),
        ("v_handle", c_void_p),
        ("v_dtype", DLDataType),
        ("v_device", DLDevice),
        ("v_str", c_char_p),
        ("v_bytes", POINTER(_ByteArray)),
        ("v_tensor", POINTER(DLTensor)),
        ("v_obj", c_void_p),
    ]


class _Value(ctypes.Structure):
    _anonymous_ = ("payload",)
    _fields_ = [("type_code", c_int32), ("zero", c_uint32), ("payload", _Payload)]


class Error(Exception):
    """Base of all errors of the runtime. `kind` is its word for it, as "DeviceError"; where Python has a class for the fault, the
    error is that too."""

    kind = "Error"


_CLASSES = {}


def _error_class(kind):
    """The class for a kind; made when it is first needed."""
    if kind not in _CLASSES:
        near = {"UnsupportedError": NotImplementedError, "ShapeError": ValueError, "DeviceError": RuntimeError, "InternalError": RuntimeError}
        builtin = near.get(kind) or getattr(builtins, kind, None)
        bases = (Error, builtin) if isinstance(builtin, type) and issubclass(builtin, Exception) else (Error,)
        # KeyError would quote its message.
        _CLASSES[kind] = type(kind, bases, {"kind": kind, "__module__": "baton_runtime", "__str__": lambda self: str(self.args[0])})
    return _CLASSES[kind]


def library_folder():
    """Folder of the libraries: of this package, or in a checkout of `baton`, beside it."""
    for folder in (os.path.join(_HERE, "lib"), os.path.join(os.path.dirname(_HERE), "baton", "lib")):
        if os.path.isfile(os.path.join(folder, _NAME)):
            return folder
    raise ImportError(f"no {_NAME} in {_HERE}/lib; mend with: pip install --force-reinstall baton-runtime")


def _load():
    """The runtime library. A process has one: where `baton` has loaded its own, that one serves."""
    try:
        found = ctypes.CDLL(_NAME, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        found = ctypes.CDLL(os.path.join(library_folder(), _NAME), mode=os.RTLD_NOW)
    if found.BatonAbiVersion() != _ABI_VERSION:
        raise ImportError(
            f"the {_NAME} that is loaded has version {found.BatonAbiVersion()} of the C interface, this package needs {_ABI_VERSION}; "
            "install baton-compiler and baton-runtime of one version"
        )
    for name in ("BatonErrorKind", "BatonErrorMessage"):
        getattr(found, name).restype = c_char_p
    found.BatonTypeIndex2Key.restype, found.BatonTypeIndex2Key.argtypes = c_char_p, [c_uint32]
    found.BatonObjectTypeIndex.restype, found.BatonObjectTypeIndex.argtypes = c_uint32, [c_void_p]
    for name in ("BatonObjectRetain", "BatonObjectRelease"):
        getattr(found, name).restype, getattr(found, name).argtypes = None, [c_void_p]
    found.BatonErrorTake.restype = None
    found.BatonFuncGetGlobal.argtypes = [c_char_p, POINTER(c_void_p)]
    found.BatonFuncCall.argtypes = [c_void_p, POINTER(_Value), c_int, POINTER(_Value)]
    found.BatonStringView.argtypes = [c_void_p, POINTER(c_void_p), POINTER(c_size_t)]
    found.BatonArrayView.argtypes = [c_void_p, POINTER(POINTER(_Value)), POINTER(c_size_t)]
    found.BatonArrayCreate.argtypes = [POINTER(_Value), c_size_t, POINTER(c_void_p)]
    found.BatonTensorView.argtypes = [c_void_p, POINTER(POINTER(DLTensor))]
    found.BatonTensorToDLPackLegacy.argtypes = [c_void_p, POINTER(c_void_p)]
    found.BatonModuleLoad.argtypes = [c_char_p, POINTER(c_void_p)]
    found.BatonModuleGetFunction.argtypes = [c_void_p, c_char_p, c_int, POINTER(c_void_p)]
    return found


lib = _load()


def check(code):
    """Raises the pending error of this thread if `code` says that there is one."""
    if code == 0:
        return
    kind, message = lib.BatonErrorKind().decode(), lib.BatonErrorMessage().decode(errors="replace")
    taken = c_void_p()
    lib.BatonErrorTake(byref(taken))
    lib.BatonObjectRelease(taken)
    raise _error_class(kind)(message)


class Object:
    """A counted object of the runtime; released with its last reference."""

    __slots__ = ("handle", "__weakref__")

    def __init__(self, handle):
        self.handle = handle

    def __del__(self, release=lib.BatonObjectRelease):
        release(self.handle)


class Function(Object):
    """A function of the runtime or of a module. Calls run without Python's lock."""

    __slots__ = ()

    def __call__(self, *args):
        kept = []
        values = (_Value * len(args))(*(to_value(a, kept) for a in args))
        result = _Value()
        check(lib.BatonFuncCall(self.handle, values, len(args), byref(result)))
        return from_value(result)


# Type key -> (class, or a function of the handle that gives the Python value). Modules and arrays are added where they are defined.
WRAPPERS = {}
# How values of other classes become those of the C interface: functions of (value, list of what must stay alive), None where it does not fit.
CONVERTERS = []


def to_value(value, kept):
    """A value for a call. The list `kept` owns the parts that it lends."""
    out = _Value()
    if value is None:
        return out
    if isinstance(value, bool):
        out.type_code, out.v_int64 = BOOL, value
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise OverflowError(f"{value} does not fit into 64 bits")
        out.type_code, out.v_int64 = INT, value
    elif isinstance(value, float):
        out.type_code, out.v_float64 = FLOAT, value
    elif isinstance(value, Object):
        out.type_code, out.v_obj = OBJECT, value.handle
        kept.append(value)
    elif isinstance(value, DLDevice):
        out.type_code, out.v_device = DEVICE, value
    elif isinstance(value, str):
        data = value.encode()
        kept.append(data)
        out.type_code, out.v_str = STR, data
    elif isinstance(value, (bytes, bytearray)):
        data = bytes(value)
        kept += [data, _ByteArray(data, len(data))]
        out.type_code, out.v_bytes = BYTES, ctypes.pointer(kept[-1])
    else:
        return _converted(value, kept)
    return out


def _converted(value, kept):
    for convert in CONVERTERS:
        tensor = convert(value, kept)
        if tensor is not None:
            kept.append(tensor)
            return _Value(type_code=TENSOR, payload=_Payload(v_tensor=ctypes.pointer(tensor)))
    if isinstance(value, (list, tuple)):
        items, out = (_Value * len(value))(*(to_value(v, kept) for v in value)), c_void_p()
        check(lib.BatonArrayCreate(items, len(value), byref(out)))
        return to_value(Object(out.value), kept)
    raise TypeError(f"a value of type {type(value).__name__} cannot be passed to the runtime")


def from_value(value):
    """The Python value of a result, which is taken over."""
    code = value.type_code
    if code == OBJECT:
        return _from_object(value.v_obj)
    if code == DEVICE:
        return DLDevice(value.v_device.device_type, value.v_device.device_id)
    if code == DTYPE:
        return DLDataType(value.v_dtype.code, value.v_dtype.bits, value.v_dtype.lanes)
    known = {NULL: lambda: None, INT: lambda: value.v_int64, BOOL: lambda: bool(value.v_int64), FLOAT: lambda: value.v_float64, HANDLE: lambda: value.v_handle}
    if code not in known:
        raise TypeError(f"the runtime gave a value of kind {code}, which this package does not know")
    return known[code]()


def _from_object(handle):
    key = lib.BatonTypeIndex2Key(lib.BatonObjectTypeIndex(handle)).decode()
    return WRAPPERS.get(key, Object)(handle)


def _text(handle, decode=True):
    data, size = c_void_p(), c_size_t()
    owner = Object(handle)
    check(lib.BatonStringView(owner.handle, byref(data), byref(size)))
    text = ctypes.string_at(data, size.value)
    return text.decode() if decode else text


def _items(handle):
    owner, items, size = Object(handle), POINTER(_Value)(), c_size_t()
    check(lib.BatonArrayView(owner.handle, byref(items), byref(size)))
    made = []
    for i in range(size.value):
        if items[i].type_code == OBJECT:
            lib.BatonObjectRetain(items[i].v_obj)
        made.append(from_value(items[i]))
    return tuple(made)


WRAPPERS.update({"runtime.PackedFunc": Function, "runtime.String": _text, "runtime.Bytes": lambda handle: _text(handle, False), "runtime.Array": _items})


def global_func(name):
    """The global function of a name. KeyError if there is none."""
    out = c_void_p()
    check(lib.BatonFuncGetGlobal(name.encode(), byref(out)))
    if not out.value:
        raise KeyError(f"the runtime has no function `{name}`")
    return Function(out.value)
