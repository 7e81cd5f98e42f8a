# SPDX-License-Identifier: Apache-2.0
"""Targets: what code is generated for."""

import functools
import json

from .. import error as errors
from .._core import Object
from .._ffi import get_global_func, load_compiler

load_compiler()

from . import codegen, options  # noqa: E402, the compiler's library first


class TargetKind(str):
    """Kind of a target, as "llvm"."""

    __slots__ = ()

    @property
    def name(self):
        """The kind itself."""
        return str(self)

    @property
    def device_type(self):
        """DLPack's number of the devices that its code is for."""
        return Target(str(self)).device_type


class Target(Object, key="Target"):
    """The machine of generated code, as "llvm -mcpu=skylake"; "llvm" is this machine. Entered by `with`.

    Also made of another Target, of a tag that `list_tags` has, or of a dict: `Target({"kind": "llvm", "mcpu": "skylake"})`. host: the target of
    what calls the code of a device. A dict `{"kind": "composite", "devices": [...]}` names several.
    """

    __slots__ = ()

    def __init__(self, target="llvm", host=None):
        self.__init_handle_by_constructor__(get_global_func("target.Target"), options.text_of(target, host))

    @property
    def kind(self):
        """Code generator: "llvm", "c", "opencl"."""
        return TargetKind(self._field("kind"))

    def _text(self):
        return str(get_global_func("target.TargetStr")(self))

    @property
    def keys(self):
        """Words that programs look for in a target: those that it names, its device, those of its kind."""
        given = options.options_of(self._text())
        return options.keys_of(str(self.kind), given.get("device"), given.get("keys", []))

    @property
    def attrs(self):
        """The options that differ from their defaults, and the limits of a GPU, by name; `keys`, `tag` and `host` have their own properties."""
        found = options.options_of(self._text())
        if "devices" in found:
            found["devices"] = [Target(text) for text in found["devices"]]
        return {**options.LIMITS.get(str(self.kind), {}), **{name: value for name, value in found.items() if name not in ("host", "keys", "tag")}}

    def export(self):
        """The target as a dict, which `Target` takes."""
        host = options.options_of(self._text()).get("host")
        return {"kind": str(self.kind), "keys": self.keys, "tag": self.tag, **self.attrs, **({} if host is None else {"host": Target(host).export()})}

    @property
    def tag(self):
        """The name that stands for its options; "" where it has none."""
        return options.options_of(self._text()).get("tag", "")

    @property
    def libs(self):
        """Libraries that the target names."""
        return self.attrs.get("libs", [])

    @property
    def model(self):
        """Name of the machine's model, where the target has one."""
        return self.attrs.get("model", "unknown")

    @property
    def device_name(self):
        """Name of the device's family, where the target has one."""
        return self.attrs.get("device", "")

    @property
    def mcpu(self):
        """Name of the processor; "" is this machine's."""
        return self.attrs.get("mcpu", "")

    @property
    def mattr(self):
        """Features of the processor that are said besides its name, as "+avx2"."""
        return self.attrs.get("mattr", [])

    @property
    def arch(self):
        """Generation of a GPU, as "sm_70"; "" where the target does not say it."""
        return self.attrs.get("arch", "")

    def _limit(self, name):
        return self.attrs.get(name, options.LIMITS.get(str(self.kind), {}).get(name))

    @property
    def max_num_threads(self):
        """Threads of a block; None where there are no blocks."""
        return self._limit("max_num_threads")

    @property
    def thread_warp_size(self):
        """Threads that go together; None where there are no blocks."""
        return self._limit("thread_warp_size")

    @property
    def max_shared_memory_per_block(self):
        """Bytes that the threads of a block share; None where that is not known."""
        return self._limit("max_shared_memory_per_block") or self._limit("shared_memory_per_block")

    @property
    def max_function_args(self):
        """Arguments that a function of the device's code can have; 0 where the target does not say it."""
        return int(self.attrs.get("max_function_args", 0))

    def get_kind_attr(self, attr_name):
        """An attribute of the kind; None, for kinds have none."""
        return None

    @property
    def supports_integer_dot_product(self):
        """Whether there are products of four int8: on NVIDIA's GPUs from sm_61 on."""
        return str(self.kind) == "cuda" and self.arch[3:].isdigit() and int(self.arch[3:]) >= 61

    @property
    def host(self):
        """The host's target: the one that was given; else this one, or for a device this machine's."""
        given = options.options_of(self._text()).get("host")
        return Target(given) if given is not None else self if self.kind in ("llvm", "c") else Target("llvm")

    def with_host(self, host=None):
        """The same target with another host."""
        return Target(options.without_host(self._text()), host)

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
        return ["llvm", "c", "opencl", *(k for k in options.KEYS if k != "opencl"), "hybrid", "composite", "test"]

    @staticmethod
    def check_and_update_host_consist(target, host=None, target_is_dict_key=True):
        """(target, host), both Targets, where the target has the host. In a dict {target: module}, or by device, each target has it."""
        if isinstance(target, dict) and "kind" not in target:
            pairs = [(Target(k, host), v) if target_is_dict_key else (k, Target(v, host)) for k, v in target.items()]
            hosts = [t.host for t in (dict(pairs) if target_is_dict_key else dict(pairs).values())]
            return dict(pairs), hosts[0] if hosts else None if host is None else Target(host)
        if target is None:
            return None, None if host is None else Target(host)
        made = Target(target, host)
        return made, made.host if host is not None or "host" in options.options_of(made._text()) else None

    def __str__(self):
        return options.without_host(self._text())

    def __repr__(self):
        return f"Target({str(self)!r})"

    def _meaning(self):
        """The common key of equal targets, however they were written."""
        return json.dumps(self.export(), sort_keys=True, default=lambda one: one._text())

    def __eq__(self, other):
        return isinstance(other, Target) and (self._text() == other._text() or self._meaning() == other._meaning())

    def __hash__(self):
        return hash(self._meaning())


