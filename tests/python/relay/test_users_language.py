# SPDX-License-Identifier: Apache-2.0
"""Programs of the language's documentation: functions, closures, data types, text, passes, patterns, the virtual machine, other compilers."""

import numpy as np

import baton as tvm
from baton import relay, te
from baton.ir import IRModule
from baton.relay import transform
from baton.relay.testing import run_infer_type

V = '#[version = "0.0.5"]\n'


def parse(text):
    return tvm.parser.parse(V + text)


def ev(mod, *args, kind="debug"):
    return relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate()(*args)


def test_doc_functions():
    m = parse("""
def @plus_and_quadruple(%x: Tensor[(10, 10), float32], %y: Tensor[(10, 10), float32]) -> Tensor[(10, 10), float32] {
  let %sum = fn (%x: Tensor[(10, 10), float32]) -> Tensor[(10, 10), float32] { add(%x, %x) };
  %sum(%sum(add(%x, %y)))
}
def @main() { () }
""")
    r = relay.create_executor("debug", mod=m).evaluate(m["plus_and_quadruple"])(np.ones((10, 10), "float32"), np.ones((10, 10), "float32"))
    assert (r.numpy() == 8).all()


def test_doc_closures():
    m = parse("""
def @main(%x: int32) -> int32 {
  let %f = fn (%y: int32) -> int32 { add(%x, %y) };
  let %g = fn (%h: fn (int32) -> int32, %z: int32) -> int32 { %h(%h(%z)) };
  %g(%f, 3)
}
""")
    assert ev(transform.InferType()(m), np.int32(2)).numpy() == 7
    assert ev(transform.InferType()(m), np.int32(2), kind="vm").numpy() == 7


def test_doc_refs():
    m = parse("""
def @main() -> int32 { let %r = ref(1); ref_write(%r, 5); ref_read(%r) }
""")
    assert ev(transform.InferType()(m)).numpy() == 5


def test_doc_tuple_proj():
    m = parse("""
def @main(%x: (int32, float32)) -> float32 { %x.1 }
""")
    t = transform.InferType()(m)["main"].checked_type
    assert str(t) == "fn ((int32, float32)) -> float32"


def test_doc_graph_binding():
    m = parse("""
def @main(%x: float32) { %0 = add(%x, %x); %1 = multiply(%0, %0); add(%1, %0) }
""")
    b = m["main"].body
    assert b.args[1].same_as(b.args[0].args[0])


def test_doc_adt_poly_list():
    m = parse("""
type List[A] { Cons(A, List[A]), Nil }
def @length[A](%l: List[A]) -> int32 { match (%l) { Cons(_, %t) => add(1, @length(%t)), Nil => 0 } }
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] { match (%l) { Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil } }
def @main() -> int32 { @length(@map(fn (%x: int32) { add(%x, 1) }, Cons(1, Cons(2, Nil)))) }
""")
    m = transform.InferType()(m)
    assert ev(m).numpy() == 2


def test_doc_incomplete_match():
    m = parse("""
type List[A] { Cons(A, List[A]), Nil }
def @hd[A](%l: List[A]) -> A { match? (%l) { Cons(%h, _) => %h } }
def @main() -> int32 { @hd(Cons(7, Nil)) }
""")
    assert ev(transform.InferType()(m)).numpy() == 7


def test_doc_nested_patterns():
    m = parse("""
type List[A] { Cons(A, List[A]), Nil }
def @second(%l: List[(int32, int32)]) -> int32 { match (%l) { Cons(_, Cons((%a, %b), _)) => add(%a, %b), _ => -1 } }
def @main() -> int32 { @second(Cons((1, 2), Cons((3, 4), Nil))) }
""")
    assert ev(transform.InferType()(m)).numpy() == 7


def test_doc_attrs_text():
    m = parse("""
def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) { nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]) }
""")
    a = m["main"].body.attrs
    assert list(a.padding) == [1, 1, 1, 1] and a.channels == 4
    t = transform.InferType()(m).astext()
    assert "padding=[1, 1, 1, 1]" in t and "channels=4" in t and "kernel_size=[3, 3]" in t and "strides" not in t


def test_doc_comment_and_if():
    m = parse("""
/* a comment */
def @main(%n: int32) -> int32 { // another
  if (%n > 3) { %n - 1 } else { if (%n == 2) { 0 } else { %n * 2 } }
}
""")
    m = transform.InferType()(m)
    assert [int(ev(m, np.int32(i)).numpy()) for i in (5, 2, 1)] == [4, 0, 2]


def test_doc_extern_type():
    m = parse("""
extern type Blob
def @main(%b: Blob) -> Blob { %b }
""")
    assert m.get_global_type_var("Blob") is not None


def test_doc_func_attrs():
    m = parse("""
def @main(%x: int32, Primitive=1, Compiler="x") -> int32 { %x }
""")
    assert m["main"].attrs["Compiler"] == "x" and m["main"].attrs.Primitive == 1


def test_double_header():
    x = relay.var("x", shape=(2,))
    m = IRModule.from_expr(relay.Function([x], relay.exp(x)))
    assert tvm.ir.structural_equal(tvm.parser.parse(V + str(m)), m)


def test_parse_without_header():
    assert tvm.parser.parse_expr("fn (%x: int32) { %x }") is not None


