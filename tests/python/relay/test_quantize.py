# SPDX-License-Identifier: Apache-2.0
"""relay.quantize: networks of floats as networks of integers."""

import collections
import warnings

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay import quantize as qtz
from baton.relay import testing

RNG = np.random.default_rng


def calls_of(func, name):
    found = []
    relay.analysis.post_order_visit(func, lambda e: found.append(e) if isinstance(e, relay.Call) and getattr(e.op, "name", "") == name else None)
    return found


def operators(func):
    found = collections.Counter()
    relay.analysis.post_order_visit(func, lambda e: found.update([e.op.name] if isinstance(e, relay.Call) and hasattr(e.op, "name") else []))
    return found


def products(func):
    """(dtype of data, of weight, of the sum) of each product."""
    names = ("nn.conv2d", "nn.dense", "nn.conv2d_transpose", "nn.batch_matmul", "nn.conv1d", "nn.conv3d")
    rows = [(*(a.checked_type.dtype for a in c.args), c.checked_type.dtype) for name in names for c in calls_of(func, name)]
    return collections.Counter(tuple(map(str, row)) for row in rows)


INT, FLOAT = ("int8", "int8", "int32"), ("float32",) * 3


def run(mod, *args, kind="graph"):
    out = relay.create_executor(kind, mod, target="llvm").evaluate()(*args)
    return out.numpy() if hasattr(out, "numpy") else [o.numpy() for o in out]


def cosine(a, b):
    a, b = a.ravel().astype("float64"), b.ravel().astype("float64")
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def weight(rng, *shape):
    return relay.const((rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float32"))


def small_network(rng, size=16):
    """Convolutions with bias, relu, a residual sum, pools, a depthwise convolution, a dense layer."""
    x = relay.var("data", shape=(4, 3, size, size))
    conv = relay.nn.conv2d(x, weight(rng, 16, 3, 3, 3), kernel_size=(3, 3), channels=16, padding=(1, 1))
    y = relay.nn.relu(relay.nn.bias_add(conv, relay.const(rng.standard_normal(16).astype("float32"))))
    y = relay.nn.max_pool2d(y, pool_size=(2, 2), strides=(2, 2))
    z = relay.nn.conv2d(y, weight(rng, 16, 16, 3, 3), kernel_size=(3, 3), channels=16, padding=(1, 1))
    z = relay.nn.relu(z + relay.const(rng.standard_normal((16, 1, 1)).astype("float32")))
    z = relay.nn.conv2d(z, weight(rng, 16, 16, 3, 3), kernel_size=(3, 3), channels=16, padding=(1, 1))
    y = relay.nn.relu(y + z)
    y = relay.clip(relay.nn.conv2d(y, weight(rng, 16, 1, 3, 3), kernel_size=(3, 3), channels=16, groups=16, padding=(1, 1)), 0.0, 6.0)
    y = relay.nn.avg_pool2d(y, pool_size=(2, 2), strides=(2, 2))
    y = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y))
    y = relay.nn.bias_add(relay.nn.dense(y, weight(rng, 10, 16)), relay.const(rng.standard_normal(10).astype("float32")))
    return tvm.IRModule.from_expr(relay.Function([x], y))


def samples(mod, n=2, seed=1):
    mod, rng = relay.transform.InferType()(mod), RNG(seed)
    shape = [int(d) for d in mod["main"].params[0].checked_type.shape]
    return [{mod["main"].params[0].name_hint: rng.standard_normal(shape).astype("float32")} for _ in range(n)]


