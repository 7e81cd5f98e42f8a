# SPDX-License-Identifier: Apache-2.0
"""The virtual machine, remote sessions, functions, devices and errors as programs of Relay 0.8 use them."""

import numpy as np
import pytest

import baton as tvm
from baton import relay, rpc
from baton.ir import IRModule
from baton.relay import transform
from baton.relay.testing import run_infer_type, run_opt_pass

V = '#[version = "0.0.5"]\n'


def P(text):
    return tvm.parser.parse(V + text)


def x2(name="x", *shape):
    return relay.var(name, shape=shape or (2,))


def test_debug_profile_report():
    from baton.contrib.debugger import debug_executor

    x = x2()
    lib = relay.build(IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")
    g = debug_executor.create(lib.get_graph_json(), lib.lib, tvm.cpu())
    rep = g.profile(x=np.zeros(2, "float32"))
    assert "Total" in str(rep) and rep.calls is not None and rep.device_metrics is not None


def test_vm_multi_func():
    m = P("def @f(%x: int32) -> int32 { add(%x, 1) }\ndef @main(%x: int32) -> int32 { @f(@f(%x)) }\n")
    ex = relay.vm.compile(m, "llvm")
    v = tvm.runtime.vm.VirtualMachine(ex, tvm.cpu())
    assert v.invoke("main", np.int32(1)).numpy() == 3 and v.invoke("f", np.int32(1)).numpy() == 2


def test_vm_loop_closure():
    m = P(
        "def @main(%n: int32) -> int32 { let %loop = fn (%i: int32, %a: int32) -> int32 { if (%i == 0) { %a } else { %loop(%i - 1, %a + %i) } }; %loop(%n, 0) }\n"
    )
    assert relay.create_executor("vm", mod=transform.InferType()(m)).evaluate()(np.int32(10)).numpy() == 55


def test_while_text():
    i = relay.var("i", shape=(), dtype="int32")
    loop = relay.loops.while_loop(lambda i: relay.less(i, relay.const(10)), [i], lambda i: (i + relay.const(1),))
    r = relay.create_executor("debug").evaluate(loop(relay.const(0)))
    assert r[0].numpy() == 10


def test_compile_optional_match():
    m = IRModule()
    relay.prelude.Prelude(m)
    some = m.get_type("Option")[1]
    v = relay.var("v")
    m["main"] = relay.Function(
        [],
        relay.Match(
            some(relay.const(3)),
            [relay.Clause(relay.PatternConstructor(some, [relay.PatternVar(v)]), v), relay.Clause(relay.PatternWildcard(), relay.const(0))],
        ),
    )
    assert relay.create_executor("vm", mod=m).evaluate()().numpy() == 3


def test_annotate_span_text():
    m = P("def @main(%x: Tensor[(2), float32]) { nn.relu(exp(%x)) }\n")
    b = m["main"].body
    assert b.span.line == b.args[0].span.line == 2


def test_parser_source_name():
    m = tvm.parser.parse(V + "def @main() { 1 }\n", "file.rly")
    assert m["main"].span is None or m["main"].span.source_name.name == "file.rly"


def test_error_text_points():
    with pytest.raises(tvm.error.DiagnosticError) as e:
        P("def @main(%x: Tensor[(2), float32]) { nn.relu(%zz) }\n")
    assert "zz" in str(e.value)


def test_op_error_message():
    with pytest.raises(tvm.TVMError) as e:
        relay.op.get("no.such")
    assert "no.such" in str(e.value)
    with pytest.raises(AttributeError):
        _ = relay.no_such_op


def test_const_fold_keeps_stateful():
    x = relay.nn.dropout(relay.const(np.ones(4, "float32")))
    g = run_opt_pass(x, transform.FoldConstant())
    assert g is not None


def test_map_visit_order():
    log = []

    class V(relay.ExprVisitor):
        def visit_let(s, node):
            log.append("let")
            super().visit_let(node)

        def visit_if(s, node):
            log.append("if")
            super().visit_if(node)

        def visit_function(s, node):
            log.append("fn")
            super().visit_function(node)

        def visit_tuple(s, node):
            log.append("tuple")
            super().visit_tuple(node)

        def visit_tuple_getitem(s, node):
            log.append("get")
            super().visit_tuple_getitem(node)

        def visit_constant(s, node):
            log.append("c")
            super().visit_constant(node)

        def visit_global_var(s, node):
            log.append("gv")

        def visit_op(s, node):
            log.append("op")

        def visit_match(s, node):
            log.append("m")
            super().visit_match(node)

        def visit_constructor(s, node):
            log.append("k")

        def visit_ref_create(s, node):
            log.append("rc")
            super().visit_ref_create(node)

        def visit_ref_read(s, node):
            log.append("rr")
            super().visit_ref_read(node)

        def visit_ref_write(s, node):
            log.append("rw")
            super().visit_ref_write(node)

    v = relay.var("v")
    r = relay.RefCreate(relay.const(1))
    V().visit(
        relay.Let(
            v,
            relay.If(relay.const(True), relay.TupleGetItem(relay.Tuple([relay.const(1)]), 0), relay.RefRead(r)),
            relay.Function([], relay.RefWrite(r, relay.GlobalVar("g")(v))),
        )
    )
    assert set(log) >= {"let", "if", "fn", "tuple", "get", "c", "gv", "rc", "rr", "rw"}


def test_type_of_lambda():
    f = run_infer_type(relay.Function([x2()], relay.Function([x2("y")], relay.const(1))))
    assert isinstance(f.checked_type.ret_type, relay.FuncType)


def test_checked_type_of_let_var():
    v = relay.var("v")
    let = run_infer_type(relay.Let(v, relay.const(1.0), v))
    assert let.var.checked_type == relay.scalar_type("float32")


def test_wellformed_pass():
    assert relay.analysis.well_formed(relay.Function([x2()], relay.const(1))) in (True, 1)


def test_extract_fused_names():
    x = x2()
    m = IRModule.from_expr(relay.Function([x], relay.exp(relay.log(x))))
    d = relay.analysis.extract_fused_functions(m)
    assert all(isinstance(f, relay.Function) for f in d.values()) and all(isinstance(k, int) for k in d)


def test_mac_dense_matmul():
    d, w = x2("d", 2, 3), x2("w", 4, 3)
    assert relay.analysis.get_total_mac_number(run_infer_type(relay.Function([d, w], relay.nn.dense(d, w)))) == 24
    a, b = x2("a", 2, 3, 4), x2("b", 2, 5, 4)
    assert relay.analysis.get_total_mac_number(run_infer_type(relay.Function([a, b], relay.nn.batch_matmul(a, b)))) == 2 * 3 * 5 * 4


def test_rpc_graph(tmp_path):
    x = x2()
    lib = relay.build(IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")
    p = str(tmp_path / "n.tar")
    lib.export_library(p)
    s = rpc.LocalSession()
    s.upload(p)
    r = s.load_module("n.tar")
    g = tvm.contrib.graph_executor.GraphModule(r["default"](s.cpu()))
    g.set_input("x", np.zeros(2, "float32"))
    g.run()
    assert g.get_output(0).numpy()[0] == 1


def test_packed_varargs():
    f = tvm.runtime.convert(lambda *a: len(a))
    assert f() == 0 and f(*range(20)) == 20


def test_packed_none_return():
    assert tvm.runtime.convert(lambda: None)() is None


def test_packed_ndarray_arg():
    def f(a):
        assert isinstance(a, tvm.nd.NDArray)
        return a

    a = tvm.nd.array(np.ones(3))
    assert tvm.runtime.convert(f)(a).numpy().sum() == 3


def test_packed_list_dict():
    f = tvm.runtime.convert(lambda a, d: (a[1], d["k"]))
    r = f([1, 2], {"k": "v"})
    assert list(r) == [2, "v"]


def test_packed_object():
    x = x2()
    assert tvm.runtime.convert(lambda e: e)(x).same_as(x)


def test_packed_str_module():
    assert tvm.runtime.convert(lambda s: s.upper())("ab") == "AB"


def test_func_handle_eq():
    f = tvm.get_global_func("node.SaveJSON") if tvm.get_global_func("node.SaveJSON", True) else None
    assert callable(f)


def test_tvmerror_alias():
    assert tvm.TVMError is tvm.error.TVMError and issubclass(tvm.error.DiagnosticError, Exception) and issubclass(tvm._ffi.base.TVMError, Exception)


def test_op_attr_get():
    assert (
        relay.op.get("nn.relu").get_attr("TOpPattern") == 0
        and relay.op.get("add").get_attr("TOpPattern") == 1
        and relay.op.get("nn.conv2d").get_attr("TOpPattern") == 4
        and relay.op.get("transpose").get_attr("TOpPattern") == 2
        and relay.op.get("sum").get_attr("TOpPattern") == 3
        and relay.op.get("nn.dropout").get_attr("TOpPattern") in (8, 0, 7)
        and relay.op.get("concatenate").get_attr("TOpPattern") == 2
        and relay.op.get("reshape").get_attr("TOpPattern") == 2
        and relay.op.get("nn.softmax").get_attr("TOpPattern") in (8, 4, 3)
    )


def test_custom_gradient_op():
    built_in = relay.op.get("erf").get_attr("FPrimalGradient")

    @relay.op.register_gradient("erf", level=15)
    def g(orig, grad):
        return [grad * relay.const(2.0)]

    try:
        x = x2()
        f = run_infer_type(relay.Function([x], relay.erf(x)))
        b = run_infer_type(transform.gradient(f, mode="first_order"))
        _, (d,) = relay.create_executor().evaluate(b)(np.zeros(2, "float32"))
        assert d.numpy()[0] == 2
    finally:
        relay.op.get("erf").reset_attr("FPrimalGradient")
        relay.op.register_gradient("erf", built_in)


def test_convert_layout_register():
    from baton.relay.op import register_convert_op_layout

    assert callable(register_convert_op_layout)


def test_param_dict_api():
    from baton.relay.param_dict import load_param_dict, save_param_dict

    assert load_param_dict(save_param_dict({"a": tvm.nd.array(np.zeros(1))}))["a"].shape == (1,)


def test_parse_prelude_text():
    m = IRModule()
    relay.prelude.Prelude(m)
    n = tvm.parser.parse(m.astext())
    tvm.ir.assert_structural_equal(m, n)


def test_lstm_rnn():
    net, p = relay.testing.lstm.get_workload(iterations=2, num_hidden=4, batch_size=1)
    assert transform.InferType()(net)["main"].checked_type is not None


def test_py_converter_adt():
    from baton.relay.testing.py_converter import run_as_python

    m = IRModule()
    relay.prelude.Prelude(m)
    _, c, n = m.get_type("List")
    r = run_as_python(c(relay.const(1), n()), m)
    assert r.constructor.name_hint == "Cons" and r.fields[0].numpy() == 1
