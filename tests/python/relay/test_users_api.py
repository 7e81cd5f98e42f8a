# SPDX-License-Identifier: Apache-2.0
"""What names of Relay's API take and give: kinds of arguments, results, forms of text. A case each."""

import inspect

import numpy as np
import pytest

import baton as tvm
from baton import relay, tir
from baton.relay.dataflow_pattern import wildcard


def infer(expr):
    return relay.testing.run_infer_type(expr)


def run(expr, *args):
    params = relay.analysis.free_vars(expr)
    return relay.create_executor("debug").evaluate(relay.Function(params, expr))(*args).numpy()


# ---- Kinds of arguments

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
    y = infer(relay.reshape(relay.var("y", shape=(6,)), newshape=shape))
    assert y.checked_type == want and list(y.attrs.newshape) == [2, 3]
    assert infer(relay.zeros(shape, "int8")).checked_type == relay.TensorType((2, 3), "int8")


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
        infer(call)
    with pytest.raises(TypeError, match="None"):
        relay.TensorType((one, None))


def test_shapes_want_ints():
    with pytest.raises(TypeError):
        relay.TensorType((2.5, 3))


# ---- Results


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


# ---- Options of passes


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


def test_weights_that_are_transposed():
    x, w, v = relay.var("x", shape=(2, 3)), relay.var("w", shape=(3, 4)), relay.var("v", shape=(4, 4))
    body = relay.nn.dense(relay.nn.dense(x, relay.transpose(w, [1, 0])), v)
    assert relay.analysis.search_fc_transpose(body) == ["w"]
    assert relay.analysis.search_fc_transpose(relay.nn.dense(x, relay.transpose(relay.var("u", shape=(4, 3)), [0, 1]))) == []


def test_modules_of_the_backend():
    import baton.relay.backend.vm as vm

    assert relay.backend.vm is vm and relay.backend.interpreter.RefValue and relay.backend.Executor
    with pytest.raises(AttributeError, match="no_such"):
        _ = relay.backend.no_such
    assert relay.ShapeVar("s").kind == relay.TypeKind.ShapeVar


def test_a_layer_that_is_transposed():
    call = relay.testing.layers.conv2d_transpose(relay.var("x", shape=(1, 2, 4, 4)), name="c", channels=3, kernel_size=(2, 2))
    assert call.op.name == "nn.conv2d_transpose" and call.args[1].name_hint == "c_weight"


# ---- Text

TEXTS = {
    "width of an int": ("nn.softmax(%x, axis=-1i64)", "nn.softmax(%x, axis=-1)"),
    "widths in a list": ("reshape(%x, newshape=[3i64, 1i32])", "reshape(%x, newshape=[3, 1])"),
    "widths in lists": ("nn.pad(%x, 0f, pad_width=[[0i64, 1i64], [1, 0]])", "nn.pad(%x, 0f, pad_width=[[0, 1], [1, 0]])"),
}


@pytest.mark.parametrize(("text", "same"), TEXTS.values(), ids=TEXTS)
def test_text_is_the_same_as(text, same):
    both = [tvm.parser.parse(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 3), float32]) {{ {t} }}') for t in (text, same)]
    tvm.ir.assert_structural_equal(*both)


@pytest.mark.parametrize("name", ["conv1.weight", "layer1.0.bn2.bias", "a.b.c", "features.12.w_0", "x.y1"])
def test_names_with_points(name):
    text = f'#[version = "0.0.5"]\ndef @main(%{name}: (int32, int32)) -> int32 {{ add(%{name}.0, %{name}.1) }}'
    mod = tvm.parser.parse(text)
    assert mod["main"].params[0].name_hint == name and isinstance(mod["main"].body.args[1], relay.TupleGetItem)
    tvm.ir.assert_structural_equal(tvm.parser.parse(mod.astext()), mod)


def test_points_that_are_no_part_of_a_name():
    mod = tvm.parser.parse('#[version = "0.0.5"]\ndef @main(%x: ((int32, int32), int32)) -> int32 { %x.0.1 }')
    assert mod["main"].params[0].name_hint == "x" and mod["main"].body.index == 1
    with pytest.raises(tvm.error.DiagnosticError):
        tvm.parser.parse('#[version = "0.0.5"]\ndef @main(%x: int32) -> int32 { %x. }')


# ---- Functions for other compilers


def _supported(kind):
    return lambda call: call.args[0].checked_type.dtype == kind


