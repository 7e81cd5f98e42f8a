# SPDX-License-Identifier: Apache-2.0
"""Text of programs, read and written: literals, operators, functions, types, attributes, metadata, spans; mistakes in it."""

import json
import pickle
import re

import numpy as np
import pytest

import baton as tvm
from baton import relay, te, tir

V = '#[version = "0.0.5"]\n'


def parse(text):
    return tvm.parser.parse_expr(V + text)


def printed(expr):
    """The text of an expression, which is read back to an equal one."""
    text = expr.astext()
    tvm.ir.assert_structural_equal(tvm.parser.parse_expr(text), expr, map_free_vars=True)
    return text


# ---- Literals and operators


@pytest.mark.parametrize(
    ("text", "value", "dtype"),
    [
        ("--10", 10, "int32"),
        ("---3", -3, "int32"),
        ("-10", -10, "int32"),
        ("--1.5f", 1.5, "float32"),
        ("10000000000", 10**10, "int64"),
        ("-2147483649", -(2**31) - 1, "int64"),
        ("-2147483648", -(2**31), "int32"),
        ("2147483647", 2**31 - 1, "int32"),
        ("7i64", 7, "int64"),
        ("-7i64", -7, "int64"),
        ("3u8", 3, "uint8"),
        ("1.5f64", 1.5, "float64"),
        ("2f16", 2, "float16"),
        ("1e3f", 1000, "float32"),
        ("1i8", 1, "int8"),
        ("1", 1, "int32"),
        ("1f", 1, "float32"),
        ("True", True, "bool"),
        ("0.5", 0.5, "float32"),
    ],
)
def test_literals(text, value, dtype):
    found = parse(text)
    assert isinstance(found, relay.Constant) and found.data.numpy() == value and found.data.dtype == dtype
    tvm.ir.assert_structural_equal(tvm.parser.parse_expr(found.astext()), found)


def test_an_int_that_does_not_fit():
    with pytest.raises(tvm.error.DiagnosticError, match="does not fit"):
        parse("99999999999999999999")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("1 < 2 == 3 < 4", "equal(less(1, 2), less(3, 4))"),
        ("1 == 2 > 3", "equal(1, greater(2, 3))"),
        ("1 != 2 <= 3", "not_equal(1, less_equal(2, 3))"),
        ("1 + 2 * 3 < 4 - 5 / 6", "less(add(1, multiply(2, 3)), subtract(4, divide(5, 6)))"),
        ("1 - 2 - 3", "subtract(subtract(1, 2), 3)"),
        ("1 - -2", "subtract(1, -2)"),
        ("1 == 2 == 3", "equal(equal(1, 2), 3)"),
        ("2 * -3", "multiply(2, -3)"),
        ("(1 + 2) * 3", "multiply(add(1, 2), 3)"),
        ("1 * 2 + 3", "add(multiply(1, 2), 3)"),
        ("1 < 2 + 3", "less(1, add(2, 3))"),
        ("1 >= 2", "greater_equal(1, 2)"),
        ("1 * 1 + 1 * 1", "add(multiply(1, 1), multiply(1, 1))"),
    ],
)
def test_precedence(text, same):
    tvm.ir.assert_structural_equal(parse(text), parse(same))


def test_a_sign_of_an_expression():
    f = parse("fn (%x: int32) { --%x }")
    assert f.body.op.name == f.body.args[0].op.name == "negative"


# ---- Forms of expressions: text, the node, what is read off it

