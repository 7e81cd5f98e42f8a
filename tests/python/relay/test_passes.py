# SPDX-License-Identifier: Apache-2.0
"""Each pass as programs of Relay 0.8 call it, a row a program: parameters and body, passes, the program that is expected or the operators left."""

import numpy as np
import pytest
from building import assert_same, calls, evaluated, function, kernels, names, optimized, parsed, program, typed, var, visited

import baton as tvm
from baton import relay
from baton.relay import transform as t
from baton.relay.dataflow_pattern import is_op, wildcard
from baton.relay.testing import TempOpAttr


def row(name, params, body, passes, want):
    """want: the body of the expected program, counts of operators by name, or a number of fused kernels."""
    return pytest.param(params, body, passes if isinstance(passes, list) else [passes], want, id=name)


def check(params, body, passes, want):
    got = optimized(program(params, body), *passes)
    if isinstance(want, str):
        assert_same(got, program(params, want))
    elif isinstance(want, int):
        assert len(kernels(got)) == want
    else:
        assert {name: names(got).count(name) for name in want} == want


CONV = "channels=16, kernel_size=[3, 3], padding=[1, 1, 1, 1]"
POOL = "nn.max_pool2d({}, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0])"
UP = "nn.upsampling({}, scale_h=2f64, scale_w=2f64)"
ON_CONV = "x[1,16,8,8] w[16,16,3,3] v[16,16,1,1]"
INCEPTION = f"add(nn.relu(nn.conv2d(%x, %w, {CONV})), nn.relu(nn.conv2d(%x, %v, {CONV})))"
FUSION = [
    row("elementwise", "x[10,20]", "squeeze(exp(add(%x, 1f)))", t.FuseOps(), "fn (%p: T[10,20], Primitive=1) { squeeze(exp(add(%p, 1f))) }(%x)"),
    row("a tuple at the root", "x[1,16,64,64]", f"({UP.format(POOL.format('%x'))}, %x)", t.FuseOps(2),
        f"(fn (%b: T[1,16,32,32], Primitive=1) {{ {UP.format('%b')} }}(fn (%a: T[1,16,64,64], Primitive=1) {{ {POOL.format('%a')} }}(%x)), %x)"),
    row("what is injective ends before a window", "x[1,16,64,64]", POOL.format("concatenate((%x, %x), axis=-1)"), t.FuseOps(2),
        f"fn (%r: T[1,16,64,128], Primitive=1) {{ {POOL.format('%r')} }}(fn (%q: T[1,16,64,64], Primitive=1) {{ concatenate((%q, %q), axis=-1) }}(%x))"),
    row("branches that meet", "x[10,20]", '%0 = add(%x, 1f); left_shift(cast(squeeze(%0), dtype="int32"), cast(transpose(%0, axes=[0, 1]), dtype="int32"))',
        t.FuseOps(2), 1),
    row("level 0 fuses nothing", "x[10,20]", '%0 = add(%x, 1f); left_shift(cast(squeeze(%0), dtype="int32"), cast(transpose(%0, axes=[0, 1]), dtype="int32"))',
        t.FuseOps(0), 6),
    row("two products and a gate", "x[1,8] w[8,8]", "multiply(sigmoid(nn.dense(%x, %w)), tanh(nn.dense(%x, %w)))", t.FuseOps(2), 2),
    row("two branches of convolutions", "x[1,16,8,8] w[16,16,3,3] v[16,16,3,3]", INCEPTION, t.FuseOps(2), 2),
    row("a convolution takes what follows", ON_CONV,
        f"%0 = nn.relu(add(nn.conv2d(%x, %w, {CONV}), 1f)); add(nn.conv2d(%0, %v, channels=16, kernel_size=[1, 1]), %0)", t.FuseOps(2), 2),
    row("four kernels of convolutions", "x[1,16,8,8] w[16,16,3,3] v[16,16,1,1] u[16,16,3,3]",
        f"%0 = nn.conv2d(add(%x, 1f), %w, {CONV}); %1 = add(%0, add(1f, %0)); "
        f"add(nn.conv2d(%1, %v, channels=16, kernel_size=[1, 1]), nn.conv2d(%1, %u, {CONV}))", t.FuseOps(2),
        f"%1 = fn (%p: T[1,16,8,8], %w: T[16,16,3,3], Primitive=1) {{ %0 = nn.conv2d(%p, %w, {CONV}); add(%0, add(1f, %0)) }}"
        "(fn (%q: T[1,16,8,8], Primitive=1) { add(%q, 1f) }(%x), %w); "
        "fn (%p: T[1,16,8,8], %w: T[16,16,1,1], %q: T[1,16,8,8], Primitive=1) { add(nn.conv2d(%p, %w, channels=16, kernel_size=[1, 1]), %q) }"
        f"(%1, %v, fn (%p: T[1,16,8,8], %w: T[16,16,3,3], Primitive=1) {{ nn.conv2d(%p, %w, {CONV}) }}(%1, %u))"),
    row("stop_fusion", "x[10]", "log(annotation.stop_fusion(exp(add(%x, 1f))))", t.FuseOps(), 2),
    row("softmax", "x[2,4]", "nn.softmax(%x)", t.FuseOps(2), 1),
    row("take and squeeze", "x[10,1] i[2,3]:int32", "squeeze(take(%x, %i, axis=0))", t.FuseOps(), 1),
    row("a reduction and what follows", "x[10,20]", "sqrt(sum(exp(%x), axis=[1]))", t.FuseOps(), 2),
    row("back from fusion", "x[10,20]", "negative(exp(add(%x, 1f)))", [t.FuseOps(), t.DefuseOps()], "negative(exp(add(%x, 1f)))"),
]  # fmt: skip


@pytest.mark.parametrize("params, body, passes, want", FUSION)
def test_fusion(params, body, passes, want):
    check(params, body, passes, want)


