# SPDX-License-Identifier: Apache-2.0
"""ConvertLayout and Legalize: what users register, options, networks in other orders, and that results stay."""

import numpy as np
import pytest
from meaning import arguments, evaluate

import baton as tvm
from baton import relay
from baton.relay import transform
from baton.relay.testing import TempOpAttr

DEFAULT = {n: (["NCW", "NCHW", "NCDHW"][n - 1], ["NWC", "NHWC", "NDHWC"][n - 1]) for n in (1, 2, 3)}


def network(n, channels=8):
    """Convolutions, a transposed one, a bias, pools, a residual sum, a concatenation, a mean."""
    rng = np.random.default_rng(n)

    def const(*shape):
        return relay.const(rng.uniform(-0.3, 0.3, shape).astype("float32"))

    def conv(x, out, inputs, window, groups=1):
        return getattr(relay.nn, f"conv{n}d")(x, const(out, inputs // groups, *[window] * n), padding=[window // 2] * n, groups=groups)

    x = relay.var("x", shape=(2, 4, *[8] * n))
    y = relay.nn.relu(relay.nn.bias_add(conv(x, channels, 4, 3), const(channels)))
    z = conv(y, channels, channels, 3, groups=channels) + y * const(channels, *[1] * n)
    p = getattr(relay.nn, f"max_pool{n}d")(z, pool_size=[2] * n, strides=[2] * n)
    q = getattr(relay.nn, f"avg_pool{n}d")(z, pool_size=[2] * n, strides=[2] * n)
    r = getattr(relay.nn, f"conv{n}d_transpose")(relay.concatenate([p, q], axis=1), const(2 * channels, 4, *[2] * n), strides=[2] * n)
    return tvm.IRModule.from_expr(relay.Function([x], relay.mean(r, axis=list(range(2, n + 2)))))


def infer(mod):
    return transform.InferType()(mod)


def calls(mod, name):
    return [line for line in mod.astext(show_meta_data=False).splitlines() if f" {name}(" in line]


def same_result(before, after):
    args = arguments(before["main"])
    for got, want in zip(evaluate(after, args), evaluate(before, args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_networks(n):
    mod = infer(network(n))
    plain, wanted = DEFAULT[n]
    desired = {f"nn.conv{n}d": [wanted, "default"], f"nn.conv{n}d_transpose": [wanted, "default"]}
    with tvm.transform.PassContext(opt_level=3):
        after = infer(tvm.transform.Sequential([transform.ConvertLayout(desired), transform.FoldConstant()])(mod))
    # One transform of the input; pools, sums and the concatenation follow, the mean ends it.
    transforms = [line for line in calls(after, "layout_transform") if "meta[" not in line]
    assert len(transforms) == 1 and f'dst_layout="{wanted}"' in transforms[0], after.astext(show_meta_data=False)
    assert all(f'layout="{wanted}"' in line for kind in ("nn.max_pool", "nn.avg_pool") for line in calls(after, f"{kind}{n}d"))
    same_result(mod, after)
    back = infer(transform.ConvertLayout({f"nn.conv{n}d": [plain, "default"], f"nn.conv{n}d_transpose": [plain, "default"]})(after))
    same_result(mod, back)


@pytest.mark.parametrize("layout, kernel", [("HWNC", "default"), ("NHWC", "OHWI"), ("CHWN", "IHWO"), ("NCHW", "HWIO")])
def test_other_orders(layout, kernel):
    mod = infer(network(2))
    after = infer(transform.ConvertLayout({"nn.conv2d": [layout, kernel]})(mod))
    assert len(calls(after, "nn.conv2d")) == 2
    same_result(mod, after)


def test_layers_may_be_skipped():
    mod = infer(network(2))
    with transform.LayoutConfig(skip_layers=[0]) as config:
        assert transform.LayoutConfig.current is config
        after = infer(transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(mod))
    assert transform.LayoutConfig.current is None
    first, second = calls(after, "nn.conv2d")
    assert "NHWC" not in first and "NHWC" in second
    assert all("NHWC" in line for line in calls(transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(mod), "nn.conv2d"))
    same_result(mod, after)


@pytest.mark.parametrize(
    "desired, message",
    [
        ({"nn.conv2": ["NHWC"]}, "nn.conv2"),
        ({"nn.conv2d": ["NHWX", "default"]}, 'has layout "NCHW", which cannot become "NHWX"'),
        ({"nn.conv2d": ["NCHW4c", "default"]}, "without blocks"),
        ({"nn.conv2d": ["NHWC", "HWIO", "NHWC"]}, "wants layouts of data and weight, got 3"),
        ({"nn.conv2d": []}, "got 0"),
        ({"nn.relu": ["NHWC"]}, "`nn.relu` has no layout"),
    ],
)
def test_what_cannot_be_is_refused(desired, message):
    with pytest.raises(tvm.TVMError, match=message):
        transform.ConvertLayout(desired)(infer(network(2)))


def test_a_registered_conversion_decides():
    seen = []

    def convert(attrs, inputs, types, desired):
        seen.append((len(inputs), [tuple(int(d) for d in t.shape) for t in types], [str(d) for d in desired]))
        return relay.nn.conv2d(
            inputs[0], inputs[1], strides=attrs.strides, padding=attrs.padding, groups=attrs.groups, data_layout="NHWC", kernel_layout="OHWI"
        )

    mod = infer(network(2))
    with TempOpAttr("nn.conv2d", "FTVMConvertOpLayout", convert):
        after = infer(transform.ConvertLayout({"nn.conv2d": ["anything"]})(mod))
    assert seen[0] == (2, [(2, 4, 8, 8), (8, 4, 3, 3), (2, 8, 8, 8)], ["anything"])
    assert all('kernel_layout="OHWI"' in line for line in calls(after, "nn.conv2d"))
    same_result(mod, after)


def normalised():
    """A convolution, then an operator that ConvertLayout has no rule for, then one that it has."""
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, 4, 6, 6))
    w = relay.const(rng.uniform(-1, 1, (8, 4, 3, 3)).astype("float32"))
    y = relay.nn.l2_normalize(relay.nn.conv2d(x, w), eps=0.1, axis=[1])
    return infer(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(y))))


