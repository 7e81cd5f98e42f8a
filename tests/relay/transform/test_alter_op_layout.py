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