@pytest.mark.parametrize("value, params", [(relay.const(1.0), 1), (relay.const(np.ones(3, "float32")), 2)], ids=["scalar", "array"])
def test_constants_of_a_kernel(value, params):
    """A scalar is part of the kernel, an array is an argument of it."""
    assert len(kernels(optimized(function(relay.exp(relay.add(var(3), value))), t.FuseOps(2)))[0].params) == params


@pytest.mark.parametrize("depth, count, want", [(4, 10, 3), (5, 20, 4)])
def test_most_operators_of_a_kernel(depth, count, want):
    with tvm.transform.PassContext(config={"relay.FuseOps.max_depth": depth}):
        assert len(kernels(optimized(program("x[4]", "exp(" * count + "%x" + ")" * count), t.FuseOps(2)))) == want


IF = "if (less(%x, 1f)) { add(%0, 1f) } else { multiply(%0, 1f) }"
CSE = "add(add(nn.relu(%x), 1f), add(nn.relu(%x), 1f))"
FORMS = [
    row("ANF", "", "add(1, 1)", t.ToANormalForm(), "let %a = add(1, 1); %a"),
    row("ANF, the order of evaluation", "x[] y[] z[]", "add(%x, multiply(%y, %z))", t.ToANormalForm(), "let %a = multiply(%y, %z); let %b = add(%x, %a); %b"),
    row("ANF of a branch", "", "if (True) { 2 } else { 3 }", t.ToANormalForm(), "let %r = if (True) { 2 } else { 3 }; %r"),
    row("graph normal form", "x[]", "let %t = add(%x, %x); multiply(%t, %t)", t.ToGraphNormalForm(), "%0 = add(%x, %x); multiply(%0, %0)"),
    row("there and back", "", "%0 = add(1, 1); %1 = add(%0, %0); add(%1, %1)", [t.ToANormalForm(), t.ToGraphNormalForm()],
        "%0 = add(1, 1); %1 = add(%0, %0); add(%1, %1)"),
    row("basic blocks of a straight program", "x[2]", "exp(%x)", t.ToBasicBlockNormalForm(), "exp(%x)"),
    row("basic blocks of a branch", "x[]", "%0 = add(%x, 2f); " + IF, t.ToBasicBlockNormalForm(),
        "let %v = add(%x, 2f); if (less(%x, 1f)) { add(%v, 1f) } else { multiply(%v, 1f) }"),
    row("a value that is unused", "a[] ", "let %x = add(%a, %a); let %y = multiply(%x, %a); %x", t.DeadCodeElimination(), "let %x = add(%a, %a); %x"),
    row("a value of one use", "a[]", "let %x = add(%a, %a); let %y = multiply(%x, %a); %x", t.DeadCodeElimination(inline_once=True), "add(%a, %a)"),
    row("a value of two uses", "a[]", "let %v = exp(%a); add(%v, %v)", t.DeadCodeElimination(), "let %v = exp(%a); add(%v, %v)"),
    row("a variable of two uses", "a[2]", "let %v = %a; add(%v, %v)", t.DeadCodeElimination(inline_once=True), "let %v = %a; add(%v, %v)"),
    row("constants that are unused", "", "let %x = 1f; let %y = 2f; %y", t.DeadCodeElimination(inline_once=True), "2f"),
    row("nothing but the argument", "x[2]", "let %y = exp(%x); %x", t.DeadCodeElimination(), "%x"),
    row("evaluated in part: a branch", "", "if (True) { add(1, 2) } else { 3 }", [t.PartialEvaluate(), t.DeadCodeElimination(inline_once=True)], "3"),
    row("evaluated in part: a reference", "d[]", "let %r = ref(%d); let %x = ref_read(%r); multiply(%x, %d)",
        [t.PartialEvaluate(), t.DeadCodeElimination(inline_once=True)], "multiply(%d, %d)"),
    row("evaluated in part: a function", "y[3]", "fn <A>(%x: A) -> A { %x }(%y)", [t.PartialEvaluate(), t.DeadCodeElimination(inline_once=True)], "%y"),
    row("evaluated in part: a field", "x[2]", "(4f, %x).1", [t.PartialEvaluate(), t.DeadCodeElimination(inline_once=True)], "%x"),
    row("evaluated in part: a call of constants", "", "fn (%d: T[]) { add(%d, 1f) }(2f)", [t.PartialEvaluate(), t.DeadCodeElimination(inline_once=True)], "3f"),
    row("common subexpressions", "x[1,16]", CSE, t.EliminateCommonSubexpr(), "%0 = add(nn.relu(%x), 1f); add(%0, %0)"),
    row("common subexpressions but some", "x[1,16]", CSE, t.EliminateCommonSubexpr(lambda e: isinstance(e, relay.Call) and e.op.name == "add"),
        "%0 = nn.relu(%x); add(add(%0, 1f), add(%0, 1f))"),
    row("common fields of a tuple", "x[1,16]", "(exp(%x), exp(%x))", t.EliminateCommonSubexpr(), "%0 = exp(%x); (%0, %0)"),
]  # fmt: skip


@pytest.mark.parametrize("params, body, passes, want", FORMS)
def test_forms(params, body, passes, want):
    check(params, body, passes, want)


def test_a_branch_is_no_basic_block():
    branch = program("x[]", "%0 = add(%x, 2f); " + IF)
    with pytest.raises(tvm.TVMError):
        relay.analysis.check_basic_block_normal_form(branch)
    assert relay.analysis.check_basic_block_normal_form(optimized(branch, t.ToBasicBlockNormalForm()))


