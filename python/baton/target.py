# SPDX-License-Identifier: Apache-2.0
"""Targets: what code is generated for."""

from ._core import Object
from ._ffi import get_global_func, load_compiler

load_compiler()


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
        if isinstance(target, dict):
            target = _text(target)
        if isinstance(target, Target):
            self.__init_handle_by_constructor__(get_global_func("target.Target"), str(target))
        elif isinstance(target, str):
            self.__init_handle_by_constructor__(get_global_func("target.Target"), target)
        else:
            raise TypeError(f"a target is a text, a dict or a Target, not {type(target).__name__}")

    @property
    def kind(self):
        """Code generator: "llvm", "c"."""
        return TargetKind(self._field("kind"))

    @property
    def keys(self):
        """Words that programs look for in a target."""
        return ["cpu"]

    @property
    def host(self):
        """The host's target: this one."""
        return self

    @property
    def device_type(self):
        """DLPack's number of the device."""
        return 1

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
            raise ValueError("no target is in use; write `with baton.target.Target(...):`")
        return found

    @staticmethod
    def list_kinds():
        """The kinds there are."""
        return ["llvm", "c"]

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


def _text(values):
    values = dict(values)
    words = [values.pop("kind", "llvm")]
    for key, value in values.items():
        if key in ("keys", "tag", "host", "device", "model"):
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
    return Target(" ".join(["llvm -mtriple=aarch64-linux-gnu", *(options or [])]))


def cuda(model="unknown", arch=None, options=None):
    """An NVIDIA GPU."""
    return Target(" ".join(["cuda", *([f"-arch={arch}"] if arch else []), *(options or [])]))


__all__ = ["Target", "TargetKind", "arm_cpu", "create", "cuda"]
