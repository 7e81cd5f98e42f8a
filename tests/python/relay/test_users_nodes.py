# SPDX-License-Identifier: Apache-2.0
"""Types, data types and nodes as programs of Relay 0.8 use them."""

import numpy as np
import pytest

import baton as tvm
from baton import relay, te
from baton.ir import IRModule
from baton.relay import FuncType, GlobalTypeVar, RefType, TensorType, TupleType, TypeKind, TypeVar, create_executor


def net():
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    y = relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4))
    return tvm.IRModule.from_expr(relay.Function([x, w], relay.add(y, relay.add(relay.const(1.0), relay.const(2.0)))))


def infer(e):
    mod = relay.transform.InferType()(IRModule.from_expr(e))
    return mod["main"] if isinstance(e, relay.Function) else mod["main"].body


def test_type_eq_hash():
    assert TensorType((1, 2)) == TensorType((1, 2)) and TensorType((1, 2)) != TensorType((1, 3))
    assert not (TensorType((1, 2)) == 3)
    assert FuncType([], TensorType(())) == FuncType([], TensorType(()))


def test_infer():
    x = relay.var("x", shape=(10, 4))
    y = relay.var("y", shape=(5, 10, 1))
    z = infer(relay.add(x, y))
    assert z.checked_type == TensorType((5, 10, 4), "float32")
    f = infer(relay.Function([x, y], relay.add(x, y)))
    assert f.checked_type == FuncType([x.type_annotation, y.type_annotation], TensorType((5, 10, 4), "float32"))
    assert f.ret_type == TensorType((5, 10, 4))


def test_no_checked_type():
    x = relay.var("x", shape=(1,))
    with pytest.raises(ValueError) as e:
        _ = relay.exp(x).checked_type
    assert "InferType" in str(e.value) or "type" in str(e.value)


def test_if_branch_mismatch():
    c = relay.var("c", shape=(), dtype="bool")
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(3,))
    with pytest.raises(tvm.error.DiagnosticError):
        infer(relay.Function([c, x, y], relay.If(c, x, y)))
    with pytest.raises(tvm.TVMError):
        infer(relay.Function([c, x, y], relay.If(c, x, y)))


def test_recursion():
    sb = relay.ScopeBuilder()
    f = relay.GlobalVar("f")
    ti32 = relay.scalar_type("int32")
    n = relay.var("n", ti32)
    data = relay.var("data", relay.scalar_type("float32"))
    with sb.if_scope(relay.equal(n, relay.const(0))):
        sb.ret(data)
    with sb.else_scope():
        sb.ret(f(relay.subtract(n, relay.const(1)), relay.log(data)))
    mod = IRModule()
    mod[f] = relay.Function([n, data], sb.get())
    mod = relay.transform.InferType()(mod)
    assert "@f(%1, %2)" in mod.astext() or "@f(" in mod.astext()
    assert mod[f].checked_type == FuncType([ti32, relay.scalar_type("float32")], relay.scalar_type("float32"))


def test_let_poly():
    tp = TypeVar("t")
    x = relay.var("x", tp)
    f = relay.var("f")
    idf = relay.Function([x], x, tp, [tp])
    e = relay.Let(f, idf, relay.Tuple([f(relay.const(1)), f(relay.const(1.0))]))
    t = infer(e)
    assert t.checked_type == TupleType([relay.scalar_type("int32"), relay.scalar_type("float32")])


def test_decl():
    x = relay.var("x", shape=())
    f = relay.Function([x], relay.log(relay.log(x)))
    assert infer(f).checked_type == FuncType([TensorType(())], TensorType(()))


def test_ref():
    x = relay.var("x", "float32")
    y = relay.var("y", "float32")
    r = relay.RefCreate(x)
    t = infer(r)
    assert t.checked_type == RefType(TensorType((), "float32"))
    r2 = infer(relay.RefRead(r))
    assert r2.checked_type == TensorType(())
    w = infer(relay.RefWrite(r, y))
    assert w.checked_type == TupleType([])


def test_adt():
    mod = IRModule()
    p = relay.prelude.Prelude(mod)
    kind, cons, nil = p.mod.get_type("List")
    e = cons(relay.const(1), nil())
    mod["main"] = relay.Function([], e)
    mod = relay.transform.InferType()(mod)
    assert mod["main"].ret_type == kind(relay.scalar_type("int32"))
    assert isinstance(cons, relay.Constructor) and cons.belong_to == kind and len(cons.inputs) == 2 and cons.tag is not None