FOLDED = "x[1,2,3]"
S, P = t.SimplifyExpr(), t.DynamicToStatic()
SIMPLER = [
    row("constants", FOLDED, "add(add(%x, multiply(add(2f, 2f), 2f)), 3f)", t.FoldConstant(), "add(add(%x, 8f), 3f)"),
    row("ndarray_size", "x[2,3]", 'ndarray_size(%x, dtype="int32")', t.FoldConstant(), "6"),
    row("reshape twice", "x[2,3]", "reshape(reshape(%x, newshape=[3, 2]), newshape=[6])", S, "reshape(%x, newshape=[6])"),
    row("reshape through another rank", "x[1,16,4]", "reshape(reshape(%x, newshape=[1, 64]), newshape=[16, 4])", S, "reshape(%x, newshape=[16, 4])"),
    row("transpose and back", "x[1,2,3,4]", "transpose(transpose(%x, axes=[0, 2, 3, 1]), axes=[0, 3, 1, 2])", S, "%x"),
    row("transpose twice", "x[1,16,4]", "transpose(transpose(%x, axes=[0, 2, 1]), axes=[0, 2, 1])", S, "%x"),
    row("transpose of a layout", "x[1,3,4,4]", 'transpose(layout_transform(%x, src_layout="NCHW", dst_layout="NHWC"), axes=[0, 3, 1, 2])', S, "%x"),
    row("cast to the same", "x[2,3]", 'cast(cast(%x, dtype="float32"), dtype="float32")', S, "%x"),
    row("cast_like", "x[2,3] q[2]:int8", "cast_like(%x, %q)", S, 'cast(%x, dtype="int8")'),
    row("full_like", "x[2,3]", "full_like(%x, 3f)", S, 'full(3f, shape=[2, 3], dtype="float32")'),
    row("ones times x", "x[2,3]", 'multiply(ones(shape=[2, 3], dtype="float32"), %x)', S, "%x"),
    row("x times ones_like", "x[1,16,4]", "multiply(%x, ones_like(%x))", S, "%x"),
    row("x plus zeros", "x[2,3]", 'add(%x, zeros(shape=[2, 3], dtype="float32"))', S, "%x"),
    row("x plus full", "x[2,3]", 'add(%x, full(3f, shape=[2, 3], dtype="float32"))', S, "add(%x, 3f)"),
    row("1 / sqrt(x)", "x[4]", "divide(1f, sqrt(%x))", S, "rsqrt(%x)"),
    row("bias_add", "x[1,8,4,4] b[8]", "nn.bias_add(%x, %b)", t.CanonicalizeOps(), "add(%x, expand_dims(%b, axis=1, num_newaxis=2))"),
    row("a cast of two uses", "x[1,16,8,8]:int8 b[16,1,1]:int32", '%0 = cast(%x, dtype="int32"); (add(%0, %b), multiply(%0, %b))', t.CanonicalizeCast(),
        '(add(cast(%x, dtype="int32"), %b), multiply(cast(%x, dtype="int32"), %b))'),
    row("padding joins a convolution", "x[1,3,8,8] w[4,3,3,3]",
        "nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), %w, channels=4, kernel_size=[3, 3])", t.FoldExplicitPadding(),
        "nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3])"),
    row("dropout is dropped", "x[2,2]", "nn.dropout(%x).0", t.SimplifyInference(), "%x"),
    row("fast functions", "x[2,2]", "erf(exp(tanh(%x)))", t.FastMath(), "fast_erf(fast_exp(fast_tanh(%x)))"),
    row("fast softmax", "x[2,2]", "nn.softmax(%x)", t.FastMath(), "nn.fast_softmax(%x)"),
    row("parallel convolutions", "x[1,4,8,8] w[6,4,1,1] v[10,4,1,1]",
        "(nn.conv2d(%x, %w, channels=6, kernel_size=[1, 1]), nn.conv2d(%x, %v, channels=10, kernel_size=[1, 1]))", t.CombineParallelConv2D(2),
        {"nn.conv2d": 1, "strided_slice": 2}),
    row("parallel products of one size", "x[4,8] a[6,8] b[6,8] c[6,8]", "(nn.dense(%x, %a), nn.dense(%x, %b), nn.dense(%x, %c))", t.CombineParallelDense(2),
        {"nn.batch_matmul": 1, "nn.dense": 0}),
    row("parallel products of any size", "x[4,8] a[6,8] b[3,8]", "(nn.dense(%x, %a), nn.dense(%x, %b))", t.CombineParallelDense(2, False), {"nn.dense": 1}),
    row("parallel products of batches", "x[2,4,8] a[2,5,8] b[2,3,8]", "(nn.batch_matmul(%x, %a), nn.batch_matmul(%x, %b))", t.CombineParallelBatchMatmul(2),
        {"nn.batch_matmul": 1}),
    row("a shape that is known", "x[2,3] y[3,2]", 'dyn.reshape(%x, shape_of(%y, dtype="int64"))', P, "reshape(%x, newshape=[3, 2])"),
    row("few arguments a kernel", " ".join(f"x{i}[2]" for i in range(20)), "concatenate((" + ", ".join(f"%x{i}" for i in range(20)) + "))", t.SplitArgs(5),
        {"concatenate": 5}),
]  # fmt: skip


@pytest.mark.parametrize("params, body, passes, want", SIMPLER)
def test_simpler(params, body, passes, want):
    check(params, body, passes, want)


def test_fold_constant():
    values = np.array([1, 2, 3], "float32")
    x, c = var(1, 2, 3), relay.const(values)
    sum_of = relay.add(relay.add(x, relay.multiply(relay.add(c, c), relay.const(2.0))), c)
    assert_same(optimized(relay.Function([x], sum_of), t.FoldConstant()), relay.Function([x], relay.add(relay.add(x, relay.const(values * 4)), c)))


FOLDED = {
    "shape_of": (lambda x: relay.shape_of(x + x, "int32"), [1, 2, 3]),
    "concatenate of lists": (lambda x: relay.concatenate([relay.const([1, 2]), relay.const([3])], 0), [1, 2, 3]),
    "ndarray_size": (relay.ndarray_size, 6),
    "a field of a tuple": (lambda x: relay.Tuple([relay.concatenate([relay.const([[1, 1]]), relay.const([[2, 2]])], 0), x]), [[1, 1], [2, 2]]),
    "a norm": (
        lambda x: relay.nn.batch_norm(relay.const(np.ones((2, 2), "float32")), *[relay.const(np.ones(2, "float32"))] * 4, epsilon=0)[0],
        [[1, 1], [1, 1]],
    ),
}


