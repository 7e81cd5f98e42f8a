# SPDX-License-Identifier: Apache-2.0
"""float16 and bfloat16 models compute in float32 and keep their weights in half width."""

import ml_dtypes
import numpy as np
import pytest

import baton
from baton import relay

HALVES = {"float16": (np.float16, 2e-3), "bfloat16": (ml_dtypes.bfloat16, 2e-2)}
CPUS = ["x86-64-v2", "x86-64-v3", None]


def network(dtype, kind):
    """A convolution, a normalisation, a product and a softmax: (module, input, float64 result)."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 16, 8, 8)).astype(kind)
    w, d = (rng.normal(0, 0.1, s).astype(kind) for s in ((32, 16, 3, 3), (48, 32)))
    scale, bias = rng.uniform(0.5, 1.5, 32).astype(kind), rng.normal(0, 0.1, 32).astype(kind)
    xv = relay.var("x", shape=x.shape, dtype=dtype)

    def const(a):
        return relay.const(baton.nd.array(a))

    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(xv, const(w), padding=(1, 1)), const(bias)))
    y = relay.nn.global_avg_pool2d(relay.multiply(y, relay.reshape(const(scale), (1, 32, 1, 1))))
    y = relay.nn.softmax(relay.nn.dense(relay.nn.batch_flatten(y), const(d)))
    wide = [a.astype(np.float64) for a in (x, w, bias, scale, d)]
    padded = np.pad(wide[0], ((0, 0), (0, 0), (1, 1), (1, 1)))
    conv = sum(np.einsum("nchw,oc->nohw", padded[:, :, i : i + 8, j : j + 8], wide[1][:, :, i, j]) for i in range(3) for j in range(3))
    conv = np.maximum(conv + wide[2][:, None, None], 0) * wide[3][:, None, None]
    logits = conv.mean((2, 3)) @ wide[4].T
    e = np.exp(logits - logits.max(1, keepdims=True))
    return baton.IRModule.from_expr(relay.Function([xv], y)), x, e / e.sum(1, keepdims=True)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", list(HALVES))
def test_network(dtype, cpu):
    kind, tolerance = HALVES[dtype]
    mod, x, want = network(dtype, kind)
    got = baton.compile(mod, target=f"llvm -mcpu={cpu}" if cpu else None)(x)
    assert str(got.dtype) == dtype
    np.testing.assert_allclose(got.numpy().astype(np.float64), want, rtol=tolerance * 4, atol=tolerance)


@pytest.mark.parametrize("dtype", list(HALVES))
def test_only_the_ends_are_half(dtype):
    mod, _, _ = network(dtype, HALVES[dtype][0])
    wide = relay.transform.InferType()(relay.transform.WidenHalfFloats()(relay.transform.InferType()(mod)))
    halves = []

    def note(e):
        t = e.checked_type if isinstance(e, relay.Call) else None
        if t is not None and getattr(t, "dtype", "") == dtype:
            halves.append(e.op.name)

    relay.analysis.post_order_visit(wide["main"], note)
    assert [name for name in halves if name != "reshape"] == ["cast"]  # of the result; views of weights are folded


@pytest.mark.parametrize("dtype", list(HALVES))
def test_weights_stay_half_in_the_artifact(dtype, tmp_path):
    kind, _ = HALVES[dtype]
    w = np.random.default_rng(0).normal(0, 0.1, (1024, 1024)).astype(kind)
    xv = relay.var("x", shape=(4, 1024), dtype=dtype)
    mod = baton.IRModule.from_expr(relay.Function([xv], relay.nn.dense(xv, relay.const(baton.nd.array(w)))))
    path = tmp_path / "product.so"
    baton.compile(mod, target="llvm -mcpu=x86-64-v3").save(path)
    assert path.stat().st_size < 1.1 * w.nbytes + (64 << 10)


def test_a_conversion_rounds():
    x = relay.var("x", shape=(4,), dtype="float32")
    body = relay.cast(relay.cast(x, "float16"), "float32")
    data = np.array([1.0001, 70000, 1e-9, 0.1], np.float32)
    got = baton.compile(baton.IRModule.from_expr(relay.Function([x], body)))(data).numpy()
    np.testing.assert_array_equal(got, data.astype(np.float16).astype(np.float32))


def test_special_weights():
    """Infinities, NaN, subnormal numbers and both zeros survive in every width."""
    values = np.array([np.inf, -np.inf, np.nan, 6e-8, -6e-8, 0.0, -0.0, 65504], np.float16)
    w = relay.const(baton.nd.array(values))
    x = relay.var("x", shape=(8,), dtype="float16")
    got = baton.compile(baton.IRModule.from_expr(relay.Function([x], relay.multiply(x, w))))(np.ones(8, np.float16)).numpy()
    np.testing.assert_array_equal(got.view(np.uint16)[[0, 1, 3, 4, 5, 6, 7]], values.view(np.uint16)[[0, 1, 3, 4, 5, 6, 7]])
    assert np.isnan(got[2])
