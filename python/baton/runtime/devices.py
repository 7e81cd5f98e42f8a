# SPDX-License-Identifier: Apache-2.0
"""Devices by name."""

from .._core import Device
from .._ffi import get_global_func


def device(dev_type="cpu", dev_id=0):
    """The device of a kind, by name ("cpu", "cuda", "opencl"; a target such as "llvm" will do) or DLPack number."""
    return Device(dev_type, dev_id)


def cpu(dev_id=0):
    """The CPU. Numbers other than 0 are CPU devices for trying plans for several devices."""
    return Device("cpu", dev_id)


def cuda(dev_id=0):
    """An NVIDIA GPU."""
    return Device("cuda", dev_id)


gpu = cuda


def opencl(dev_id=0):
    """An OpenCL device."""
    return Device("opencl", dev_id)


cl = opencl


def metal(dev_id=0):
    """An Apple GPU."""
    return Device("metal", dev_id)


def vulkan(dev_id=0):
    """A Vulkan device."""
    return Device("vulkan", dev_id)


def rocm(dev_id=0):
    """An AMD GPU."""
    return Device("rocm", dev_id)


def exists(dev):
    """Whether there is such a device on this machine."""
    return bool(get_global_func("runtime.DeviceExists")(dev))


def sync(dev):
    """Waits until all that was asked of the device is done."""
    get_global_func("runtime.DeviceSync")(dev)