@pytest.mark.parametrize("make, want", FOLDED.values(), ids=FOLDED)
def test_folded_value(make, want):
    x = var(1, 2, 3)
    body = optimized(relay.Function([x], make(x)), t.SimplifyInference(), t.FoldConstant()).body
    body = body.fields[0] if isinstance(body, relay.Tuple) else body
    assert isinstance(body, relay.Constant)
    np.testing.assert_allclose(body.data.numpy(), want)


def known(value):
    """A constant that an expression gives: operators keep it as an argument."""
    c = relay.const(value)
    return relay.add(c, relay.const(np.zeros_like(c.data.numpy())))


STATIC = {
    "tile": lambda x: relay.tile(x, known(np.array([2, 2]))),
    "broadcast_to": lambda x: relay.broadcast_to(x, known(np.array([4, 2, 3]))),
    "full": lambda x: relay.full(relay.const(1.0), known(np.array([2]))),
    "zeros": lambda x: relay.zeros(known(np.array([2])), "float32"),
    "one_hot": lambda x: relay.one_hot(relay.cast(x, "int32"), relay.const(1.0), relay.const(0.0), known(4), -1, "float32"),
    "strided_slice": lambda x: relay.strided_slice(x, known(np.array([0, 0])), known(np.array([1, 2]))),
    "resize2d": lambda x: relay.image.resize2d(relay.reshape(x, (1, 1, 2, 3)), known(np.array([8, 8]))),
    "pad": lambda x: relay.nn.pad(x, known(np.array([[1, 1], [0, 0]]))),
    "upsampling": lambda x: relay.nn.upsampling(relay.reshape(x, (1, 1, 2, 3)), known(2.0), known(2.0)),
    "topk": lambda x: relay.topk(x, known(2), ret_type="values"),
}


@pytest.mark.parametrize("make", STATIC.values(), ids=STATIC)
def test_attributes_that_are_constants(make):
    before = function(make(var(2, 3)))
    after = optimized(before, t.DynamicToStatic())
    assert any(n.startswith("dyn.") for n in names(before)) and not any(n.startswith("dyn.") for n in names(after))
    args = [np.arange(6, dtype="float32").reshape(2, 3)] * len(before.params)
    np.testing.assert_array_equal(evaluated(after, *args), evaluated(before, *args))


def test_simplify_inference():
    x, (beta, gamma, mean, variance) = var(10, 10, 10, 10), (var(10, name=n) for n in ("beta", "gamma", "mean", "var"))
    before = after = x
    for _ in range(2):
        one = relay.const(1, "float32")
        before = relay.nn.dropout(relay.nn.batch_norm(before + one, gamma, beta, mean, variance, epsilon=0.01)[0])
        scale = relay.multiply(one / relay.sqrt(variance + relay.const(0.01, "float32")), gamma)
        shift = relay.add(relay.multiply(relay.negative(mean), scale), beta)
        scale, shift = (relay.expand_dims(v, axis=1, num_newaxis=2) for v in (scale, shift))
        after = (after + one) * scale + shift
    assert_same(optimized(before, t.SimplifyInference()), after)


def test_a_network_after_the_usual_passes():
    mod, _ = relay.testing.resnet.get_workload(num_layers=18, image_shape=(3, 32, 32))
    with tvm.transform.PassContext(opt_level=3):
        mod = tvm.transform.Sequential([t.SimplifyInference(), t.FoldScaleAxis(), t.FoldConstant(), t.FuseOps()])(mod)
    assert "nn.batch_norm" not in mod.astext(False) and len(kernels(mod["main"])) > 10


@pytest.mark.parametrize("required", [["FastMath"], []], ids=["required", "not required"])
def test_fast_math_of_a_pipeline(required):
    with tvm.transform.PassContext(opt_level=3, required_pass=required):
        text = relay.optimize(tvm.IRModule.from_expr(program("x[1,16]", "exp(%x)")), target="llvm")[0].astext()
    assert ("fast_exp" in text) == bool(required)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_fold_scale_axis(layout):
    scale = relay.const(np.arange(1, 5, dtype="float32").reshape((4,) if layout == "NHWC" else (4, 1, 1)))
    if layout == "NHWC":  # A factor of the input goes into the weights.
        x, w = var(2, 10, 10, 4), var(3, 3, 4, 8, name="w")
        y = relay.nn.conv2d(x * scale, w, channels=8, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO", padding=(1, 1))
        got = optimized(relay.Function([x, w], y), t.ForwardFoldScaleAxis())
        assert names(got).count("multiply") == 1 and got.body.args[0] == got.params[0]
    else:  # A factor of the output does too.
        x, w = var(2, 4, 10, 10), var(4, 4, 3, 3, name="w")
        y = relay.nn.relu(relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3), padding=(1, 1))) * scale
        got = optimized(relay.Function([x, w], y), t.BackwardFoldScaleAxis())
        assert got.body.op.name == "nn.relu" and calls(got, "multiply")[0].args[0] == got.params[1]


# ---- Layouts


def conv_relu(layout="NCHW", then=lambda y: y):
    nchw = layout == "NCHW"
    x, w = (var(1, 16, 8, 8), var(16, 16, 3, 3, name="w")) if nchw else (var(1, 8, 8, 16), var(3, 3, 16, 16, name="w"))
    y = relay.nn.conv2d(x, w, channels=16, kernel_size=(3, 3), padding=(1, 1), data_layout=layout, kernel_layout="OIHW" if nchw else "HWIO")
    return function(then(relay.nn.relu(y)))


def turned(x, source, target):
    return relay.layout_transform(x, source, target)


