# SPDX-License-Identifier: Apache-2.0
"""Layouts, partitions and the forms that passes give, beside the programs that users of Relay expect."""

import numpy as np
import pytest
from building import function, var

import baton as tvm
from baton import relay, te
from baton.relay import analysis, transform
from baton.relay.dataflow_pattern import is_op, wildcard
from baton.relay.testing import TempOpAttr, run_infer_type, run_opt_pass

CONV = {"channels": 64, "kernel_size": (3, 3), "padding": (1, 1)}


def image():
    return var(1, 64, 56, 56), var(64, 64, 3, 3, name="weight")


def count(func, name):
    found = []
    analysis.post_order_visit(func, lambda e: found.append(e) if isinstance(e, relay.Call) and getattr(e.op, "name", "") == name else None)
    return len(found)


def in_blocks(attrs, inputs, tinfos, out_type):
    return relay.nn.conv2d(*inputs, **{**dict(attrs), "data_layout": "NCHW16c"})


def altered(func, alter=in_blocks, before=()):
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter), tvm.transform.PassContext(opt_level=3):
        return run_opt_pass(func, [*before, transform.AlterOpLayout()])


def same_results(before, after):
    rng = np.random.default_rng(0)
    args = [rng.standard_normal([int(d) for d in p.type_annotation.shape]).astype("float32") for p in before.params]
    values = [relay.create_executor("graph", tvm.IRModule.from_expr(f), tvm.cpu(), "llvm").evaluate()(*args).numpy() for f in (before, after)]
    np.testing.assert_allclose(*values, rtol=1e-3, atol=1e-3)


# ---- AlterOpLayout


def test_alter_changes_arguments():
    def alter(attrs, inputs, tinfos, out_type):
        data, weight = inputs
        return relay.nn.conv2d(data, relay.multiply(weight, relay.const(2.0, "float32")), **attrs)

    x, w = image()
    got = altered(function(relay.nn.relu(relay.nn.conv2d(x, w, **CONV))), alter)
    want = function(relay.nn.relu(relay.nn.conv2d(x, relay.multiply(w, relay.const(2.0)), **CONV)))
    tvm.ir.assert_structural_equal(got, run_infer_type(want))


def test_alter_leaves_alone():
    x, w = image()
    before = function(relay.nn.conv2d(x, w, **CONV))
    tvm.ir.assert_structural_equal(altered(before, lambda *_: None), run_infer_type(before))


def test_functions_of_layouts_get_tensors():
    seen = []

    def look(attrs, inputs, tinfos, last):
        seen.append((attrs, inputs, tinfos, last))
        return relay.nn.conv2d(*inputs, **attrs)

    x, w = image()
    func = function(relay.nn.conv2d(x, w, **CONV))
    altered(func, look)
    with TempOpAttr("nn.conv2d", "FTVMConvertOpLayout", look):
        run_opt_pass(func, transform.ConvertLayout({"nn.conv2d": ["NHWC", "HWIO"]}))
    assert len(seen) == 2
    for attrs, inputs, tinfos, _ in seen:
        assert attrs.data_layout == "NCHW"
        assert all(isinstance(i, relay.Expr) for i in inputs)
        assert all(isinstance(t, te.Tensor) for t in tinfos)
        assert [int(d) for d in tinfos[1].shape] == [64, 64, 3, 3]
        assert tinfos[0].dtype == "float32"
    assert seen[0][3] == relay.TensorType((1, 64, 56, 56))
    assert list(map(str, seen[1][3])) == ["NHWC", "HWIO"]