# ---- Configuration
def test_defaults_and_nesting():
    config = qtz.current_qconfig()
    assert (config.nbit_input, config.dtype_activation, config.global_scale, config.skip_conv_layers) == (8, "int32", 8.0, [0])
    with qtz.qconfig(nbit_input=6, skip_conv_layers=None) as outer:
        assert qtz.current_qconfig() is outer
        assert outer.get_nbit_by_kind(qtz.QAnnotateKind.INPUT) == 6
        assert outer.get_dtype_by_kind(qtz.QAnnotateKind.WEIGHT) == "int8"
        with qtz.qconfig(nbit_dict={qtz.QAnnotateKind.WEIGHT: 4}):
            assert qtz.current_qconfig().nbit_weight == 4
            assert qtz.current_qconfig().nbit_input == 8  # not those of the outer one
        assert qtz.current_qconfig() is outer
    assert qtz.current_qconfig().nbit_input == 8
    assert repr(outer).startswith("qconfig(nbit_input=6, ")
    assert qtz.kind2str(qtz.QAnnotateKind.ACTIVATION) == "activation"
    with pytest.raises(AttributeError, match="cannot set attribute 'nbit_input'"):
        outer.nbit_input = 4


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"calibrate_mode": "best"}, "calibrate_mode is 'best'; it is 'global_scale'"),
        ({"weight_scale": 2}, "weight_scale is 2"),
        ({"rounding": "DOWN"}, "rounding is 'DOWN'"),
        ({"nbit_input": 9}, "nbit_input is 9, where int8 holds 2 to 8"),
        ({"global_scale": 0.0}, "global_scale is 0.0"),
        ({"partition_conversions": True}, "partition_conversions is True"),
    ],
)
def test_what_cannot_be_configured(wrong, says):
    with pytest.raises(ValueError, match=says):
        qtz.qconfig(**wrong)


def test_an_unknown_setting_is_named():
    with pytest.warns(UserWarning, match=r"no `global_scales`, which is left out; did you mean `global_scale`\?"):
        qtz.qconfig(global_scales=2.0)


# ---- The operator
def test_simulated_quantize_prints_parses_and_runs():
    x = relay.var("x", shape=(5,))
    y = qtz.simulated_quantize(x, 0.5, -3.0, 3.0, kind=qtz.QAnnotateKind.INPUT)
    assert y.op.name == "relay.op.annotation.simulated_quantize"
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], y)))
    assert str(mod["main"].ret_type) == "Tensor[(5), float32]"
    assert "relay.op.annotation.simulated_quantize(%x, 0.5f, -3f, 3f" in mod.astext(show_types=False)
    again = tvm.parser.fromtext(mod.astext())
    assert tvm.ir.structural_equal(mod, again)
    assert tvm.ir.structural_equal(mod, tvm.ir.load_json(tvm.ir.save_json(mod)))
    for kind in ("debug", "graph", "vm"):
        out = run(mod, np.array([-9, -0.75, 0.2, 0.25, 1.3], "float32"), kind=kind)
        np.testing.assert_array_equal(out, [-1.5, -1.0, 0.0, 0.0, 1.5])
    assert relay.op.annotation.simulated_quantize is relay.annotation.simulated_quantize


# ---- Steps
def test_partition_and_annotate_mark():
    mod = qtz.prerequisite_optimize(small_network(RNG(0)))
    with qtz.qconfig(skip_conv_layers=[]):
        parted = qtz.partition()(mod)
        marked = qtz.annotate()(relay.transform.InferType()(parted))
    found = operators(parted["main"])
    assert found["annotation.cast_hint"] == found["annotation.stop_fusion"] > 3
    marks = collections.Counter(c.attrs["kind"] for c in calls_of(marked["main"], "relay.op.annotation.simulated_quantize"))
    assert marks[qtz.QAnnotateKind.WEIGHT] == 4  # the dense layer stays
    assert operators(marked["main"])["annotation.cast_hint"] == 0
    x = samples(mod, 1)[0]["data"]
    np.testing.assert_array_equal(run(parted, x), run(mod, x))


def test_steps_by_hand_are_what_quantize_does():
    mod, data = small_network(RNG(0)), samples(small_network(RNG(0)))
    with qtz.qconfig(calibrate_mode="percentile", skip_conv_layers=[]), tvm.transform.PassContext(opt_level=3):
        whole = qtz.quantize(mod, dataset=data)
        steps = [qtz.partition(), qtz.annotate(), qtz.calibrate(data), qtz.realize(), relay.transform.FoldConstant(), relay.transform.InferType()]
        by_hand = tvm.transform.Sequential(steps)(qtz.prerequisite_optimize(mod))
    assert tvm.ir.structural_equal(whole, by_hand)


