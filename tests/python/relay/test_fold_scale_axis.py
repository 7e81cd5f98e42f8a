# SPDX-License-Identifier: Apache-2.0
"""FoldScaleAxis as users of Relay call it: beside the program that they expect, with factors and weights that are variables or constants."""

import numpy as np
import pytest
from building import function

import baton as tvm
from baton import relay
from baton.relay import transform
from baton.relay.testing import run_infer_type, run_opt_pass

BACKWARD, FORWARD = transform.BackwardFoldScaleAxis(), transform.ForwardFoldScaleAxis()
CONV = {"channels": 4, "kernel_size": (3, 3), "padding": (1, 1)}


def var(name, *shape):
    return relay.var(name, shape=shape)


def positive(*shape, seed=0):
    return relay.const((np.random.default_rng(seed).random(shape) + 0.1).astype("float32"))


def folded(body, one):
    return run_opt_pass(run_infer_type(function(body)), one)


def same(got, body):
    """Equal programs up to the order of parameters, and equal results."""
    want = run_infer_type(function(body))
    tvm.ir.assert_structural_equal(got.body, want.body, map_free_vars=True)


def agree(before, after):
    rng = np.random.default_rng(1)
    values = {p.name_hint: rng.standard_normal([int(d) for d in p.type_annotation.shape]).astype("float32") for p in before.params}
    results = []
    for f in (before, after):
        with tvm.transform.PassContext(opt_level=0):
            run = relay.create_executor("debug", tvm.IRModule.from_expr(f)).evaluate()
        results.append(run(*(values[p.name_hint] for p in f.params)))
    for a, b in zip(*(r if not isinstance(r, tvm.nd.NDArray) else [r] for r in results), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=1e-3)


def test_forward_through_relu_and_a_sum():
    x, w, bias, s = var("x", 2, 4, 5, 5), var("w", 4, 4, 3, 3), var("bias", 4, 1, 1), positive(4, 1, 1)
    before = relay.nn.conv2d(relay.add(relay.nn.relu(relay.multiply(x, s)), bias), w, **CONV)
    one = relay.squeeze(s, axis=[1, 2])
    y = relay.add(relay.nn.relu(x), relay.divide(bias, relay.expand_dims(one, axis=1, num_newaxis=2)))
    want = relay.nn.conv2d(y, relay.multiply(w, relay.expand_dims(one, axis=1, num_newaxis=2)), **CONV)
    got = folded(before, FORWARD)
    same(got, want)
    agree(function(before), got)


def test_forward_into_two_layers():
    x, v, w, s = var("x", 2, 5, 5, 4), var("v", 3, 3, 1, 4), var("w", 3, 3, 1, 4), positive(4)
    form = CONV | {"groups": 4, "data_layout": "NHWC", "kernel_layout": "HWOI"}
    y = relay.nn.relu(relay.subtract(relay.multiply(s, x), var("b", 4)))
    got = folded(relay.add(relay.nn.conv2d(y, relay.transpose(v, [0, 1, 3, 2]), **form), relay.nn.conv2d(y, relay.transpose(w, [0, 1, 3, 2]), **form)), FORWARD)
    text = got.astext(show_meta_data=False)
    assert text.count("multiply(") == 2 and text.count("divide(") == 1, text
    agree(function(relay.add(relay.nn.conv2d(y, relay.transpose(v, [0, 1, 3, 2]), **form), relay.nn.conv2d(y, relay.transpose(w, [0, 1, 3, 2]), **form))), got)


def test_forward_with_variables():
    x, w, s = var("x", 3, 4), var("w", 5, 4), var("s", 4)
    got = folded(relay.nn.dense(relay.multiply(x, s), w), FORWARD)
    same(got, relay.nn.dense(x, relay.multiply(w, s)))


