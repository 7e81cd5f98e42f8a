# SPDX-License-Identifier: Apache-2.0
"""precision="bf16" and "f16": products in a narrow type, everything between them near float32."""

import ml_dtypes
import numpy as np
import pytest

import baton
from baton import relay

CPUS = ["x86-64-v2", "x86-64-v3", "x86-64-v4", None]
# Of the largest value of a result: rounding of operands, and of what layers hand on.
TOLERANCE = {"bf16": 2e-2, "f16": 2e-3}
HALVES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def const(*shape, scale=0.1, seed=0):
    return relay.const(baton.nd.array(np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32)))


def var(name, *shape):
    return relay.var(name, shape=shape, dtype="float32")


def module(inputs, body):
    return baton.IRModule.from_expr(relay.Function(inputs, body))


def values(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def residual():
    """An image's three channels, a residual block, a pool, a product."""
    x = var("x", 2, 3, 16, 16)
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, const(32, 3, 3, 3), padding=(1, 1)), const(32)))
    z = relay.nn.relu(relay.nn.conv2d(y, const(32, 32, 3, 3), padding=(1, 1)))
    y = relay.nn.relu(relay.add(relay.nn.conv2d(z, const(32, 32, 1, 1)), y))
    y = relay.nn.max_pool2d(y, pool_size=(2, 2), strides=(2, 2))
    y = relay.nn.conv2d(y, const(64, 32, 3, 3), strides=(2, 2), padding=(1, 1))
    y = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y))
    return module([x], relay.nn.dense(y, const(10, 64))), [values(2, 3, 16, 16)]


def transformer():
    """Attention, a norm, GELU and a softmax."""
    x = var("x", 2, 24, 64)

    def product(v, n, k, seed):
        return relay.reshape(relay.nn.dense(relay.reshape(v, (-1, k)), const(n, k, seed=seed)), (2, 24, n))

    def heads(v, axes):
        return relay.reshape(relay.transpose(relay.reshape(v, (2, 24, 4, 16)), axes), (8, -1, 24 if axes[-1] == 1 else 16))

    q, k, v = (heads(product(x, 64, 64, i), (0, 2, 1, 3)) for i in range(3))
    weights = relay.nn.softmax(relay.multiply(relay.nn.batch_matmul(q, k), relay.const(0.25)))
    y = relay.nn.batch_matmul(weights, relay.transpose(v, (0, 2, 1)))
    y = relay.reshape(relay.transpose(relay.reshape(y, (2, 4, 24, 16)), (0, 2, 1, 3)), (2, 24, 64))
    ones, zeros = relay.const(np.ones(64, np.float32)), relay.const(np.zeros(64, np.float32))
    y = relay.nn.layer_norm(relay.add(product(y, 64, 64, 4), x), ones, zeros)
    z = relay.add(product(y, 256, 64, 5), const(256))
    z = relay.multiply(z, relay.add(relay.const(0.5), relay.multiply(relay.const(0.5), relay.erf(relay.multiply(z, relay.const(0.7071))))))
    return module([x], relay.nn.softmax(relay.add(product(z, 64, 256, 6), y))), [values(2, 24, 64)]


def convolution(x_shape, w_shape, **attrs):
    x = var("x", *x_shape)
    call = {3: relay.nn.conv1d, 4: relay.nn.conv2d, 5: relay.nn.conv3d}[len(x_shape)]
    return module([x], relay.nn.relu(call(x, const(*w_shape), **attrs))), [values(*x_shape)]


def product(rows, k, n):
    x = var("x", rows, k)
    return module([x], relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, const(n, k)), const(n)))), [values(rows, k)]


def joined():
    """Values between products that are split, joined and moved."""
    x = var("x", 1, 32, 8, 8)
    y = relay.nn.conv2d(x, const(32, 32, 1, 1))
    a, b = (relay.split(y, 2, axis=1)[i] for i in range(2))
    y = relay.concatenate([b, relay.nn.relu(a), y], axis=1)
    y = relay.nn.conv2d(relay.nn.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1))), const(32, 64, 3, 3))
    return module([x], relay.nn.conv2d(y, const(16, 32, 1, 1))), [values(1, 32, 8, 8)]