def test_realize_wants_scales():
    x, s = relay.var("x", shape=(2,)), relay.var("s", shape=())
    mod = tvm.IRModule.from_expr(relay.Function([x, s], qtz.simulated_quantize(x, s, -127.0, 127.0)))
    with pytest.raises(tvm.error.CompileError, match="calibrate the program first"):
        qtz.realize()(mod)


# ---- Numbers
@pytest.mark.parametrize("mode", ["percentile", "kl_divergence", "global_scale"])
@pytest.mark.parametrize("weights", ["max", "power2"])
def test_a_network_agrees_with_floats(mode, weights):
    mod = small_network(RNG(0))
    data = samples(mod)
    with qtz.qconfig(calibrate_mode=mode, weight_scale=weights, skip_conv_layers=[], skip_dense_layer=False):
        quantized = qtz.quantize(mod, dataset=data)
    assert products(quantized["main"]) == {INT: 5}
    x = data[0]["data"]
    wanted, got = run(mod, x), run(quantized, x)
    assert cosine(wanted, got) > (0.98 if weights == "max" else 0.95)
    for kind in ("debug", "vm"):
        np.testing.assert_array_equal(run(quantized, x, kind=kind), got)


def test_a_simulated_network_predicts_the_realized_one():
    mod = small_network(RNG(0))
    data = samples(mod)
    settings = {"calibrate_mode": "percentile", "weight_scale": "max", "skip_conv_layers": [], "skip_dense_layer": False}
    with qtz.qconfig(do_simulation=True, **settings):
        simulated = qtz.quantize(mod, dataset=data)
    with qtz.qconfig(**settings):
        realized = qtz.quantize(mod, dataset=data)
    x = data[0]["data"]
    assert products(simulated["main"]) == {FLOAT: 5}
    assert cosine(run(simulated, x), run(realized, x)) > 0.999


@pytest.mark.parametrize("nbit", [4, 6])
def test_fewer_bits_are_coarser(nbit):
    mod = small_network(RNG(0))
    data = samples(mod)
    x, errors = data[0]["data"], {}
    for bits in (nbit, 8):
        with qtz.qconfig(nbit_input=bits, nbit_weight=bits, calibrate_mode="percentile", weight_scale="max", skip_conv_layers=[]):
            errors[bits] = 1 - cosine(run(mod, x), run(qtz.quantize(mod, dataset=data), x))
    assert errors[8] < errors[nbit] < 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "workload"),
    [
        ("resnet-18", lambda: testing.resnet.get_workload(batch_size=4, num_classes=10, num_layers=18, image_shape=(3, 64, 64))),
        ("mobilenet", lambda: testing.mobilenet.get_workload(batch_size=4, num_classes=10, image_shape=(3, 64, 64))),
    ],
)
def test_networks_agree_with_floats(name, workload):
    mod, params = workload()
    rng = RNG(2)
    data = [{"data": rng.standard_normal([int(d) for d in mod["main"].params[0].checked_type.shape]).astype("float32")} for _ in range(2)]
    with qtz.qconfig(calibrate_mode="kl_divergence", weight_scale="max"):
        quantized = qtz.quantize(mod, params, data)
    found = products(quantized["main"])
    assert found[FLOAT] == 2  # the first convolution, and the dense layer
    assert found[INT] == sum(found.values()) - 2
    assert found[INT] > 15
    lib, floats = (relay.build(m, "llvm", params=params) for m in (quantized, mod))
    outs = []
    for built in (lib, floats):
        model = tvm.contrib.graph_executor.GraphModule(built["default"](tvm.cpu()))
        model.run(data=data[0]["data"])
        outs.append(model.get_output(0).numpy())
    assert cosine(*outs) > 0.98
    assert (outs[0].argmax(1) == outs[1].argmax(1)).mean() >= 0.75


# ---- What is quantized
def conv(data, weight_, **kw):
    return relay.nn.conv2d(data, weight_, kernel_size=(3, 3), padding=(1, 1), channels=16, **kw)


