# SPDX-License-Identifier: Apache-2.0
"""Targets as programs give them: by name, by device, in lists."""

from .. import error as errors
from .._core import Device
from .._ffi import get_global_func
from ..target import Target


def target_of(target):
    """The one target that is given, in whatever form; without one the current one."""
    if isinstance(target, dict) and "kind" not in target:
        (target,) = target.values()
    if isinstance(target, (list, tuple)):
        (target,) = target
    return get_global_func("target.TargetCurrent")(False) if target is None else Target(target)


def targets_of(target):
    """Targets by the names of devices, where `target` has several; else None."""
    if isinstance(target, dict) and "kind" not in target:
        rows = [(device_name(device), Target(value)) for device, value in target.items()]
    elif isinstance(target, (list, tuple)):
        rows = [(device_name(Target(value).device_type), Target(value)) for value in target]
    else:
        return None
    if not rows:
        raise errors.ValueError("no target is given")
    named = dict(rows)
    if len(named) < len(rows):
        raise errors.ValueError(f"two targets are given for one device: {', '.join(name for name, _ in rows)}")
    return named if len(named) > 1 else None


def device_name(device):
    """A device of a target dict, given by name, number or object, as a name."""
    device = device if isinstance(device, Device) else Device(int(device), 0) if isinstance(device, int) else Device(str(device))
    return str(device)
