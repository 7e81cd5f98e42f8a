# SPDX-License-Identifier: Apache-2.0
"""Images in blocks of channels: what runs on them, over one to three dimensions, and that results stay."""

import numpy as np
import pytest

import baton
from baton import relay

LAYOUT = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def network(n, channels=32, groups=1, edge=9):
    """Convolutions with a bias or a batch normalisation, a pool, a residual sum and a concatenation."""
    rng = np.random.default_rng(n)

    def const(*shape):
        return relay.const(rng.uniform(-0.3, 0.3, shape).astype("float32"))

    def conv(x, out, inputs, window, **kw):
        return getattr(relay.nn, f"conv{n}d")(x, const(out, inputs // kw.get("groups", 1), *[window] * n), padding=[window // 2] * n, **kw)

    x = relay.var("x", shape=(2, 3, *[edge] * n))
    y = relay.nn.relu(relay.nn.bias_add(conv(x, channels, 3, 3), const(channels)))
    z = conv(y, channels, channels, 3, groups=groups)
    z = relay.nn.relu(
        relay.nn.batch_norm(z, const(channels), const(channels), const(channels), relay.const(rng.uniform(0.5, 1, channels).astype("float32")))[0]
    )
    z = z + y
    p = getattr(relay.nn, f"max_pool{n}d")(z, pool_size=[2] * n, strides=[2] * n)
    q = getattr(relay.nn, f"avg_pool{n}d")(z, pool_size=[2] * n, strides=[2] * n)
    out = getattr(relay.nn, f"global_avg_pool{n}d")(conv(relay.concatenate([p, q], axis=1), 16, 2 * channels, 1, strides=[2] * n))
    return relay.Function([x], out), rng.uniform(-1, 1, (2, 3, *[edge] * n)).astype("float32")


def prepared(func):
    t = relay.transform
    passes = [t.InferType(), t.SimplifyInference(), t.FoldConstant(), t.InferType(), t.AlterOpLayout(), t.InferType()]
    return baton.transform.Sequential(passes)(baton.IRModule.from_expr(func))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_networks(n, groups):
    func, x = network(n, groups=groups, edge={1: 40, 2: 9, 3: 6}[n])
    with baton.target.Target("llvm -mcpu=x86-64-v3"), baton.transform.PassContext(opt_level=3):
        text = prepared(func).astext(show_meta_data=False)
    calls = [line for line in text.splitlines() if "conv" in line or "pool" in line]
    assert len(calls) == 6 and all(f'"{LAYOUT[n]}8c"' in line for line in calls), text
    # One transform of the input, those of weights aside, and none between: the last result is a pixel.
    assert sum(f'src_layout="{LAYOUT[n]}"' in line and "%x" in line for line in text.splitlines()) == 1, text
    assert f'dst_layout="{LAYOUT[n]}"' not in text, text
    want = relay.create_executor("debug", baton.IRModule.from_expr(func)).evaluate()(x).numpy()
    with baton.transform.PassContext(opt_level=3):
        got = relay.create_executor("graph", baton.IRModule.from_expr(func)).evaluate()(x).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_groups_that_blocks_do_not_divide_stay_plain():
    x = relay.var("x", shape=(1, 68, 7, 7))
    w = relay.const(np.ones((68, 17, 1, 1), "float32"))
    text = prepared(relay.Function([x], relay.nn.conv2d(x, w, groups=4))).astext(show_meta_data=False)
    assert "layout_transform" not in text and "nn.conv2d" in text


SIDES = """
#[version = "0.0.5"]
def @main(%x: Tensor[(n, 16, h, w), float32], %w0: Tensor[(32, 16, 3, 3), float32], %w1: Tensor[(32, 32, 1, 1), float32],
          %w2: Tensor[(32, 16, 3, 3), float32]) {
  %0 = nn.conv2d(%x, %w0, padding=[1, 1, 1, 1], strides=[2, 2], channels=32, kernel_size=[3, 3]);
  BODY
}
"""
GATE = """
  %1 = sigmoid(nn.conv2d(nn.global_avg_pool2d(%0), %w1, channels=32, kernel_size=[1, 1]));
  multiply(%0, %1)"""
BATCH = """
  multiply(%0, nn.global_avg_pool2d(nn.conv2d(%x, %w2, padding=[1, 1, 1, 1], channels=32, kernel_size=[3, 3])))"""
OTHER_SIDES = """
  %1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2]);
  add(%0, nn.upsampling(%1, scale_h=2f64, scale_w=2f64))"""


@pytest.mark.parametrize("body", [GATE, BATCH, OTHER_SIDES], ids=["gate", "pixel", "other sides"])
def test_blocks_broadcast_over_open_extents(body):
    rng = np.random.default_rng(0)
    mod = relay.fromtext(SIDES.replace("BODY", body))
    weights = {f"w{i}": rng.uniform(-0.3, 0.3, s).astype("float32") for i, s in enumerate([(32, 16, 3, 3), (32, 32, 1, 1), (32, 16, 3, 3)])}
    func = relay.build_module.bind_params_by_name(mod["main"], weights)
    with baton.target.Target("llvm -mcpu=x86-64-v3"), baton.transform.PassContext(opt_level=3):
        text = prepared(func).astext(show_meta_data=False)
    sums = [line for line in text.splitlines() if "multiply(" in line or " add(" in line]
    assert sums and all(" 4, " in line and " 8), float32]" in line for line in sums), text
    model = baton.compile(baton.IRModule.from_expr(func))
    for n in (1, 3):
        x = rng.uniform(-1, 1, (n, 16, 8, 12)).astype("float32")
        want = relay.create_executor("debug", baton.IRModule.from_expr(func)).evaluate()(x).numpy()
        np.testing.assert_allclose(model(x), want, rtol=1e-4, atol=1e-5)
