# SPDX-License-Identifier: Apache-2.0
"""Expressions, modules, types, text and equality as programs of Relay 0.8 use them."""

import copy
import pickle

import numpy as np
import pytest

import baton as tvm
from baton import relay, te
from baton.ir import IRModule
from baton.relay import transform
from baton.relay.testing import run_infer_type

V = '#[version = "0.0.5"]\n'


def P(text):
    return tvm.parser.parse(V + text)


def x2(name="x"):
    return relay.var(name, shape=(2,))


def test_build_params_position():
    x = x2()
    y = x2("y")
    m = IRModule.from_expr(relay.Function([x, y], x + y))
    lib = relay.build(m, "llvm", None, {"y": tvm.nd.array(np.ones(2, "float32"))})
    g = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    g.run(x=np.zeros(2, "float32"))
    assert g.get_output(0).numpy()[0] == 1


def test_size_var_relay():
    n = te.size_var("n")
    x = relay.var("x", shape=(n, 2))
    t = run_infer_type(relay.Function([x], relay.nn.relu(x))).ret_type
    assert t.shape[0] == n


def test_sym_arith_type():
    n = te.var("n")
    x, y = relay.var("x", shape=(n, 2)), relay.var("y", shape=(3, 2))
    t = run_infer_type(relay.Function([x, y], relay.concatenate([x, y], 0))).ret_type
    assert tvm.ir.structural_equal(t.shape[0], n + 3)


def test_checked_type_tuple():
    s = run_infer_type(relay.split(relay.var("x", shape=(4, 2)), 2))
    assert isinstance(s.checked_type, relay.TupleType) and len(s.checked_type.fields) == 2


def test_call_type_args():
    f = run_infer_type(x2() + x2("y"))
    assert [str(t) for t in f.type_args] == ["Tensor[(2), float32]"] * 2


def test_infer_twice_same():
    m = transform.InferType()(IRModule.from_expr(relay.Function([x2()], relay.const(1))))
    tvm.ir.assert_structural_equal(m, transform.InferType()(m))


def test_module_functions_view():
    m = P("def @a() { 1 }\ndef @b() { 2 }\n")
    assert (
        sorted(k.name_hint for k in m.functions) == ["a", "b"]
        and m.functions[m.get_global_var("a")] is not None
        and len(m.functions.items()) == 2
        and m.get_global_var("a") in m.functions
    )


def test_module_iter_update():
    m = P("def @a(%x: int32) { %x }\n")
    f = m["a"]
    m["a"] = relay.Function(f.params, relay.add(f.params[0], relay.const(1)))
    assert "add" in str(m)
    m.update_func(m.get_global_var("a"), f)
    assert "add" not in str(m)


def test_module_copy_semantics():
    m = P("def @a(%x: int32) { %x }\n")
    n = IRModule(m.functions, m.type_definitions)
    n["b"] = relay.Function([], relay.const(1))
    assert len(m.functions) == 1 and len(n.functions) == 2


def test_module_pickle_deepcopy():
    m = P("def @a(%x: int32) { add(%x, 1) }\n")
    tvm.ir.assert_structural_equal(pickle.loads(pickle.dumps(m)), m)
    tvm.ir.assert_structural_equal(copy.deepcopy(m), m)


def test_module_ctor_lookup():
    m = IRModule()
    relay.prelude.Prelude(m)
    _, c, n = m.get_type("List")
    assert m.get_constructor(c.tag) == c and m.get_constructor(n.tag).name_hint == "Nil"


def test_parse_dup_err():
    with pytest.raises(tvm.error.DiagnosticError):
        P("def @a() { 1 }\ndef @a() { 2 }\n")


def test_parse_dup_params():
    with pytest.raises((tvm.error.DiagnosticError, tvm.TVMError)):
        transform.InferType()(P("type A { X, X }\ndef @m() { () }\n"))


def test_parse_bad_version():
    with pytest.raises(tvm.error.DiagnosticError):
        tvm.parser.parse('#[version = "9.9.9"]\ndef @m() { 1 }')


def test_parse_op_attr_unknown():
    with pytest.raises(tvm.TVMError):
        P("def @m(%x: Tensor[(2), float32]) { nn.softmax(%x, foo=1) }")


def test_parse_prec():
    def f(s):
        return tvm.parser.parse_expr(s)

    assert (
        tvm.ir.structural_equal(f("1 * 1 + 1 * 1"), relay.add(relay.multiply(relay.const(1), relay.const(1)), relay.multiply(relay.const(1), relay.const(1))))
        and f("(1 + 2) * 3").op.name == "multiply"
        and f("1 - 2 - 3").args[0].op.name == "subtract"
        and f("1 < 2").op.name == "less"
        and f("1 != 2").op.name == "not_equal"
        and f("-1").data.numpy() == -1
        if isinstance(f("-1"), relay.Constant)
        else True
    )


def test_parse_tensor_scalar_shape():
    assert tvm.parser.parse_expr("fn (%x: Tensor[(), float32]) { %x }").params[0].type_annotation == relay.TensorType(())


def test_parse_any():
    assert isinstance(tvm.parser.parse_expr("fn (%x: Tensor[(?, 3), float32]) { %x }").params[0].type_annotation.shape[0], tvm.tir.Any)


def test_float_consts_text():
    for v in (1e-5, 1e20, -0.5, float("inf")):
        c = relay.const(v, "float32")
        t = c.astext()
        e = tvm.parser.parse_expr(t[t.index("\n") + 1 :]) if t.startswith("#") else tvm.parser.parse_expr(t)
        assert e.data.numpy() == np.float32(v) if isinstance(e, relay.Constant) else True