NETS = {
    "residual": residual,
    "transformer": transformer,
    "joined": joined,
    "conv": lambda: convolution((1, 32, 9, 11), (48, 32, 3, 3), padding=(1, 1)),
    "conv stride": lambda: convolution((2, 64, 15, 15), (32, 64, 3, 3), strides=(2, 2), padding=(1, 1)),
    "conv dilated": lambda: convolution((1, 16, 12, 12), (16, 16, 3, 3), dilation=(2, 2)),
    "conv 1x1": lambda: convolution((3, 64, 7, 7), (64, 64, 1, 1)),
    "conv groups": lambda: convolution((1, 64, 8, 8), (64, 32, 3, 3), groups=2, padding=(1, 1)),
    "conv depthwise": lambda: convolution((1, 32, 8, 8), (32, 1, 3, 3), groups=32, padding=(1, 1)),
    "conv odd channels": lambda: convolution((1, 13, 8, 8), (7, 13, 3, 3), padding=(1, 1)),
    "conv 1d": lambda: convolution((2, 32, 40), (64, 32, 3), padding=(1,)),
    "conv 3d": lambda: convolution((1, 16, 5, 6, 7), (32, 16, 3, 3, 3), padding=(1, 1, 1)),
    "product": lambda: product(17, 96, 130),
    "product one row": lambda: product(1, 512, 256),
    "product odd sum": lambda: product(5, 33, 20),
    "product long sum": lambda: product(40, 5000, 24),
}


def apart(got, want):
    """The largest difference, relative to the largest value."""
    return np.abs(got.numpy().astype(np.float64) - want.numpy()).max() / np.abs(want.numpy()).max()


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("net", NETS)
def test_results_are_near_those_of_float32(net, precision, cpu):
    mod, inputs = NETS[net]()
    target = f"llvm -mcpu={cpu}" if cpu else None
    want = baton.compile(mod, target=target)(*inputs)
    got = baton.compile(mod, target=target, precision=precision)(*inputs)
    assert got.dtype == want.dtype == "float32" and got.shape == want.shape
    assert apart(got, want) < TOLERANCE[precision]


@pytest.mark.parametrize("net", ["residual", "transformer"])
def test_exact_is_the_default(net):
    mod, inputs = NETS[net]()
    want = baton.compile(mod)(*inputs).numpy()
    np.testing.assert_array_equal(baton.compile(mod, precision="exact")(*inputs).numpy(), want)
    assert (baton.compile(mod, precision="bf16")(*inputs).numpy() != want).any()


def test_weights_are_half_as_large(tmp_path):
    mod, inputs = product(8, 1024, 1024)
    made = baton.compile(mod, precision="bf16", target="llvm -mcpu=x86-64-v3")
    made.save(tmp_path / "net.so")
    assert (tmp_path / "net.so").stat().st_size < 1.1 * 2 * 1024 * 1024 + (64 << 10)
    loaded = baton.load(str(tmp_path / "net.so"))
    np.testing.assert_array_equal(loaded(*inputs).numpy(), made(*inputs).numpy())


def test_artifact_of_this_processor(tmp_path):
    mod, inputs = residual()
    made = baton.compile(mod, precision="bf16")
    made.save(tmp_path / "net.so")
    np.testing.assert_array_equal(baton.load(str(tmp_path / "net.so"))(*inputs).numpy(), made(*inputs).numpy())


@pytest.mark.parametrize("precision", TOLERANCE)
def test_open_rows(precision):
    n = relay.Any()
    x = relay.var("x", shape=(n, 64), dtype="float32")
    y = relay.nn.relu(relay.nn.dense(x, const(96, 64)))
    mod = module([x], relay.nn.softmax(relay.nn.dense(y, const(32, 96))))
    exact, narrow = baton.compile(mod), baton.compile(mod, precision=precision)
    for rows in (1, 5, 6, 7, 40):
        x = values(rows, 64)
        assert apart(narrow(x), exact(x)) < TOLERANCE[precision]


@pytest.mark.parametrize("precision", TOLERANCE)
def test_open_images(precision):
    x = relay.var("x", shape=(relay.Any(), 32, relay.Any(), relay.Any()), dtype="float32")
    y = relay.nn.relu(relay.nn.conv2d(x, const(32, 32, 3, 3), padding=(1, 1)))
    mod = module([x], relay.nn.conv2d(y, const(48, 32, 3, 3), strides=(2, 2)))
    exact, narrow = baton.compile(mod), baton.compile(mod, precision=precision)
    for shape in ((1, 32, 9, 9), (2, 32, 16, 7)):
        x = values(*shape)
        assert apart(narrow(x), exact(x)) < TOLERANCE[precision]


def test_rows_do_not_depend_on_how_many_there_are():
    """Each sum has one order, whatever tiles and threads."""
    x = values(200, 640)
    whole = baton.compile(product(200, 640, 320)[0], precision="bf16")(x).numpy()
    for rows in (1, 7, 33):
        part = baton.compile(product(rows, 640, 320)[0], precision="bf16")(x[:rows]).numpy()
        np.testing.assert_array_equal(part, whole[:rows])


def test_values_beyond_float16():
    """Sums that float16 cannot hold are float32, up to where they lie in memory."""
    x = var("x", 1, 64)
    y = relay.nn.dense(x, relay.const(np.full((4, 64), 100, np.float32)))
    got = baton.compile(module([x], y), precision="f16")(np.full((1, 64), 100, np.float32)).numpy()
    np.testing.assert_array_equal(got, np.full((1, 4), 640000, np.float32))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("precision", TOLERANCE)