def list_tags():
    """The names that stand for targets, with the targets: `Target("nvidia/tesla-t4")`."""
    return {name: Target(name) for name in options.TAGS}


def register_tag(name, config, override=False):
    """Lets a name stand for a target, a dict as `Target` takes it; gives the target."""
    if name in options.TAGS and not override:
        raise ValueError(f"the tag `{name}` is there already; override=True replaces it")
    config = dict(config)
    made = Target(config)  # checked before it is kept
    options.TAGS[name] = config
    return made


def create(target):
    """The same as `Target(target)`."""
    return Target(target)


def _made(kind, *words):
    return Target(" ".join([kind, *(w for group in words for w in ([group] if isinstance(group, str) else group or []) if w)]))


_ARM_MODELS = {
    "pixel2": "-model=snapdragon835 -mtriple=arm64-linux-android -mattr=+neon",
    "mate10": "-model=kirin970 -mtriple=arm64-linux-android -mattr=+neon",
    "p20": "-model=kirin970 -mtriple=arm64-linux-android -mattr=+neon",
    "rasp3b": "-model=bcm2837 -mtriple=armv7l-linux-gnueabihf -mattr=+neon",
    "rasp4b": "-model=bcm2711 -mtriple=armv8l-linux-gnueabihf -mattr=+neon",
    "rk3399": "-model=rk3399 -mtriple=aarch64-linux-gnu -mattr=+neon",
    "rasp4b64": "-model=bcm2711 -mtriple=aarch64-linux-gnu -mattr=+neon",
    "pynq": "-model=pynq -mtriple=armv7a-linux-eabi -mattr=+neon",
    "ultra96": "-model=ultra96 -mtriple=aarch64-linux-gnu -mattr=+neon",
}


def arm_cpu(model="unknown", options=None):
    """An Arm processor; of a board that is known by name, as "rasp4b64", with its triple, else of 64 bits."""
    about = _ARM_MODELS.get(model, f"-model={model}" + ("" if options and "mtriple" in str(options) else " -mtriple=aarch64-linux-gnu"))
    return _made("llvm -keys=arm_cpu,cpu -device=arm_cpu", about, options)


def rasp(options=None):
    """A Raspberry Pi 3; the same as `arm_cpu("rasp3b")`."""
    return arm_cpu("rasp3b", options)


def riscv_cpu(model="sifive-u54", options=None):
    """A RISC-V processor."""
    return _made("llvm -keys=arm_cpu,cpu -device=arm_cpu", f"-model={model}", "-mtriple=riscv64-unknown-linux-gnu", options)


def cuda(model="unknown", arch=None, options=None):
    """An NVIDIA GPU."""
    return _made("cuda", f"-model={model}", f"-arch={arch}" if arch else "", options)


def rocm(model="unknown", options=None):
    """An AMD GPU."""
    return _made("rocm", f"-model={model}", options)


def mali(model="unknown", options=None):
    """An Arm Mali GPU, through OpenCL."""
    return _made("opencl -device=mali", f"-model={model}", options)