def test_an_operator_says_its_layouts():
    seen = []

    def layouts(attrs, new, old, types):
        seen.append(([str(x) for x in new], [str(x) for x in old], [tuple(int(d) for d in t.shape) for t in types]))
        axis = [str(new[0]).index(str(old[0])[int(a)]) for a in attrs.axis]
        return [[new[0]], [new[0]], tvm.ir.make_node("relay.attrs.L2NormalizeAttrs", eps=attrs.eps, axis=axis)]

    mod, wanted = normalised(), {"nn.conv2d": ["NHWC", "default"]}
    without = infer(transform.ConvertLayout(wanted)(mod))
    with TempOpAttr("nn.l2_normalize", "FInferCorrectLayout", layouts):
        after = infer(transform.ConvertLayout(wanted)(mod))
    assert seen == [(["NHWC"], ["NCHW"], [(1, 8, 4, 4)])]
    assert "axis=[3]" in calls(after, "nn.l2_normalize")[0] and "axis=[1]" in calls(without, "nn.l2_normalize")[0]
    # Of data, of weights, and behind the relu: none between.
    assert len(calls(after, "layout_transform")) == 3
    same_result(mod, after)
    same_result(mod, without)


def test_an_operator_may_ask_for_its_own_layout():
    def plain(attrs, new, old, types):
        return [[old[0]], [old[0]]]

    mod = normalised()
    with TempOpAttr("nn.l2_normalize", "FInferCorrectLayout", plain):
        after = infer(transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(mod))
    assert "axis=[1]" in calls(after, "nn.l2_normalize")[0]
    same_result(mod, after)
    with TempOpAttr("nn.l2_normalize", "FInferCorrectLayout", lambda attrs, new, old, types: None):
        same_result(mod, infer(transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(mod)))


def test_a_conversion_of_an_operator_that_says_its_layouts():
    """Its attributes have no field for a layout: the two functions together say what to transform."""

    def convert(attrs, inputs, types, desired):
        axis = [str(desired[0]).index("NCHW"[int(a)]) for a in attrs.axis]
        return relay.nn.l2_normalize(inputs[0], eps=attrs.eps, axis=axis)

    def layouts(attrs, new, old, types):
        layout = "NCHW" if [int(a) for a in attrs.axis] == [1] else "NHWC"
        return [[layout], [layout]]

    x = relay.var("x", shape=(1, 4, 6, 6))
    mod = infer(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.l2_normalize(x, eps=0.1, axis=[1])))))
    with TempOpAttr("nn.l2_normalize", "FTVMConvertOpLayout", convert), TempOpAttr("nn.l2_normalize", "FInferCorrectLayout", layouts):
        after = infer(transform.ConvertLayout({"nn.l2_normalize": ["NHWC"]})(mod))
    assert "axis=[3]" in calls(after, "nn.l2_normalize")[0] and len(calls(after, "layout_transform")) == 2
    same_result(mod, after)


