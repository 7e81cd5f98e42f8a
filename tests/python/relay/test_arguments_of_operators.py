# SPDX-License-Identifier: Apache-2.0
"""Kinds, names and orders of arguments that operators and passes take, and the attributes that they give."""

import inspect
import pickle

import numpy as np
import pytest
from building import typed

import baton as tvm
import baton.topi.testing
from baton import relay, tir
from baton.relay.dataflow_pattern import wildcard
from baton.relay.testing import run_infer_type


def run(expr, *args):
    params = relay.analysis.free_vars(expr)
    return relay.create_executor("debug").evaluate(relay.Function(params, expr))(*args).numpy()


SIXES = {
    "ints": (2, 3),
    "list": [2, 3],
    "int32 literals": (tir.IntImm("int32", 2), tir.IntImm("int64", 3)),
    "NumPy's ints": (np.int64(2), np.int32(3)),
    "Array": tvm.runtime.convert([2, 3]),
    "NumPy's array": np.array([2, 3]),
}


@pytest.mark.parametrize("shape", SIXES.values(), ids=SIXES)
def test_a_shape_is_given_as(shape):
    want = relay.TensorType((2, 3), "float32")
    x = relay.var("x", shape=shape)
    assert x.type_annotation == want and relay.TensorType(shape, np.dtype("float32")) == want and x.type_annotation.shape[0] == 2
    y = typed(relay.reshape(relay.var("y", shape=(6,)), newshape=shape))
    assert y.checked_type == want and list(y.attrs.newshape) == [2, 3]
    assert typed(relay.zeros(shape, "int8")).checked_type == relay.TensorType((2, 3), "int8")


@pytest.mark.parametrize("one", [1, np.int32(1), np.array(1), tir.IntImm("int32", 1)], ids=["int", "int32", "array", "literal"])
def test_an_int_attribute_is_given_as(one):
    x = relay.var("x", shape=(2, 1, 4))
    for call in (
        relay.expand_dims(x, one),
        relay.nn.softmax(x, axis=one),
        relay.sum(x, axis=one),
        relay.squeeze(x, axis=one),
        relay.concatenate([x, x], axis=one),
        relay.repeat(x, repeats=one, axis=one),
        relay.split(x, one, axis=one).astuple(),
        relay.nn.max_pool1d(x, one, strides=one),
    ):
        typed(call)
    with pytest.raises(TypeError, match="None"):
        relay.TensorType((one, None))


def test_shapes_want_ints():
    with pytest.raises(TypeError):
        relay.TensorType((2.5, 3))


def test_fields_of_attributes_say_what_they_are():
    attrs = relay.nn.softmax(relay.var("x")).attrs
    (info,) = attrs.list_field_info()
    assert (info.name, info.type_info) == ("axis", "int") and info.description and tuple(info) == (info.name, info.type_info, info.description)


def test_parameters_by_relays_names_and_by_ours():
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(2, 2))
    for calls in (
        (relay.clip(a=x, a_min=0.0, a_max=1.0), relay.clip(data=x, a_min=0.0, a_max=1.0), relay.clip(x, 0.0, 1.0)),
        (relay.reshape_like(data=x, shape_like=y), relay.reshape_like(lhs=x, rhs=y), relay.reshape_like(x, y)),
        (relay.broadcast_to_like(y, broadcast_type=y), relay.broadcast_to_like(y, like=y)),
        (relay.collapse_sum_like(y, collapse_type=y), relay.collapse_sum_like(data=y, like=y)),
    ):
        for call in calls[1:]:
            tvm.ir.assert_structural_equal(calls[0], call)
    with pytest.raises(TypeError, match="twice"):
        relay.clip(x, data=x, a_min=0.0, a_max=1.0)


def test_deformable_convolutions_by_position():
    x, offset, w = relay.var("x", shape=(1, 2, 4, 4)), relay.var("o", shape=(1, 18, 4, 4)), relay.var("w", shape=(3, 2, 3, 3))
    call = relay.nn.deformable_conv2d(x, offset, w, (1, 1), (1, 1))
    assert len(call.args) == 3 and list(call.attrs.strides) == [1, 1] and [int(p) for p in call.attrs.padding][:2] == [1, 1]
    mask = relay.var("m", shape=(1, 9, 4, 4))
    for call in (relay.nn.deformable_conv2d(x, offset, w, (2, 2), mask=mask), relay.nn.deformable_conv2d(x, offset, w, mask, (2, 2))):
        assert len(call.args) == 4 and call.args[3].same_as(mask) and list(call.attrs.strides) == [2, 2]