def test_convert_layout():
    for wanted in (["NCHW", "default"], ["NCHW", "OIHW"]):
        x, w = var(1, 8, 8, 16), var(3, 3, 16, 16, name="w")
        y = relay.nn.relu(relay.nn.conv2d(turned(x, "NHWC", "NCHW"), turned(w, "HWIO", "OIHW"), channels=16, kernel_size=(3, 3), padding=(1, 1)))
        assert_same(optimized(conv_relu("NHWC"), t.ConvertLayout({"nn.conv2d": wanted})), relay.Function([x, w], turned(y, "NCHW", "NHWC")))
    relu = function(relay.nn.relu(var(1, 64, 56, 56)))
    assert_same(optimized(relu, t.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})), relu)
    with pytest.raises((TypeError, ValueError, tvm.TVMError)):
        t.ConvertLayout("NCHW")(tvm.IRModule.from_expr(relu))


def test_convert_layout_up_to_the_end_of_a_model():
    def rest(y):
        y = relay.nn.max_pool2d(relay.nn.bias_add(y, var(16, name="b"), axis=3), pool_size=(2, 2), layout="NHWC")
        return relay.nn.batch_flatten(relay.cast(y, "int32"))

    got = optimized(conv_relu("NHWC", rest), t.ConvertLayout({"nn.conv2d": ["NCHW", "default"], "nn.max_pool2d": ["NCHW"]}))
    assert names(got).count("layout_transform") == 3 and str(calls(got, "nn.max_pool2d")[0].attrs.layout) == "NCHW"


def test_convert_layout_of_a_concatenation():
    x, w, v = var(1, 16, 8, 8), var(16, 16, 3, 3, name="w"), var(16, 16, 3, 3, name="v")
    both = [relay.nn.conv2d(x, k, channels=16, kernel_size=(3, 3), padding=(1, 1)) for k in (w, v)]
    got = optimized(function(relay.concatenate(both, axis=1)), t.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}))
    assert calls(got, "concatenate")[0].attrs.axis == 3 and names(got).count("layout_transform") == 4


def test_convert_layout_of_integers():
    x, w, zero, one = var(1, 8, 8, 16, dtype="int8"), var(3, 3, 16, 16, dtype="int8", name="w"), relay.const(1), relay.const(1.0)
    form = {"channels": 16, "kernel_size": (3, 3), "padding": (1, 1), "data_layout": "NHWC", "kernel_layout": "HWIO"}
    got = optimized(function(relay.qnn.op.conv2d(x, w, zero, zero, one, one, **form)), t.ConvertLayout({"qnn.conv2d": ["NCHW", "default"]}))
    assert str(calls(got, "qnn.conv2d")[0].attrs.data_layout) == "NCHW"


def test_alter_op_layout():
    seen = []

    def blocks(attrs, inputs, tinfos, out_type):
        seen.append((int(tinfos[0].shape[1]), out_type.shape[1]))
        return relay.nn.conv2d(*inputs, **{**dict(attrs), "data_layout": "NCHW16c"})

    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", blocks):
        found = optimized(conv_relu(), t.AlterOpLayout())
    x, w = var(1, 16, 8, 8), var(16, 16, 3, 3, name="w")
    y = relay.nn.conv2d(turned(x, "NCHW", "NCHW16c"), w, channels=16, kernel_size=(3, 3), padding=(1, 1), data_layout="NCHW16c")
    assert_same(found, relay.Function([x, w], turned(relay.nn.relu(y), "NCHW16c", "NCHW")))
    assert seen == [(16, 16)]


def test_alter_op_layout_up_to_the_end_of_a_model():
    def doubled(attrs, inputs, tinfos, out_type):
        return relay.nn.conv2d(inputs[0], relay.multiply(inputs[1], relay.const(2.0)), **{**dict(attrs), "data_layout": "NCHW16c"})

    def rest(y):
        y = relay.nn.max_pool2d(relay.nn.bias_add(y, var(16, name="b")), pool_size=(2, 2))
        return relay.nn.batch_flatten(relay.cast(y, "int32"))

    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", doubled):
        got = optimized(conv_relu(then=rest), t.CanonicalizeOps(), t.AlterOpLayout())
    assert names(got).count("layout_transform") <= 3 and calls(got, "nn.max_pool2d")[0].attrs.layout == "NCHW16c"


@pytest.mark.parametrize("name, make", [("nn.conv2d", lambda x: conv_relu().body), ("nn.global_max_pool2d", relay.nn.global_max_pool2d)])
def test_alter_op_layout_that_declines(name, make):
    asked = []
    program_of = function(make(var(1, 16, 8, 8)))
    with TempOpAttr(name, "FTVMAlterOpLayout", lambda attrs, inputs, tinfos, out_type: asked.append(attrs)):
        assert_same(optimized(program_of, t.AlterOpLayout()), program_of)
    assert len(asked) == 1


def test_legalize():
    def twice(attrs, inputs, types):
        assert types[-1] == relay.TensorType((1, 16, 8, 8)) and attrs.out_dtype in ("same", "")
        return relay.nn.conv2d(inputs[0], relay.multiply(inputs[1], relay.const(2.0)), **attrs)

    with TempOpAttr("nn.conv2d", "FTVMLegalize", twice):
        found = optimized(conv_relu(), t.Legalize())
    x, w = var(1, 16, 8, 8), var(16, 16, 3, 3, name="w")
    y = relay.nn.conv2d(x, relay.multiply(w, relay.const(2.0)), channels=16, kernel_size=(3, 3), padding=(1, 1))
    assert_same(found, relay.Function([x, w], relay.nn.relu(y)))


@pytest.mark.parametrize("key", ["FTVMLegalize", "FTVMFoo"])
def test_legalize_by_a_key(key):
    before = relay.op.get("exp").get_attr(key)
    with TempOpAttr("exp", key, lambda attrs, inputs, types: relay.nn.relu(inputs[0])):
        assert relay.op.get("exp").get_attr(key) is not None
        assert names(optimized(program("x[2]", "exp(%x)"), t.Legalize(key))) == ["nn.relu"]
    assert relay.op.get("exp").get_attr(key) == before


# ---- Numbers


