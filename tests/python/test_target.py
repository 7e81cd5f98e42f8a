# SPDX-License-Identifier: Apache-2.0
"""Targets' functions: scopes, functions by target."""

import pytest

import baton as tvm
from baton import relay, te


def test_scopes():
    scope = tvm.target.make_se_scope(tvm.cpu(2), "llvm", "global")
    assert (scope.device_type, scope.virtual_device_id, str(scope.target.kind), scope.memory_scope) == (1, 2, "llvm", "global")
    assert tvm.ir.structural_equal(tvm.ir.load_json(tvm.ir.save_json(scope)), scope)
    assert tvm.target.make_se_scope(tvm.cuda(0)).target is None
    with pytest.raises(ValueError, match="devices of type 1"):
        tvm.target.make_se_scope(tvm.cuda(0), tvm.target.Target("llvm"))


def test_functions_by_target():
    @tvm.target.generic_func
    def add(data):
        """Adds."""
        return data + 1

    @add.register(["cpu"])
    def _(data):
        return data + 2

    assert add(1) == 2 and add.__doc__ == "Adds."
    with tvm.target.Target("llvm"):
        assert add(1) == 3
    with pytest.raises(ValueError, match="`cpu` already"):
        add.register("cpu", lambda x: x, override=False)

    @tvm.target.override_native_generic_func("test_target.one")
    def one():
        return 1

    assert tvm.target.get_native_generic_func("test_target.one")() == one() == 1
    with pytest.raises(ValueError, match="no function"):
        tvm.target.get_native_generic_func("test_target.nothing")()


@pytest.mark.parametrize("make", [tvm.target.rocm, lambda: tvm.target.Target("vulkan")])
def test_building_for_a_target_without_code_is_an_error(make):
    """MO-013: it says which there are. The target itself may be named: programs choose by it."""
    assert make().device_type in (7, 10) and not tvm.runtime.enabled(str(make()))
    for build in (
        lambda: relay.build(tvm.IRModule.from_expr(relay.const(1) + relay.const(2)), target=make()),
        lambda: tvm.build([te.placeholder((2,)), te.compute((2,), lambda i: i)], target=make()),
    ):
        with pytest.raises(tvm.TVMError, match="there is code for c, cuda, llvm, metal, opencl and webgpu"):
            build()


@pytest.mark.parametrize("make", [tvm.target.mali, tvm.target.bifrost, tvm.target.intel_graphics])
def test_targets_through_opencl(make):
    assert make().kind == "opencl"


def test_facts_about_code_generators():
    from baton.target.codegen import llvm_version_major

    assert llvm_version_major() >= 14 and llvm_version_major(allow_none=True) == llvm_version_major()


def test_what_gpus_can_do():
    from baton.contrib import nvcc

    assert [nvcc.have_fp16(v) for v in ("5.2", "5.3", "7.0", "10.0")] == [False, True, True, True]
    assert nvcc.have_int8("6.1") and not nvcc.have_bf16("7.5") and nvcc.have_tensorcore(target=tvm.target.Target("cuda -arch=sm_75"))
    assert not nvcc.have_tensorcore(target=tvm.target.Target("cuda"))
    with pytest.raises(ValueError, match="written as 7.5"):
        nvcc.have_fp16("seven")
    with pytest.raises(tvm.error.UnsupportedError, match="NVIDIA"):
        nvcc.compile_cuda("")


# ---- Texts, dicts, tags


@pytest.mark.parametrize(
    ("given", "attrs", "keys"),
    [
        ("llvm --system-lib", {"system-lib": True}, ["cpu"]),
        ("llvm -link-params -runtime=c", {"link-params": True, "runtime": "c"}, ["cpu"]),
        ("llvm -link-params=0", {"link-params": False}, ["cpu"]),
        ("llvm -mcpu=skylake -libs=cblas,mkl", {"mcpu": "skylake", "libs": ["cblas", "mkl"]}, ["cpu"]),
        (
            "llvm -device=arm_cpu -mattr=+neon,-sve -mtriple=aarch64-linux-gnu",
            {"device": "arm_cpu", "mattr": ["+neon", "-sve"], "mtriple": "aarch64-linux-gnu"},
            ["arm_cpu", "cpu"],
        ),
        (
            "c -keys=arm_cpu -mcpu=cortex-m7 --unpacked-api=1 -interface-api=c",
            {"mcpu": "cortex-m7", "unpacked-api": True, "interface-api": "c"},
            ["arm_cpu", "cpu"],
        ),
        ("cuda -max_num_threads=512 -arch=sm_70", {"max_num_threads": 512, "thread_warp_size": 32, "arch": "sm_70"}, ["cuda", "gpu"]),
        ("opencl -device=mali", {"device": "mali", "max_num_threads": 256, "thread_warp_size": 1}, ["mali", "opencl", "gpu"]),
        ("llvm -model='a machine' -cl-opt=\"-a -b\"", {"model": "a machine", "cl-opt": "-a -b"}, ["cpu"]),
        (
            {"kind": "llvm", "mcpu": "skylake", "mattr": ["+avx2"], "libs": ["mkl"], "system-lib": True},
            {"mcpu": "skylake", "mattr": ["+avx2"], "libs": ["mkl"], "system-lib": True},
            ["cpu"],
        ),
        ('{"kind": "cuda", "keys": ["mine"], "thread_warp_size": 16}', {"max_num_threads": 1024, "thread_warp_size": 16}, ["mine", "cuda", "gpu"]),
    ],
    ids=str,
)
def test_options(given, attrs, keys):
    target = tvm.target.Target(given)
    assert target.attrs == attrs and target.keys == keys
    assert tvm.target.Target(str(target)) == target and tvm.target.Target(target.export()).attrs == attrs and hash(tvm.target.Target(target)) == hash(target)
    if target.kind in ("llvm", "c"):
        assert tvm.target.Target(str(target)).host == target


