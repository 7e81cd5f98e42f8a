# SPDX-License-Identifier: Apache-2.0
"""Models on a CUDA device, which a stand-in for the driver gives and an interpreter of PTX runs; and each call of the driver that fails.
Each program is a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
_HEAD = f"""
import sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent / 'opencl')!r}, {str(ROOT / 'tools')!r}]
import numpy as np, baton
from baton import relay
from baton.contrib import graph_executor
d = baton.cuda(0)
x = relay.var("x", shape=(4,))
X = np.arange(4, dtype="float32")
def model(target="cuda", device=d):
    lib = relay.build(baton.IRModule.from_expr(relay.Function([x], relay.exp(x) + x)), target=target)
    return graph_executor.GraphModule(lib["default"](device))
"""
_RUNS = "import on_interpreter; fake = on_interpreter.install(); "


def said(code, library, before="", head=_HEAD, **environment):
    """The output of a program, or the kind and text of the error that ends it."""
    code = f"{head}{before}\ntry:\n" + "".join(f"    {line}\n" for line in code.splitlines()) + "except Exception as e:\n    print(type(e).__name__, e)\n"
    env = {**os.environ, "BATON_CUDA_LIBRARY": str(library), **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_model(fake_cuda):
    code = "m = model(); m.run(x=X); np.testing.assert_allclose(m.get_output(0).numpy(), np.exp(X) + X, rtol=1e-6)\n"
    code += "print(on_interpreter.FAULTS, on_interpreter.LAUNCHES)"
    assert re.fullmatch(r"\[\] \[\('k_fused_exp_add_0', \(1, 1, 1\), \(4, 1, 1\)\)\]", said(code, fake_cuda, _RUNS))


def test_a_model_on_two_devices(fake_cuda):
    code = """
e = relay.add(relay.on_device(relay.exp(x), "cuda"), x)
lib = relay.build(baton.IRModule.from_expr(relay.Function([x], e)), target={"cpu": "llvm", "cuda": "cuda"})
m = graph_executor.GraphModule(lib["default"](baton.cpu(0), d))
m.run(x=X)
np.testing.assert_allclose(m.get_output(0).numpy(), np.exp(X) + X, rtol=1e-6)
print(len(on_interpreter.LAUNCHES), on_interpreter.FAULTS)"""
    assert said(code, fake_cuda, _RUNS) == "1 []"


def test_a_saved_model_is_launched_by_the_runtime_alone(fake_cuda, tmp_path):
    path = str(tmp_path / "m.so")
    lib = "lib = relay.build(baton.IRModule.from_expr(relay.Function([x], relay.exp(x) + x)), target='cuda')\n"
    assert said(f"{lib}lib.export_library({path!r})\nprint('saved')", fake_cuda) == "saved"
    head = _HEAD[: _HEAD.index("x = relay")].replace("from baton import relay\n", "") + 'X = np.arange(4, dtype="float32")'
    code = f"""
m = graph_executor.GraphModule(baton.runtime.load_module({path!r})["default"](d))
m.run(x=X)
np.testing.assert_allclose(m.get_output(0).numpy(), np.exp(X) + X, rtol=1e-6)
maps = open("/proc/self/maps").read()
print("libbaton_cuda" in maps, "libbaton.so" in maps, "libLLVM-19" in maps, len(on_interpreter.LAUNCHES))"""
    assert said(code, fake_cuda, "\n" + _RUNS, head) == "True False False 1"


def test_threads_in_blocks(fake_cuda):
    code = """
from thread_programs import product
f = baton.build(*product(32), "cuda")
a, b = np.random.default_rng(0).random((2, 32, 32), "float32")
out = baton.nd.array(np.zeros((32, 32), "float32"), d)
f(baton.nd.array(a, d), baton.nd.array(b, d), out)
np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-5)
print(on_interpreter.LAUNCHES, on_interpreter.FAULTS)"""
    assert said(code, fake_cuda, _RUNS) == "[('k_default_function_0', (2, 2, 1), (8, 8, 1))] []"


def test_memory_comes_back(fake_cuda):
    code = """
