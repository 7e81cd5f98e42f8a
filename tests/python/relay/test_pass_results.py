# SPDX-License-Identifier: Apache-2.0
"""Results of passes that programs of Relay 0.8 write down, a row a program: before, pass, after."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay import transform
from baton.relay.testing import run_infer_type, run_opt_pass

rng = np.random.default_rng(0)


def var(name, *shape, dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def const(value, dtype="float32"):
    return relay.const(value, dtype)


def func(body):
    return relay.Function(relay.analysis.free_vars(body), body)


def same(got, wanted):
    tvm.ir.assert_structural_equal(run_infer_type(got), run_infer_type(wanted), map_free_vars=True)


def row(name, before, after, *passes):
    return pytest.param(before, after, passes, id=name)


def array(shape, dtype):
    return rng.integers(-100, 100, shape).astype(dtype) if "int" in dtype else rng.standard_normal(shape).astype(dtype)


def arguments(f):
    return [array([int(d) for d in p.type_annotation.shape], str(p.type_annotation.dtype)) for p in f.params]


def evaluate(f, args, kind="vm"):
    out = relay.create_executor(kind, mod=tvm.IRModule.from_expr(f)).evaluate()(*args)
    return [v.numpy() for v in out] if isinstance(out, (list, tuple)) or not hasattr(out, "numpy") else [out.numpy()]


X = var("x", 4, 8)
W = const(rng.standard_normal((8,)).astype("float32"))
V = const(rng.standard_normal((8,)).astype("float32"))
Q = var("q", 4, 4, dtype="int8")


def dequantized(x, scale=2.0):
    return relay.qnn.op.dequantize(x, const(scale), relay.const(0))


S = transform.SimplifyExpr
SIMPLE = [
    row("x + 0", lambda: X + const(0.0), lambda: X, S),
    row("0 + x", lambda: const(0.0) + X, lambda: X, S),
    row("x + zeros_like(x)", lambda: X + relay.zeros_like(X), lambda: X, S),
    row("x + zeros", lambda: X + relay.zeros((4, 8), "float32"), lambda: X, S),
    row("x - zeros", lambda: X - relay.zeros((4, 8), "float32"), lambda: X, S),
    row("x * ones_like(x)", lambda: X * relay.ones_like(X), lambda: X, S),
    row("x * 0 stays", lambda: X * relay.zeros_like(X), lambda: X * const(0.0), S),
    row("2 / sqrt(x)", lambda: const(2.0) / relay.sqrt(X), lambda: const(2.0) * relay.rsqrt(X), S),
    row("1 / sqrt(x)", lambda: const(1.0) / relay.sqrt(X), lambda: relay.rsqrt(X), S),
    row("argmax of integers", lambda: relay.argmax(dequantized(Q), axis=1), lambda: relay.argmax(Q, axis=1), S),
    row("argmin of integers", lambda: relay.argmin(dequantized(Q), axis=0), lambda: relay.argmin(Q, axis=0), S),
    row("argsort of integers", lambda: relay.argsort(dequantized(Q), axis=1), lambda: relay.argsort(Q, axis=1), S),
    row("argmax, steps that are negative", lambda: relay.argmax(dequantized(Q, -1.0), 1), lambda: relay.argmax(dequantized(Q, -1.0), 1), S),
    row("zeros_like", lambda: relay.nn.relu(relay.zeros_like(X)), lambda: relay.nn.relu(relay.zeros((4, 8), "float32")), S),
    row("ones_like", lambda: relay.nn.relu(relay.ones_like(X)), lambda: relay.nn.relu(relay.ones((4, 8), "float32")), S),
    row("(x + c) + d", lambda: (X + W) + V, lambda: X + const(W.data.numpy() + V.data.numpy()), S, transform.FoldConstant),
    row("(x * c) * d", lambda: (X * W) * V, lambda: X * const(W.data.numpy() * V.data.numpy()), S, transform.FoldConstant),
    row("(x + c) * d", lambda: (X + W) * V, lambda: X * V + const(W.data.numpy() * V.data.numpy()), S, transform.FoldConstant),
    row("strict", lambda: X + const(0.0), lambda: X + const(0.0), lambda: S(fp="strict")),
    row("shape_of in float32", lambda: relay.shape_of(X, "float32"), lambda: const([4.0, 8.0]), transform.FoldConstant),
    row("ndarray_size in float32", lambda: relay.ndarray_size(X, "float32"), lambda: const(32.0), transform.FoldConstant),
]  # fmt: skip


@pytest.mark.parametrize("before, after, passes", SIMPLE)
def test_simpler(before, after, passes):
    got = run_opt_pass(func(before()), tvm.transform.Sequential([p() for p in passes]))
    params = relay.analysis.free_vars(before())
    same(got, relay.Function(params, after()))


def test_a_pipeline_keeps_the_sign_of_zero():
    mod = tvm.IRModule.from_expr(func(X + const(0.0)))
    assert "add" in relay.optimize(mod, "llvm")[0].astext()
    with tvm.transform.PassContext(config={"fp": "strict"}):
        assert "add" in S()(transform.InferType()(mod)).astext()


# ---- Layouts


def conv(x, w, channels, data="NCHW", kernel="OIHW", size=(3, 3)):
    return relay.nn.conv2d(x, w, channels=channels, kernel_size=size, padding=(1, 1), data_layout=data, kernel_layout=kernel)


def moved(x, source, target):
    return relay.layout_transform(x, source, target)


A, B = var("x", 1, 16, 16, 8), var("w", 3, 3, 8, 8)
IA, IB = var("x", 1, 16, 16, 8, dtype="int8"), var("w", 3, 3, 8, 8, dtype="int8")
C, D, R = var("x", 1, 8, 16, 16), var("w", 8, 8, 3, 3), var("r", 3, 5)


def channels_last():
    return relay.nn.relu(conv(A, B, 8, "NHWC", "HWIO"))


def channels_first():
    return relay.nn.relu(conv(moved(A, "NHWC", "NCHW"), moved(B, "HWIO", "OIHW"), 8))


def quantized(x, w, data, kernel):
    ones = relay.const(1), relay.const(1), const(1.0), const(1.0)
    return relay.qnn.op.conv2d(x, w, *ones, channels=8, kernel_size=(3, 3), padding=(1, 1), data_layout=data, kernel_layout=kernel)


def narrowed(x, axis):
    scales = const(np.arange(1, 9).astype("float32") / 100)
    return relay.nn.relu(relay.qnn.op.requantize(x, scales, relay.const(0), const(1.0), relay.const(0), out_dtype="int8", axis=axis))


def pooled(x, layout):
    return relay.vision.roi_align(x, R, pooled_size=(5, 5), spatial_scale=1.0, sample_ratio=2, layout=layout)


def integers_first():
    return quantized(moved(IA, "NHWC", "NCHW"), moved(IB, "HWIO", "OIHW"), "NCHW", "OIHW")


FIRST = {"nn.conv2d": ["NCHW", "default"]}
QFIRST = {"qnn.conv2d": ["NCHW", "default"]}
LAYOUTS = [
    row("strided_slice", lambda: relay.strided_slice(channels_last(), [0, 1, 0, 2], [1, 10, 2, 7], [1, 2, 1, 1]),
        lambda: moved(relay.strided_slice(channels_first(), [0, 2, 1, 0], [1, 7, 10, 2], [1, 1, 2, 1]), "NCHW", "NHWC"), FIRST),
    row("strided_slice on axes", lambda: relay.strided_slice(channels_last(), [2, 1], [7, 9], axes=[3, 1]),
        lambda: moved(relay.strided_slice(channels_first(), [2, 1], [7, 9], axes=[1, 2]), "NCHW", "NHWC"), FIRST),
    row("strided_slice of the first axes", lambda: relay.strided_slice(channels_last(), [0, 3], [1, 9]),
        lambda: moved(relay.strided_slice(channels_first(), [0, 3], [1, 9], axes=[0, 2]), "NCHW", "NHWC"), FIRST),
    row("strided_slice by sizes", lambda: relay.strided_slice(channels_last(), [0, 1, 0, 2], [-1, 3, -1, 4], slice_mode="size"),
        lambda: moved(relay.strided_slice(channels_first(), [0, 2, 1, 0], [-1, 4, 3, -1], slice_mode="size"), "NCHW", "NHWC"), FIRST),
    row("qnn.requantize", lambda: narrowed(quantized(IA, IB, "NHWC", "HWIO"), 3), lambda: moved(narrowed(integers_first(), 1), "NCHW", "NHWC"), QFIRST),
    row("roi_align", lambda: pooled(conv(C, D, 8), "NCHW"),
        lambda: moved(pooled(conv(moved(C, "NCHW", "NHWC"), moved(D, "OIHW", "HWIO"), 8, "NHWC", "HWIO"), "NHWC"), "NHWC", "NCHW"),
        {"nn.conv2d": ["NHWC", "HWIO"], "vision.roi_align": ["NHWC", "default"]}),
]  # fmt: skip


@pytest.mark.parametrize("before, after, passes", LAYOUTS)
def test_layouts(before, after, passes):
    f = func(before())
    got = run_opt_pass(f, transform.ConvertLayout(passes[0]))
    same(got, relay.Function(f.params, after()))
    args = arguments(f)
    if R in list(f.params):
        args[list(f.params).index(R)] = np.array([[0, 1, 1, 9, 9], [0, 0, 0, 15, 15], [0, 3, 4, 5, 12]], "float32")
    for x, y in zip(evaluate(f, args), evaluate(got, args), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


def _joined():
    one = relay.cast(quantized(IA, IB, "NHWC", "HWIO"), "int8")
    two = relay.cast(quantized(one, IB, "NHWC", "HWIO"), "int8")
    return one, two


JOINS = {
    "qnn.add": lambda x, y: relay.qnn.op.add(x, y, const(1.0), relay.const(1), const(1.0), relay.const(1), const(1.0), relay.const(1)),
    "qnn.mul": lambda x, y: relay.qnn.op.mul(x, y, const(1.0), relay.const(1), const(1.0), relay.const(1), const(1.0), relay.const(1)),
    "qnn.subtract": lambda x, y: relay.qnn.op.subtract(x, y, const(1.0), relay.const(1), const(1.0), relay.const(1), const(1.0), relay.const(1)),
    "qnn.concatenate": lambda x, y: relay.qnn.op.concatenate([x, y], [const(1.0)] * 2, [relay.const(1)] * 2, const(1.0), relay.const(1), axis=3),
    "qnn.quantize": lambda x, y: relay.qnn.op.quantize(relay.cast(x, "float32"), const(0.5), relay.const(1), axis=3),
    "qnn.dequantize": lambda x, y: relay.qnn.op.dequantize(x, const(np.arange(1, 9).astype("float32")), relay.const(0), axis=3),
}  # fmt: skip


@pytest.mark.parametrize("name", JOINS)
def test_layouts_of_integers(name):
    f = func(JOINS[name](*_joined()))
    got = run_opt_pass(f, transform.ConvertLayout(QFIRST))
    transforms = relay.analysis.list_op_freqs(tvm.IRModule.from_expr(got))["layout_transform"]
    assert transforms == 3
    args = arguments(f)
    np.testing.assert_array_equal(evaluate(f, args)[0], evaluate(got, args)[0])


def test_blocks_are_cut_at_their_borders():
    def blocked(attrs, inputs, tinfos, out_type):
        return relay.nn.conv2d(*inputs, **{**attrs, "data_layout": "NCHW4c"})

    def sliced(begin, end):
        f = func(relay.strided_slice(conv(C, D, 8), [0, begin], [1, end]))
        with relay.testing.temp_op_attr.TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", blocked):
            return f, run_opt_pass(f, transform.AlterOpLayout())

    f, got = sliced(4, 8)
    z = relay.strided_slice(conv(moved(C, "NCHW", "NCHW4c"), D, 8, "NCHW4c"), [0, 1], [1, 2])
    same(got, relay.Function(f.params, moved(z, "NCHW4c", "NCHW")))
    f, got = sliced(3, 8)
    assert got.body.op.name == "strided_slice" and got.body.args[0].op.name == "layout_transform"


def test_factors_behind_a_view():
    s = relay.expand_dims(const(np.arange(1, 9).astype("float32")), axis=1, num_newaxis=2)
    f = func(relay.multiply(relay.nn.relu(conv(C, D, 8)), s))
    weight = relay.multiply(D, relay.expand_dims(relay.squeeze(s, axis=[1, 2]), axis=1, num_newaxis=3))
    same(run_opt_pass(f, transform.BackwardFoldScaleAxis()), relay.Function(f.params, relay.nn.relu(conv(C, weight, 8))))


# ---- Fusion


def primitive(body):
    return func(body).with_attr("Primitive", tvm.tir.IntImm("int32", 1))


def fused(f):
    mod = transform.InferType()(tvm.IRModule.from_expr(f))
    return transform.FuseOps(fuse_opt_level=2)(mod)["main"]


def gates(parts):
    return relay.sigmoid(parts[0]) + relay.tanh(parts[1]) * relay.exp(parts[2])


def branches(x):
    t = relay.squeeze(x)
    joined = relay.concatenate((t + const(1.0), relay.squeeze(t) + const(2.0), t + const(3.0)), axis=1)
    return relay.squeeze(joined) + const(1.0)


def nested(x):
    def join(x):
        return relay.concatenate((x + const(1.0), x + const(2.0), x + const(3.0)), axis=1)

    return relay.concatenate((join(x), join(x)), axis=1)


def _gates():
    x, w = var("x", 1, 10), var("w", 30, 10)
    p, q, r = var("p", 1, 10), var("q", 30, 10), var("r", 1, 30)
    after = relay.Call(primitive(gates(relay.split(r, 3, axis=1))), [relay.Call(primitive(relay.nn.dense(p, q)), [x, w])])
    return [x, w], gates(relay.split(relay.nn.dense(x, w), 3, axis=1)), after


def _one_part():
    x, w = var("x", 1, 30), var("w", 10, 10)
    p, q, r = var("p", 1, 30), var("q", 1, 10), var("r", 10, 10)
    part = relay.Call(primitive(relay.split(p, 3, axis=1)[1]), [x])
    return [x, w], relay.nn.dense(relay.split(x, 3, axis=1)[1], w), relay.Call(primitive(relay.nn.dense(q, r)), [part, w])


def _whole(make):
    def program():
        x, p = var("x", 1, 4, 5), var("p", 1, 4, 5)
        return [x], make(x), relay.Call(primitive(make(p)), [x])

    return program


def _joined_and_pooled():
    x, p, q = var("x", 1, 4, 6, 6), var("p", 1, 4, 6, 6), var("q", 1, 24, 6, 6)

    def pool(y):
        return relay.nn.max_pool2d(y, pool_size=(2, 2), strides=(2, 2)) + const(1.0)

    return [x], pool(nested(x)), relay.Call(primitive(pool(q)), [relay.Call(primitive(nested(p)), [x])])


FUSED = {"gates of a split": _gates, "one part of a split": _one_part, "branches that are joined": _whole(branches),
         "joined twice": _whole(nested), "joined and pooled": _joined_and_pooled}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_fused(name):
    params, before, after = FUSED[name]()
    f = relay.Function(params, before)
    got = fused(f)
    same(got, relay.Function(params, after))
    args = arguments(f)
    for kind in ("graph", "vm"):
        for x, y in zip(evaluate(f, args, kind), evaluate(got, args, kind), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_parts_of_a_split_that_part():
    """A kernel would read all parts where one is enough: those stay outside."""
    x = var("x", 2, 6)
    parts = relay.split(x, 3, axis=1)
    f = relay.Function([x], relay.Tuple([relay.exp(parts[0]), relay.nn.dense(parts[1], relay.tanh(parts[2]))]))
    args = arguments(f)
    got = fused(f)
    for a, b in zip(evaluate(f, args), evaluate(got, args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("count, config, kernels", [(300, {}, [256, 44]), (40, {"relay.FuseOps.max_depth": 20}, [20, 20])])
def test_kernels_of_a_long_chain(count, config, kernels):
    e = x = var("x", 4)
    for _ in range(count):
        e = relay.exp(e)
    with tvm.transform.PassContext(config=config):
        got = fused(relay.Function([x], e))
    sizes = []
    relay.analysis.post_order_visit(
        got, lambda n: sizes.append(relay.analysis.list_op_freqs(tvm.IRModule.from_expr(n))["exp"]) if isinstance(n, relay.Function) and n.attrs and "Primitive" in n.attrs.keys() else None
    )  # fmt: skip
    assert sorted(sizes) == sorted(kernels)


# ---- Fake quantization, parameters of a build, equality

I8 = var("x", 1, 3, 8, 8, dtype="int8")
RESIZED = {
    "linear": lambda x: relay.image.resize2d(x, size=[16, 16], layout="NCHW", method="linear", coordinate_transformation_mode="half_pixel"),
    "nearest": lambda x: relay.image.resize2d(x, [16, 16], None, "NCHW", "nearest_neighbor", "asymmetric", rounding_method="floor"),
    "cubic": lambda x: relay.image.resize2d(x, size=[16, 16], method="cubic", cubic_alpha=-0.75),
    "align_corners": lambda x: relay.image.resize2d(x, size=[5, 13], coordinate_transformation_mode="align_corners"),
    "upsampling": lambda x: relay.nn.upsampling(x, 2, 2),
    "bilinear upsampling": lambda x: relay.nn.upsampling(x, 2, 2, method="bilinear"),
    "resize3d": lambda x: relay.image.resize3d(relay.expand_dims(x, 2), size=(2, 16, 16)),
    "upsampling3d": lambda x: relay.nn.upsampling3d(relay.expand_dims(x, 2), 2, 2, 2),
}  # fmt: skip


@pytest.mark.parametrize("out_scale, out_zero", [(2.0, 0), (1.0, 5)])
@pytest.mark.parametrize("zero", [0, 3])
@pytest.mark.parametrize("name", RESIZED)
def test_resizing_between_integers(name, zero, out_scale, out_zero):
    real = RESIZED[name](relay.qnn.op.dequantize(I8, const(2.0), relay.const(zero)))
    f = func(relay.qnn.op.quantize(real, const(out_scale), relay.const(out_zero), out_dtype="int8"))
    got = run_opt_pass(f, transform.FakeQuantizationToInteger(hard_fail=True))
    assert "dequantize" not in got.astext() and "qnn.quantize" not in got.astext()
    args = arguments(f)
    x, y = evaluate(f, args)[0].astype("int64"), evaluate(got, args)[0].astype("int64")
    assert np.abs(x - y).max() <= 1


def test_what_lies_outside_is_no_integer():
    real = relay.image.resize2d(
        dequantized(I8), [16, 16], roi=[0.1, 0.1, 0.8, 0.8], coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=0.3
    )
    f = func(relay.qnn.op.quantize(real, const(2.0), relay.const(0)))
    same(run_opt_pass(f, transform.FakeQuantizationToInteger()), f)


def test_parameters_of_a_build():
    x, y = var("x", 2, 3), var("y", 1, 3)
    mod = tvm.IRModule.from_expr(relay.Function([x, y], (x + y) * (x + y)))
    value = rng.standard_normal((1, 3)).astype("float32")
    lib = relay.build(mod, target="llvm", params={"y": value})
    assert list(lib.get_params()) == ["p0"] and lib.params["p0"].shape == (1, 3) and '"p0"' in lib.get_graph_json()
    np.testing.assert_array_equal(lib.get_params()["p0"].numpy(), value)
    graph, code, params = relay.build(mod, target="llvm", params={"y": value})
    run = tvm.contrib.graph_executor.create(graph, code, tvm.cpu())
    run.set_input(**params)
    run.load_params(relay.save_param_dict(params))
    with pytest.warns(UserWarning, match="are part of the code"):
        for name, array in params.items():
            run.set_input(name, array)
    given = rng.standard_normal((2, 3)).astype("float32")
    run.run(x=given)
    np.testing.assert_allclose(run.get_output(0).numpy(), (given + value) ** 2, rtol=1e-5)
    with pytest.raises(Exception, match="q"):
        run.set_input("q", given)
    assert relay.build(mod, target="llvm").get_params() == {} and lib["remove_params"]().same_as(lib)


def test_numbers_that_were_float32_are_equal():
    def norm(epsilon):
        return func(relay.nn.batch_norm(var("x", 2, 3), *[var(n, 3) for n in "abcd"], epsilon=epsilon)[0])

    held = float(np.float32(1e-5))
    assert held != 1e-5 and tvm.ir.structural_equal(norm(held), norm(1e-5))
    assert not tvm.ir.structural_equal(norm(1e-5), norm(1.001e-5)) and not tvm.ir.structural_equal(norm(0.0), norm(1e-60))


def test_upsampling3d_by_constants():
    x = var("x", 1, 3, 4, 4, 4)
    two = const(2.0)
    assert run_infer_type(relay.nn.upsampling3d(x, two, two, two)).checked_type == relay.TensorType((1, 3, 8, 8, 8))
    with pytest.raises(tvm.error.UnsupportedError, match="resize3d"):
        relay.nn.upsampling3d(x, var("s"), 2, 2)


def test_helps_for_importers():
    from baton.relay.frontend import common

    x = var("x", 2, 3)
    assert common.fold_constant(relay.const(1) + relay.const(2)).data.numpy() == 3
    assert common.try_infer_value(relay.const(1) + relay.const(2), lambda v: int(v)) == (3, True)
    assert common.try_infer_value(x, on_failure=lambda: 7) == (7, False) and common.try_infer_value(x) == (x, False)
    assert common.shape_of(x).data.numpy().tolist() == [2, 3] and common.shape_of(x, "int32", 1, 2).data.numpy().tolist() == [3]
    assert common.shape_of(var("y", relay.Any(), 3)).op.name == "shape_of" and common.to_int_list(np.array([1, 2])) == [1, 2]
    parts = common.unbind(x, 1)
    assert len(parts) == 3 and run_infer_type(parts[2]).checked_type == relay.TensorType((2,))
    assert run_infer_type(common.ensure_scalar_shape(var("z", 1, 1))).checked_type == relay.TensorType(())
    with pytest.raises(ValueError, match="no single number"):
        common.ensure_scalar_shape(x)


def test_a_region_is_optimized_by_its_compiler():
    begin, end = relay.op.annotation.compiler_begin, relay.op.annotation.compiler_end
    ones = const(np.ones((4, 8), "float32"))
    inner = relay.multiply(relay.add(begin(ones, "users_opt"), begin(ones, "users_opt")), begin(X, "users_opt"))
    mod = tvm.IRModule.from_expr(func(end(inner, "users_opt")))

    @tvm.register_func("relay.ext.users_opt.optimize", override=True)
    def optimize(mod):
        return transform.FoldConstant()(mod)

    made = transform.PartitionGraph()(mod)["tvmgen_default_users_opt_main_0"]
    assert made.attrs["Compiler"] == "users_opt" and made.attrs["Primitive"] == 1
    same(relay.Function(made.params, made.body), relay.Function([X], relay.multiply(const(np.full((4, 8), 2, "float32")), X)))


@pytest.mark.parametrize("layout, kernel, shape", [("NHWC", "HWIO", (1, 1, 16, 32)), ("NCHW", "OIHW", (32, 16, 1, 1))])
def test_sparse_convolutions(layout, kernel, shape):
    x = var("x", *((1, 6, 6, 16) if layout == "NHWC" else (1, 16, 6, 6)))
    w = var("w", *shape)
    f = relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(1, 1), channels=32, data_layout=layout, kernel_layout=kernel)))
    rows = np.zeros((32, 16), "float32")
    rows[::4, :4] = rng.standard_normal((8, 4))
    weight = rows.T.reshape(shape) if layout == "NHWC" else rows.reshape(shape)
    made, params = relay.data_dep_optimization.bsr_conv2d.convert(f, {"w": tvm.nd.array(weight)}, (4, 1), 0.5, layout)
    assert sorted(params) == ["w.data", "w.indices", "w.indptr"] and [p.name_hint for p in made.params] == ["x", "w.data", "w.indices", "w.indptr"]
    assert params["w.data"].shape == (32, 4, 1)
    given = rng.standard_normal([int(d) for d in x.type_annotation.shape]).astype("float32")
    got = evaluate(made, [given, *(params[p.name_hint] for p in made.params[1:])])[0]
    np.testing.assert_allclose(got, evaluate(f, [given, weight])[0], rtol=1e-4, atol=1e-5)
    kept, same_params = relay.data_dep_optimization.bsr_conv2d.convert(f, {"w": tvm.nd.array(weight)}, (4, 1), 0.99, layout)
    same(kept, f)
    assert sorted(same_params) == ["w"]
    with pytest.raises(tvm.error.UnsupportedError, match="one element"):
        transform.Conv2dToSparse(["w"], [[(1,), (1,), (1,)]], layout, 3)


@pytest.mark.parametrize("kind", ["graph", "aot"])
def test_tuples_of_an_executor_are_lists(kind):
    run = relay.create_executor(kind, mod=tvm.IRModule.from_expr(func(relay.Tuple([X + X, X * X])))).evaluate()
    got = run(np.ones((4, 8), "float32"))
    assert type(got) is list and [v.numpy()[0, 0] for v in got] == [2, 1]
