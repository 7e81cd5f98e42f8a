# SPDX-License-Identifier: Apache-2.0
"""Targets: what code is generated for."""

import functools

from .. import error as errors
from .._core import Object
from .._ffi import get_global_func, load_compiler

load_compiler()

from . import codegen  # noqa: E402, the compiler's library first


class TargetKind(str):
    """Kind of a target, as "llvm"."""

    __slots__ = ()

    @property
    def name(self):
        """The kind itself."""
        return str(self)


class Target(Object, key="Target"):
    """What code is generated for, as "llvm -mcpu=skylake"; "llvm" is this machine. Entered by `with`.

    Also made of another Target, or of a dict: `Target({"kind": "llvm", "mcpu": "skylake"})`.
    """

    __slots__ = ()

    def __init__(self, target="llvm", host=None):
        if isinstance(target, str) and target.lstrip().startswith("{"):
            import json
            target = json.loads(target)
        if isinstance(target, dict):
            target = _text(target)
        if isinstance(target, Target):
            self.__init_handle_by_constructor__(get_global_func("target.Target"), str(target))
        elif isinstance(target, str):
            self.__init_handle_by_constructor__(get_global_func("target.Target"), target)
        else:
            raise errors.TypeError(f"a target is a text, a dict or a Target, not {type(target).__name__}")

    @property
    def kind(self):
        """Code generator: "llvm", "c", "opencl"."""
        return TargetKind(self._field("kind"))

    @property
    def keys(self):
        """Words that programs look for in a target."""
        given = self.attrs.get("keys")
        return given.split(",") if given else list(_KEYS.get(str(self.kind), ("cpu",)))

    @property
    def attrs(self):
        """The options that differ from their defaults, by name."""
        out = {}
        for word in str(self).split()[1:]:
            name, _, value = word.lstrip("-").partition("=")
            out[name] = value
        return out

    def export(self):
        """The target as a dict, which `Target` takes."""
        return {"kind": str(self.kind), **self.attrs}

    @property
    def libs(self):
        """Libraries that the target names."""
        return [name for name in self.attrs.get("libs", "").split(",") if name]

    @property
    def model(self):
        """Name of the machine's model, where the target has one."""
        return self.attrs.get("model", "unknown")

    @property
    def device_name(self):
        """Name of the device's family, where the target has one."""
        return self.attrs.get("device", "")

    @property
    def host(self):
        """The host's target: this one, or for a device this machine's."""
        return self if self.kind in ("llvm", "c") else Target("llvm")

    @property
    def device_type(self):
        """DLPack's number of the device."""
        return get_global_func("target.DeviceType")(self)

    def __enter__(self):
        get_global_func("target.TargetEnterScope")(self)
        return self

    def __exit__(self, *_):
        get_global_func("target.TargetExitScope")(self)

    @staticmethod
    def current(allow_none=True):
        """The innermost target entered; None if there is none, or an error without `allow_none`."""
        found = get_global_func("target.TargetCurrent")(True)
        if found is None and not allow_none:
            raise errors.ValueError("no target is in use; write `with baton.target.Target(...):`")
        return found

    @staticmethod
    def list_kinds():
        """The kinds that code is made for, then those that programs may name."""
        return ["llvm", "c", "opencl", *(k for k in _KEYS if k != "opencl")]

    @staticmethod
    def check_and_update_host_consist(target, host=None, target_is_dict_key=True):
        """(target, host), both made Targets."""
        return Target(target), None if host is None else Target(host)

    def __str__(self):
        return get_global_func("target.TargetStr")(self)

    def __repr__(self):
        return f"Target({str(self)!r})"

    def __eq__(self, other):
        return isinstance(other, Target) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


# Words that programs look for in a target of a kind.
_KEYS = {"opencl": ("opencl", "gpu"), "cuda": ("cuda", "gpu"), "nvptx": ("cuda", "gpu"), "rocm": ("rocm", "gpu"), "vulkan": ("vulkan", "gpu"),
         "metal": ("metal", "gpu"), "webgpu": ("webgpu", "gpu"), "hexagon": ("hexagon",), "ext_dev": ("ext_dev",), "aocl": ("aocl", "hls"),
         "sdaccel": ("sdaccel", "hls"), "stackvm": ("cpu",)}