def test_mixed_precision():
    got = optimized(program("x[2,4] w[4,4]", "nn.softmax(nn.dense(%x, %w))"), t.ToMixedPrecision("float16"), t.InferType())
    (dense,), (softmax,) = calls(got, "nn.dense"), calls(got, "nn.softmax")
    assert {a.checked_type.dtype for a in dense.args} == {"float16"} and softmax.args[0].checked_type.dtype in ("float16", "float32")
    conv = optimized(program("x[1,3,16,16] w[3,3,3,3]", 'nn.conv2d(%x, %w, padding=[1, 1, 1, 1], out_dtype="float32")'), t.ToMixedPrecision("float16"))
    assert names(conv).count("cast") >= 2 and {a.checked_type.dtype for a in calls(typed(conv), "nn.conv2d")[0].args} == {"float16"}
    mod = tvm.IRModule.from_expr(program("x[2,4] w[4,4]", "nn.dense(%x, %w)"))
    assert tvm.ir.structural_equal(t.ToMixedPrecision()(mod), t.ToMixedPrecision("float16", 1)(mod))
    assert "cast" in names(t.ToMixedPrecision("float16", missing_op_mode=0)(mod)["main"])


def test_mixed_precision_of_a_recurrent_network():
    mod, _ = relay.testing.lstm.get_workload(2, 8)
    got = t.InferType()(t.ToMixedPrecision("float16")(t.InferType()(mod)))["main"]
    assert {c.args[0].checked_type.dtype for c in calls(got, "nn.dense")} == {"float16"} and got.ret_type == t.InferType()(mod)["main"].ret_type


def dequantized(x, scale=2.0):
    return relay.qnn.op.dequantize(x, relay.const(scale), relay.const(0))


BINARY = [relay.add, relay.multiply, relay.subtract, relay.minimum, relay.maximum]


@pytest.mark.parametrize("op", BINARY, ids=lambda f: f.__name__)
def test_integers_instead_of_dequantized_numbers(op):
    x, y = (var(1, 3, 4, 4, dtype="int8", name=n) for n in "xy")
    body = relay.qnn.op.quantize(op(dequantized(x), dequantized(y, 0.5)), relay.const(20.0), relay.const(0), out_dtype="int8")
    got = optimized(function(body), t.FakeQuantizationToInteger())
    assert "qnn.dequantize" not in names(got) and got.ret_type.dtype == "int8"


def test_a_convolution_of_integers():
    x, w = var(1, 3, 8, 8, dtype="int8"), var(4, 3, 2, 2, dtype="int8", name="w")
    body = relay.qnn.op.quantize(
        relay.nn.conv2d(dequantized(x), dequantized(w, 0.5), kernel_size=[2, 2], channels=4), relay.const(1.0), relay.const(0), out_dtype="int8"
    )
    found = names(optimized(function(body), t.FakeQuantizationToInteger()))
    assert "qnn.conv2d" in found and "qnn.dequantize" not in found


# ---- Derivatives: a program, its arguments, what is the derivative by each


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


V = np.array([0.5, 1, 2], "float32")
GRADIENTS = {
    "exp": ("x[3]", "exp(%x)", [V], [np.exp(V)]),
    "tanh": ("x[3]", "tanh(%x)", [V], [1 - np.tanh(V) ** 2]),
    "sigmoid": ("x[3]", "sigmoid(%x)", [V], [sigmoid(V) * (1 - sigmoid(V))]),
    "log": ("x[3]", "log(%x)", [V], [1 / V]),
    "sqrt": ("x[3]", "sqrt(%x)", [V], [0.5 / np.sqrt(V)]),
    "a square": ("x[3]", "multiply(%x, %x)", [V], [2 * V]),
    "a sum of squares": ("x[3]", "sum(multiply(%x, %x))", [V], [2 * V]),
    "the argument": ("x[3]", "%x", [V], [V * 0 + 1]),
    "x + x": ("x[3]", "add(%x, %x)", [V], [V * 0 + 2]),
    "broadcast": ("x[1,4] y[3,1]", "add(%x, %y)", [np.ones((1, 4), "float32"), np.ones((3, 1), "float32")], [np.full((1, 4), 3), np.full((3, 1), 4)]),
    "a checkpoint": ("x[3]", "sum(annotation.checkpoint(exp(%x)))", [V], [np.exp(V)]),
    "a branch that is taken": ("c[]:bool x[3]", "if (%c) { multiply(%x, %x) } else { %x }", [np.array(True), V], [0, 2 * V]),
    "a branch that is not": ("c[]:bool x[3]", "if (%c) { %x } else { multiply(%x, %x) }", [np.array(False), V], [0, 2 * V]),
}


# Of first order are programs without branches.
ORDERS = [pytest.param(*row, mode, id=f"{name}, {mode}") for name, row in GRADIENTS.items()
          for mode in ("first_order", "higher_order") if mode == "higher_order" or "if" not in row[1]]  # fmt: skip


@pytest.mark.parametrize("params, body, args, want, mode", ORDERS)
def test_gradient(params, body, args, want, mode):
    func = typed(program(params, body))
    derived = typed(t.gradient(func, mode=mode))
    assert derived.ret_type == relay.TupleType([func.ret_type, relay.TupleType([p.checked_type for p in func.params])])
    for form in (derived, t.LazyGradientInit()(tvm.IRModule.from_expr(derived))):
        for got, right in zip(evaluated(form, *args)[1], want, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-4)


def test_gradient_as_a_pass():
    func = typed(program("x[3]", "multiply(%x, %x)"))
    mod = t.InferType()(t.FirstOrderGradient()(tvm.IRModule.from_expr(func)))
    tvm.ir.assert_structural_equal(mod["main"], typed(t.gradient(func, mode="first_order")))


def test_gradient_through_a_function_of_the_module():
    mod = t.InferType()(parsed("def @sq(%x: T[2]) -> T[2] { multiply(%x, %x) } def @main(%y: T[2]) -> T[2] { @sq(@sq(%y)) }"))
    mod["main"] = t.gradient(mod["main"], mod)
    assert evaluated(mod, np.array([1, 2], "float32"))[1][0].tolist() == [4, 32]


