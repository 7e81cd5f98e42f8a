# SPDX-License-Identifier: Apache-2.0
"""Targets by text, by JSON and by function, as programs of Relay 0.8 name them."""

import pytest
from building import program

import baton as tvm
from baton import relay

Target = tvm.target.Target
TEXTS = ["cuda", "cuda -arch=sm_70 -max_num_threads=1024", "rocm", "vulkan", "metal", "nvptx", "hexagon", "webgpu", "llvm -libs=cblas", "c", "opencl",
         "llvm -keys=arm_cpu -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon", "llvm -mcpu=skylake -keys=cpu,fast"]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_text(text):
    target = Target(text)
    exported = target.export()
    assert Target(str(target)) == target == Target(exported) and str(target).split()[0] == text.split()[0] == exported["kind"] == target.kind.name
    assert Target.current() is None
    with target:
        assert Target.current() == target
    with pytest.raises((ValueError, tvm.TVMError)):
        Target.current(False)


FACTS = {
    "llvm -mcpu=skylake -keys=cpu,fast": lambda t: t.mcpu == t.attrs["mcpu"] == "skylake" and "fast" in t.keys,
    "llvm": lambda t: list(t.keys) == ["cpu"] and t.supports_integer_dot_product in (True, False),
    "llvm -keys=arm_cpu,cpu": lambda t: list(t.keys) == ["arm_cpu", "cpu"],
    '{"kind": "llvm", "mcpu": "skylake"}': lambda t: t.mcpu == "skylake",
    "cuda -model=v100 -libs=cudnn,cublas": lambda t: (t.model, list(t.libs), t.thread_warp_size, t.max_num_threads) == ("v100", ["cudnn", "cublas"], 32, 1024),
    "cuda -arch=sm_70": lambda t: list(t.keys) == ["cuda", "gpu"] and t.attrs["arch"] == "sm_70" and t.device_type == 2,
}


@pytest.mark.parametrize("text", FACTS)
def test_facts(text):
    assert FACTS[text](Target(text))


MADE = {
    "arm_cpu": (lambda: tvm.target.arm_cpu("rasp3b"), ("llvm", "arm_cpu", "bcm2837")),
    "rasp": (lambda: tvm.target.rasp(), ("llvm", "arm_cpu", None)),
    "mali": (lambda: tvm.target.mali(), ("opencl", "mali", None)),
    "intel_graphics": (lambda: tvm.target.intel_graphics(), ("opencl", "intel_graphics", None)),
    "bifrost": (lambda: tvm.target.bifrost(), ("opencl", "bifrost", None)),
    "cuda": (lambda: tvm.target.cuda(), ("cuda", None, None)),
    "rocm": (lambda: tvm.target.rocm(), ("rocm", None, None)),
    "riscv_cpu": (lambda: tvm.target.riscv_cpu(), ("llvm", None, None)),
    "hexagon": (lambda: tvm.target.hexagon(), ("hexagon", None, None)),
    "create": (lambda: tvm.target.create("llvm"), ("llvm", None, None)),
    "a dict": (lambda: Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu", "keys": ["cpu"], "mattr": ["+avx2"]}), ("llvm", None, None)),
}


@pytest.mark.parametrize("name", MADE)
def test_made(name):
    target, (kind, device, model) = MADE[name][0](), MADE[name][1]
    assert target.kind.name == kind and device in (None, target.device_name) and model in (None, target.model)
    assert name != "a dict" or target.attrs["mtriple"] == "x86_64-linux-gnu"


def test_hosts():
    assert Target("cuda", host="llvm").host.kind.name == "llvm"
    both, _ = Target.check_and_update_host_consist("cuda", "llvm")
    assert both.host.kind.name == "llvm" and "llvm" in Target.list_kinds() and callable(tvm.target.vta)


@pytest.mark.parametrize("text, message", [("lvm", "unknown target kind"), ("nope", "unknown target kind"), ("llvm -nope=1", "nope")])
def test_wrong(text, message):
    with pytest.raises((ValueError, tvm.TVMError), match=message):
        Target(text)


def test_a_target_without_code():
    with pytest.raises(tvm.error.UnsupportedError, match="no code is made for the target `vulkan`"):
        relay.build(tvm.IRModule.from_expr(program("x[2,3] y[1,3]", "add(%x, %y)")), target="vulkan")