@pytest.mark.parametrize("text", ["llvm -woof", "llvm -mcp=skylake", "llvm -system-lib=maybe", "llvm skylake", "lvm", "", "llvm -mcpu=no-such-processor"])
def test_options_that_are_wrong(text):
    with pytest.raises(tvm.TVMError):
        tvm.target.Target(text)
    with pytest.raises(TypeError):
        tvm.target.Target(3)


def test_hosts():
    triple = "llvm -mtriple=aarch64-linux-gnu"
    for target in (
        tvm.target.Target("cuda", triple),
        tvm.target.Target({"kind": "cuda", "host": {"kind": "llvm", "mtriple": "aarch64-linux-gnu"}}),
        tvm.target.Target("cuda").with_host(triple),
        tvm.target.Target({"kind": "cuda", "host": triple}),
    ):
        assert str(target) == "cuda" and target.host == tvm.target.Target(triple) and target.export()["host"]["mtriple"] == "aarch64-linux-gnu"
        assert tvm.target.Target(target) == target != tvm.target.Target("cuda") and tvm.target.Target(target.export()).host == target.host
    assert str(tvm.target.Target({"kind": "llvm", "host": "cuda"}).host) == "cuda"
    target, host = tvm.target.Target.check_and_update_host_consist("cuda", triple)
    assert target.host == host == tvm.target.Target(triple)
    assert tvm.target.Target.check_and_update_host_consist(None) == (None, None) and tvm.target.Target.check_and_update_host_consist("llvm")[1] is None
    made, host = tvm.target.Target.check_and_update_host_consist({"cuda": 1}, triple)
    assert [t.host for t in made] == [host]


def test_a_target_with_a_host_builds():
    import numpy as np

    x = relay.var("x", shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.nn.relu(x)), tvm.target.Target("llvm -system-lib -link-params", host="llvm"))
    run = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    run.run(x=np.array([-1, 2], "float32"))
    assert run.get_output(0).numpy().tolist() == [0, 2]


def test_composites():
    target = tvm.target.Target({"kind": "composite", "devices": [tvm.target.Target("llvm -mcpu=skylake"), "cuda -arch=sm_70"]})
    assert target.kind == "composite" and [str(t) for t in target.attrs["devices"]] == ["llvm -mcpu=skylake", "cuda -arch=sm_70"]


def test_tags():
    gpu = tvm.target.Target("nvidia/tesla-t4")
    assert gpu.kind == "cuda" and gpu.arch == "sm_75" and gpu.tag == "nvidia/tesla-t4" and gpu.max_num_threads == 1024 and gpu.thread_warp_size == 32
    assert gpu.max_shared_memory_per_block == 49152 and gpu.supports_integer_dot_product
    board = tvm.target.Target("raspberry-pi/4b-aarch64")
    assert board.host.mcpu == "cortex-a72" and board.mattr == ["+neon"] and "raspberry-pi/4b-aarch64" in tvm.target.list_tags()
    made = tvm.target.register_tag("test/machine", {"kind": "llvm", "mcpu": "skylake"}, override=True)
    assert tvm.target.Target("test/machine").mcpu == made.mcpu == "skylake"
    assert tvm.target.Target({"tag": "test/machine", "libs": ["mkl"]}).libs == ["mkl"]
    with pytest.raises(ValueError, match="override"):
        tvm.target.register_tag("test/machine", {"kind": "llvm"})


