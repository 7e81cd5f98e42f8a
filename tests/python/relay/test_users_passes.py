# SPDX-License-Identifier: Apache-2.0
"""Passes as users of Relay call them: by themselves, on a module just made of an expression, beside the program that they expect."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay import transform
from baton.relay.testing import TempOpAttr


def run(expr, opt_pass):
    """What users write for themselves: no types were inferred before."""
    mod = opt_pass(tvm.IRModule.from_expr(expr))
    return mod["main"] if isinstance(expr, relay.Function) else mod["main"].body


def typed(expr):
    return run(expr, transform.InferType())


def function(body):
    return relay.Function(relay.analysis.free_vars(body), body)


def primitive(params, body):
    return relay.Function(params, body).with_attr("Primitive", tvm.tir.IntImm("int32", 1))


def var(*shape, name="x", dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def test_fuse_ops():
    x = var(10, 20)
    before = relay.Function([x], relay.negative(relay.exp(relay.add(x, relay.const(1, "float32")))))
    p, x = var(10, 20, name="p"), var(10, 20)
    fused = primitive([p], relay.negative(relay.exp(relay.add(p, relay.const(1, "float32")))))
    tvm.ir.assert_structural_equal(run(before, transform.FuseOps()), typed(relay.Function([x], relay.Call(fused, [x]))))
    tvm.ir.assert_structural_equal(run(run(before, transform.FuseOps()), transform.DefuseOps()), typed(before))


def test_fuse_ops_around_convolutions():
    def weight(name, size):
        return var(16, 16, size, size, name=name)

    def conv(data, name, size):
        return relay.nn.conv2d(data, weight(name, size), kernel_size=(size, size), padding=(size // 2, size // 2), channels=16)

    one = relay.const(1, "float32")
    x = relay.add(var(1, 16, 8, 8), one)
    y = conv(x, "w1", 3)
    y = relay.add(y, relay.add(one, y))
    before = function(relay.add(conv(y, "w2", 1), conv(y, "w3", 3)))

    image = [var(1, 16, 8, 8, name=f"p{i}") for i in range(6)]
    first = primitive([image[0]], relay.add(image[0], one))
    y = conv(image[1], "w", 3)
    second = function(relay.add(y, relay.add(one, y))).with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    third = function(conv(image[2], "w", 3)).with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    w = weight("w", 1)
    fourth = primitive([image[3], w, image[4]], relay.add(relay.nn.conv2d(image[3], w, kernel_size=(1, 1), padding=(0, 0), channels=16), image[4]))
    x = var(1, 16, 8, 8)
    y = second(first(x), weight("w1", 3))
    after = function(fourth(y, weight("w2", 1), third(y, weight("w3", 3))))
    tvm.ir.assert_structural_equal(run(before, transform.FuseOps(fuse_opt_level=2)), typed(after), map_free_vars=True)


def test_fold_constant():
    values = np.array([1, 2, 3], "float32")
    x = relay.var("x", relay.TensorType([1, 2, 3], "float32"))
    c = relay.const(values)
    before = relay.Function([x], relay.add(relay.add(x, relay.multiply(relay.add(c, c), relay.const(2, "float32"))), c))
    after = relay.Function([x], relay.add(relay.add(x, relay.const(values * 4)), c))
    tvm.ir.assert_structural_equal(run(before, transform.FoldConstant()), typed(after))


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
    tvm.ir.assert_structural_equal(run(before, transform.SimplifyInference()), after, map_free_vars=True)


def test_eliminate_common_subexpr():
    x = var(1, 16)
    before = relay.Function([x], relay.add(*(relay.add(relay.nn.relu(x), relay.const(1.0)) for _ in range(2))))
    y = relay.add(relay.nn.relu(x), relay.const(1.0))
    tvm.ir.assert_structural_equal(run(before, transform.EliminateCommonSubexpr()), typed(relay.Function([x], relay.add(y, y))))


def _conv_relu(layout="NCHW"):
    nchw = layout == "NCHW"
    x, w = (var(1, 16, 8, 8), var(32, 16, 3, 3, name="w")) if nchw else (var(1, 8, 8, 16), var(3, 3, 16, 32, name="w"))
    y = relay.nn.conv2d(x, w, channels=32, kernel_size=(3, 3), padding=(1, 1), data_layout=layout, kernel_layout="OIHW" if nchw else "HWIO")
    return relay.Function([x, w], relay.nn.relu(y))


def test_legalize():
    def twice(attrs, inputs, types):
        assert types[-1] == relay.TensorType((1, 32, 8, 8)) and attrs.out_dtype in ("same", "")
        data, weight = inputs
        return relay.nn.conv2d(data, relay.multiply(weight, relay.const(2.0, "float32")), **attrs)

    with TempOpAttr("nn.conv2d", "FTVMLegalize", twice):
        found = run(_conv_relu(), transform.Legalize())
    x, w = var(1, 16, 8, 8), var(32, 16, 3, 3, name="w")
    y = relay.nn.conv2d(x, relay.multiply(w, relay.const(2.0)), channels=32, kernel_size=(3, 3), padding=(1, 1))
    tvm.ir.assert_structural_equal(found, typed(relay.Function([x, w], relay.nn.relu(y))))


def test_alter_op_layout():
    def blocks(attrs, inputs, tinfos, out_type):
        return relay.nn.conv2d(*inputs, **{**dict(attrs), "data_layout": "NCHW16c"})

    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", blocks):
        found = run(_conv_relu(), transform.AlterOpLayout())
    x, w = var(1, 16, 8, 8), var(32, 16, 3, 3, name="w")
    y = relay.nn.conv2d(relay.layout_transform(x, "NCHW", "NCHW16c"), w, channels=32, kernel_size=(3, 3), padding=(1, 1), data_layout="NCHW16c")
    after = relay.Function([x, w], relay.layout_transform(relay.nn.relu(y), "NCHW16c", "NCHW"))
    tvm.ir.assert_structural_equal(found, typed(after))


def test_convert_layout():
    found = run(_conv_relu("NHWC"), transform.ConvertLayout({"nn.conv2d": ["NCHW", "default"]}))
    x, w = var(1, 8, 8, 16), var(3, 3, 16, 32, name="w")
    y = relay.nn.conv2d(relay.layout_transform(x, "NHWC", "NCHW"), relay.layout_transform(w, "HWIO", "OIHW"), channels=32, kernel_size=(3, 3), padding=(1, 1))
    tvm.ir.assert_structural_equal(found, typed(relay.Function([x, w], relay.layout_transform(relay.nn.relu(y), "NCHW", "NHWC"))))


def test_eta_expand():
    text = '#[version = "0.0.5"]\ndef @aux(%x: Tensor[(), int32]) -> Tensor[(), int32] { %x }\ndef @main() { MAIN }'
    mod = transform.EtaExpand(expand_global_var=True)(tvm.parser.fromtext(text.replace("MAIN", "@aux")))
    after = tvm.parser.fromtext(text.replace("MAIN", "fn (%x: Tensor[(), int32]) -> Tensor[(), int32] { @aux(%x) }"))
    tvm.ir.assert_structural_equal(mod["main"], transform.InferType()(after)["main"], map_free_vars=True)


def test_eta_expand_of_constructors():
    mod = tvm.IRModule()
    mod.import_from_std("prelude.rly")
    _, cons, _ = mod.get_type("List")
    mod["main"] = relay.Function([], cons)
    main = transform.EtaExpand(expand_constructor=True)(mod)["main"].body
    assert isinstance(main, relay.Function) and main.body.op == cons and main.ret_type == mod.get_global_type_var("List")(main.type_params[0])


@pytest.mark.parametrize("arg", ["a variable", "an expression"])
def test_inline(arg):
    mod, x1, x = tvm.IRModule(), var(2, name="x1"), var(2)
    g, unused = relay.GlobalVar("g"), relay.GlobalVar("unused")
    inline = tvm.tir.IntImm("int32", 1)
    mod[g] = relay.Function([x1], relay.log(x1)).with_attr("Inline", inline)
    mod[unused] = relay.Function([x1], relay.exp(x1)).with_attr("Inline", inline)
    mod["main"] = relay.Function([x], g(x if arg == "a variable" else relay.abs(x)))
    mod = transform.Inline()(transform.InferType()(mod))
    assert [v.name_hint for v in mod.get_global_vars()] == ["unused", "main"], "what has no call left is dropped; what had none stays"
    if arg == "a variable":
        tvm.ir.assert_structural_equal(mod["main"], typed(relay.Function([x], relay.log(x))))
    assert relay.create_executor("debug", mod=mod).evaluate()(np.ones(2, "float32")).numpy().tolist() == [0, 0]


def test_fast_math_where_it_is_required():
    x = var(1, 16)
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    with tvm.transform.PassContext(opt_level=3, required_pass=["FastMath"]):
        assert "fast_exp" in relay.optimize(mod, target="llvm")[0].astext()
    with tvm.transform.PassContext(opt_level=3):
        assert "fast_exp" not in relay.optimize(mod, target="llvm")[0].astext()


def test_who_calls_a_pass_sees_that_pass_alone():
    """Types that a pass finds were no pass's work: instruments are not told of more than was called."""
    seen = []

    @tvm.instrument.pass_instrument
    class Names:
        def run_before_pass(self, mod, info):
            seen.append(info.name)

    x = var(2, 3)
    with tvm.transform.PassContext(instruments=[Names()]):
        transform.FuseOps()(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))))
    assert seen == ["FuseOps"]


