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
    with pytest.raises(ValueError, match="test_target.nobody"):
        tvm.target.get_native_generic_func("test_target.nobody")


@pytest.mark.parametrize("make", [tvm.target.cuda, tvm.target.rocm])
def test_building_for_a_target_without_code_is_an_error(make):
    """MO-013: it says which there are. The target itself may be named: programs choose by it."""
    assert make().device_type in (2, 10) and not tvm.runtime.enabled(str(make()))
    for build in (lambda: relay.build(tvm.IRModule.from_expr(relay.const(1) + relay.const(2)), target=make()),
                  lambda: tvm.build([te.placeholder((2,)), te.compute((2,), lambda i: i)], target=make())):
        with pytest.raises(tvm.TVMError, match="there is code for llvm, c and opencl"):
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