def chain(n):
    x = relay.var("x", shape=(1, 16, 8, 8))
    y = x
    for i in range(n):
        y = relay.nn.relu(conv(y, weight(RNG(i), 16, 16, 3, 3)))
    return tvm.IRModule.from_expr(relay.Function([x], y))


@pytest.mark.parametrize(("skip", "left"), [(None, 0), ([], 0), ([0], 1), ([1], 1), ([0, 2], 2), ([0, 1, 2], 3)])
def test_skipped_convolutions_stay(skip, left):
    with qtz.qconfig(skip_conv_layers=skip):
        quantized = qtz.quantize(chain(3))
    found = products(quantized["main"])
    assert (found[FLOAT], found[INT]) == (left, 3 - left)
    if left == 3:
        assert operators(quantized["main"]) == operators(chain(3)["main"])


def test_enabled_operators_alone():
    with qtz.qconfig(skip_conv_layers=[], debug_enabled_ops=["nn.dense"]):
        assert products(qtz.quantize(chain(2))["main"]) == {FLOAT: 2}


def test_sections_end_in_int8():
    x = relay.var("x", shape=(1, 16, 8, 8))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.batch_flatten(conv(x, weight(RNG(0), 16, 16, 3, 3)))))
    with qtz.qconfig(skip_conv_layers=[]):
        main = qtz.quantize(mod)["main"]
    assert [str(c.checked_type.dtype) for c in calls_of(main, "nn.batch_flatten")] == ["int8"]
    assert str(main.ret_type.dtype) == "float32"


def test_a_factor_that_is_no_constant():
    x, s = relay.var("x", shape=(1, 16, 8, 8)), relay.var("s", shape=(1, 16, 1, 1))
    act = relay.nn.relu(conv(x, weight(RNG(0), 16, 16, 3, 3)))
    for other in (relay.sigmoid(s), relay.nn.global_avg_pool2d(act)):
        y = act * other
        mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(y), y))
        with qtz.qconfig(skip_conv_layers=[], global_scale=4.0, weight_scale="max"):
            quantized = qtz.quantize(mod)
        assert [str(c.checked_type.dtype) for c in calls_of(quantized["main"], "multiply")].count("int32") == 1
        args = [RNG(i).standard_normal([int(d) for d in p.checked_type.shape]).astype("float32") for i, p in enumerate(quantized["main"].params)]
        assert cosine(run(mod, *args), run(quantized, *args)) > 0.99


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
@pytest.mark.parametrize("round_for_shift", [True, False])
@pytest.mark.parametrize("scale", [256.0, 0.25, 0.3])
def test_scales_change_as_said(rounding, round_for_shift, scale):
    """A 1x1 convolution by one factor: each number is known."""
    x = relay.var("x", shape=(1, 1, 1, 64))
    y = relay.nn.conv2d(x, relay.const(np.full((1, 1, 1, 1), scale, "float32")), kernel_size=(1, 1), channels=1)
    mod = tvm.IRModule.from_expr(relay.Function([x], y))
    with qtz.qconfig(skip_conv_layers=None, weight_scale="max", global_scale=8.0, rounding=rounding, round_for_shift=round_for_shift):
        quantized = qtz.quantize(mod)
    data = np.linspace(-8, 8, 64, dtype="float32").reshape(1, 1, 1, 64)
    q = np.clip(np.rint(data / 0.0625), -127, 127).astype("int64") * 127  # weights of 127 steps
    ratio = np.float64(np.float32(scale / 128))  # of a sum's step to an operand's
    exact = q * ratio
    if rounding == "TONEAREST":
        whole = np.sign(exact) * np.floor(abs(exact) + 0.5)
    else:
        whole = np.floor(exact + 0.5)
    if not round_for_shift and np.log2(ratio) % 1 == 0 and ratio < 1:
        whole = np.floor(exact)
    np.testing.assert_array_equal(run(quantized, data), (np.clip(whole, -127, 127) * 0.0625).astype("float32"))
    assert all(c.args[1].data.numpy() >= 0 for name in ("left_shift", "right_shift") for c in calls_of(quantized["main"], name))
    assert operators(quantized["main"])["left_shift" if scale == 256 else "right_shift" if scale == 0.25 else "fixed_point_multiply"] >= 1