FORMS = {
    "add": ("add(1, 2)", relay.Call, lambda e: e.op.name == "add" and len(e.args) == 2),
    "a tuple": ("(1, 2.0f, True)", relay.Tuple, lambda e: [f.data.dtype for f in e.fields] == ["int32", "float32", "bool"]),
    "a tuple of none": ("()", relay.Tuple, lambda e: len(e.fields) == 0),
    "a tuple of one": ("(1,)", relay.Tuple, lambda e: len(e.fields) == 1),
    "a field": ("(1, 2, 3).1", relay.TupleGetItem, lambda e: e.index == 1),
    "a let": ("let %x: int32 = 1; let %y = %x; (%x, %y)", relay.Let, lambda e: e.body.body.fields[0] == e.var and e.body.value == e.var),
    "a shared value": ("%0 = add(1, 2); %1 = multiply(%0, %0); %1", relay.Call, lambda e: e.args[0].same_as(e.args[1])),
    "a global variable": ("@f", relay.GlobalVar, lambda e: e.name_hint == "f"),
    "a function": ("fn (%x: int32, %y: float32) -> int32 { %x }", relay.Function, lambda e: e.ret_type == relay.scalar_type("int32") and e.body == e.params[0]),
    "type parameters": ("fn<A>(%x: A) -> A { %x }", relay.Function, lambda e: e.ret_type == e.type_params[0] == e.params[0].type_annotation),
    "a tensor of rank 0": ("fn (%x: Tensor[(), float32]) { %x }", relay.Function, lambda e: e.params[0].type_annotation == relay.TensorType(())),
    "an unknown extent": ("fn (%x: Tensor[(?, 3), float32]) { %x }", relay.Function, lambda e: isinstance(e.params[0].type_annotation.shape[0], tir.Any)),
    "types in types": ("fn (%x: (int32, (float32, bool)), %f: fn (int32) -> int32, %u: ()) -> () { () }", relay.Function,
                       lambda e: [type(p.type_annotation).__name__ for p in e.params] == ["TupleType", "FuncType", "TupleType"]
                       and isinstance(e.params[0].type_annotation.fields[1], relay.TupleType) and len(e.params[2].type_annotation.fields) == 0),
    "a call of a variable": ("fn (%f: fn (int32) -> int32) { %f(1) }", relay.Function, lambda e: e.body.op == e.params[0]),
}  # fmt: skip


@pytest.mark.parametrize("text, kind, holds", FORMS.values(), ids=FORMS)
def test_forms(text, kind, holds):
    found = tvm.parser.parse_expr(text)
    assert isinstance(found, kind) and holds(found) and printed(found)


x, c, y, f, g = relay.var("x", shape=(2,)), relay.var("c", shape=(), dtype="bool"), relay.var("y"), relay.var("f"), relay.GlobalVar("f")
big = relay.const(10e10, dtype="float32")
PRINTED = {
    "a free variable": (relay.nn.relu(x), ["free_var %x: Tensor[(2), float32]", "nn.relu(%x)"]),
    "a variable": (x, ["%x"]),
    "a shared value": (relay.Function([x, y], relay.TupleGetItem(relay.Tuple([z := relay.add(x, big), z]), 0)), ["%0 = ", "fn (%x: Tensor[(2), float32], %y)"]),
    "a call of a variable": (f(y), ["%f(%y)"]),
    "a call of a global function": (g(relay.const(1)), ["@f(1"]),
    "a let": (relay.Let(y, relay.const(1), y), ["let %y = 1;"]),
    "no arguments": (relay.Function([], relay.Tuple([])), ["fn ()", "()"]),
    "an operator": (relay.Function([], relay.op.get("add")), ["add"]),
    "a branch": (relay.If(relay.const(True), relay.const(1), relay.const(2)), ["if (True)"]),
    "a let of a branch": (relay.Function([c], relay.Let(y, relay.const(1.0), relay.If(c, y, y + y))), ["let %y", "if (%c) {", "} else {"]),
    "attributes": (relay.concatenate([x, x], axis=0), ["concatenate(%0)", "(%x, %x)"]),
    "attributes of a split": (relay.split(relay.concatenate([x, x], 0), 2).astuple(), ["split(", "indices_or_sections=2", "%x: Tensor[(2), float32]"]),
    "an unknown extent": (relay.Function([v := relay.var("x", shape=(relay.Any(), 4))], v), ["%x: Tensor[(?, 4), float32]"]),
    **{f"the number {v}": (relay.const(v, "float32"), []) for v in (1e-5, 1e20, -0.5, float("inf"))},
}  # fmt: skip