def _partitioned(body, compilers, **options):
    """The module after the three passes, with `nn.relu` and `add` of float32 for "users", `exp` for "others"."""
    from contextlib import ExitStack

    from baton.relay.testing.temp_op_attr import TempOpAttr

    with ExitStack() as stack:
        for op, compiler in (("nn.relu", "users"), ("add", "users"), ("exp", "others"), ("add", "others")):
            stack.enter_context(TempOpAttr(op, f"target.{compiler}", _supported("float32")))
        mod = relay.transform.AnnotateTarget(compilers)(tvm.IRModule.from_expr(body))
        return relay.transform.PartitionGraph(**options)(relay.transform.MergeCompilerRegions()(mod))


def _body(dtype="float32"):
    x, y = relay.var("x", shape=(2, 3), dtype=dtype), relay.var("y", shape=(2, 3), dtype=dtype)
    relu = relay.nn.relu(x)
    both = relay.add(relu, y)
    return relay.Tuple([relay.nn.relu(relay.add(relay.exp(both) if dtype == "float32" else both, relu)), both])


@pytest.mark.parametrize(
    ("compilers", "counts"),
    [("users", {"users": 2}), (["users", "others"], {"users": 2, "others": 1}), (["others", "users"], {"users": 2, "others": 1}), ([], {})],
    ids=str,
)
def test_operators_that_other_compilers_take(compilers, counts):
    plain = tvm.IRModule.from_expr(_body())
    mod = _partitioned(_body(), compilers)
    found = {}
    for var, func in mod.functions.items():
        if func.attrs is not None and "Compiler" in func.attrs:
            found[func.attrs["Compiler"]] = found.get(func.attrs["Compiler"], 0) + 1
            assert func.attrs["global_symbol"] == var.name_hint and func.attrs["Primitive"] == 1
    assert found == counts
    args = [np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3), np.ones((2, 3), "float32")]
    want = relay.create_executor("debug", plain).evaluate()(*args)
    for kind in ("debug", "graph", "vm"):
        for got, right in zip(relay.create_executor(kind, mod).evaluate()(*args), want, strict=True):
            tvm.testing.assert_allclose(got.numpy(), right.numpy(), rtol=1e-6)
    back = relay.transform.InlineCompilerFunctionsBoundTo([v for v in mod.get_global_vars() if v.name_hint != "main"])(mod)
    assert [v.name_hint for v in back.get_global_vars()] == ["main"]


def test_operators_that_other_compilers_refuse():
    mod = _partitioned(_body("int32"), "users")
    assert len(mod.functions) == 1 and not any(n.startswith("annotation") for n in relay.analysis.list_op_freqs(mod))


def test_composites_for_another_compiler():
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.const(np.ones((4, 3, 3, 3), "float32"))
    conv = relay.nn.relu(relay.nn.conv2d(x, w))
    pattern = relay.dataflow_pattern.is_op("nn.relu")(relay.dataflow_pattern.is_op("nn.conv2d")(wildcard(), wildcard()))
    mod = relay.transform.MergeComposite([("users.conv_relu", pattern)])(tvm.IRModule.from_expr(conv))
    mod = relay.transform.PartitionGraph("net")(relay.transform.MergeCompilerRegions()(relay.transform.AnnotateTarget("users")(mod)))
    func = mod["tvmgen_net_users_main_0"]
    assert func.attrs["Compiler"] == "users" and func.body.op.attrs["Composite"] == "users.conv_relu" and len(func.params) == 1
    lib = relay.build(mod, "llvm")
    data = np.ones((1, 3, 8, 8), "float32")
    run = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    run.run(x=data)
    assert (run.get_output(0).numpy() == 27).all()


def test_a_deep_program_for_another_compiler():
    """Alternating regions, 5,000 of them, and a region of 10,000 calls."""
    from baton.relay.testing.temp_op_attr import TempOpAttr

    for ops, functions in ((("nn.relu", "exp"), 5001), (("nn.relu", "nn.relu"), 2)):
        e = relay.var("x", shape=(2,))
        for _ in range(5000):
            for op in ops:
                e = relay.Call(relay.op.get(op), [e])
        with TempOpAttr("nn.relu", "target.users", lambda call: True):
            mod = relay.transform.AnnotateTarget("users")(tvm.IRModule.from_expr(e))
        mod = relay.transform.PartitionGraph()(relay.transform.MergeCompilerRegions()(mod))
        assert len(mod.functions) == functions
        back = relay.transform.InferType()(relay.transform.InlineCompilerFunctionsBoundTo([v for v in mod.get_global_vars() if v.name_hint != "main"])(mod))
        tvm.ir.assert_structural_equal(back, relay.transform.InferType()(tvm.IRModule.from_expr(e)))