def test_sums_never_leave_32_bits():
    """A large bias beside tiny products."""
    x = relay.var("x", shape=(1, 16, 4, 4))
    y = conv(x, relay.const(np.full((16, 16, 3, 3), 1e-6, "float32"))) + relay.const(np.full((16, 1, 1), 5.0, "float32"))
    mod = tvm.IRModule.from_expr(relay.Function([x], y))
    data = [{"x": RNG(0).standard_normal((1, 16, 4, 4)).astype("float32")}]
    with qtz.qconfig(skip_conv_layers=[], calibrate_mode="percentile", weight_scale="max"):
        quantized = qtz.quantize(mod, dataset=data)
    np.testing.assert_allclose(run(quantized, data[0]["x"]), 5.0, rtol=0.01)


@pytest.mark.parametrize(("inputs", "spread", "found"), [(1 << 16, 1, INT), (1 << 18, 1, FLOAT), (1 << 18, 16, INT)])
def test_products_that_may_leave_32_bits_stay_floats(inputs, spread, found):
    """Weights of which one in `spread` is large, the others next to nothing."""
    x = relay.var("x", shape=(1, inputs))
    w = np.full((2, inputs), 1e-6, "float32")
    w[:, ::spread] = 1.0
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(w))))
    with qtz.qconfig(skip_dense_layer=False, weight_scale="max"):
        quantized = qtz.quantize(mod)
    assert products(quantized["main"]) == {found: 1}
    x = np.full((1, inputs), 8.0, "float32")
    with qtz.qconfig(skip_dense_layer=False, weight_scale="max", calibrate_mode="percentile"):
        np.testing.assert_allclose(run(qtz.quantize(mod, dataset=[{"x": x}]), x), run(mod, x), rtol=0.02)


def test_other_products():
    x, rng = relay.var("x", shape=(2, 8, 8, 8)), RNG(3)
    y = relay.nn.conv2d_transpose(x, weight(rng, 8, 6, 3, 3), kernel_size=(3, 3), channels=6, strides=(2, 2))
    y = relay.concatenate([relay.nn.relu(y), y], axis=1)
    y = relay.nn.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = relay.reshape(y, (2, 12, -1))
    y = relay.nn.batch_matmul(y, y)
    mod = tvm.IRModule.from_expr(relay.Function([x], y))
    data = [{"x": rng.standard_normal((2, 8, 8, 8)).astype("float32")}]
    with qtz.qconfig(skip_dense_layer=False, calibrate_mode="percentile", weight_scale="max"):
        quantized = qtz.quantize(mod, dataset=data)
    assert products(quantized["main"]) == {INT: 2}
    assert cosine(run(mod, data[0]["x"]), run(quantized, data[0]["x"])) > 0.99


def test_control_flow_is_outside():
    x, c = relay.var("x", shape=(1, 16, 8, 8)), relay.var("c", shape=(), dtype="bool")
    y = relay.nn.relu(conv(x, weight(RNG(0), 16, 16, 3, 3)))
    mod = tvm.IRModule.from_expr(relay.Function([c, x], relay.If(c, y, relay.exp(conv(y, weight(RNG(1), 16, 16, 3, 3))))))
    with qtz.qconfig(skip_conv_layers=[], weight_scale="max"):
        quantized = qtz.quantize(mod)
    assert products(quantized["main"]) == {INT: 2}
    data = RNG(2).standard_normal((1, 16, 8, 8)).astype("float32")
    for value in (True, False):
        assert cosine(run(mod, np.array(value), data, kind="vm"), run(quantized, np.array(value), data, kind="vm")) > 0.98