def test_a_pass_of_a_program_gets_what_it_is_given():
    """A pass in Python finds no types that were not there, and leaves types behind."""

    @transform.function_pass(opt_level=0)
    def keep(func, mod, ctx):
        assert func.ret_type is None
        return func

    x = var(2, 3)
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    assert keep(mod)["main"].ret_type == x.type_annotation


def test_functions_of_a_virtual_machine():
    mod = tvm.parser.fromtext('#[version = "0.0.5"]\ndef @f1(%x: Tensor[(3), float32]) { %x + %x }\ndef @f2(%x: Tensor[(3), float32]) { %x * %x }')
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu())
    given = np.array([1, 2, 3], "float32")
    assert machine.invoke("f1", given).numpy().tolist() == [2, 4, 6] and machine.invoke("f2", given).numpy().tolist() == [1, 4, 9]
    assert "main" not in mod


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
def test_a_tuple_as_an_argument(kind):
    pair = relay.var("pair", relay.TupleType([relay.TensorType((1,)), relay.TensorType((2,))]))
    run = relay.create_executor(kind, device=tvm.cpu(), target="llvm").evaluate(relay.Function([pair], relay.TupleGetItem(pair, 1)))
    assert run((np.ones(1, "float32"), np.array([3, 4], "float32"))).numpy().tolist() == [3, 4]
