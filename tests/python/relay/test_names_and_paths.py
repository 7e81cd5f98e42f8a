# SPDX-License-Identifier: Apache-2.0
"""Modules, files and names that programs of Relay 0.8 import."""

import importlib

import pytest

import baton as tvm
import baton.topi.testing
from baton import relay, topi

IMPORTS = """
from baton.relay.op.nn.nn import conv2d, batch_norm
from baton.relay.op.nn.utils import get_pad_tuple2d
from baton.relay.op.nn import _make
from baton.relay.op.image.image import resize2d
from baton.relay.op.vision.nms import get_valid_counts
from baton.relay.op.vision.multibox import multibox_prior
from baton.relay.op.vision.rcnn import roi_align
from baton.relay.op.annotation.annotation import on_device
from baton.relay.op.memory.memory import alloc_tensor
from baton.relay.op.vm.vm import invoke_tvm_op
from baton.relay.op.random.kernel import threefry_key
from baton.relay.op import _tensor_grad, _tensor, _transform, _reduce, _algorithm
from baton.relay.op.op import register_compute, register_strategy, OpPattern, OpStrategy, OpImplementation, OpSpecialization
from baton.relay.op.strategy import wrap_topi_schedule, wrap_topi_compute, naive_schedule
from baton.relay.op.strategy.generic import wrap_topi_schedule
from baton.relay.quantize.quantize import qconfig
from baton.relay.quantize._calibrate import calibrate
from baton.relay.testing.config import ctx_list
from baton.topi.nn.conv2d import conv2d_nchw
from baton.topi.nn.pad import pad
from baton.topi.nn.pooling import pool2d
from baton.topi.generic.nn import schedule_conv2d_nchw
from baton.topi.generic.injective import schedule_injective
from baton.topi.x86.conv2d import conv2d_NCHWc
from baton.topi.sort import argsort
from baton.topi.scan import cumsum
from baton.topi.image.resize import resize2d
from baton.topi.vision.nms import non_max_suppression
from baton.topi.testing.common import get_injective_schedule
from baton.topi import cpp
from baton.te.hybrid import script
from baton.te import SpecializedCondition
from baton.ir.adt import Constructor, TypeData
from baton.ir.affine_type import TensorAffineType, TupleAffineType
from baton.ir.json_compact import upgrade_json
from baton.relay.analysis.count_layers import count_layers
from baton.relay.analysis.feature import Feature
from baton.rpc.client import LocalSession, PopenSession, RPCSession, TrackerSession, connect, connect_tracker
from baton.rpc.minrpc import with_minrpc
from baton.target.generic_func import GenericFunc, generic_func, get_native_generic_func, override_native_generic_func
from baton.target.target import Target, create
from baton.tir.transform.function_pass import PrimFuncPass, prim_func_pass
from baton.tir.transform.transform import Apply
""".strip().splitlines()


@pytest.mark.parametrize("line", IMPORTS)
def test_paths_of_files(line):
    names = {}
    exec(line, names)
    assert all(names[name.strip()] is not None for name in line.partition(" import ")[2].split(","))


def test_packages_with_files_are_known():
    from baton.tvm import deep_paths, tables

    assert set(deep_paths.PATHS) == tables.WITH_FILES


def test_functions_keep_their_names_behind_such_paths():
    from baton.relay.quantize.quantize import QAnnotateKind  # noqa: F401
    from baton.topi.nn.conv2d import conv2d_nchw  # noqa: F401
    from baton.topi.nn.pad import pad  # noqa: F401

    assert topi.nn.conv2d.__name__ == "conv2d" and topi.nn.pad.__name__ == "pad" and callable(relay.quantize.quantize)


@pytest.mark.parametrize(
    "path",
    [
        "baton.relay.testing:Prelude",
        "baton.relay.op.contrib:get_pattern_table",
        "baton.contrib.graph_runtime:GraphModule",
        "baton.relay.backend.te_compiler:TECompiler",
        "baton.contrib.dlpack:to_pytorch_func",
        "baton.topi.sparse:csrmv",
        "baton.relay.backend.te_compiler:lower_to_primfunc",
        "baton.contrib.cuda_graph.cuda_graph_executor:create",
    ],
)
def test_names(path):
    module, _, name = path.partition(":")
    assert callable(getattr(importlib.import_module(module), name))
    found = tvm
    for word in module.split(".")[1:]:
        found = getattr(found, word)
    assert found is importlib.import_module(module)


def test_names_of_operators_in_modules_by_family():
    from baton.relay.op.nn import nn
    from baton.relay.op.reduce import sum as total
    from baton.relay.op.tensor import add
    from baton.relay.op.transform import take

    assert relay.op.const is relay.const and take is relay.take and add is relay.add and total is relay.sum
    assert nn.conv2d is relay.nn.conv2d and relay.op._make.concatenate is relay.concatenate
    with pytest.raises(AttributeError, match="no operator `no_such_thing`"):
        _ = relay.op.transform.no_such_thing


def test_names_in_the_styles_of_c():
    from baton.relay.backend import name_transforms as names
    from baton.relay.backend.utils import mangle_module_name

    assert names.to_c_function_style("TVM_woof_Moo") == "TVMWoofMoo" and names.to_c_variable_style("TVMGen_Woof_woof") == "tvmgen_woof_woof"
    assert names.to_c_constant_style("TVM_Woof") == "TVM_WOOF" and names.prefix_name(["Woof", "Moo"]) == "TVM_Woof_Moo"
    assert names.prefix_generated_name("Woof") == "TVMGen_Woof" and names.sanitize_name("input+1:2") == "input_1_2"
    assert mangle_module_name("default") == "tvmgen_default" and mangle_module_name(None) == "tvmgen"
    for wrong in (
        lambda: names.to_c_function_style("woof"),
        lambda: names.to_c_variable_style(""),
        lambda: names.prefix_name([]),
        lambda: names.prefix_name(["a", ""]),
        lambda: names.sanitize_name(""),
        lambda: mangle_module_name("a-b"),
        lambda: mangle_module_name("Ǝ"),
        lambda: mangle_module_name("ñ"),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_modules_of_the_backend():
    import baton.relay.backend.vm as vm

    assert relay.backend.vm is vm and relay.backend.interpreter.RefValue and relay.backend.Executor
    with pytest.raises(AttributeError, match="no_such"):
        _ = relay.backend.no_such
    assert relay.ShapeVar("s").kind == relay.TypeKind.ShapeVar