# ---- Mixed precision


def test_mixed_precision_is_near():
    mod, params = relay.testing.mlp.get_workload(batch_size=2)
    data = np.random.default_rng(0).standard_normal((2, 1, 28, 28)).astype("float32")
    narrow = relay.transform.ToMixedPrecision("float16")(mod)
    assert narrow["main"].ret_type == mod["main"].ret_type and relay.analysis.list_op_freqs(narrow)["cast"] > 2
    both = []
    for m in (mod, narrow):
        run = tvm.contrib.graph_executor.GraphModule(relay.build(m, "llvm", params=params)["default"](tvm.cpu()))
        run.run(data=data)
        both.append(run.get_output(0).numpy())
    tvm.testing.assert_allclose(both[1], both[0], rtol=2e-2, atol=1e-3)
    assert (both[1] != both[0]).any()


def test_results_stay_narrow_unless_asked():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    product = relay.nn.relu(relay.nn.dense(x, w))
    narrow = relay.nn.relu(relay.nn.dense(relay.cast(x, "float16"), relay.cast(w, "float16"), out_dtype="float16"))
    one = relay.transform.ToMixedPrecision("float16")(relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], product))))
    tvm.ir.assert_structural_equal(one, relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], narrow))))
    both = relay.Function([x, w], relay.Tuple([product, relay.exp(x), relay.cast(x, "float32")]))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(both))
    fields = relay.transform.InferType()(relay.transform.ToMixedPrecision("float16")(mod))["main"].ret_type.fields
    assert [t.dtype for t in fields] == ["float16", "float32", "float32"]
    with tvm.transform.PassContext(config={"relay.ToMixedPrecision.keep_orig_output_dtype": True}):
        kept = relay.transform.ToMixedPrecision("float16")(mod)
    assert [t.dtype for t in relay.transform.InferType()(kept)["main"].ret_type.fields] == ["float32"] * 3


def test_operators_say_their_precision():
    from baton.relay.testing.temp_op_attr import TempOpAttr

    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    body = relay.exp(relay.nn.dense(x, w))
    dtypes = {}
    for name, rules in {
        "never": {"nn.dense": [2, "float32", "float32"]},
        "all narrow": {"nn.dense": [0, "float16", "float16"], "exp": [1, "float16", "float16"]},
    }.items():
        with (
            TempOpAttr("nn.dense", "FTVMMixedPrecisionConversionType", lambda call, dtype, r=rules: r["nn.dense"]),
            TempOpAttr("exp", "FTVMMixedPrecisionConversionType", lambda call, dtype, r=rules: r.get("exp", [2, "float32", dtype])),
        ):
            made = relay.transform.InferType()(relay.transform.ToMixedPrecision("float16", 0)(tvm.IRModule.from_expr(body)))
        dtypes[name] = {}
        relay.analysis.post_order_visit(
            made["main"], lambda e, d=dtypes[name]: d.setdefault(e.op.name, e.checked_type.dtype) if isinstance(e, relay.Call) else None
        )
    assert dtypes["never"] == {"nn.dense": "float32", "exp": "float32"}
    assert dtypes["all narrow"]["nn.dense"] == dtypes["all narrow"]["exp"] == "float16"
    with TempOpAttr("nn.dense", "FTVMMixedPrecisionConversionType", lambda call, dtype: [7]), pytest.raises(ValueError, match="nn.dense"):
        relay.transform.ToMixedPrecision()(tvm.IRModule.from_expr(body))
    for wrong in (("float32", 1), ("int8", 1), ("float16", 3)):
        with pytest.raises(ValueError):
            relay.transform.ToMixedPrecision(*wrong)
    assert relay.op.register_mixed_precision_conversion
    # Without a registration the attribute says what the definition does.
    known = {"nn.conv2d": 0, "nn.relu": 1, "exp": 2, "sum": 2}
    assert {name: relay.op.get(name).get_attr("FTVMMixedPrecisionConversionType")(None, "float16")[0] for name in known} == known
    assert relay.op.get("unique").get_attr("FTVMMixedPrecisionConversionType") is None


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
    assert resize(x, size, layout).attrs.layout == layout and infer(want).checked_type.dtype == "float16" and infer(cropped).checked_type
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
