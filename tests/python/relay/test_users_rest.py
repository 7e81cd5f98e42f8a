# SPDX-License-Identifier: Apache-2.0
"""Programs of Relay's time about operators, their hooks, helpers and paths: what each relies on, beside NumPy."""

import itertools

import numpy as np
import pytest

import baton as tvm
import baton.topi.testing
from baton import relay, te, topi
from baton.relay.testing import run_infer_type

_numbers = itertools.count()


def f32(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")


def evaluate(expr, *values, kind="vm"):
    func = expr if isinstance(expr, relay.Function) else relay.Function(relay.analysis.free_vars(expr), expr)
    return relay.create_executor(kind, device=tvm.cpu(), target="llvm").evaluate(func)(*values)


# ---- Paths of files

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


# ---- Strategies of a program's operators


def own(rank=1):
    op = relay.op.op.register(f"users.rest{next(_numbers)}", "An operator of this test.")
    op.set_num_inputs(rank)
    for i in range(rank):
        op.add_argument(f"x{i}", "Tensor", "")
    op.add_type_rel("Identity")
    return op


def injective(outs):
    return topi.generic.schedule_injective(outs)


@pytest.mark.parametrize("kind", ["graph", "vm", "debug"])
def test_a_strategy_by_target(kind):
    op, x = own(), relay.var("x", shape=(3,))

    @tvm.target.override_native_generic_func(f"strategy_of_{op.name}")
    def strategy(attrs, inputs, out_type, target):
        made = relay.op.OpStrategy()
        made.add_implementation(lambda a, i, o: [topi.exp(i[0])], relay.op.strategy.wrap_topi_schedule(injective), name="generic")
        return made

    @strategy.register(["cpu"])
    def on_cpu(attrs, inputs, out_type, target):
        made = relay.op.OpStrategy()
        wrapped = relay.op.strategy.wrap_topi_compute(topi.tanh)
        made.add_implementation(wrapped, relay.op.strategy.wrap_topi_schedule(injective), name="plain", plevel=5)
        made.add_implementation(lambda a, i, o: [topi.nn.relu(i[0])], relay.op.strategy.naive_schedule, name="better", plevel=15)
        return made

    relay.op.register_strategy(op.name, strategy)
    data = f32(3)
    assert (evaluate(relay.Call(op, [x]), data, kind=kind).numpy() == data.clip(0)).all()
    tensor = te.placeholder((3,), name="t")
    found, outs = relay.backend.compile_engine.select_implementation(op, None, [tensor], relay.TensorType((3,)), tvm.target.Target("llvm"))
    assert found.name == "better" and found.plevel == 15 and len(outs) == 1
    assert found.schedule(None, outs, tvm.target.Target("llvm")) is not None
    assert len(relay.backend.compile_engine.get_valid_implementations(op, None, [tensor], relay.TensorType((3,)), tvm.target.Target("llvm"))) == 2


def test_a_strategy_under_a_condition():
    op, x = own(), relay.var("x", shape=(3,))

    def strategy(attrs, inputs, out_type, target):
        made = relay.op.OpStrategy()
        made.add_implementation(lambda a, i, o: [topi.exp(i[0])], None, name="any")
        with te.SpecializedCondition(inputs[0].shape[0] > 16):
            made.add_implementation(lambda a, i, o: [topi.tanh(i[0])], None, name="large", plevel=20)
        assert [s.condition is None for s in made.specializations] == [True, False]
        return made

    relay.op.register_strategy(op.name)(strategy)
    np.testing.assert_allclose(evaluate(relay.Call(op, [x]), f32(3)).numpy(), np.exp(f32(3)), rtol=1e-5)
    large = relay.var("x", shape=(32,))
    np.testing.assert_allclose(evaluate(relay.Call(op, [large]), f32(32)).numpy(), np.tanh(f32(32)), rtol=1e-5)
    with pytest.raises(ValueError, match="has a strategy of level 10"):
        relay.op.register_strategy(op.name, strategy)
    relay.op.register_strategy(op.name, strategy, level=11)


def test_a_schedule_of_a_program_s_operator_is_taken():
    op = own()
    relay.op.register_compute(op.name, lambda attrs, inputs, out_type: [topi.exp(inputs[0])])
    relay.op.register_schedule(op.name, lambda attrs, outs, target: injective(outs))
    np.testing.assert_allclose(evaluate(relay.Call(op, [relay.var("x", shape=(3,))]), f32(3)).numpy(), np.exp(f32(3)), rtol=1e-5)


def test_the_implementation_of_a_built_in_operator():
    data, weight = te.placeholder((2, 4), name="d"), te.placeholder((3, 4), name="w")
    attrs = relay.nn.dense(relay.var("d"), relay.var("w")).attrs
    found, outs = relay.backend.compile_engine.select_implementation(
        relay.op.get("nn.dense"), attrs, [data, weight], relay.TensorType((2, 3)), tvm.target.Target("llvm")
    )
    assert found.name == "nn.dense.generic" and [int(d) for d in outs[0].shape] == [2, 3]


# ---- Memory and the virtual machine


def test_storage_on_a_device():
    size, alignment = relay.const(40, "int64"), relay.const(64, "int64")
    made = relay.op.memory.alloc_storage(size, alignment, tvm.cpu(0))
    assert made.attrs.device_type == 1 and str(made.attrs.dtype) == "float32"
    assert str(relay.op.memory.alloc_storage(size=size, alignment=alignment, device=tvm.cpu(), dtype_hint="int8").attrs.dtype) == "int8"
    var = relay.var("s")
    tensor = relay.op.memory.alloc_tensor(var, relay.const(0, "int64"), relay.const([10], "int64"), "float32", assert_shape=[10])
    assert run_infer_type(relay.Let(var, made, tensor)).checked_type == relay.TensorType((10,))


def test_tuples_as_lists_of_tensors():
    from baton.relay.op.memory import flatten_tuple_type, from_tuple_type, to_tuple_type

    kind = relay.TupleType([relay.TensorType((1,)), relay.TupleType([relay.TensorType((2,)), relay.TensorType((3,))])])
    assert [int(t.shape[0]) for t in flatten_tuple_type(kind)] == [1, 2, 3]
    var = relay.var("v", kind)
    tensors = from_tuple_type(kind, var)
    assert [int(run_infer_type(t).checked_type.shape[0]) for t in tensors] == [1, 2, 3]
    assert run_infer_type(to_tuple_type(kind, tensors)).checked_type == kind


def test_operators_of_the_virtual_machine():
    x = relay.var("x", shape=(3, 4))
    assert run_infer_type(relay.op.vm.shape_of(expr=x)).checked_type == relay.TensorType((2,), "int64")
    assert evaluate(relay.op.vm.shape_of(x), f32(3, 4)).numpy().tolist() == [3, 4]
    a = relay.var("a", shape=(3,))
    relay.op.vm.shape_func(relay.Function([a], relay.exp(a)), relay.Tuple([x]), relay.Tuple([x]), is_inputs=[False])


def test_on_device_by_newer_names():
    x = relay.var("x", shape=(3,))
    assert relay.annotation.on_device(body=x, device=tvm.cpu()).attrs.is_fixed == 0
    assert relay.annotation.on_device(x, tvm.cpu(), constrain_result=True).attrs.is_fixed == 1
    assert relay.annotation.on_device(x, tvm.cpu(), constrain_body=False) is x
    with pytest.raises(tvm.error.UnsupportedError, match="device_copy"):
        relay.annotation.on_device(x, tvm.cpu(), constrain_result=True, constrain_body=False)


# ---- Arguments of operators


@pytest.mark.parametrize(
    ("args", "want"),
    [
        ((relay.const(1), True), np.triu(f32(3, 4), 1)),
        ((relay.const(-1), False), np.tril(f32(3, 4), -1)),
        ((2,), np.triu(f32(3, 4), 2)),
        ((False,), np.tril(f32(3, 4))),
        ((True, 1), np.triu(f32(3, 4), 1)),
    ],
)
def test_trilu(args, want):
    assert (evaluate(relay.trilu(relay.var("x", shape=(3, 4)), *args), f32(3, 4)).numpy() == want).all()


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("k", [-2, 0, 1])
def test_trilu_of_a_diagonal_that_is_known_later(upper, k):
    x, d = relay.var("x", shape=(2, 3, 4)), relay.var("k", shape=(), dtype="int32")
    got = evaluate(relay.Function([x, d], relay.trilu(x, d, upper)), f32(2, 3, 4), np.int32(k)).numpy()
    assert (got == (np.triu if upper else np.tril)(f32(2, 3, 4), k)).all()


def test_variance_with_the_mean_at_hand():
    x, data = relay.var("x", shape=(2, 3)), f32(2, 3)
    got = evaluate(relay.variance(x, 1, True, False, False, with_mean=relay.mean(x, 1, True)), data).numpy()
    np.testing.assert_allclose(got, data.var(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("many", [[0.1, 0.0, 0.9], [[1.0, 3.0], [5.0, 0.0]]])
def test_multinomial_of_a_key(many):
    probs = np.array(many, "float32")
    key, drawn = relay.random.multinomial(relay.random.threefry_key(3), relay.const(probs), num_samples=500)
    got = evaluate(relay.Function([], drawn)).numpy()
    assert got.shape == (*probs.shape[:-1], 500) and got.dtype == "int32"
    for row, share in zip(got.reshape(-1, 500), probs.reshape(-1, probs.shape[-1]), strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=len(share)) / 500, share / share.sum(), atol=0.08)


def test_gradient_layout_of_a_weight_s_gradient():
    g, x = relay.var("g", shape=(2, 6, 8, 8)), relay.var("x", shape=(2, 4, 8, 8))
    given = {"padding": (1, 1), "kernel_size": (3, 3), "channels": 6}
    assert run_infer_type(relay.nn.conv2d_backward_weight(g, x, **given, grad_layout="NCHW", data_layout="NCHW")).checked_type == relay.TensorType((6, 4, 3, 3))
    assert run_infer_type(relay.nn.conv2d_backward_weight(g, x, (1, 1), (1, 1), (1, 1), 1, 6, (3, 3), "NCHW", "NCHW", "OIHW")).checked_type == relay.TensorType(
        (6, 4, 3, 3)
    )
    with pytest.raises(tvm.error.UnsupportedError, match="the same"):
        relay.nn.conv2d_backward_weight(g, x, **given, grad_layout="NHWC")


def test_deformable_conv2d_of_other_layouts():
    data, offset, weight = f32(1, 8, 8, 4), f32(1, 8, 8, 18, seed=1), f32(3, 3, 4, 5, seed=2)
    ins = [relay.var(n, shape=v.shape) for n, v in zip("xow", (data, offset, weight), strict=True)]
    y = relay.nn.deformable_conv2d(*ins, padding=(1, 1), kernel_size=(3, 3), channels=5, data_layout="NHWC", kernel_layout="HWIO")
    want = tvm.topi.testing.deformable_conv2d_nhwc_python(data, offset, weight, 1, 1, 1, 1, 1)
    np.testing.assert_allclose(evaluate(relay.Function(ins, y), data, offset, weight).numpy(), want, rtol=1e-3, atol=1e-4)


def test_one_number_as_a_pooled_size():
    x, r = relay.var("x", shape=(1, 2, 8, 8)), relay.var("r", shape=(1, 5))
    assert run_infer_type(relay.vision.roi_align(x, r, 3, 1.0)).checked_type == relay.TensorType((1, 2, 3, 3))


@pytest.mark.parametrize("dtype", ["bool", "float32", "int8"])
def test_running_sums_of_a_given_dtype(dtype):
    data = (f32(3, 4) > 0).astype(dtype)
    x = relay.var("x", shape=(3, 4), dtype=dtype)
    assert (evaluate(relay.cumsum(x, 1, "int32"), data).numpy() == np.cumsum(data, 1, dtype="int32")).all()
    assert (evaluate(relay.cumprod(x, axis=0, dtype="int64", exclusive=False), data).numpy() == np.cumprod(data, 0, dtype="int64")).all()


def test_running_sums_of_bools_need_a_dtype():
    with pytest.raises(tvm.TVMError, match="cumsum R1"):
        run_infer_type(relay.cumsum(relay.var("x", shape=(3,), dtype="bool")))


def test_a_literal_of_tir_as_an_operand():
    x = relay.var("x", shape=(3,))
    assert evaluate(relay.add(x, tvm.tir.const(2.0, "float32")), f32(3)).numpy().dtype == "float32"


# ---- Quantized operators


def test_simulated_quantization_by_a_number_for_the_dtype():
    from baton.relay.qnn.op.qnn import SQNN_DTYPE_TO_CODE

    x, code, data = relay.var("x", shape=(5,)), relay.var("code", shape=(), dtype="int32"), f32(5) * 40
    scale, zero = relay.const(0.1, "float32"), relay.const(3, "int32")
    there = relay.qnn.op.simulated_quantize(x, scale, zero, out_dtype=code, axis=-1)
    back = relay.qnn.op.simulated_dequantize(there, scale, zero, axis=-1, in_dtype=code)
    for dtype in ("int8", "uint8"):
        want = evaluate(relay.qnn.op.quantize(x, scale, zero, out_dtype=dtype), data).numpy()
        number = np.int32(SQNN_DTYPE_TO_CODE[dtype])
        assert (evaluate(relay.Function([x, code], there), data, number).numpy() == want.astype("float32")).all()
        np.testing.assert_allclose(evaluate(relay.Function([x, code], back), data, number).numpy(), (want.astype("float32") - 3) * 0.1, rtol=1e-5, atol=1e-6)
    assert (evaluate(relay.Function([x, code], there), data, np.int32(SQNN_DTYPE_TO_CODE["float32"])).numpy() == data).all()


def test_requantize_takes_both_orders_of_its_last_arguments():
    x, one, zero = relay.var("x", shape=(2,), dtype="int32"), relay.const(1.0), relay.const(0)
    for rest in [("UPWARD", "int8"), ("UPWARD", "None", "int8"), ("TONEAREST", "float32", "int8"), ("None", "int64", "int8")]:
        assert run_infer_type(relay.qnn.op.requantize(x, one, zero, one, zero, -1, *rest)).checked_type == relay.TensorType((2,), "int8")


# ---- Helpers


def test_layers_without_a_name():
    data = relay.var("data", shape=(1, 3, 8, 8))
    assert run_infer_type(relay.testing.layers.conv2d(data, relay.var("ww"), kernel_size=(1, 1), channels=2)).checked_type == relay.TensorType((1, 2, 8, 8))


def test_a_shallow_mobilenet():
    shape = (1, 3, 64, 64)
    plain = relay.testing.mobilenet.mobile_net(10, shape)
    shallow = relay.testing.mobilenet.mobile_net(num_classes=10, data_shape=shape, alpha=1.0, is_shallow=True)
    assert relay.analysis.count_layers(shallow, ["nn.conv2d"]) == relay.analysis.count_layers(plain, ["nn.conv2d"]) - 10


def test_values_with_inputs_that_are_not_there():
    from baton.relay.frontend.common import infer_value_simulated

    x = relay.var("x", shape=(2, 3))
    assert infer_value_simulated(relay.shape_of(relay.transpose(x)), {}).numpy().tolist() == [3, 2]


def test_libraries_that_are_not_there_say_so():
    with pytest.warns(UserWarning, match="gives False"):
        from baton.relay.op.contrib import tensorrt

        assert tensorrt.is_tensorrt_runtime_enabled() is False


def test_convolutions_of_topi_take_padding_by_name():
    data, kernel = f32(1, 3, 8, 8), f32(4, 3, 3, 3, seed=1)
    x, k = te.placeholder(data.shape, name="x"), te.placeholder(kernel.shape, name="k")
    for made, padding in [
        (topi.nn.conv2d_nchw(x, k, 1, "SAME", 1), 1),
        (topi.nn.conv2d(x, k, 1, "VALID", 1, "NCHW", "float32"), 0),
        (topi.nn.conv2d(x, k, 1, 1, 1, "NCHW", "OIHW", "float32"), 1),
    ]:
        out = tvm.nd.empty([int(d) for d in made.shape])
        tvm.build(te.create_schedule(made.op), [x, k, made], "llvm")(tvm.nd.array(data), tvm.nd.array(kernel), out)
        np.testing.assert_allclose(out.numpy(), tvm.topi.testing.conv2d_nchw_python(data, kernel, 1, padding), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match='"FULL"'):
        topi.nn.conv2d_nchw(x, k, 1, "FULL", 1)


def test_indices_side_by_side_in_topi():
    data, rows, columns = f32(4, 5), np.array([[0, 1], [3, 2]]), np.array([1, 4])
    x, i, j = (te.placeholder(v.shape, dtype=str(v.dtype), name=n) for n, v in zip("xij", (data, rows, columns), strict=True))
    made, out = topi.adv_index(x, [i, j]), tvm.nd.empty((2, 2))
    tvm.build(te.create_schedule(made.op), [x, i, j, made], "llvm")(tvm.nd.array(data), tvm.nd.array(rows), tvm.nd.array(columns), out)
    assert (out.numpy() == data[rows, columns]).all()