@pytest.mark.parametrize("expr, parts", PRINTED.values(), ids=PRINTED)
def test_printed(expr, parts):
    text = printed(expr)
    assert all(part in text for part in parts), text
    assert all(part in str(expr) and part in repr(expr) for part in parts)


def test_attributes_in_text():
    params = "%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]"
    mod = tvm.parser.parse(V + f"def @main({params}) {{ nn.conv2d(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]) }}")
    attrs = mod["main"].body.attrs
    assert (list(attrs.strides), list(attrs.padding), attrs.channels, attrs.data_layout) == ([2, 2], [1, 1, 1, 1], 4, "NCHW")
    text = relay.transform.InferType()(mod).astext()
    assert all(part in text for part in ("strides=[2, 2]", "padding=[1, 1, 1, 1]", "channels=4", "kernel_size=[3, 3]")) and "dilation" not in text


def test_attributes_and_comments_of_functions():
    mod = tvm.parser.parse(V + '// c\n/* a /* nested */ b */\ndef @main(%x: int32, Primitive=1, Compiler="ext") -> int32 { /* x */ 1 // y\n }')
    attrs = mod["main"].attrs
    assert (attrs["Compiler"], attrs["Primitive"], attrs.Primitive, mod["main"].body.data.numpy()) == ("ext", 1, 1, 1)


def test_metadata():
    values = np.random.default_rng(0).random((2, 3), "float32")
    mod = tvm.IRModule.from_expr(relay.Function([], relay.add(c := relay.const(values), c)))
    assert "meta[relay.Constant][0]" in mod.astext(show_meta_data=True)
    for read in (tvm.parser.parse, tvm.parser.fromtext):
        for text in (mod.astext(), V + mod.astext()):
            tvm.ir.assert_structural_equal(read(text), mod)
    table = {"relay.Constant": [relay.const(values)]}
    found = tvm.parser.parse(V + "def @main(%x: Tensor[(2, 3), float32]) { add(%x, meta[relay.Constant][0]) }", "from_string", None, table)
    assert (found["main"].body.args[1].data.numpy() == values).all()


MISTAKES = {
    "a function twice": (tvm.error.DiagnosticError, "def @a() { 1 }\ndef @a() { 2 }", "@a"),
    "a constructor twice": ((tvm.error.DiagnosticError, tvm.TVMError), "type A { X, X }\ndef @m() { () }", "X"),
    "an unknown attribute": (tvm.TVMError, "def @m(%x: Tensor[(2), float32]) { nn.softmax(%x, foo=1) }", "foo"),
    "an unknown variable": (tvm.error.DiagnosticError, "def @main(%x: Tensor[(2), float32]) { nn.relu(%zz) }", "zz"),
}


@pytest.mark.parametrize("error, text, word", MISTAKES.values(), ids=MISTAKES)
def test_mistakes(error, text, word):
    with pytest.raises(error, match=word):
        relay.transform.InferType()(tvm.parser.parse(V + text))


def test_another_version():
    with pytest.raises(tvm.error.DiagnosticError):
        tvm.parser.parse('#[version = "9.9.9"]\ndef @m() { 1 }')


# ---- Attributes of calls of functions


def test_attributes_of_calls_of_functions():
    text = V + 'def @f(%x: int32) -> int32 { %x }\ndef @main(%x: int32) -> int32 { @f(%x, one=1, name="two", parts=[1, 2], half=0.5, yes=True) }'
    mod = tvm.parser.parse(text)
    attrs = mod["main"].body.attrs
    assert (attrs["one"], attrs["name"], list(attrs["parts"]), attrs["half"], attrs["yes"]) == (1, "two", [1, 2], 0.5, True)
    assert 'one=1, name="two", parts=[1, 2], half=0.5f, yes=True' in mod.astext() and "metadata" not in mod.astext()
    tvm.ir.assert_structural_equal(tvm.parser.parse(mod.astext()), mod)
    assert relay.transform.InferType()(mod)["main"].body.attrs["one"] == 1