def bifrost(model="unknown", options=None):
    """An Arm Bifrost GPU, through OpenCL."""
    return _made("opencl -device=bifrost", f"-model={model}", options)


def intel_graphics(model="unknown", options=None):
    """An Intel GPU, through OpenCL."""
    return _made("opencl -device=intel_graphics", f"-model={model}", options)


def vta(model="unknown", options=None):
    """The VTA accelerator; programs may name it."""
    return _made("ext_dev -device=vta -keys=vta,cpu", f"-model={model}", options)


_MICRO_MODELS = {
    "host": "",
    "atsamd51": "-mcpu=cortex-m4",
    "cxd5602gg": "-mcpu=cortex-m4",
    "esp32": "",
    "imxrt10xx": "-mcpu=cortex-m7",
    "mps2_an521": "-mcpu=cortex-m33",
    "mps3_an547": "-mcpu=cortex-m55",
    "nrf52840": "-mcpu=cortex-m4",
    "nrf5340dk": "-mcpu=cortex-m33",
    "rp2040": "-mcpu=cortex-m0",
    "sam3x8e": "-mcpu=cortex-m3",
    "stm32f746xx": "-mcpu=cortex-m7 -march=armv7e-m",
    "stm32h7xx": "-mcpu=cortex-m7",
    "stm32l4r5zi": "-mcpu=cortex-m4",
    "stm32u5xx": "-mcpu=cortex-m33",
    "zynq_mp_r5": "-mcpu=cortex-r5",
}


def micro(model="unknown", options=None):
    """A microcontroller: C code. `model`: a chip by name, as "stm32f746xx", "host", or a processor as LLVM knows it ("cortex-m7")."""
    if model != "unknown" and model not in _MICRO_MODELS and not model.startswith("cortex-"):
        raise ValueError(f"Model {model} not supported by tvm.target.micro: there are {', '.join(_MICRO_MODELS)}, and processors, as cortex-m7")
    about = _MICRO_MODELS.get(model, "" if model == "unknown" else f"-mcpu={model}")
    return _made("c -keys=cpu -link-params=1", f"-model={model}", about, options)


def hexagon(cpu_ver="v66", **kwargs):
    """A Hexagon processor of Qualcomm's; programs may name it."""
    known = {"sim_args", "hvx", "llvm_options", "link_params", "use_qfloat", "use_ieee_fp"}
    if set(kwargs) - known:
        raise ValueError(f"hexagon has no option {', '.join(sorted(set(kwargs) - known))}; there are {', '.join(sorted(known))}")
    return _made("hexagon", f"-mcpu=hexagon{cpu_ver}", "-link-params=1" if kwargs.get("link_params") else "")


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
        if default is not None:
            functools.update_wrapper(self, default)

    def register(self, keys, func=None, override=True, allow_override=None):
        """Sets the function for a key, or for several; without `func` it is a decorator."""
        if callable(keys):  # the function was first
            keys, func = func, keys
        keys = [keys] if isinstance(keys, str) else list(keys)
        override = override if allow_override is None else allow_override

        def put(f):
            for key in keys:
                if key in self.by_key and not override:
                    raise errors.ValueError(f"{self.__name__} has a function for `{key}` already")
                self.by_key[key] = f
            return f

        return put(func) if func is not None else put

    def set_default(self, func, allow_override=False):
        """Sets the function for targets that have none."""
        self.default = func

    def dispatch(self, target=None):
        """The function for a target, the current one if none is given."""
        target = target if target is not None else Target.current(allow_none=True)
        for key in (*target.keys, str(target.kind)) if target is not None else ():
            if key in self.by_key:
                return self.by_key[key]
        return self.default

    def __call__(self, *args, **kwargs):
        found = self.dispatch()
        if found is None:
            raise errors.ValueError("a generic function has no function for this target, and no default")
        return found(*args, **kwargs)


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
    """The function of a name; a new one, without a default yet, where there is none."""
    return _native.setdefault(name, GenericFunc(None))


__all__ = [
    "GenericFunc",
    "SEScope",
    "Target",
    "TargetKind",
    "arm_cpu",
    "bifrost",
    "codegen",
    "create",
    "cuda",
    "generic_func",
    "get_native_generic_func",
    "hexagon",
    "intel_graphics",
    "list_tags",
    "make_se_scope",
    "mali",
    "micro",
    "override_native_generic_func",
    "register_tag",
    "rasp",
    "riscv_cpu",
    "rocm",
    "vta",
]