def test_lazy_gradient_of_a_program_without_gradients():
    mod = t.LazyGradientInit()(t.InferType()(tvm.IRModule.from_expr(program("x[2] y[2]", "add(%x, %y)"))))
    assert evaluated(mod, np.ones(2, "float32"), np.ones(2, "float32")).tolist() == [2, 2]


def test_a_derivative_is_evaluated_in_part():
    derived = t.gradient(typed(program("x[]", "multiply(%x, %x)")))
    plain = optimized(derived, t.PartialEvaluate(), t.DeadCodeElimination(inline_once=True))
    assert evaluated(plain, np.float32(3))[1][0] == 6


# ---- Modules: text, passes, functions that are left, an argument and its result

RECURSIVE = "def @f(%n: int32, %d: float32) -> float32 { if (%n == 0) { %d } else { @f(%n - 1, log(%d)) } } def @main() -> float32 { @f(2, 10000f) }"
AUX = "def @aux(%x: int32) -> int32 { %x + 1 } def @main() -> fn (int32) -> int32 { @aux }"
MODULES = {
    "a global function by its parameters": (AUX, [t.EtaExpand(expand_global_var=True)], ["aux", "main"], None),
    "a global function in a let": ("def @aux(%x: int32) -> int32 { %x + 1 } def @main(%a: int32) { let %f = @aux; %f(%a) }",
                                   [t.EtaExpand(expand_global_var=True)], ["aux", "main"], ([3], 4)),
    "a closure becomes a function": ("def @main(%x: int32) -> int32 { let %f = fn (%y: int32) -> int32 { %y + %x }; %f(%x) }", [t.LambdaLift()], 2, ([3], 6)),
    "inlined": ("def @a(%x: T[2], Inline=1) -> T[2] { exp(%x) } def @main(%x: T[2]) -> T[2] { log(@a(%x)) }", [t.Inline()], ["main"],
                ([np.ones(2, "float32")], [1, 1])),
    "unused": ("def @dead(%x: int32) -> int32 { %x } def @main(%x: int32) -> int32 { %x }", [t.RemoveUnusedFunctions()], ["main"], ([3], 3)),
    "unused, that is kept": ("def @dead(%x: int32) -> int32 { %x } def @main(%x: int32) -> int32 { %x }", [t.RemoveUnusedFunctions(["main", "dead"])],
                             ["dead", "main"], ([3], 3)),
    "used by another entry": ("def @a(%x: int32) -> int32 { %x } def @b(%x: int32) -> int32 { %x } def @main(%x: int32) -> int32 { @a(%x) }",
                              [t.RemoveUnusedFunctions(["b"])], ["b"], None),
    "unused, of each other": ("def @a(%x: int32) -> int32 { @b(%x) } def @b(%x: int32) -> int32 { @a(%x) } def @main(%x: int32) -> int32 { %x }",
                              [t.RemoveUnusedFunctions()], ["main"], ([3], 3)),
    "recursion has no dead code": (RECURSIVE, [t.DeadCodeElimination()], ["f", "main"], ([], np.log(np.log(np.float32(10000))))),
    "recursion is evaluated in part": (RECURSIVE, [t.PartialEvaluate()], 2, ([], np.log(np.log(np.float32(10000))))),
}  # fmt: skip


@pytest.mark.parametrize("text, passes, left, value", MODULES.values(), ids=MODULES)
def test_functions_of_a_module(text, passes, left, value):
    mod = t.InferType()(parsed(text))
    for one in passes:
        mod = one(mod)
    found = sorted(v.name_hint for v in mod.get_global_vars())
    assert found == left if isinstance(left, list) else len(found) == left
    if value:
        np.testing.assert_allclose(evaluated(mod, *value[0]), value[1], rtol=1e-6)
    else:
        assert isinstance(mod[left[-1]], relay.Function) and isinstance(mod[left[-1]].body, (relay.Function, relay.Var))


def test_eta_expand_of_constructors():
    mod = tvm.IRModule()
    mod.import_from_std("prelude.rly")
    _, cons, _ = mod.get_type("List")
    mod["main"] = relay.Function([], cons)
    main = t.EtaExpand(expand_constructor=True)(mod)["main"].body
    assert isinstance(main, relay.Function) and main.body.op == cons and main.ret_type == mod.get_global_type_var("List")(main.type_params[0])


@pytest.mark.parametrize("arg", ["%x", "abs(%x)"])
def test_inline_keeps_what_had_no_call(arg):
    text = "def @g(%x: T[2], Inline=1) { log(%x) } def @unused(%x: T[2], Inline=1) { exp(%x) } def @main(%x: T[2]) { @g(ARG) }"
    mod = t.Inline()(t.InferType()(parsed(text.replace("ARG", arg))))
    assert [v.name_hint for v in mod.get_global_vars()] == ["unused", "main"]
    assert evaluated(mod, np.ones(2, "float32")).tolist() == [0, 0]


def test_change_of_the_batch():
    mod, _ = relay.testing.mlp.get_workload(1)
    data = mod["main"].params[0]
    param = t.InferType()(t.ChangeBatch({data: 0}, 4)(mod))["main"].params[0]
    assert [int(d) for d in param.checked_type.shape] == [4, 1, 28, 28]


def test_expressions_in_normal_form():
    made = t.ToANormalFormExpr(relay.add(relay.const(1), relay.const(2)))
    assert isinstance(made, relay.Let) and evaluated(made) == 3


def test_spans_of_annotated_text():
    body = t.AnnotateSpans()(parsed("def @main(%x: T[2]) { exp(%x) }"))["main"].body
    assert body.op.name == "exp" and body.span.line >= 1


# ---- Functions for other compilers