def test_own_adt():
    mod = IRModule()
    box = GlobalTypeVar("box")
    tv = TypeVar("tv")
    constructor = relay.Constructor("constructor", [tv], box)
    td = relay.TypeData(box, [tv], [constructor])
    mod[box] = td
    a, _b = relay.var("a"), relay.var("b")
    m = relay.Match(constructor(relay.const(1)), [relay.Clause(relay.PatternConstructor(constructor, [relay.PatternVar(a)]), a)])
    mod["main"] = relay.Function([], m)
    mod = relay.transform.InferType()(mod)
    assert mod["main"].ret_type == relay.scalar_type("int32")
    assert td.header == box and td.type_vars[0] == tv and td.constructors[0] == constructor
    r = create_executor("debug", mod=mod, device=tvm.cpu(), target="llvm").evaluate()()
    assert r.numpy() == 1
    assert m.complete is True or m.complete == 1
    assert m.clauses[0].lhs.patterns[0].var == a and m.data == m.data
    w = relay.PatternWildcard()
    t = relay.PatternTuple([w, w])
    assert len(t.patterns) == 2


def test_unmatched():
    mod = IRModule()
    relay.prelude.Prelude(mod)
    kind, cons, nil = mod.get_type("List")
    v = relay.var("v")
    m = relay.Match(v, [relay.Clause(relay.PatternConstructor(cons, [relay.PatternWildcard(), relay.PatternWildcard()]), relay.const(1))], complete=False)
    u = relay.analysis.unmatched_cases(m, mod)
    assert len(u) == 1 and isinstance(u[0], relay.PatternConstructor) and u[0].constructor == nil
    assert len(relay.analysis.unmatched_cases(relay.Match(v, [relay.Clause(relay.PatternWildcard(), v)]), mod)) == 0


def test_incomplete_match_error():
    mod = IRModule()
    relay.prelude.Prelude(mod)
    kind, cons, nil = mod.get_type("List")
    x = relay.var("x", kind(relay.scalar_type("int32")))
    mod["main"] = relay.Function([x], relay.Match(x, [relay.Clause(relay.PatternConstructor(nil, []), relay.const(1))]))
    with pytest.raises(tvm.error.DiagnosticError):
        relay.transform.InferType()(mod)


def test_kinds():
    from baton.relay.analysis import check_kind

    assert check_kind(TensorType((1,))) == TypeKind.Type
    assert check_kind(TypeVar("s", TypeKind.ShapeVar)) == TypeKind.ShapeVar
    assert check_kind(TupleType([TypeVar("a")])) == TypeKind.Type
    with pytest.raises(tvm.TVMError):
        check_kind(TupleType([TypeVar("a", TypeKind.ShapeVar)]))
    with pytest.raises(tvm.TVMError):
        check_kind(RefType(TypeVar("a", TypeKind.Constraint)))
    assert check_kind(FuncType([], TensorType(()))) == TypeKind.Type
    assert check_kind(TypeVar("t"), IRModule()) == TypeKind.Type


def test_type_functor():
    class V(relay.TypeVisitor):
        def __init__(self):
            super().__init__()
            self.n = 0

        def visit_tensor_type(self, t):
            self.n += 1

    v = V()
    v.visit(TupleType([TensorType(()), TensorType(())]))
    assert v.n == 2

    class M(relay.TypeMutator):
        def visit_tensor_type(self, t):
            return TensorType(t.shape, "int8")

    assert M().visit(FuncType([TensorType((1,))], TensorType((2,)))) == FuncType([TensorType((1,), "int8")], TensorType((2,), "int8"))


def test_any():
    x = relay.var("x", shape=(relay.Any(), 2))
    y = relay.var("y", shape=(1, 2))
    t = infer(relay.Function([x, y], relay.add(x, y))).ret_type
    assert isinstance(t.shape[0], tvm.tir.Any) and t.shape[1] == 2
    t = infer(relay.Function([x, y], relay.concatenate([x, y], 0))).ret_type
    assert isinstance(t.shape[0], tvm.tir.Any)
    t = infer(relay.Function([x], relay.nn.softmax(x))).ret_type
    assert isinstance(t.shape[0], tvm.tir.Any)