def test_blocks_go_on():
    (x, w), bias = image(), var(64, name="bias")
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w, **CONV), bias))
    y = relay.nn.batch_flatten(relay.cast(relay.nn.max_pool2d(y, pool_size=(2, 2)), "int32"))
    got = altered(relay.Function([x, bias, w], y), before=[transform.CanonicalizeOps()])
    y = relay.nn.conv2d(relay.layout_transform(x, "NCHW", "NCHW16c"), w, **CONV, data_layout="NCHW16c")
    each = relay.expand_dims(relay.expand_dims(bias, axis=1, num_newaxis=2), axis=0, num_newaxis=1)
    y = relay.nn.relu(relay.add(y, relay.layout_transform(each, "NCHW", "NCHW16c")))
    y = relay.cast(relay.nn.max_pool2d(y, pool_size=(2, 2), layout="NCHW16c"), "int32")
    want = relay.nn.batch_flatten(relay.layout_transform(y, "NCHW16c", "NCHW"))
    tvm.ir.assert_structural_equal(got, run_infer_type(relay.Function([x, bias, w], want)))


def test_blocks_of_two_branches():
    x = var(1, 64, 56, 56)
    w1, w2 = var(32, 64, 3, 3, name="w1"), var(32, 64, 1, 1, name="w2")

    def program(x, end, **layout):
        y1 = relay.nn.relu(relay.nn.conv2d(x, w1, channels=32, kernel_size=(3, 3), padding=(1, 1), **layout))
        y2 = relay.nn.relu(relay.nn.conv2d(x, w2, channels=32, kernel_size=(1, 1), **layout))
        return end(y1 + y2)

    got = altered(relay.Function([x, w1, w2], program(x, relay.nn.global_max_pool2d)))
    want = program(
        relay.layout_transform(x, "NCHW", "NCHW16c"),
        lambda y: relay.layout_transform(relay.nn.global_max_pool2d(y, layout="NCHW16c"), "NCHW16c", "NCHW"),
        data_layout="NCHW16c",
    )
    tvm.ir.assert_structural_equal(got, run_infer_type(relay.Function([x, w1, w2], want)))


@pytest.mark.parametrize(
    ("follow", "transforms"),
    [
        (lambda y: relay.nn.leaky_relu(y, 0.1), 2),
        (lambda y: y + var(1, 64, 1, 1, name="b"), 3),
        (lambda y: y * var(64, 1, 1, name="b"), 3),
        (lambda y: y * var(56, name="b"), 3),
        (lambda y: y + var(1, name="b"), 2),
        (lambda y: y * relay.const(2.0), 2),
        (lambda y: relay.nn.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1))), 2),
        (lambda y: relay.nn.pad(y, ((0, 0), (1, 1), (0, 0), (0, 0))), 2),
        (lambda y: relay.concatenate([y, y], axis=1), 2),
        (lambda y: relay.mean(y, axis=(2, 3), keepdims=True), 2),
        (lambda y: relay.sum(y, axis=(1, 2, 3)), 1),
        (lambda y: relay.max(y, axis=1), 1),
        (lambda y: relay.sum(y, axis=1, keepdims=True), 2),
        (lambda y: relay.nn.softmax(y, axis=1), 2),
        (lambda y: relay.transpose(y, (0, 2, 3, 1)), 2),
        (lambda y: relay.nn.avg_pool2d(y, (2, 2), strides=(2, 2)), 2),
        (lambda y: relay.split(y, 2, axis=1)[1], 2),
    ],
)
def test_blocks_through_operators(follow, transforms):
    x, w = var(1, 64, 8, 56), var(64, 64, 3, 3, name="weight")
    before = function(follow(relay.nn.conv2d(x, w, **CONV)))
    after = altered(before)
    assert count(after, "layout_transform") == transforms, after
    assert count(after, "nn.conv2d") == 1
    same_results(before, after)


def test_blocks_stop_where_channels_do_not_divide():
    x, w = image()
    y = relay.concatenate([relay.nn.conv2d(x, w, **CONV), var(1, 3, 56, 56, name="odd")], axis=1)
    before = function(y)
    after = altered(before)
    assert count(after, "layout_transform") == 2
    same_results(before, after)


# ---- Other compilers