@pytest.mark.parametrize("values", [{"attrs": 1}, {"a b": 1, "c.d": "e"}, {"constant": [relay.const(np.ones(3, "float32"))]}], ids=lambda v: next(iter(v)))
def test_attributes_with_other_names_and_values(values):
    f = relay.GlobalVar("f")
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule({f: relay.Function([x], x)})
    y = relay.var("y", shape=(2,))
    mod["main"] = relay.Function([y], relay.Call(f, [y], tvm.ir.make_node("DictAttrs", **values)))
    again = tvm.parser.parse(mod.astext())
    assert again["main"].body.attrs.keys() == list(values)
    tvm.ir.assert_structural_equal(again, mod)


def test_an_attribute_given_twice():
    with pytest.raises(tvm.error.DiagnosticError, match="`a` is given twice"):
        parse("fn (%f: fn (int32) -> int32) { %f(1, a=1, a=2) }")


# ---- Types, spans


def test_types_in_text():
    x = relay.var("x", shape=(2, 3))
    plain = tvm.IRModule.from_expr(relay.add(relay.nn.relu(x), relay.const(1.0)))
    assert "ty=" not in plain.astext()
    mod = relay.transform.InferType()(plain)
    assert "nn.relu(%x) /* ty=Tensor[(2, 3), float32] */" in mod.astext() and "1f /* ty=float32 */" in mod.astext()
    assert "/* ty=" in mod["main"].astext(False) and "/* ty=" in mod["main"].body.astext()
    assert "ty=" not in mod.astext(show_types=False) and "ty=" not in str(mod)
    assert "ty=" not in mod.astext(annotate=lambda call: "here") and "/* here */" in mod.astext(annotate=lambda call: "here")
    back = tvm.parser.parse(mod.astext())
    tvm.ir.assert_structural_equal(back, mod)
    tvm.ir.assert_structural_equal(back, tvm.parser.parse(mod.astext(show_types=False)))


def test_types_of_constants_in_the_metadata():
    x = relay.var("x", shape=(2, 3))
    big = relay.const(np.ones((2, 3), "float32"))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], x + big)))
    assert "meta[relay.Constant][0] /* ty=Tensor[(2, 3), float32] */" in mod.astext()
    tvm.ir.assert_structural_equal(tvm.parser.parse(mod.astext()), mod)


def test_names_that_are_numbers():
    one, two = relay.var("1"), relay.var("2x")
    assert "%v1" in one.astext() and "%v2x" in relay.Function([two], two).astext()
    func = relay.Function([one, relay.var("v1")], relay.abs(one))
    assert "fn (%v1, %v11)" in func.astext()
    tvm.ir.assert_structural_equal(tvm.parser.parse_expr(func.astext()), func)


def test_names_of_spans_in_text():
    x, y = relay.var("x", shape=(3, 2)), relay.var("y", shape=(3, 2))
    span = relay.Span(relay.SourceName("Add0 */ {"), 0, 0, 0, 0)
    call = relay.Call(relay.op.get("add"), [x, y], span=span)
    assert "add(%x, %y) /* Add0 * / { */" in call.astext() and "Add0" not in str(call)
    tvm.ir.assert_structural_equal(tvm.parser.parse_expr(call.astext()), call, map_free_vars=True)
    parsed = tvm.parser.parse(V + "def @main(%x: Tensor[(2), float32]) {\n  nn.relu(%x)\n}", "net.relay")
    assert "net.relay" not in parsed.astext()


def test_attributes_that_text_says_in_any_case():
    x, w = relay.var("x", shape=(1, 2, 3)), relay.var("w", shape=(1, 4, 3))
    image = relay.var("image", shape=(1, 1, 2, 2))
    for call, said in (
        (relay.nn.dense(x, relay.var("w", shape=(4, 3))), "units=None"),
        (relay.nn.batch_matmul(x, w), "transpose_b=True"),
        (relay.transpose(x), "axes=None"),
        (relay.strided_slice(x, [0], [1]), "strides=[1], axes=None"),
        (relay.arange(relay.const(0.0), relay.const(2.0), relay.const(1.0)), 'dtype="float32"'),
        (relay.topk(x).astuple(), 'dtype="int32"'),
        (relay.shape_of(x), 'dtype="int32"'),
        (relay.nn.upsampling(image), "scale_h=1f, scale_w=1f"),
    ):
        func = relay.Function(relay.analysis.free_vars(call), call)
        assert said in func.astext(), func.astext()
        tvm.ir.assert_structural_equal(tvm.parser.parse_expr(func.astext()), func)