def test_merge_composite():
    x, w, b = var(4, 4), var(4, 4, name="w"), var(4, name="b")
    dense = is_op("nn.dense")(wildcard(), wildcard())
    bias = is_op("nn.bias_add")(dense, wildcard())
    whole = is_op("nn.relu")(is_op("nn.bias_add")(is_op("nn.dense")(wildcard(), wildcard()), wildcard()))
    func = relay.Function([x, w, b], relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, w), b)))

    def composites(*table):
        return [
            (f.attrs["Composite"], f.attrs["PartitionedFromPattern"], len(f.params))
            for f in visited(optimized(func, t.MergeComposite(list(table))).body, relay.Function)
        ]

    def checked(e):
        return e.op.name == "nn.bias_add" and e.args[0].op.name == "nn.dense"

    assert composites(("all", whole), ("two", bias)) == [("all", "nn.dense_nn.bias_add_nn.relu_", 3)]
    assert composites(("two", bias, checked)) == [("two", "nn.dense_nn.bias_add_", 3)]
    assert composites(("two", bias, lambda e: False)) == []


def test_partition_graph():
    begin, end = relay.annotation.compiler_begin, relay.annotation.compiler_end
    x, y = var(10, 10), var(10, 10, name="y")
    body = end(relay.add(begin(x, "ccompiler"), begin(y, "ccompiler")), "ccompiler")
    assert body.args[0].args[0].attrs.compiler == "ccompiler" and body.op.name == "annotation.compiler_end"
    mod = t.InferType()(tvm.IRModule.from_expr(relay.Function([x, y], body)))
    for options, name in (({}, "tvmgen_default_ccompiler_main_0"), ({"mod_name": "net"}, "tvmgen_net_ccompiler_main_0")):
        split = t.PartitionGraph(**options)(mod)
        assert sorted(v.name_hint for v in split.get_global_vars()) == ["main", name]
        assert {k: split[name].attrs[k] for k in ("Compiler", "global_symbol", "Primitive", "Inline")} == {
            "Compiler": "ccompiler", "global_symbol": name, "Primitive": 1, "Inline": 1}  # fmt: skip


def test_annotate_target():
    with TempOpAttr("nn.relu", "target.house", lambda call: True):
        mod = t.AnnotateTarget("house")(tvm.IRModule.from_expr(program("x[2]", "exp(nn.relu(exp(%x)))")))
    (begin,) = [c for c in calls(mod["main"], "annotation.compiler_begin") if c.attrs.compiler == "house"]
    (relu,) = calls(mod["main"], "nn.relu")
    assert relu.args[0].same_as(begin)
    mod = t.PartitionGraph()(t.MergeCompilerRegions()(mod))
    assert sorted(v.name_hint for v in mod.get_global_vars()) == ["main", "tvmgen_default_house_main_0"]


# ---- How passes are called


def test_passes_run_in_their_order():
    seen = []

    def logs(name):
        return tvm.transform.module_pass(lambda mod, ctx: seen.append(name) or mod, opt_level=0, name=name)

    tvm.transform.Sequential([logs("a"), logs("b")])(tvm.IRModule())
    assert seen == ["a", "b"]


def test_who_calls_a_pass_sees_that_pass_alone():
    """Types that a pass finds were no pass's work: instruments are not told of more than was called."""
    seen = []

    @tvm.instrument.pass_instrument
    class Names:
        def run_before_pass(self, mod, info):
            seen.append(info.name)

    with tvm.transform.PassContext(instruments=[Names()]):
        t.FuseOps()(tvm.IRModule.from_expr(program("x[2,3]", "exp(%x)")))
    assert seen == ["FuseOps"]


def test_a_pass_of_a_program_gets_what_it_is_given():
    """A pass in Python finds no types that were not there, and leaves types behind."""

    @t.function_pass(opt_level=0)
    def keep(func, mod, ctx):
        assert func.ret_type is None
        return relay.Function(func.params, relay.exp(func.body), None, func.type_params, func.attrs)

    assert keep(tvm.IRModule.from_expr(program("x[2,3]", "%x")))["main"].ret_type == relay.TensorType((2, 3))


def test_a_mutator_rewrites_all_calls():
    class Log(relay.ExprMutator):
        def visit_call(self, call):
            call = super().visit_call(call)
            return relay.Call(relay.op.get("log"), call.args) if call.op == relay.op.get("exp") else call

    assert_same(Log().visit(program("x[2]", "exp(exp(%x))")), program("x[2]", "log(log(%x))"))


# ---- Continuations, features, weights


def test_continuations():
    func = typed(program("x[]:int32", "if (%x == 0) { 1 } else { %x + 2 }"))
    made = t.to_cps(func)
    assert len(made.params) == 2
    back = t.un_cps(typed(made))
    assert len(back.params) == 1 and evaluated(back, np.int32(3)) == 5


def test_features_of_programs():
    feature, detect = relay.Feature, relay.analysis.detect_feature
    assert detect(relay.const(1)) == {feature.fConstant}
    mod = tvm.IRModule()
    relay.prelude.Prelude(mod)
    mod["f"] = relay.Function([], relay.const(1))
    assert feature.fConstant in detect(mod["f"]) and feature.fMatch not in detect(mod["f"]) and feature.fMatch in detect(mod)


def test_weights_that_are_transposed():
    from baton.relay.data_dep_optimization import simplify_fc_transpose

    func = typed(program("x[32,784] wt[784,32]", "nn.relu(nn.dense(%x, transpose(%wt, axes=[1, 0])))"))
    assert list(relay.analysis.search_fc_transpose(func)) == ["wt"]
    weights = np.arange(784 * 32, dtype="float32").reshape(784, 32)
    made, params = simplify_fc_transpose.convert(func, {"wt": tvm.nd.array(weights)})
    assert "transpose" not in names(made) and (params["wt.T"].numpy() == weights.T).all()


def test_function_attributes_for_compilers():
    func = program("x[2]", "exp(%x)").with_attr("Primitive", tvm.tir.IntImm("int32", 1)).with_attr("Compiler", "cc").with_attr("global_symbol", "g0")
    assert func.attrs.Compiler == "cc" and func.attrs.get_str("global_symbol") == "g0" and func.attrs.Primitive == 1