def on(target, op, *args):
    begin, end = relay.op.annotation.compiler_begin, relay.op.annotation.compiler_end
    return end(op(*[begin(a, target) for a in args]), target)


def supports(op, target):
    return TempOpAttr(op, f"target.{target}", lambda call: True)


def test_annotate_target_names_the_default():
    x = var(10, 5)
    with supports("nn.relu", "users"):
        got = transform.AnnotateTarget("users")(tvm.IRModule.from_expr(function(relay.abs(relay.nn.relu(x)))))
    want = relay.Function([x], on("default", relay.abs, on("users", relay.nn.relu, x)))
    tvm.ir.assert_structural_equal(transform.InferType()(got)["main"], run_infer_type(want))


def test_annotate_target_again():
    x = var(10, 5)
    mod = tvm.IRModule.from_expr(function(relay.add(relay.nn.relu(x), relay.abs(x))))
    with supports("nn.relu", "A"), supports("add", "B"):
        one = transform.AnnotateTarget("B")(transform.AnnotateTarget("A")(mod))
        both = transform.AnnotateTarget(["A", "B"])(mod)
        tvm.ir.assert_structural_equal(transform.InferType()(one), transform.InferType()(both))
        parts = transform.PartitionGraph()(transform.MergeCompilerRegions()(both))
    compilers = {g.name_hint: str(f.attrs["Compiler"]) for g, f in parts.functions.items() if g.name_hint != "main"}
    assert sorted(compilers.values()) == ["A", "B"]
    assert count(parts["main"], "abs") == 1
    assert count(parts["main"], "annotation.compiler_begin") == 0


def test_inline_keeps_functions_of_compilers():
    mod, x, y = tvm.IRModule(), var(1, 2), var(1, 2, name="y")
    g = relay.GlobalVar("g")
    one = tvm.tir.IntImm("int32", 1)
    func = relay.Function([x], x + x).with_attr("Inline", one).with_attr("Primitive", one)
    mod[g] = func.with_attr("Compiler", "a").with_attr("global_symbol", "g")
    mod["main"] = relay.Function([y], relay.exp(g(y)))
    mod = transform.Inline()(mod)
    assert [v.name_hint for v in mod.get_global_vars()] == ["main"]
    callee = mod["main"].body.args[0].op
    assert isinstance(callee, relay.Function)
    assert callee.attrs["Compiler"] == "a"


def test_merge_composite_types_its_parameters():
    x, y = var(10, 10), var(10, 10, name="y")
    pattern = is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))
    got = run_opt_pass(relay.Function([x, y], relay.nn.relu(relay.add(x, y))), transform.MergeComposite([("add_relu", pattern)]))
    a, b = var(10, 10, name="a"), var(10, 10, name="b")
    inner = relay.Function([a, b], relay.nn.relu(relay.add(a, b))).with_attr("Composite", "add_relu")
    inner = inner.with_attr("PartitionedFromPattern", "add_nn.relu_")
    tvm.ir.assert_structural_equal(got, run_infer_type(relay.Function([x, y], inner(x, y))), map_free_vars=True)


# ---- Forms


def sliced(value, begin, size):
    return relay.strided_slice(value, begin=begin, end=size, strides=[1] * len(begin), slice_mode="size")


def test_combined_convolutions_are_sliced_by_size():
    x, ws = var(1, 4, 16, 16), [var(n, 4, 1, 1, name=f"w{n}") for n in (4, 8)]
    got = run_opt_pass(relay.Function([x, *ws], relay.Tuple([relay.nn.conv2d(x, w) for w in ws])), transform.CombineParallelConv2D(min_num_branches=2))
    y = relay.nn.conv2d(x, relay.concatenate(tuple(ws), axis=0), channels=12)
    want = relay.Tuple([sliced(y, [0, 0], [-1, 4]), sliced(y, [0, 4], [-1, 8])])
    tvm.ir.assert_structural_equal(got, run_infer_type(relay.Function([x, *ws], want)))