def test_free_bound_vars():
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    A = relay.analysis
    assert set(A.free_vars(x + y)) == {x, y}
    let = relay.Let(x, y, x)
    assert set(A.free_vars(let)) == {y} and set(A.bound_vars(let)) == {x} and set(A.all_vars(let)) == {x, y}
    a, b = TypeVar("a"), TypeVar("b")
    ft = FuncType([a], b, [a])
    assert set(A.free_type_vars(ft, IRModule())) == {b} and set(A.bound_type_vars(ft)) == {a} and set(A.all_type_vars(ft)) == {a, b}


def test_well_formed():
    x = relay.var("x", shape=())
    assert relay.analysis.well_formed(relay.Let(x, relay.const(1.0), x))
    assert not relay.analysis.well_formed(relay.Let(x, relay.const(1.0), relay.Let(x, relay.const(1.0), x)))
    f = relay.Function([x], x)
    assert relay.analysis.well_formed(f)


def test_tuple_wrapper():
    x = relay.var("x", shape=(4, 6))
    s = relay.split(x, 2, axis=1)
    assert isinstance(s, relay.TupleWrapper) or isinstance(s, relay.expr.TupleWrapper)
    assert s.size == 2 and len(s) == 2
    a, b = s
    assert isinstance(a, relay.TupleGetItem)
    assert isinstance(s.astuple(), relay.Call)
    assert s.astext()
    with pytest.raises(IndexError):
        s[2]


def test_let_if():
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    let = relay.Let(x, relay.const(1.0), x + y)
    assert let.var == x and let.value.data.numpy() == 1 and let.body.op.name == "add"
    c = relay.If(relay.var("c", shape=(), dtype="bool"), x, y)
    assert c.true_branch == x and c.false_branch == y and c.cond.name_hint == "c"


def test_refs():
    r = relay.RefCreate(relay.const(1))
    rr = relay.RefRead(r)
    w = relay.RefWrite(r, relay.const(2))
    assert r.value.data.numpy() == 1 and rr.ref == r and w.value.data.numpy() == 2


def test_module_from_expr():
    x = relay.var("x", shape=(2,))
    m = IRModule.from_expr(relay.nn.relu(x))
    assert isinstance(m["main"], relay.Function) and len(m["main"].params) == 1
    m = IRModule.from_expr(relay.Function([x], x), functions={relay.GlobalVar("g"): relay.Function([], relay.const(2))})
    assert len(m.functions) == 2
    m = IRModule.from_expr(relay.Function([x], x).with_attr("global_symbol", "foo"))
    assert [g.name_hint for g in m.get_global_vars()] in (["foo"], ["main"])


def test_text_let_if():
    x = relay.var("x", shape=())
    c = relay.var("c", shape=(), dtype="bool")
    let = relay.Let(x, relay.const(1.0), relay.If(c, x, x + x))
    t = str(relay.Function([c], let))
    assert "let %x" in t and "if (%c) {" in t and "} else {" in t
    e = tvm.parser.parse_expr(str(relay.Function([c], let)).replace('#[version = "0.0.5"]\n', ""))
    assert tvm.ir.structural_equal(e, relay.Function([c], let))


def test_parse_expr():
    e = tvm.parser.parse_expr("1 + 2 * 3")
    assert e.op.name == "add" and e.args[1].op.name == "multiply"
    e = tvm.parser.parse_expr("fn (%x: int32) -> int32 { %x }")
    assert isinstance(e, relay.Function)
    e = tvm.parser.parse_expr("fn<A>(%x: A) -> A { %x }")
    assert len(e.type_params) == 1
    e = tvm.parser.parse_expr("(1, 2.0f, True)")
    assert len(e.fields) == 3
    e = tvm.parser.parse_expr("let %x = 1; %x")
    assert isinstance(e, relay.Let)
    e = tvm.parser.parse_expr("()")
    assert isinstance(e, relay.Tuple) and len(e.fields) == 0
    e = tvm.parser.parse_expr("(1,)")
    assert len(e.fields) == 1
    e = tvm.parser.parse_expr("(1, 2).0")
    assert isinstance(e, relay.TupleGetItem)
    e = tvm.parser.parse_expr("@f")
    assert isinstance(e, relay.GlobalVar)