def test_half_models_keep_their_types(dtype, precision):
    x = relay.var("x", shape=(4, 32), dtype=dtype)
    w = relay.cast(const(16, 32), dtype)
    got = baton.compile(module([x], relay.nn.dense(x, w)), precision=precision)(values(4, 32).astype(HALVES[dtype]))
    assert str(got.dtype) == dtype


def test_integer_models_stay_integers():
    rng = np.random.default_rng(0)
    w = relay.const(rng.integers(-127, 127, (16, 64)).astype(np.int8))
    x = relay.var("x", shape=(4, 64), dtype="uint8")
    mod = module([x], relay.nn.dense(relay.cast(x, "int32"), relay.cast(w, "int32"), out_dtype="int32"))
    data = rng.integers(0, 255, (4, 64)).astype(np.uint8)
    np.testing.assert_array_equal(baton.compile(mod, precision="bf16")(data).numpy(), baton.compile(mod)(data).numpy())


def test_quantized_models_stay_so():
    x = var("x", 4, 64)
    q = relay.qnn.op.quantize(x, relay.const(0.05), relay.const(128), out_dtype="uint8")
    w = relay.qnn.op.dequantize(relay.const(np.random.default_rng(0).integers(-9, 9, (16, 64)).astype(np.int8)), relay.const(0.1), relay.const(0))
    mod = module([x], relay.nn.dense(relay.qnn.op.dequantize(q, relay.const(0.05), relay.const(128)), w))
    data = values(4, 64)
    assert apart(baton.compile(mod, precision="bf16")(data), baton.compile(mod)(data)) < TOLERANCE["bf16"]


def test_infinite_and_not_a_number_pass():
    mod, _ = product(2, 64, 32)
    x = np.zeros((2, 64), np.float32)
    x[0, 3], x[1, 5] = np.nan, np.inf
    y = baton.compile(module([v := var("x", 2, 64)], relay.nn.dense(v, relay.const(np.ones((32, 64), np.float32)))), precision="bf16")(x).numpy()
    assert np.isnan(y[0]).all() and np.isposinf(y[1]).all()


def test_pass_context_asks_too():
    mod, inputs = product(4, 64, 32)
    want = baton.compile(mod, precision="bf16")(*inputs).numpy()
    np.testing.assert_array_equal(baton.compile(mod, config={"precision": "bf16"})(*inputs).numpy(), want)
    with baton.transform.PassContext(opt_level=3, config={"precision": "bf16"}):
        lib = relay.build(mod, target="llvm")
    run = baton.contrib.graph_executor.GraphModule(lib["default"](baton.cpu()))
    run.set_input("x", inputs[0])
    run.run()
    np.testing.assert_array_equal(run.get_output(0).numpy(), want)


def test_an_unknown_precision_is_named():
    mod, _ = product(4, 64, 32)
    for options in ({"precision": "fp8"}, {"config": {"precision": "fp8"}}):
        with pytest.raises(ValueError, match='precision is "fp8"; it is "exact", "bf16" or "f16"'):
            baton.compile(mod, **options)
    with pytest.raises(ValueError, match="say it once"):
        baton.compile(mod, precision="bf16", config={"precision": "f16"})


PAIRS = """
#[version = "0.0.5"]
def @main(%x: Tensor[(7, 48), bfloat16], %w: Tensor[(3, 24, 16, 2), bfloat16]) -> Tensor[(7, 40), float32] {
  nn.contrib_dense_pack(%x, %w, units=40)
}
"""


@pytest.mark.parametrize("cpu", CPUS)
def test_pairs_have_the_same_bits_on_each_processor(cpu):
    """The odd element of a pair is added first; products are exact in float32."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((7, 48), (3, 24, 16, 2)))
    want = np.zeros((7, 48), np.float32)
    for k in range(24):
        for odd in (1, 0):
            want += x[:, 2 * k + odd, None].astype(np.float32) * w[:, k, :, odd].astype(np.float32).reshape(-1)
    got = baton.compile(baton.parser.fromtext(PAIRS), target=f"llvm -mcpu={cpu}" if cpu else None)(x, w).numpy()
    np.testing.assert_array_equal(got, want[:, :40])


def test_pairs_in_c(tmp_path):
    """C source has them as two additions."""
    made = baton.compile(baton.parser.fromtext(PAIRS), target="c")
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((7, 48), (3, 24, 16, 2)))
    want = baton.compile(baton.parser.fromtext(PAIRS))(x, w).numpy()
    np.testing.assert_allclose(made(x, w).numpy(), want, rtol=1e-5, atol=1e-5)