# ---- Calibration
def test_calibration_by_data():
    mod, params = testing.synthetic.get_workload()
    name = mod["main"].params[0].name_hint
    shape = [int(d) for d in mod["main"].params[0].checked_type.shape]
    data = [{name: RNG(i).uniform(size=shape).astype("float32")} for i in range(2)]
    made = []
    for chunk, dataset in ((-1, iter(data)), (2, iter(data)), (1, data)):
        with qtz.qconfig(calibrate_mode="kl_divergence", calibrate_chunk_by=chunk), tvm.target.Target("llvm"):
            made.append(qtz.quantize(mod, params, dataset))
    assert tvm.ir.structural_equal(made[0], made[1])
    assert tvm.ir.structural_equal(made[0], made[2])


def test_stats_are_what_the_program_computes():
    mod = qtz.prerequisite_optimize(chain(2))
    x = RNG(9).standard_normal((1, 16, 8, 8)).astype("float32")
    with qtz.qconfig(skip_conv_layers=[]):
        marked = relay.transform.InferType()(qtz.annotate()(mod))
    stats = list(qtz.collect_stats(marked, [{"x": x}, {"x": 2 * x}]))
    assert [s.shape for s in stats] == [(2048,)] * 3  # x, between, the result
    np.testing.assert_array_equal(stats[0], np.concatenate([x.ravel(), 2 * x.ravel()]))
    np.testing.assert_allclose(stats[2][:1024], run(mod, x).ravel(), rtol=1e-4, atol=1e-5)


def test_what_calibration_lacks():
    with qtz.qconfig(calibrate_mode="percentile", skip_conv_layers=[]):
        with pytest.raises(ValueError, match="needs a data set"):
            qtz.quantize(chain(1))
        with pytest.raises(ValueError, match="the data set is empty"):
            qtz.quantize(chain(1), dataset=[])


def test_ranges_of_samples():
    from baton.relay.quantize import scales

    rng = RNG(0)
    normal = rng.standard_normal(50_000).astype("float32")
    spiked = np.append(normal, np.float32(1000))
    assert 2.5 < scales.by_kl_divergence(normal) <= abs(normal).max()
    assert 2.5 < scales.by_kl_divergence(spiked) < 100  # what is far out and rare is clipped
    assert scales.by_kl_divergence(normal[:80]) == abs(normal[:80]).max()
    assert scales.by_percentile(np.append(np.ones(200_000, "float32"), 1000)) == 1
    assert scales.by_percentile(spiked) == 1000  # one of 50,000 is more than one in 100,000
    assert [f(np.zeros(4, "float32")) for f in (scales.by_kl_divergence, scales.by_percentile, scales.max_scale, scales.power2_scale)] == [1.0] * 4
    assert scales.power2_scale(np.array([-0.3, 0.2])) == 0.5
    assert scales.power2_scale(np.array([4.0])) == 4.0


# ---- Conversions as functions
SECTIONS = ("quantize_inputs", "quantized_main", "dequantize_outputs")


def named(mod):
    return {v.name_hint for v in mod.get_global_vars()}


@pytest.mark.parametrize("mode", ["enabled", "fully_integral"])
def test_conversions_are_functions(mode):
    mod = chain(2)
    with qtz.qconfig(skip_conv_layers=[]):
        whole = qtz.quantize(mod)
    with qtz.qconfig(skip_conv_layers=[], partition_conversions=mode):
        parts = qtz.quantize(mod)
    assert named(whole) == {"main"}
    assert named(parts) == {"main", *SECTIONS}
    assert str(parts["quantized_main"].checked_type) == "fn (Tensor[(1, 16, 8, 8), int8]) -> Tensor[(1, 16, 8, 8), int8]"
    x = RNG(4).standard_normal((1, 16, 8, 8)).astype("float32")
    for kind in ("vm", "graph", "debug"):
        np.testing.assert_array_equal(run(parts, x, kind=kind), run(whole, x))


