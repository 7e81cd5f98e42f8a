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


def opencl(dev_id=0):
    """An OpenCL device."""
    return Device("opencl", dev_id)


def metal(dev_id=0):
    """An Apple GPU."""
    return Device("metal", dev_id)


def vulkan(dev_id=0):
    """A Vulkan device."""
    return Device("vulkan", dev_id)


def rocm(dev_id=0):
    """An AMD GPU."""
    return Device("rocm", dev_id)


def _device_of(name, doc):
    def make(dev_id=0):
        return Device(name, dev_id)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = doc
    return make


vpi = _device_of("vpi", "A Verilog simulator.")
ext_dev = _device_of("ext_dev", "A device that a library brings.")
hexagon = _device_of("hexagon", "A Qualcomm Hexagon processor.")
webgpu = _device_of("webgpu", "A device of a browser.")


def exists(dev):
    """Whether there is such a device on this machine."""
    return bool(get_global_func("runtime.DeviceExists")(dev))


def sync(dev):
    """Waits until all that was asked of the device is done."""
    get_global_func("runtime.DeviceSync")(dev)


def _attribute(name, doc):
    def get(dev):
        kind = {2: "cuda", 4: "opencl"}.get(dev.device_type)
        return get_global_func(f"{kind}.DeviceAttribute")(dev.device_id, name) if kind and exists(dev) else None

    return property(get, doc=doc)


def _numbers():
    names = ("cpu", "llvm", "c", "cuda", "nvptx", "opencl", "cl", "vulkan", "metal", "vpi", "rocm", "ext_dev", "hexagon", "webgpu")
    found = {name: Device(name).device_type for name in names}
    # Kinds of targets that are not kinds of devices.
    return {
        **found,
        **dict.fromkeys(("stackvm", "test", "hybrid", "composite"), found["cpu"]),
        **dict.fromkeys(("aocl", "aocl_sw_emu", "sdaccel"), found["cl"]),
    }


Device.STR2MASK = _numbers()
Device.MASK2STR = {number: _name for _name, number in reversed(Device.STR2MASK.items())}
_kind_name = Device.device_name.__get__
Device.exist = property(exists)
Device.warp_size = property(
    lambda dev: 1 if dev.device_type == 4 and exists(dev) else _attribute("warp_size", "").fget(dev), doc="Work-items that are sure to run in step."
)
Device.sync = sync
Device.device_name_of_kind = property(_kind_name, doc="Name of the device's kind, as \"cpu\".")
Device.device_name = property(
    lambda dev: _attribute("device_name", "").fget(dev) or _kind_name(dev),
    doc="The name of the device; for the CPU, and for a device that is not there, the name of its kind.",
)
for _name, _doc in {
    "compute_version": "Version of the device's programming interface, as \"3.0\".",
    "driver_version": "Version of the device's driver.",
    "vendor": "Name of the device's vendor.",
    "kind": "The type of the device: cpu, gpu, accelerator or other.",
    "max_threads_per_block": "Most work-items in a group.",
    "max_thread_dimensions": "Most work-items in a group along each of three dimensions.",
    "max_shared_memory_per_block": "Bytes of memory that a group shares.",
    "max_clock_rate": "Highest clock, in kHz.",
    "multi_processor_count": "Compute units.",
    "total_global_memory": "Bytes of the device's memory.",
    "l2_cache_size_bytes": "Bytes of the cache in front of it.",
}.items():
    setattr(Device, _name, _attribute(_name, f"{_doc} None where the device is the CPU, or is not there."))