def test_names_of_spans():
    mod = tvm.parser.parse(V + "def @main(%x: Tensor[(2), float32]) {\n  nn.relu(%x)\n}", "net.relay")
    span = mod["main"].body.span
    inner = tvm.parser.parse(V + "def @main(%x: Tensor[(2), float32]) { nn.relu(exp(%x)) }")["main"].body
    assert inner.span.line == inner.args[0].span.line == 2
    assert (span.source_name.name, span.line, span.end_line, span.column) == ("net.relay", 3, 3, 3) and span.source_name == relay.SourceName("net.relay")
    assert tvm.parser.parse(V + "def @main() { 1 }")["main"].body.span.source_name.name == "from_string"
    again = relay.transform.AnnotateSpans()(tvm.IRModule.from_expr(relay.nn.relu(relay.var("x", shape=(2,)))))
    assert again["main"].body.span.source_name.name == "GeneratedSource"


# ---- Loops


def test_loops_are_readable():
    A = te.placeholder((4, 8), name="A")
    B = te.compute((4, 8), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    i, j = B.op.axis
    s[B].vectorize(j)
    s[B].parallel(i)
    mod = tvm.lower(s, [A, B], simple_mode=True)
    for text in (str(mod), repr(mod), str(mod["main"]), str(mod["main"].body), mod.astext(False)):
        assert "parallel" in text and re.search(r"\bB\w*\[", text) and re.search(r"\bA\w*\[", text) and "tir.For" not in text and "metadata" not in text
    assert "def @main(" in str(mod)
    tvm.ir.assert_structural_equal(tvm.parser.parse(mod.astext()), mod)


# ---- Numbers


def test_ints_of_containers_and_attributes():
    call = relay.nn.conv2d(relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3)), padding=(1, 2), channels=4, kernel_size=(3, 3))
    attrs = call.attrs
    assert [p.value for p in attrs.padding] == [1, 2, 1, 2] and attrs.kernel_size[0].value == 3 and attrs.channels.value == 4 and attrs.padding[1] == 2
    assert attrs.padding[-1].value == 2 and attrs.padding[1:3][0].value == 2 and tuple(attrs.strides) == (1, 1)
    assert [i.value for i in relay.reshape(call, (4, -1)).attrs.newshape] == [4, -1]
    shape = call.args[0].type_annotation.shape
    assert shape[1].value == 3 and shape[1] == 3 and shape[1] in (1, 3) and int(shape[1]) == 3
    values = tvm.ir.make_node("DictAttrs", a=1, b="x", c=1.5, d=[1, 2])
    assert values["a"].value == values.a.value == values.get("a").value == 1 and values["c"].value == 1.5 and values["d"][1].value == 2 and values.b == "x"
    f = relay.Function([], relay.const(1)).with_attr("Primitive", tir.IntImm("int32", 1))
    assert f.attrs["Primitive"] == 1 and f.attrs["Primitive"].value == 1 and f.attrs.Primitive.value == 1
    with tvm.transform.PassContext(config={"relay.FuseOps.max_depth": 10}) as context:
        assert context.config["relay.FuseOps.max_depth"].value == 10


def test_values_that_are_converted():
    assert tvm.runtime.convert(10).value == 10 and tvm.runtime.convert(10) == 10 and tvm.runtime.convert(1.5).value == 1.5
    assert [x.value for x in tvm.runtime.convert([1, 2])] == [1, 2] and tvm.runtime.convert({"a": 1})["a"].value == 1
    assert tvm.runtime.convert(True) is True and tvm.runtime.convert("a") == "a" and tvm.runtime.convert(None) is None