m = model(); m.run(x=X)
before = fake.fake_cuda_in_use()
for _ in range(20):
    n = model(); n.run(x=X); n.get_output(0).numpy()
del n
import gc; gc.collect()
print(fake.fake_cuda_in_use() - before, fake.fake_cuda_modules())"""
    assert said(code, fake_cuda, _RUNS) == "0 1"


def test_what_a_device_says(fake_cuda):
    code = "print(d.exist, d.device_name, d.compute_version, d.total_global_memory, d.driver_version, d.warp_size, d.max_thread_dimensions)"
    assert said(code, fake_cuda, FAKE_CAPABILITY="90") == f"True stand-in 9.0 {1 << 30} 12.2 32 [1024, 1024, 1024]"


# ---- Drivers and devices that are not there


def test_no_driver(tmp_path):
    text = said("print(d.exist); baton.nd.array([1.0], d)", tmp_path / "none.so")
    assert text.startswith("False\nRuntimeError device `cuda(0)` does not exist on this machine: there is no CUDA driver (")
    assert text.endswith("install the driver of your NVIDIA GPU, or compile for cpu")


def test_a_library_that_is_no_driver():
    import ctypes.util

    assert "has no function cuInit, so it is not a driver of CUDA" in said("baton.nd.array([1.0], d)", ctypes.util.find_library("m"))


def test_no_device(fake_cuda):
    assert "the CUDA driver is there but offers no device" in said("model()", fake_cuda, FAKE_DEVICES="0")
    assert "does not exist on this machine: there are cuda(0) (stand-in), cuda(1) (stand-in)" in said(
        "model(device=baton.cuda(7))", fake_cuda, FAKE_DEVICES="2"
    )


def test_a_driver_that_does_not_start(fake_cuda):
    assert "the CUDA driver does not start (CUDA_ERROR_UNKNOWN); look at `nvidia-smi`" in said("model()", fake_cuda, FAKE_FAIL="cuInit:1:999")
    assert "start the machine again after its update" in said("model()", fake_cuda, FAKE_FAIL="cuInit:1:803")


def test_an_old_driver(fake_cuda):
    text = said("model().run(x=X)", fake_cuda, FAKE_FAIL="cuModuleLoadDataEx:1:222", FAKE_VERSION="10020")
    assert "the CUDA driver of cuda(0) (stand-in) has version 10.2 and does not know the program's PTX" in text
    assert "install a newer driver, or compile it for an older -arch than sm_80" in text


@pytest.mark.parametrize(
    "capability, target, works",
    [(75, "cuda", False), (89, "cuda", True), (90, "cuda -arch=sm_90a", True), (100, "cuda -arch=sm_90a", False)],
)
def test_chips(fake_cuda, capability, target, works):
    text = said(f"model({target!r}).run(x=X); print('ran')", fake_cuda, FAKE_CAPABILITY=str(capability))
    if works:
        assert text == "ran"
    else:
        arch = target.partition("=")[2] or "sm_80"
        assert f'the program is compiled for {arch}, and cuda(0) (stand-in) is sm_{capability}; compile it for "cuda -arch=sm_{capability}"' in text


def test_a_program_that_the_driver_refuses(fake_cuda):
    text = said("model().run(x=X)", fake_cuda, FAKE_FAIL="cuModuleLoadDataEx:1:218")
    assert "the compiler of cuda(0) (stand-in) refuses the program: ptxas application ptx input, line 7; fatal" in text


# ---- Calls that fail

_PROGRAM = """
def steps():
    global m
    m = model(); m.run(x=X); return m.get_output(0).numpy()
for _ in range(2):
    try:
        out = steps()
        print("ran")
    except Exception as e:
        print(type(e).__name__, e)
