# SPDX-License-Identifier: Apache-2.0
"""Parameters that leave their type to their uses, when a pass puts something between the two."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay import testing, transform


def _conv():
    x, w, b = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w"), relay.var("b")
    y = relay.nn.bias_add(relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3), padding=(1, 1)), b)
    return relay.Function([x, w, b], relay.nn.conv2d(relay.nn.relu(y), relay.var("v"), channels=4, kernel_size=(1, 1)))


def _fake_quantized():
    x, w, b = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3)), relay.var("b")
    scale, zero = relay.const(0.5), relay.const(0)
    q, k = (relay.qnn.op.dequantize(relay.qnn.op.quantize(v, scale, zero, out_dtype="int8"), scale, zero) for v in (x, w))
    body = relay.nn.bias_add(relay.nn.dense(q, k, units=4), b)
    return relay.Function([x, w, b], relay.qnn.op.quantize(body, scale, zero, out_dtype="int8"))


def _typed(function):
    params = relay.analysis.free_vars(function.body)
    return transform.InferType()(tvm.IRModule.from_expr(relay.Function(params, function.body)))


def _again(mod):
    return transform.InferType()(relay.fromtext(mod.astext()))


MODELS = {"mlp": lambda: testing.mlp.get_net(1), "dqn": lambda: testing.dqn.get_net(1), "conv": _conv, "quantized": _fake_quantized}
PASSES = {
    "ToMixedPrecision": transform.ToMixedPrecision,
    "ConvertLayout": lambda: transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}),
    "AlterOpLayout": transform.AlterOpLayout,
    "FoldScaleAxis": transform.FoldScaleAxis,
    "FakeQuantizationToInteger": transform.FakeQuantizationToInteger,
    "SplitArgs": lambda: transform.SplitArgs(2),
}


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("model", MODELS)
def test_the_text_of_a_result_infers_again(model, name):
    mod = _typed(MODELS[model]())
    with tvm.target.Target("llvm"), tvm.transform.PassContext(opt_level=4):
        out = PASSES[name]()(mod)
    assert tvm.ir.structural_equal(_again(out), transform.InferType()(out))


def test_a_weight_behind_a_cast_says_its_type():
    mod = _typed(testing.mlp.get_net(1))
    out = transform.ToMixedPrecision()(mod)
    assert "%fc1_weight: Tensor[(128, 784), float32]" in out.astext(), "hidden by the cast"
    assert "%fc1_bias: " in out.astext() or "%fc1_bias," in out.astext()
    assert "%fc1_weight," in mod.astext(), "the module that it was made of stays as it is"


def test_parameters_that_follow_from_their_uses_stay_as_they_are():
    mod = relay.fromtext("""#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %w, %c) { (nn.relu(nn.dense(%x, %w, units=4)), nn.dense(%x, %c, units=4)) }""")
    out = transform.DeadCodeElimination()(transform.ToANormalForm()(transform.InferType()(mod)))
    assert "%w," in out.astext(), "nothing came between"

    @relay.transform.function_pass(opt_level=0)
    def cast_c(func, mod, ctx):
        c = func.params[2]
        return relay.Function(func.params, relay.bind(func.body, {c: relay.cast(relay.cast(c, "float16"), "float32")}))

    out = cast_c(out)
    assert "%w," in out.astext() and "%c: Tensor[(4, 3), float32]" in out.astext(), "also of passes in Python, and only what they hide"
    x, w = np.ones((2, 3), "float32"), np.ones((4, 3), "float32")
    np.testing.assert_allclose(relay.create_executor("debug", _again(out)).evaluate()(x, w, w)[1].numpy(), 3)


def test_a_parameter_that_a_pass_leaves_without_use_says_its_type():
    mod = transform.InferType()(
        relay.fromtext("""#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %w) { let %y = nn.dense(%x, %w, units=4); %x }""")
    )
    out = transform.DeadCodeElimination()(mod)
    assert "nn." not in out.astext() and "%w: Tensor[(4, 3), float32]" in out.astext()
    _again(out)