def test_a_pools_gradient_by_position():
    call = relay.nn.max_pool2d_grad(relay.var("g"), relay.var("x"), (2, 2), (2, 2), (1, 1), "NHWC")
    assert call.attrs.layout == "NHWC" and list(call.attrs.padding) == [1, 1, 1, 1] and list(call.attrs.dilation) == [1, 1]


@pytest.mark.parametrize("axis", [0, 1])
def test_fifo_buffer(axis):
    data, buffer = np.arange(6, dtype="float32").reshape((1, 6) if axis == 0 else (6, 1)), -np.ones((3, 6) if axis == 0 else (6, 3), "float32")
    x, b = relay.var("x", shape=data.shape), relay.var("b", shape=buffer.shape)
    want = np.concatenate([buffer, data], axis).take(range(1, 4), axis)
    expr = relay.nn.fifo_buffer(x, b, axis)
    found = relay.create_executor("graph").evaluate(relay.Function([x, b], expr))(data, buffer).numpy()
    assert found.shape == buffer.shape and (found == want).all()


def test_layouts_of_packed_weights():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 5)).astype("float32"), rng.standard_normal((8, 5)).astype("float32")
    a, b = relay.var("a", shape=(2, 5)), relay.var("b", shape=(8, 5))
    plain = relay.nn.contrib_dense_pack(a, b)
    assert plain.op.name == "nn.dense"
    packed = relay.nn.contrib_dense_pack(a, relay.layout_transform(b, "NC", "NC4n"), "NC4n")
    assert packed.op.name == "nn.contrib_dense_pack"
    for call in (plain, packed):
        tvm.testing.assert_allclose(run(call, x, w), x @ w.T, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="weight_layout"):
        relay.nn.contrib_dense_pack(a, b, "CN")


def test_options_by_relays_names():
    x = relay.var("x", shape=(2, 3))
    body = relay.Tuple([relay.nn.dense(x, relay.var(f"w{i}", shape=(4, 3))) for i in range(3)])
    mod = tvm.IRModule.from_expr(body)
    names = {}
    for batch in (True, False):
        for given in ({"to_batch": batch}, {"to_batch_matmul": batch}):
            made = relay.transform.CombineParallelDense(3, **given)(mod)
            names.setdefault(batch, []).append(sorted(relay.analysis.list_op_freqs(made).items()))
    assert names[True][0] == names[True][1] != names[False][0] == names[False][1]
    folded = relay.transform.FoldConstant(fold_qnn=True)(tvm.IRModule.from_expr(relay.const(1) + relay.const(2)))
    assert folded["main"].body.data.numpy() == 3


@pytest.mark.parametrize(("name", "letters"), [("resize1d", "W"), ("resize2d", "HW"), ("resize3d", "DHW")])
def test_arguments_of_resize_in_both_orders(name, letters):
    resize, size, layout = getattr(relay.image, name), (4,) * len(letters), "NC" + letters
    x, roi = relay.var("x", shape=(1, 2) + (8,) * len(letters)), [0.0] * len(letters) + [1.0] * len(letters)
    want = resize(
        x,
        size,
        layout=layout,
        method="cubic",
        coordinate_transformation_mode="asymmetric",
        rounding_method="round",
        cubic_alpha=-0.75,
        cubic_exclude=1,
        out_dtype="float16",
    )
    tvm.ir.assert_structural_equal(resize(x, size, layout, "cubic", "asymmetric", "round", -0.75, 1, "float16"), want)
    tvm.ir.assert_structural_equal(resize(x, size, None, layout, "cubic", "asymmetric", "round", -0.75, 1, 0.0, "float16"), want)
    cropped = resize(x, size, roi=roi, layout=layout, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=0.5)
    tvm.ir.assert_structural_equal(resize(x, size, roi, layout, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=0.5), cropped)
    assert resize(x, size, layout).attrs.layout == layout and typed(want).checked_type.dtype == "float16" and typed(cropped).checked_type
    assert list(inspect.signature(resize).parameters)[:4] == ["data", "size", "roi", "layout"]