def test_print_exact():
    x = relay.var("x", shape=(3, 2))
    y = relay.var("y")
    one = relay.const(10e10, dtype="float32")
    z = relay.add(x, one)
    z = relay.Tuple([z, z])
    z = relay.TupleGetItem(z, 0)
    f = relay.Function([x, y], z)
    t = f.astext()
    assert "%0 = " in t and "fn (%x: Tensor[(3, 2), float32], %y)" in t


def test_print_call_node_no_op():
    x = relay.var("x")
    f = relay.var("f")
    assert "%f(%x)" in str(f(x))


def test_print_let_inlining():
    x = relay.var("x")
    assert "let %x = 1;" in str(relay.Let(x, relay.const(1), x))


def test_print_zero_args():
    assert "fn ()" in str(relay.Function([], relay.Tuple([]))) and "()" in str(relay.Tuple([]))


def test_print_match():
    m = IRModule()
    relay.prelude.Prelude(m)
    s = m.astext()
    assert "match (" in s or "match? (" in s
    assert "type List[A]" in s and "Cons(A, List[A])" in s


def test_print_op_in_tuple():
    assert str(relay.Function([], relay.op.get("add"))) is not None


def test_doc_solver_identity():
    x = relay.var("x")
    f = relay.Function([x], relay.add(x, relay.const(np.ones((2, 2), "float32"))))
    try:
        t = run_infer_type(f)
        assert str(t.checked_type)
    except tvm.error.DiagnosticError:
        pass


def test_doc_any_loop():
    i = relay.var("i", shape=(), dtype="int32")
    st = relay.var("st", shape=(relay.Any(), 1), dtype="int32")
    loop = relay.loops.while_loop(
        lambda i, st: relay.less(i, relay.const(5)),
        [i, st],
        lambda i, st: (relay.add(i, relay.const(1)), relay.concatenate((st, relay.reshape(i, (1, 1))), axis=0)),
    )
    start = relay.var("start", shape=(), dtype="int32")
    body = loop(start, relay.reshape(relay.const(0), (1, 1)))
    f = relay.Function([start], relay.TupleGetItem(body, 1))
    m = IRModule()
    m["main"] = f
    r = ev(m, np.int32(0), kind="vm")
    assert r.numpy().ravel().tolist() == [0, 0, 1, 2, 3, 4]


def test_doc_byoc_annotator():
    from baton.relay.expr_functor import ExprMutator
    from baton.relay.op.annotation import compiler_begin, compiler_end

    class A(ExprMutator):
        def __init__(self):
            super().__init__()
            self.in_compiler = 0

        def visit_call(self, call):
            if call.op.name == "add":
                self.in_compiler = 1 if not self.in_compiler else self.in_compiler
                lhs = self.visit(call.args[0])
                rhs = self.visit(call.args[1])
                return compiler_end(relay.add(compiler_begin(lhs, "ccompiler"), compiler_begin(rhs, "ccompiler")), "ccompiler")
            return super().visit_call(call)

    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    f = A().visit(relay.Function([x, y], relay.exp(x + y)))
    m = transform.PartitionGraph()(transform.InferType()(IRModule.from_expr(f)))
    assert len(m.get_global_vars()) == 2


def test_doc_runtime():
    @tvm.register_func
    def my_packed(*args):
        return sum(args)

    f = tvm.get_global_func("my_packed")
    assert f(1, 2, 3) == 6

    @tvm.register_func("n5.callhello")
    def callhello(fn, msg):
        return fn(msg)

    assert tvm.get_global_func("n5.callhello")(lambda m: m + "!", "hi") == "hi!"
    g = tvm.convert(lambda x: x * 2)
    assert isinstance(g, tvm.runtime.PackedFunc) and g(4) == 8


def test_doc_object_reflection():
    x = relay.var("x", shape=(2,))
    c = relay.exp(x)
    assert set(dir(c)) >= {"op", "args", "attrs", "type_args", "span", "checked_type"}
    n = tvm.ir.make_node(
        "relay.attrs.Conv2DAttrs",
        strides=[1, 1],
        padding=[0, 0],
        dilation=[1, 1],
        groups=1,
        channels=None,
        kernel_size=None,
        data_layout="NCHW",
        kernel_layout="OIHW",
        out_layout="",
        out_dtype="",
    )
    assert n.data_layout == "NCHW"


def test_doc_module_hash_eq():
    x = relay.var("x", shape=(2,))
    a, b = IRModule.from_expr(relay.Function([x], relay.exp(x))), IRModule.from_expr(relay.Function([x], relay.exp(x)))
    assert tvm.ir.structural_equal(a, b) and tvm.ir.structural_hash(a) == tvm.ir.structural_hash(b)
    assert tvm.ir.load_json(tvm.ir.save_json(a))["main"] is not None
    tvm.ir.assert_structural_equal(tvm.ir.load_json(tvm.ir.save_json(a)), a)


def test_doc_shape_printing():
    assert str(relay.var("x", shape=(te.var("n"), 2)).type_annotation) == "Tensor[(%n, 2), float32]" or "n" in str(
        relay.var("x", shape=(te.var("n"), 2)).type_annotation
    )


def test_quantize_api():
    with relay.quantize.qconfig(skip_conv_layers=[0], nbit_input=8, global_scale=8.0, calibrate_mode="global_scale"):
        assert relay.quantize.current_qconfig().skip_conv_layers is not None