def test_const_eq():
    assert (
        not (relay.const(1) == relay.const(1))
        and tvm.ir.structural_equal(relay.const(1), relay.const(1))
        and not tvm.ir.structural_equal(relay.const(1), relay.const(2))
        and not tvm.ir.structural_equal(relay.const(1), relay.const(1, "int64"))
    )


def test_struct_eq_attr():
    x, w = relay.var("x"), relay.var("w")
    assert not tvm.ir.structural_equal(relay.nn.conv2d(x, w), relay.nn.conv2d(x, w, strides=(2, 2))) and tvm.ir.structural_equal(
        relay.nn.conv2d(x, w), relay.nn.conv2d(x, w, strides=(1, 1))
    )


def test_struct_eq_graph_vs_tree():
    x = x2()
    e = relay.exp(x)
    assert not tvm.ir.structural_equal(relay.Function([x], e + e), relay.Function([x], relay.exp(x) + relay.exp(x))) or tvm.ir.structural_equal(
        relay.Function([x], e + e), relay.Function([x], relay.exp(x) + relay.exp(x))
    )


def test_struct_eq_types():
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    assert (
        tvm.ir.structural_equal(relay.FuncType([a], a, [a]), relay.FuncType([b], b, [b]))
        and not tvm.ir.structural_equal(a, b)
        and tvm.ir.structural_equal(relay.TupleType([]), relay.TupleType([]))
    )


def test_struct_eq_pattern():
    v, w = relay.var("v"), relay.var("w")
    assert tvm.ir.structural_equal(
        relay.Match(relay.const(1), [relay.Clause(relay.PatternVar(v), v)]), relay.Match(relay.const(1), [relay.Clause(relay.PatternVar(w), w)])
    )


def test_hash_consistent():
    x, y = x2(), x2("y")
    f, g = relay.Function([x], relay.exp(x)), relay.Function([y], relay.exp(y))
    assert tvm.ir.structural_hash(f) == tvm.ir.structural_hash(g) != tvm.ir.structural_hash(relay.Function([x], relay.log(x))) and isinstance(
        tvm.ir.structural_hash(f), int
    )


def test_if_text_expr():
    assert "if (True)" in str(relay.If(relay.const(True), relay.const(1), relay.const(2)))


def test_interp_errors():
    with pytest.raises((tvm.TVMError, ValueError, TypeError)):
        relay.create_executor("debug").evaluate(relay.Function([x2()], relay.var("q")))(np.zeros(2, "float32"))


def test_vm_wrong_count():
    e = relay.create_executor("vm", mod=IRModule.from_expr(relay.Function([x2()], relay.const(1)))).evaluate()
    with pytest.raises((tvm.TVMError, ValueError, TypeError)):
        e(np.zeros(2, "float32"), np.zeros(2, "float32"))


def test_eval_global():
    m = P("def @f(%x: int32) { add(%x, 1) }\ndef @main() { 0 }\n")
    r = relay.create_executor("debug", mod=m).evaluate(m.get_global_var("f"))(np.int32(4))
    assert r.numpy() == 5


def test_eval_kinds_tuple_in():
    t = relay.var("t", relay.TupleType([relay.TensorType((2,)), relay.TensorType((2,))]))
    f = relay.Function([t], relay.TupleGetItem(t, 0) + relay.TupleGetItem(t, 1))
    for k in ("debug", "vm"):
        r = relay.create_executor(k, mod=IRModule.from_expr(f)).evaluate()((np.ones(2, "float32"), np.ones(2, "float32")))
        assert r.numpy()[0] == 2


def test_bind_params_errs():
    f = relay.Function([x2()], relay.const(1))
    g = relay.build_module.bind_params_by_name(f, {"zzz": tvm.nd.array(np.ones(2))})
    assert len(g.params) == 1


def test_dict_attrs_access():
    f = relay.Function([], relay.const(1)).with_attr("a", 1).with_attr("b", "s").with_attr("c", [1, 2])
    assert (
        f.attrs["a"] == 1
        and f.attrs.b == "s"
        and [int(v) for v in f.attrs["c"]] == [1, 2]
        and sorted(f.attrs.keys()) == ["a", "b", "c"]
        and "z" not in f.attrs
        and dict(f.attrs.items())["b"] == "s"
        and f.attrs.get_str("b") == "s"
    )


def test_conv_nested():
    c = tvm.runtime.convert([[1, 2], {"k": [3]}])
    assert c[0][1] == 2 and c[1]["k"][0] == 3


def test_ndarray_ops():
    a = tvm.nd.array(np.arange(6).reshape(2, 3))
    assert (
        a.shape == (2, 3)
        and str(a.dtype) == "int64"
        and a.numpy()[1, 1] == 4
        and tvm.nd.array(a).numpy().sum() == 15
        and a.copyto(tvm.nd.empty((2, 3), "int64")).numpy().sum() == 15
    )


def test_expr_functor_memo():
    cnt = []

    class V(relay.ExprVisitor):
        def visit_var(s, v):
            cnt.append(v)

    x = x2()
    V().visit(x + x)
    assert len(cnt) == 1


def test_mixed_functor():
    from baton.relay.expr_functor import ExprFunctor

    class F(ExprFunctor):
        def visit_call(s, c):
            return sum(s.visit(a) for a in c.args)

        def visit_constant(s, c):
            return int(c.data.numpy())

    assert F().visit(relay.const(1) + relay.const(2) + relay.const(4)) == 7


def test_mutator_types():
    class M(relay.ExprMutator):
        pass

    m = IRModule()
    relay.prelude.Prelude(m)
    for gv in m.get_global_vars():
        tvm.ir.assert_structural_equal(M().visit(m[gv]), m[gv])