def test_parse_metadata():
    c = relay.const(np.random.rand(2, 3).astype("float32"))
    f = relay.Function([], relay.add(c, c))
    m = IRModule.from_expr(f)
    back = tvm.parser.parse(m.astext())
    assert tvm.ir.structural_equal(m, back)
    back = tvm.parser.fromtext(m.astext())


def test_parse_init_meta_table():
    c = relay.const(np.ones((2, 3), "float32"))
    src = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { add(%x, meta[relay.Constant][0]) }'
    m = tvm.parser.parse(src, "from_string", None, {"relay.Constant": [c]})
    assert m["main"].body.args[1].data.numpy().sum() == 6


def test_spans():
    m = tvm.parser.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) {\n  nn.relu(%x)\n}\n', "my.relay")
    b = m["main"].body
    assert b.span is not None and b.span.line == 3 and b.span.source_name.name == "my.relay"


def test_text_printer_symbols():
    n = te.size_var("n")
    x = relay.var("x", shape=(n, 4))
    assert "%x: Tensor[(%n, 4), float32]" in str(relay.Function([x], x)) or "(n, 4)" in str(relay.Function([x], x))
    x = relay.var("x", shape=(relay.Any(), 4))
    assert "Tensor[(?, 4), float32]" in str(relay.Function([x], x))


def test_visitors():
    log = []

    class V(relay.ExprVisitor):
        def visit_call(self, c):
            super().visit_call(c)
            log.append(c.op.name)

    x = relay.var("x", shape=(2,))
    V().visit(relay.Function([x], relay.nn.relu(relay.exp(x))))
    assert log == ["exp", "nn.relu"]

    class M(relay.ExprMutator):
        def visit_call(self, c):
            a = [self.visit(y) for y in c.args]
            return relay.tanh(*a) if c.op.name == "exp" else relay.Call(c.op, a, c.attrs)

    assert "tanh" in str(M().visit(relay.exp(x)))
    memo = V().memo_map
    assert isinstance(memo, dict)
    from baton.relay.expr_functor import ExprFunctor

    class F(ExprFunctor):
        def visit_var(self, v):
            return v.name_hint

    assert F().visit(x) == "x"
    with pytest.raises(NotImplementedError):
        F().visit(relay.exp(x))


def test_post_order():
    x = relay.var("x", shape=(2,))
    n = []
    relay.analysis.post_order_visit(relay.exp(x), lambda e: n.append(type(e).__name__))
    assert n[-1] == "Call" and "Var" in n
    assert relay.expr_functor is not None


def test_bind():
    x, y = relay.var("x"), relay.var("y")
    f = relay.Function([x], relay.add(x, y))
    g = relay.bind(f, {y: relay.const(1.0)})
    assert isinstance(g.body.args[1], relay.Constant)
    h = relay.build_module.bind_params_by_name(relay.Function([x], x), {"x": tvm.nd.array(np.ones(2))})
    assert len(h.params) == 0


def test_global_var_call():
    gv = relay.GlobalVar("f")
    c = gv(relay.const(1))
    assert isinstance(c, relay.Call) and c.op == gv
    assert "@f(1" in str(c)


def test_repr_of_exprs():
    x = relay.var("x", shape=(2,))
    assert "%x" in repr(x) or "Var(x" in repr(x)
    assert "free_var %x: Tensor[(2), float32]" in str(relay.nn.relu(x)) + str(relay.nn.relu(x).astext())
    assert "nn.relu" in repr(relay.nn.relu(x))


def test_params():
    p = {"x": tvm.nd.array(np.arange(4, dtype="float32")), "y": tvm.nd.array(np.ones((2, 2), "int8"))}
    b = relay.save_param_dict(p)
    assert isinstance(b, (bytes, bytearray))
    q = relay.load_param_dict(bytearray(b))
    assert q["y"].dtype == "int8" and (q["x"].numpy() == np.arange(4)).all()
    assert tvm.runtime.save_param_dict and tvm.runtime.load_param_dict
    r = tvm.runtime.load_param_dict(b)
    assert set(r.keys()) == {"x", "y"}