@pytest.mark.parametrize(
    "body",
    [
        lambda x, w, s: relay.nn.conv2d(relay.nn.relu(relay.multiply(x, relay.negative(s))), w, **CONV),  # no constant
        lambda x, w, s: relay.nn.conv2d(relay.nn.relu(relay.multiply(x, relay.const(-s.data.numpy()))), w, **CONV),  # below 0
        lambda x, w, s: (lambda y: relay.add(relay.nn.conv2d(y, w, **CONV), y))(relay.multiply(x, s)),  # a consumer that does not take it
        lambda x, w, s: relay.nn.conv2d(relay.multiply(x, var("dynamic", 4, 1, 1)), relay.const(np.ones((4, 4, 3, 3), "float32")), **CONV),
        lambda x, w, s: relay.nn.conv2d(relay.add(relay.multiply(x, relay.const(np.zeros((4, 1, 1), "float32"))), var("b", 4, 1, 1)), w, **CONV),
        lambda x, w, s: relay.nn.conv2d(relay.add(relay.multiply(x, s), var("b", 4, 5, 5)), w, **CONV),
    ],
)  # fmt: skip
def test_forward_stays(body):
    before = run_infer_type(function(body(var("x", 2, 4, 5, 5), var("w", 4, 4, 3, 3), positive(4, 1, 1))))
    tvm.ir.assert_structural_equal(run_opt_pass(before, FORWARD), before)


def test_backward_through_relu_and_a_bias():
    x, w, bias, s = var("x", 2, 4, 5, 5), var("w", 4, 4, 3, 3), var("bias", 4), positive(4, 1, 1)
    before = relay.multiply(relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w, **CONV), bias)), s)
    one = relay.squeeze(s, axis=[1, 2])
    y = relay.nn.conv2d(x, relay.multiply(w, relay.expand_dims(one, axis=1, num_newaxis=3)), **CONV)
    got = folded(before, BACKWARD)
    same(got, relay.nn.relu(relay.nn.bias_add(y, relay.multiply(bias, one))))
    agree(function(before), got)


def test_backward_into_two_layers():
    x, v, w, s = var("x", 2, 4, 5, 5), var("v", 4, 4, 3, 3), var("w", 4, 4, 3, 3), positive(4, 1, 1)
    before = relay.multiply(relay.nn.relu(relay.add(relay.nn.conv2d(x, v, **CONV), relay.nn.leaky_relu(relay.nn.conv2d(x, w, **CONV), 0.2))), s)
    one = relay.squeeze(s, axis=[1, 2])
    layers = [relay.nn.conv2d(x, relay.multiply(k, relay.expand_dims(one, axis=1, num_newaxis=3)), **CONV) for k in (v, w)]
    got = folded(before, BACKWARD)
    same(got, relay.nn.relu(relay.add(layers[0], relay.nn.leaky_relu(layers[1], 0.2))))
    agree(function(before), got)


def test_backward_of_a_sum_with_a_value_a_channel():
    x, w, bias, s = var("x", 3, 4), var("w", 5, 4), var("bias", 5), var("s", 5)
    got = folded(relay.multiply(relay.subtract(bias, relay.nn.dense(x, w)), s), BACKWARD)
    want = relay.subtract(relay.multiply(bias, s), relay.nn.dense(x, relay.multiply(w, relay.expand_dims(s, axis=1))))
    same(got, want)


@pytest.mark.parametrize(
    "body",
    [
        lambda x, w, s: relay.multiply(relay.nn.relu(relay.nn.conv2d(x, w, **CONV)), var("t", 4, 1, 1)),  # perhaps below 0
        lambda x, w, s: relay.multiply(relay.nn.relu(relay.nn.conv2d(x, w, **CONV)), relay.const(-s.data.numpy())),
        lambda x, w, s: (lambda y: relay.add(relay.multiply(relay.nn.relu(y), s), y))(relay.nn.conv2d(x, w, **CONV)),  # used twice
        lambda x, w, s: relay.multiply(relay.nn.conv2d(x, w, **CONV), positive(5, 1)),  # along another dimension
        lambda x, w, s: relay.multiply(relay.sigmoid(relay.nn.conv2d(x, w, **CONV)), s),
        lambda x, w, s: relay.multiply(relay.add(relay.nn.conv2d(x, w, **CONV), var("b", 5, 5)), s),
    ],
)  # fmt: skip
def test_backward_stays(body):
    before = run_infer_type(function(body(var("x", 2, 4, 5, 5), var("w", 4, 4, 3, 3), positive(4, 1, 1))))
    tvm.ir.assert_structural_equal(run_opt_pass(before, BACKWARD), before)
