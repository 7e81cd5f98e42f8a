# SPDX-License-Identifier: Apache-2.0
"""Skips what needs an OpenCL device where this machine has none."""

import sys
from pathlib import Path

import pytest

import baton
from baton._ffi import get_global_func

sys.path.insert(0, str(Path(__file__).parent))  # for thread_programs


def why_none():
    """Empty if there is a device, else what is missing."""
    if baton.runtime.devices.exists(baton.opencl(0)):
        return ""
    return get_global_func("opencl.WhyNone")()


@pytest.fixture
def device():
    """The first OpenCL device of this machine."""
    why = why_none()
    if why:
        pytest.skip(why)
    return baton.opencl(0)