def test_such_an_int_is_one_of_python():
    three = tvm.runtime.convert([3, 5000])[0]
    assert isinstance(three, int) and [0, 1, 2, 3][three] == 3 and list(range(three)) == [0, 1, 2] and {3: "a"}[three] == "a" and repr(three) == "3"
    assert json.dumps({"a": three}) == '{"a": 3}' and type(pickle.loads(pickle.dumps(three))) is int and np.zeros(three).shape == (3,)
    assert type(three + 1) is int and tvm.runtime.convert([5000])[0].value == 5000 and -three == -3
    assert relay.reshape(relay.var("x", shape=(three,)), [three]).attrs.newshape == [3] and tir.IntImm("int32", three) == 3


TEXTS = {
    "width of an int": ("nn.softmax(%x, axis=-1i64)", "nn.softmax(%x, axis=-1)"),
    "widths in a list": ("reshape(%x, newshape=[3i64, 1i32])", "reshape(%x, newshape=[3, 1])"),
    "widths in lists": ("nn.pad(%x, 0f, pad_width=[[0i64, 1i64], [1, 0]])", "nn.pad(%x, 0f, pad_width=[[0, 1], [1, 0]])"),
}


@pytest.mark.parametrize(("text", "same"), TEXTS.values(), ids=TEXTS)
def test_text_is_the_same_as(text, same):
    both = [tvm.parser.parse(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 3), float32]) {{ {t} }}') for t in (text, same)]
    tvm.ir.assert_structural_equal(*both)


@pytest.mark.parametrize("name", ["conv1.weight", "layer1.0.bn2.bias", "a.b.c", "features.12.w_0", "x.y1"])
def test_names_with_points(name):
    text = f'#[version = "0.0.5"]\ndef @main(%{name}: (int32, int32)) -> int32 {{ add(%{name}.0, %{name}.1) }}'
    mod = tvm.parser.parse(text)
    assert mod["main"].params[0].name_hint == name and isinstance(mod["main"].body.args[1], relay.TupleGetItem)
    tvm.ir.assert_structural_equal(tvm.parser.parse(mod.astext()), mod)


def test_points_that_are_no_part_of_a_name():
    mod = tvm.parser.parse('#[version = "0.0.5"]\ndef @main(%x: ((int32, int32), int32)) -> int32 { %x.0.1 }')
    assert mod["main"].params[0].name_hint == "x" and mod["main"].body.index == 1
    with pytest.raises(tvm.error.DiagnosticError):
        tvm.parser.parse('#[version = "0.0.5"]\ndef @main(%x: int32) -> int32 { %x. }')


def test_source_names_are_equal_by_name():
    span = relay.Span(relay.SourceName("model"), 1, 1, 2, 3)
    back = tvm.ir.load_json(tvm.ir.save_json(span))
    assert back.source_name == span.source_name and (back.line, back.column, back.end_column) == (1, 2, 3)
    assert relay.SourceName("other") != span.source_name and len({back.source_name, span.source_name}) == 1


def test_parse_with_a_table_and_a_module():
    table = {"relay.Constant": [relay.const(2.0), relay.const(3)]}
    mod = tvm.parser.parse('#[version = "0.0.5"]\ndef @main() { meta[relay.Constant][1] }', "x", None, table)
    assert mod["main"].body.data.numpy() == 3
    base = tvm.IRModule({"f": relay.Function([], relay.const(1))})
    both = tvm.parser.parse('#[version = "0.0.5"]\ndef @main() { @f() }', "x", init_module=base)
    assert {v.name_hint for v in both.get_global_vars()} == {"f", "main"} and "main" not in base
    assert relay.create_executor("debug", mod=both).evaluate()().numpy() == 1
    with pytest.raises(ValueError, match="metadata of its own"):
        tvm.parser.parse(tvm.IRModule.from_expr(relay.const(np.zeros((9, 9)))).astext(), "x", None, table)