@pytest.mark.parametrize(
    "answer, message",
    [
        ([["NHWC"]], "gave 1 values"),
        ([["NHWC", "NHWC"], ["NHWC"]], "gave layouts of 2 inputs; the call has 1"),
        ([["NHW"], ["NHWC"]], 'gave input 0 the layout "NHW"; the input has 4 dimensions'),
        ([["NHWX"], ["NHWC"]], 'cannot become "NHWX"'),
        ([3, 4], "gave what are no layouts"),
    ],
)
def test_wrong_answers_are_refused(answer, message):
    with TempOpAttr("nn.l2_normalize", "FInferCorrectLayout", lambda attrs, new, old, types: answer), pytest.raises(tvm.TVMError, match=message):
        transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(normalised())


def test_nothing_desired_changes_nothing():
    mod = infer(network(2))
    assert transform.ConvertLayout({})(mod)["main"].same_as(mod["main"])
    info = transform.ConvertLayout({}).info
    assert info.name == "ConvertLayout" and info.opt_level == 3 and "InferType" in [str(r) for r in info.required]


# ---- Legalize


def test_legalize_replaces_calls():
    seen = []

    def legal(attrs, inputs, types):
        seen.append([str(t.dtype) for t in types])
        return relay.add(inputs[0], inputs[1]) if len(seen) == 1 else None

    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    mod = infer(tvm.IRModule.from_expr(relay.Function([x, y], relay.multiply(relay.subtract(x, y), relay.subtract(y, x)))))
    with TempOpAttr("subtract", "FTVMLegalize", legal):
        after = infer(transform.Legalize()(mod))
    assert seen == [["float32"] * 3] * 2
    assert len(calls(after, "add")) == 1 and len(calls(after, "subtract")) == 1
    assert transform.Legalize()(mod)["main"].same_as(mod["main"])
    assert transform.Legalize().info.opt_level == 1


def test_legalize_by_another_attribute():
    x = relay.var("x", shape=(2,))
    mod = infer(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))))
    with TempOpAttr("exp", "FMyLegalize", lambda attrs, inputs, types: relay.tanh(inputs[0])):
        assert calls(transform.Legalize("FMyLegalize")(mod), "tanh")
        assert transform.Legalize()(mod)["main"].same_as(mod["main"])


def test_legalize_by_the_registration_function():
    relay.op.register_legalize("nn.log_softmax", lambda attrs, inputs, types: relay.nn.softmax(inputs[0], axis=attrs.axis), level=11)
    try:
        x = relay.var("x", shape=(2, 3))
        mod = infer(tvm.IRModule.from_expr(relay.Function([x], relay.nn.log_softmax(x, axis=0))))
        assert 'axis=0' in calls(transform.Legalize()(mod), "nn.softmax")[0]
    finally:
        relay.op.reset_attr("nn.log_softmax", "FTVMLegalize")


def test_what_a_function_says_wrong_comes_out():
    x = relay.var("x", shape=(2,))
    mod = infer(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))))

    def wrong(attrs, inputs, types):
        raise ValueError("not today")

    with TempOpAttr("exp", "FTVMLegalize", wrong), pytest.raises(ValueError, match="not today"):
        transform.Legalize()(mod)


# ---- AlterOpLayout by what is registered


@pytest.mark.parametrize("layouts", [("NHWC", "HWIO", ""), ("NCHW4c", "OIHW4i4o", "NCHW4c")])
def test_a_registered_alteration_decides(layouts):
    """The function gets the types of arguments and, apart, of the result; transforms are put where layouts changed."""
    data, kernel, out = layouts
    seen = []

    def alter(attrs, inputs, types, result):
        seen.append((len(inputs), len(types), [int(d) for d in result.shape]))
        if attrs.groups != 1 or attrs.data_layout != "NCHW":
            return None
        return relay.nn.conv2d(*inputs, strides=attrs.strides, padding=attrs.padding, data_layout=data, kernel_layout=kernel, out_layout=out)

    mod = infer(network(2))
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter), tvm.target.Target("llvm -mcpu=x86-64-v3"):
        after = infer(transform.AlterOpLayout()(mod))
    assert seen[0] == (2, 2, [2, 8, 8, 8]) and len(seen) == 2
    assert f'data_layout="{data}"' in after.astext(show_meta_data=False)
    same_result(mod, after)