def test_floats_between_are_no_integral_network():
    x = relay.var("x", shape=(1, 16, 8, 8))
    y = relay.sigmoid(conv(x, weight(RNG(0), 16, 16, 3, 3)))
    mod = tvm.IRModule.from_expr(relay.Function([x], conv(y, weight(RNG(1), 16, 16, 3, 3)) * relay.exp(x)))
    with qtz.qconfig(skip_conv_layers=[]):
        whole = qtz.quantize(mod)
    with qtz.qconfig(skip_conv_layers=[], partition_conversions="enabled"):
        parts = qtz.quantize(mod)
    data = RNG(4).standard_normal((1, 16, 8, 8)).astype("float32")
    np.testing.assert_array_equal(run(parts, data), run(whole, data))
    with qtz.qconfig(skip_conv_layers=[], partition_conversions="fully_integral"):
        for error in (AssertionError, tvm.error.CompileError):
            with pytest.raises(error, match="these compute on floats: .*exp.*sigmoid"):
                qtz.quantize(mod)


def test_conversions_of_what_is_not_quantized():
    x, y = relay.var("x", shape=(10, 10)), relay.var("y", shape=(10, 10))
    for body in (x + y, x * y, relay.Tuple([x, x + y])):
        mod = tvm.IRModule.from_expr(relay.Function([x, y], body))
        with qtz.qconfig(partition_conversions="fully_integral"):
            parts = qtz.quantize(mod)
        args = [RNG(i).standard_normal((10, 10)).astype("float32") for i in range(2)]
        for got, wanted in zip(np.atleast_2d(run(parts, *args)), np.atleast_2d(run(mod, *args)), strict=True):
            np.testing.assert_array_equal(got, wanted)


# ---- The result is a program as others
def test_the_result_is_saved_loaded_and_built(tmp_path):
    mod = small_network(RNG(0))
    with warnings.catch_warnings(), qtz.qconfig(skip_conv_layers=[]):
        warnings.simplefilter("error")
        quantized = qtz.quantize(mod, {"no_such_parameter": np.zeros(3, "float32")})
    x = samples(quantized, 1)[0]["data"]
    wanted = run(quantized, x)
    for again in (tvm.ir.load_json(tvm.ir.save_json(quantized)), tvm.parser.fromtext(quantized.astext())):
        assert tvm.ir.structural_equal(again, quantized)
        np.testing.assert_array_equal(run(again, x), wanted)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(quantized, "llvm")
    lib.export_library(str(tmp_path / "net.so"))
    model = tvm.contrib.graph_executor.GraphModule(tvm.runtime.load_module(str(tmp_path / "net.so"))["default"](tvm.cpu()))
    model.run(data=x)
    np.testing.assert_array_equal(model.get_output(0).numpy(), wanted)


def test_a_network_a_thousand_layers_deep():
    x = relay.var("x", shape=(1, 2, 2, 2))
    y, w = x, relay.const(np.eye(2, dtype="float32").reshape(2, 2, 1, 1))
    for _ in range(1000):
        y = relay.nn.relu(relay.nn.conv2d(y, w, kernel_size=(1, 1), channels=2))
    with qtz.qconfig(skip_conv_layers=[]):
        quantized = qtz.quantize(tvm.IRModule.from_expr(relay.Function([x], y)))
    assert products(quantized["main"]) == {INT: 1000}


def test_products_of_batches_are_of_int8():
    """`skip_dense_layer` is about `nn.dense`: `nn.batch_matmul` sums int8 in int32, and what lies between stays int8."""
    data, other = relay.var("data", shape=(1, 4, 16, 16)), relay.sigmoid(relay.var("other", shape=(4, 16, 64)))
    out = relay.nn.conv2d(data, relay.var("weight"), kernel_size=(3, 3), padding=(1, 1), channels=8)
    out = relay.nn.batch_matmul(relay.reshape(relay.nn.batch_flatten(out), [1, 32, 64]), other)
    mod, params = relay.testing.create_workload(relay.Function(relay.analysis.free_vars(out), out))
    with qtz.qconfig(calibrate_mode="global_scale", global_scale=4.0, skip_conv_layers=[]):
        mod = qtz.quantize(mod, params)
    dtypes = {}
    relay.analysis.post_order_visit(mod["main"], lambda e: dtypes.update({e.op.name: e.checked_type.dtype}) if isinstance(e, relay.Call) else None)
    assert (dtypes["nn.conv2d"], dtypes["nn.batch_matmul"], dtypes["nn.batch_flatten"]) == ("int32", "int32", "int8")