def test_parameters_by_their_names():
    array = tvm.nd.array(np.ones(2, "float32"))
    assert tvm.nd.from_dlpack(dltensor=array.to_dlpack()).numpy().sum() == 2
    assert tvm.nd.empty((2,)).copyfrom(source_array=array).numpy().sum() == 2
    mod = tvm.IRModule().with_attr(attr_key="a", attr_value=1)
    assert mod.get_attr(attr_key="a") == 1 and mod.get_attr("b", default=2) == 2
    field = relay.dataflow_pattern.TupleGetItemPattern(tuple=wildcard(), index=0)
    x = relay.var("x", shape=(2,))
    assert field.match(relay.TupleGetItem(relay.Tuple([x, x]), 0))
    assert (
        relay.nn.get_pad_tuple2d((1, 2)) == (1, 2, 1, 2)
        and relay.nn.get_pad_tuple1d(3) == (3, 3)
        and relay.nn.get_pad_tuple3d([1, 2, 3, 4, 5, 6]) == (1, 2, 3, 4, 5, 6)
    )
    assert relay.analysis.list_op_types(tvm.IRModule.from_expr(relay.nn.relu(relay.exp(x)))) == ["exp", "nn.relu"]
    assert tvm.testing.identity_cpp(3) == 3 and "rasp" in str(tvm.target.rasp()) or "bcm" in str(tvm.target.rasp())


def test_a_dtype_that_is_not_given():
    """Layout functions ask whether `out_dtype` is one of ("same", "")."""
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    attrs = relay.nn.conv2d(x, w).attrs
    assert attrs.out_dtype in ("same", "") and attrs.out_dtype == "void" and not attrs.out_dtype and attrs.out_dtype != "float32"
    assert relay.nn.conv2d(x, w, out_dtype="int32").attrs.out_dtype not in ("same", "")
    assert tvm.DataType("float32") and hash(tvm.DataType("int8")) == hash("int8") and pickle.loads(pickle.dumps(attrs.out_dtype)) == ""


@pytest.mark.parametrize(
    ("make", "given", "want"),
    [
        (relay.nn.conv1d, 1, [1, 1]),
        (relay.nn.conv1d, (1, 2), [1, 2]),
        *[(relay.nn.conv2d, p, [1, 1, 1, 1]) for p in (1, (1,), (1, 1), [1, 1, 1, 1])],
        (relay.nn.conv2d, (1, 2), [1, 2, 1, 2]),
        (relay.nn.conv2d, (1, 2, 3, 4), [1, 2, 3, 4]),
        (relay.nn.conv2d, None, [0, 0, 0, 0]),
        (relay.nn.conv3d, (1, 2, 3), [1, 2, 3, 1, 2, 3]),
        (relay.nn.conv2d_transpose, 2, [2, 2, 2, 2]),
    ],
)
def test_padding_of_both_ends(make, given, want):
    attrs = make(relay.var("x"), relay.var("w"), **({} if given is None else {"padding": given})).attrs
    assert [int(x) for x in attrs.padding] == want and attrs.get_int_tuple("padding") == tuple(want)


def test_padding_of_pools():
    assert list(relay.nn.max_pool2d(relay.var("x"), 2, padding=1).attrs.padding) == [1, 1, 1, 1]
    assert list(relay.nn.avg_pool1d(relay.var("x"), 2).attrs.padding) == [0, 0]
    assert list(relay.nn.max_pool3d(relay.var("x"), 2, padding=(0, 1, 2)).attrs.padding) == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(("layout", "shape"), [("OIHW", (3, 10, 3, 3)), ("IOHW", (3, 10, 3, 3)), ("HWIO", (3, 3, 10, 3)), ("HWOI", (3, 3, 10, 3))])
def test_layouts_of_transposed_weights(layout, shape):
    """Older programs call the weight (in, out, H, W) of a transposed convolution OIHW."""
    from baton.topi.testing import conv2d_transpose_nhwc_python

    x, w = relay.var("x", shape=(1, 4, 5, 3)), relay.var("w", shape=shape)
    call = relay.nn.conv2d_transpose(x, w, (2, 2), (1, 1), output_padding=(1, 1), channels=10, kernel_size=(3, 3), data_layout="NHWC", kernel_layout=layout)
    rng = np.random.default_rng(0)
    data, weight = rng.standard_normal((1, 4, 5, 3)).astype("float32"), rng.standard_normal(shape).astype("float32")
    found = relay.create_executor("debug").evaluate(relay.Function([x, w], call))(data, weight).numpy()
    want = conv2d_transpose_nhwc_python(data, weight, "IOHW" if layout[-1] == "W" else "HWOI", (2, 2), (1, 1), (1, 1))
    tvm.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def f32(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")


def evaluate(expr, *values, kind="vm"):
    func = expr if isinstance(expr, relay.Function) else relay.Function(relay.analysis.free_vars(expr), expr)
    return relay.create_executor(kind, device=tvm.cpu(), target="llvm").evaluate(func)(*values)


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