@pytest.mark.parametrize(
    ("make", "kind", "key"),
    [
        ("vta", "ext_dev", "vta"),
        ("arm_cpu", "llvm", "arm_cpu"),
        ("riscv_cpu", "llvm", "cpu"),
        ("micro", "c", "cpu"),
        ("hexagon", "hexagon", "hexagon"),
        ("cuda", "cuda", "gpu"),
        ("rocm", "rocm", "rocm"),
    ],
)
def test_makers(make, kind, key):
    target = getattr(tvm.target, make)()
    assert target.kind == kind and key in target.keys


def test_models_of_makers():
    assert tvm.target.arm_cpu("rasp4b64").attrs["mtriple"] == "aarch64-linux-gnu" and tvm.target.arm_cpu("rasp3b").model == "bcm2837"
    assert tvm.target.cuda(model="1080ti", options="-libs=cublas,cudnn").libs == ["cublas", "cudnn"] and tvm.target.cuda("t4", "sm_75").arch == "sm_75"
    assert tvm.target.intel_graphics().device_name == "intel_graphics" and tvm.target.mali("rk3399").keys[0] == "mali"
    assert set(tvm.target.Target.list_kinds()) >= {"llvm", "c", "cuda", "composite", "hexagon", "ext_dev"}


def test_tags_have_what_schedules_ask_for():
    for name, arch, registers in (("nvidia/geforce-rtx-2080-ti", "sm_75", 65536), ("nvidia/jetson-nano", "sm_53", 32768)):
        for target in (tvm.target.Target(name), tvm.target.Target("llvm", name).host, tvm.target.Target(f"llvm --host {name}").host):
            assert target.kind.name == "cuda" and target.attrs["arch"] == arch and target.attrs["registers_per_block"] == registers
            assert target.attrs["shared_memory_per_block"] == target.max_shared_memory_per_block == 49152
            assert target.attrs["max_threads_per_block"] == 1024 and target.attrs["thread_warp_size"] == 32


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("llvm -mcpu skylake", "mcpu", "skylake"),
        ('llvm -mattr="+avx2,+fma"', "mattr", ["+avx2", "+fma"]),
        ("cuda --libs cublas,cudnn", "libs", ["cublas", "cudnn"]),
        ("vulkan --supports_float16=True", "supports_float16", 1),
        ("vulkan --supports_float16=false", "supports_float16", 0),
        ("vulkan -device_name='Name of GPU with spaces' -device_type=discrete", "device_name", "Name of GPU with spaces"),
        ("metal -max_function_args=31", "max_function_args", 31),
        ("c -march=armv7e-m", "march", "armv7e-m"),
    ],
)
def test_forms_of_options(text, name, value):
    target = tvm.target.Target(text)
    assert target.attrs[name] == tvm.target.Target(str(target)).attrs[name] == value
    assert target.max_function_args == target.attrs.get("max_function_args", 0)


def test_hosts_in_texts():
    assert tvm.target.Target("cuda --host llvm").host.kind == "llvm"
    with_host = tvm.target.Target("cuda --host llvm")
    assert tvm.target.Target(with_host, with_host.host) == tvm.target.Target(with_host, "llvm") == with_host
    for act in (lambda: tvm.target.Target(with_host, "cuda"), lambda: tvm.target.Target({"kind": "cuda", "host": "llvm"}, "c")):
        with pytest.raises(ValueError, match="has the host `llvm"):
            act()
    assert with_host.with_host("nvidia/jetson-nano").host.arch == "sm_53"
    for kind in (ValueError, TypeError):
        with pytest.raises(kind, match="string or dictionary"):
            tvm.target.Target(with_host, 12.5)


@pytest.mark.parametrize(
    "given", ["composite --host=llvm --devices=cuda,opencl", {"kind": "composite", "host": "llvm", "devices": ["cuda", {"kind": "opencl"}]}]
)
def test_devices_of_a_composite_target(given):
    target = tvm.target.Target(given)
    assert target.host.kind == "llvm" and [d.kind.name for d in target.attrs["devices"]] == ["cuda", "opencl"]


@pytest.mark.parametrize(
    "given", ["cuda -foo=1", "cuda --foo 1", {"kind": "cuda", "foo": 1}, "cuda -max_num_threads=many", {"kind": "llvm", "libs": {"a": "b"}}]
)
def test_options_that_a_kind_has_not(given):
    with pytest.raises(ValueError, match="target option"):
        tvm.target.Target(given)


def test_kinds_are_kinds_of_devices():
    for kind in tvm.target.Target.list_kinds():
        target = tvm.target.Target(kind)
        assert target.kind.device_type == target.device_type == tvm.runtime.Device.STR2MASK[kind]


def test_microcontrollers():
    assert tvm.target.micro("stm32f746xx").mcpu == "cortex-m7" and tvm.target.micro("host").mcpu == ""
    with pytest.raises(ValueError, match="Model unknown-board not supported by tvm.target.micro"):
        tvm.target.micro("unknown-board")