def test_combined_products_are_sliced_by_size():
    x, ws = var(3, 4), [var(n, 4, name=f"w{n}") for n in (5, 6)]
    got = run_opt_pass(
        relay.Function([x, *ws], relay.Tuple([relay.nn.dense(x, w) for w in ws])), transform.CombineParallelDense(min_num_branches=2, to_batch=False)
    )
    y = relay.nn.dense(x, relay.concatenate(tuple(ws), axis=0), units=11)
    want = relay.Tuple([sliced(y, [0, 0], [-1, 5]), sliced(y, [0, 5], [-1, 6])])
    tvm.ir.assert_structural_equal(got, run_infer_type(relay.Function([x, *ws], want)))
    x, ws = var(1, 3, 4), [var(1, 5, 4, name=f"w{n}") for n in (1, 2)]
    got = run_opt_pass(
        relay.Function([x, *ws], relay.Tuple([relay.nn.batch_matmul(x, w) for w in ws])), transform.CombineParallelBatchMatmul(min_num_branches=2)
    )
    y = relay.nn.batch_matmul(x, relay.concatenate(tuple(ws), axis=1))
    want = relay.Tuple([sliced(y, [0, 0, 0], [-1, -1, 5]), sliced(y, [0, 0, 5], [-1, -1, 5])])
    tvm.ir.assert_structural_equal(got, run_infer_type(relay.Function([x, *ws], want)))


def test_fusion_takes_views():
    def body(x):
        return relay.squeeze(relay.exp(relay.reshape(relay.add(x, relay.const(1.0)), (20, 10, 1))))

    x, p = var(10, 20), var(10, 20, name="p")
    got = run_opt_pass(relay.Function([x], body(x)), transform.FuseOps())
    fused = relay.Function([p], body(p)).with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    tvm.ir.assert_structural_equal(got, run_infer_type(relay.Function([x], fused(x))))
    same_results(relay.Function([x], body(x)), got)
    outside = run_opt_pass(relay.Function([x], body(x)), transform.FuseOps(views=False))
    assert outside.body.op.name == "squeeze"


def test_basic_blocks_with_typed_variables():
    c, x = var(name="c", dtype="bool"), var()
    z = relay.add(x, relay.const(1.0))
    got = run_opt_pass(
        relay.Function([c, x], relay.If(c, relay.multiply(z, z), relay.negative(z))), [transform.ToBasicBlockNormalForm(), transform.InferType()]
    )
    z = var(name="z")
    want = relay.Let(z, relay.add(x, relay.const(1.0)), relay.If(c, relay.multiply(z, z), relay.negative(z)))
    tvm.ir.assert_structural_equal(got, run_infer_type(relay.Function([c, x], want)))


def test_norms_keep_the_layout():
    x, w = relay.var("x", shape=(1, 8, 8, 4)), relay.var("w", shape=(3, 3, 4, 4))
    g, b = relay.var("g", shape=(4,)), relay.var("b", shape=(4,))
    moved = [relay.layout_transform(x, "NHWC", "NCHW"), relay.layout_transform(w, "HWIO", "OIHW")]
    for norm in (relay.nn.instance_norm, lambda *args, **kw: relay.nn.group_norm(*args, num_groups=2, **kw)):
        y = norm(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4, data_layout="NHWC", kernel_layout="HWIO"), g, b, axis=3)
        got = run_opt_pass(relay.Function([x, w, g, b], y), transform.ConvertLayout({"nn.conv2d": ["NCHW", "default"]}))
        want = relay.layout_transform(norm(relay.nn.conv2d(*moved, kernel_size=(3, 3), channels=4), g, b, axis=1), "NCHW", "NHWC")
        tvm.ir.assert_structural_equal(got, run_infer_type(relay.Function([x, w, g, b], want)))
