# SPDX-License-Identifier: Apache-2.0
"""Arrays on OpenCL devices (MO-014): allocation, copies both ways, attributes, errors that say what is there."""

import os
from pathlib import Path

import numpy as np
import pytest

import baton


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint16", "bool", "float16"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 4), (2, 0, 3), (1000, 77)])
def test_there_and_back(device, dtype, shape):  # MO-014
    x = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 100).astype(dtype)
    a = baton.nd.array(x, device)
    assert a.device == device and a.shape == shape and a.dtype == dtype
    np.testing.assert_array_equal(a.numpy(), x)
    np.testing.assert_array_equal(a.copyto(baton.cpu()).numpy(), x)
    np.testing.assert_array_equal(a.copyto(device).numpy(), x)


def test_copies_between_devices(device):  # MO-014
    x = np.arange(24, dtype="int32").reshape(4, 6)
    a = baton.nd.array(x, device)
    other = baton.nd.empty((4, 6), "int32", baton.device("ext_dev"))
    a.copyto(other)
    np.testing.assert_array_equal(other.numpy(), x)
    back = baton.nd.empty((4, 6), "int32", device)
    other.copyto(back)
    np.testing.assert_array_equal(back.numpy(), x)
    back[:] = x + 1
    np.testing.assert_array_equal(back.numpy(), x + 1)
    np.testing.assert_array_equal(a.numpy(), x)
    baton.runtime.devices.sync(device)


def test_text_of_an_array(device):
    assert "3." in str(baton.nd.array(np.array([3.0], "float32"), device)) and "opencl(0)" in str(baton.nd.array([1.0], device).device)


def test_devices_by_name(device):
    assert baton.device("opencl") == baton.cl(0) == baton.opencl(0) == baton.device("cl", 0)
    assert baton.opencl(0).exist and not baton.opencl(1000).exist and baton.cpu().exist


def test_attributes(device):
    assert device.device_name and device.max_threads_per_block >= 1 and device.multi_processor_count >= 1
    assert tuple(map(int, device.compute_version.split("."))) >= (1, 2)
    assert device.total_global_memory > 1 << 20 and len(device.max_thread_dimensions) == 3
    assert device.kind in ("cpu", "gpu", "accelerator", "other")


def test_a_device_that_is_not_there(device):
    with pytest.raises(baton.error.TVMError, match=r"`opencl\(999\)` does not exist on this machine: there are opencl\(0\) \("):
        baton.nd.array([1.0], baton.opencl(999))


def test_more_memory_than_there_is(device):
    with pytest.raises(MemoryError, match=r"opencl\(0\)"):
        baton.nd.empty((1 << 50,), "int8", device)


def test_memory_is_given_back(device):
    """All rounds together take more than there is: twice the device's memory, and 800 MiB of the process where it is a CPU's.
    `test_errors.py` shows the same where memory is counted."""
    for _ in range(16):
        baton.nd.empty((device.total_global_memory // 8,), "int8", device)

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    for _ in range(200):
        baton.nd.array(np.zeros(1 << 20, "float32"), device)
    if device.kind == "cpu":
        assert resident() - before < 400 << 20