"""
CALLS = [
    "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2",
    "cuModuleLoadDataEx", "cuModuleGetFunction", "cuLaunchKernel",
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_each_call_fails_once_and_the_next_works(fake_cuda, call):
    first, _, second = said(_PROGRAM, fake_cuda, _RUNS, FAKE_FAIL=f"{call}:1:999").partition("\n")
    assert first.startswith("RuntimeError ") and ("stand-in" in first or "gives none of its 1 devices" in first), first
    if call != "cuDeviceGet":
        assert "failed: CUDA_ERROR_UNKNOWN" in first and second == "ran", second


@pytest.mark.parametrize("call", ["cuMemAlloc_v2", "cuModuleLoadDataEx", "cuLaunchKernel"])
def test_out_of_memory(fake_cuda, call):
    first, _, second = said(_PROGRAM, fake_cuda, _RUNS, FAKE_FAIL=f"{call}:1:2").partition("\n")
    assert first.startswith("MemoryError no memory: ") and f"the device has {1 << 30} bytes, of which " in first
    assert first.endswith("release arrays there, or take a smaller batch") and second == "ran"
    assert "MemoryError" in said("baton.nd.array(np.zeros(1 << 20), d)", fake_cuda, FAKE_MEMORY="4096")


@pytest.mark.parametrize("call", ["cuLaunchKernel", "cuMemcpyDtoH_v2"])
def test_a_fault_of_a_kernel_loses_the_device(fake_cuda, call):
    """Each later call says so; the process goes on with the CPU."""
    code = _PROGRAM + "print(model('llvm', baton.cpu(0)).run(x=X))"
    first, second, third = said(code, fake_cuda, _RUNS, FAKE_FAIL=f"{call}:1:700").split("\n")
    assert first.startswith("RuntimeError the device cuda(0) is lost (CUDA_ERROR_ILLEGAL_ADDRESS when ")
    assert "`k_fused_exp_add_0` of `fused_exp_add`" in first and "compile for cpu" in first
    assert "the device cuda(0) is lost" in second and third == "None"


def test_too_many_registers(fake_cuda):
    text = said("model().run(x=X)", fake_cuda, FAKE_FAIL="cuLaunchKernel:1:701")
    assert "kernel `k_fused_exp_add_0` of `fused_exp_add` needs more registers or shared memory than cuda(0) (stand-in) has for 4 threads" in text


def test_blocks_beyond_the_limit(fake_cuda):
    code = """
from thread_programs import program, axes
def write(ib, a, b):
    block, thread = axes(ib, blockIdx_y=70000, threadIdx_x=1)
    b[block] = a[block]
f = baton.build(*program((70000,), "float32", write), "cuda")
a = baton.nd.array(np.zeros(70000, "float32"), d)
f(a, a)"""
    assert "has 70000 blocks along y, CUDA takes at most 65535; let blockIdx.x be the longest axis" in said(code, fake_cuda)


def test_a_forked_child_is_refused(fake_cuda):
    code = """
import os
a = baton.nd.array(X, d)
r, w = os.pipe()
if os.fork() == 0:
    try:
        a.numpy()
    except Exception as e:
        os.write(w, str(e).encode())
    os._exit(0)
os.wait()
print(os.read(r, 4096).decode(), a.numpy().tolist())"""
    text = said(code, fake_cuda)
    assert "was opened before this process was forked" in text and text.endswith("[0.0, 1.0, 2.0, 3.0]")


def test_damaged_programs(fake_cuda, tmp_path):
    """Heads that are cut or changed: one error each."""
    code = f"""
import random
from thread_programs import add_one
text = baton.build(*add_one(64), "cuda").get_source()
end = text.index("\\n")
rng, kinds = random.Random(0), set()
for i in range(400):
    at = rng.randrange(12, end)
    bad = text[:at] if i % 2 else text[:at] + rng.choice('{{}}[]",:09ax') + text[at + 1:]
    open({str(tmp_path / 'f.ptx')!r}, "w").write(bad)
    try:
        baton.runtime.load_module({str(tmp_path / 'f.ptx')!r})
    except Exception as e:
        kinds.add(type(e).__name__)
print(sorted(kinds))"""
    assert said(code, fake_cuda) in ("['RuntimeError']", "['RuntimeError', 'TypeError']")
