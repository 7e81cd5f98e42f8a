# SPDX-License-Identifier: Apache-2.0
"""What is said when OpenCL, a device, memory or an extension is missing, and when a device goes away: what, where, how to mend.
Each in a process of its own with a stand-in for the system's OpenCL library."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_HEAD = """
import numpy as np, baton
from baton import relay
from baton.contrib import graph_executor
d = baton.opencl(0)
x = relay.var("x", shape=(4,))
def model(**targets):
    e = relay.add(relay.on_device(relay.exp(x), "opencl") if targets else relay.exp(x), x)
    lib = relay.build(baton.IRModule.from_expr(relay.Function([x], e)), target=targets or "opencl")
    return graph_executor.GraphModule(lib["default"](d))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("opencl") / "fake.so"
    source = Path(__file__).with_name("fake_opencl.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(path), str(source)], check=True)
    return path


def _error(code, library, before="", **environment):
    """Kind and text of the error that ends a program."""
    code = f"{_HEAD}{before}\ntry:\n" + "".join(f"    {line}\n" for line in code.splitlines()) + "except Exception as e:\n    print(type(e).__name__, e)\n"
    env = {**os.environ, "BATON_OPENCL_LIBRARY": str(library), **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_stand_in_works(library):
    code = 'a = baton.nd.array(np.arange(4.0), d); assert (a.numpy() == np.arange(4)).all(); model().run(x=np.ones(4, "float32")); print("good")'
    assert _error(code, library) == "good"
    assert _error("print(d.exist, d.device_name, d.compute_version, d.total_global_memory)", library) == f"True stand-in 1.2 {1 << 30}"


def test_no_opencl(tmp_path):
    said = _error("print(d.exist); baton.nd.array([1.0], d)", tmp_path / "none.so")
    assert said.startswith("False\nRuntimeError device `opencl(0)` does not exist on this machine: there is no OpenCL library (")
    assert "apt-get install ocl-icd-libopencl1 pocl-opencl-icd" in said


def test_a_library_that_is_no_opencl():
    import ctypes.util

    said = _error("baton.nd.array([1.0], d)", ctypes.util.find_library("m"))
    assert "the OpenCL library has no function clGetPlatformIDs, so it is no OpenCL" in said


def test_no_device(library):
    said = _error("model()", library, FAKE_DEVICES="0")
    assert "device `opencl(0)` does not exist on this machine: the OpenCL library is there but offers no device" in said


def test_a_model_for_a_device_that_is_not_there(library):
    said = _error('d = baton.opencl(3); model()', library, FAKE_DEVICES="2")
    assert "device `opencl(3)` does not exist on this machine: there are opencl(0) (stand-in), opencl(1) (stand-in)" in said


@pytest.mark.parametrize("after", [1, 2, 3, 4])
def test_a_device_that_goes_away(library, after):  # issue: devices that go away
    """While data is copied to it, while kernels are launched, while the result is read."""
    code = 'm = model(cpu="llvm", opencl="opencl"); m.run(x=np.ones(4, "float32")); m.run(); print(m.get_output(0).numpy())'
    said = _error(code, library, FAKE_GONE_AFTER=str(after))
    assert said.startswith("RuntimeError the device opencl(0) has gone away or no longer answers (CL_DEVICE_NOT_AVAILABLE when "), said
    assert "start the program again, or compile for cpu" in said


_BRANCH = """
from baton.runtime.vm import Executable, VirtualMachine
n = relay.var("n", shape=(), dtype="int32")
e = relay.If(relay.less(n, relay.const(2)), relay.on_device(relay.exp(x), "opencl"), x)
def program():
    return relay.vm.compile(baton.IRModule.from_expr(relay.Function([n, x], e)), target={"cpu": "llvm", "opencl": "opencl"})
v = np.int32(0), np.ones(4, "float32")
"""


def test_a_program_for_a_device_that_is_not_there(library, tmp_path):
    """It can be compiled, saved and loaded there; to run it takes the device."""
    path = str(tmp_path / "p.so")
    said = _error(
        f"program().export_library({path!r}); VirtualMachine(Executable.load_exec({path!r}), [baton.cpu(), d])", library, before=_BRANCH, FAKE_DEVICES="0"
    )
    assert said.startswith("RuntimeError the program was compiled for cpu and opencl: device `opencl(0)` does not exist on this machine: ")
    assert "offers no device" in said
    said = _error(f"VirtualMachine(Executable.load_exec({path!r}), [baton.cpu(), d]); print('good')", tmp_path / "none.so", before=_BRANCH)
    assert "compiled for cpu and opencl: device `opencl(0)` does not exist on this machine: there is no OpenCL library" in said
    assert _error(f"VirtualMachine(Executable.load_exec({path!r}), [baton.cpu(), d]).invoke('main', *v); print('good')", library, before=_BRANCH) == "good"


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_device_that_goes_away_from_a_program(library, after):  # issue: devices that go away
    said = _error("VirtualMachine(program(), [baton.cpu(), d]).invoke('main', *v).numpy()", library, before=_BRANCH, FAKE_GONE_AFTER=str(after))
    assert said.startswith("RuntimeError the device opencl(0) has gone away or no longer answers (CL_DEVICE_NOT_AVAILABLE when "), said


def test_a_device_that_is_gone_at_once(library):
    assert "has gone away or no longer answers" in _error("baton.nd.array([1.0], d)", library, FAKE_GONE_AFTER="0")


def test_no_memory(library):
    said = _error('baton.nd.empty((1000,), "float32", d)', library, FAKE_MEMORY="1000")
    assert said.startswith("MemoryError no memory: allocating ") and "opencl(0) (stand-in) (CL_INVALID_BUFFER_SIZE); the device has 1000 bytes" in said


@pytest.mark.parametrize("code", [
    "for _ in range(200): baton.nd.array(np.zeros(1 << 18, 'float32'), d).numpy()",
    "for _ in range(200): model().run(x=np.ones(4, 'float32'))",
    "for _ in range(200): VirtualMachine(built, [baton.cpu(), d]).invoke('main', *v).numpy()",
], ids=["arrays", "models", "programs"])  # fmt: skip
@pytest.mark.parametrize("leaks", ["", "1"], ids=["freed", "leaked"])
def test_memory_is_given_back(library, code, leaks):
    """The stand-in counts what is allocated. One that keeps what is released shows that the device does run out otherwise."""
    memory = 4 << 20 if "1 << 18" in code else 4000
    said = _error(f"{code}\nprint('good')", library, before=f"{_BRANCH}built = program()", FAKE_MEMORY=str(memory), FAKE_LEAK=leaks)
    if leaks:
        assert "no memory: allocating " in said and "CL_MEM_OBJECT_ALLOCATION_FAILURE" in said
    else:
        assert said == "good"


def test_no_float64(library):
    said = _error('x = relay.var("x", shape=(4,), dtype="float64"); model()', library, FAKE_EXTENSIONS="cl_khr_icd")
    assert "the program needs cl_khr_fp64, which opencl(0) (stand-in) does not have: it computes in float64; convert it to float32" in said


def test_a_compiler_that_refuses(library):
    said = _error("model()", library, FAKE_BUILD_LOG="<source>:7: no")
    assert "RuntimeError the OpenCL compiler of opencl(0) (stand-in) refuses the program: <source>:7: no" in said