def _text(values):
    values = dict(values)
    words = [values.pop("kind", "llvm")]
    for key, value in values.items():
        if key == "host":
            continue
        if isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        words.append(f"-{key}={value}")
    return " ".join(words)


def create(target):
    """The same as `Target(target)`."""
    return Target(target)


def arm_cpu(model="unknown", options=None):
    """A 64-bit Arm processor."""
    options = [options] if isinstance(options, str) else list(options or [])
    return Target(" ".join(["llvm -keys=arm_cpu,cpu -device=arm_cpu -mtriple=aarch64-linux-gnu", f"-model={model}", *options]))


def cuda(model="unknown", arch=None, options=None):
    """An NVIDIA GPU."""
    return Target(" ".join(["cuda", f"-model={model}", *([f"-arch={arch}"] if arch else []), *(options or [])]))


def rocm(model="unknown", options=None):
    """An AMD GPU."""
    return Target(" ".join(["rocm", f"-model={model}", *(options or [])]))


def mali(model="unknown", options=None):
    """An Arm Mali GPU, through OpenCL."""
    return Target(" ".join(["opencl -device=mali", f"-model={model}", *(options or [])]))


def bifrost(model="unknown", options=None):
    """An Arm Bifrost GPU, through OpenCL."""
    return Target(" ".join(["opencl -device=bifrost", f"-model={model}", *(options or [])]))


def intel_graphics(model="unknown", options=None):
    """An Intel GPU, through OpenCL."""
    return Target(" ".join(["opencl -device=intel_graphics", f"-model={model}", *(options or [])]))


class SEScope(Object, key="SEScope"):
    """Where a value lives and what runs there: a device, a target, and a kind of the device's memory."""

    __slots__ = ()

    @property
    def device_type(self):
        """DLPack's number of the device."""
        return self.device_type_int


def make_se_scope(device, target=None, memory_scope=""):
    """The scope of a device; a target for another type of device is an error."""
    target = None if target is None else target if isinstance(target, Target) else Target(target)
    if target is not None and target.device_type != device.device_type:
        raise errors.ValueError(f"the target `{target}` is for devices of type {target.device_type}, `{device}` is of type {device.device_type}")
    return SEScope(device_type_int=device.device_type, virtual_device_id=device.device_id, target=target, memory_scope=memory_scope)


class GenericFunc:
    """A function with a default and others for keys of targets, as "cpu"; called, it takes the current target's."""

    def __init__(self, default):
        self.default, self.by_key = default, {}
        functools.update_wrapper(self, default)

    def register(self, keys, func=None, override=True, allow_override=None):
        """Sets the function for a key, or for several; without `func` it is a decorator."""
        keys = [keys] if isinstance(keys, str) else list(keys)
        override = override if allow_override is None else allow_override

        def put(f):
            for key in keys:
                if key in self.by_key and not override:
                    raise errors.ValueError(f"{self.__name__} has a function for `{key}` already")
                self.by_key[key] = f
            return f

        return put(func) if func is not None else put

    set_default = property(lambda self: functools.partial(setattr, self, "default"))

    def dispatch(self, target=None):
        """The function for a target, the current one if none is given."""
        target = target if target is not None else Target.current(allow_none=True)
        for key in (*target.keys, str(target.kind)) if target is not None else ():
            if key in self.by_key:
                return self.by_key[key]
        return self.default

    def __call__(self, *args, **kwargs):
        return self.dispatch()(*args, **kwargs)


def generic_func(default):
    """Makes a function one that other functions can stand in for, by target.

        @baton.target.generic_func
        def schedule(x): ...

        @schedule.register("cpu")
        def _(x): ...
    """
    return GenericFunc(default)


_native = {}


def override_native_generic_func(func_name):
    """The same for a function that is known by a name; a second use of the name gives the same function, with the new default."""
    def decorate(default):
        found = _native.get(func_name)
        if found is None:
            found = _native[func_name] = GenericFunc(default)
        else:
            found.default = default
        return found

    return decorate


def get_native_generic_func(name):
    """The function of a name; ValueError where there is none."""
    if name not in _native:
        raise errors.ValueError(f"no generic function is called `{name}`")
    return _native[name]


__all__ = ["GenericFunc", "SEScope", "Target", "TargetKind", "arm_cpu", "bifrost", "codegen", "create", "cuda", "generic_func", "get_native_generic_func",
           "intel_graphics", "make_se_scope", "mali", "override_native_generic_func", "rocm"]
