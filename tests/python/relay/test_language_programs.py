# SPDX-License-Identifier: Apache-2.0
"""Programs with functions, closures, references, data types and loops: text, arguments, the value that both interpreters give."""

import numpy as np
import pytest
from building import evaluated, function, numbers, parsed, typed

import baton as tvm
from baton import relay
from baton.relay.prelude import Prelude

LIST = "type List[A] { Cons(A, List[A]), Nil } "
INT = relay.scalar_type("int32")
n, m = np.int32(2), np.ones((2, 2), "float32")
PROGRAMS = {
    "let functions": ("def @main(%x: T[2,2], %y: T[2,2]) { let %sum = fn (%x: T[2,2]) -> T[2,2] { add(%x, %x) }; %sum(%sum(add(%x, %y))) }",
                      [m, m], np.full((2, 2), 8)),
    "a closure as an argument": ("def @main(%x: int32) -> int32 { let %f = fn (%y: int32) -> int32 { add(%x, %y) }; "
                                 "let %g = fn (%h: fn (int32) -> int32, %z: int32) -> int32 { %h(%h(%z)) }; %g(%f, 3) }", [n], 7),
    "a closure as a result": ("def @main() -> int32 { fn (%x: int32) { fn (%y: int32) { add(%x, %y) } }(1)(2) }", [], 3),
    "a reference": ("def @main() -> int32 { let %r = ref(1); ref_write(%r, 5); ref_read(%r) }", [], 5),
    "a shared value": ("def @main(%x: int32) { %0 = add(%x, %x); %1 = multiply(%0, %0); add(%1, %0) }", [n], 20),
    "a list": (LIST + "def @length[A](%l: List[A]) -> int32 { match (%l) { Cons(_, %t) => add(1, @length(%t)), Nil => 0 } } "
               "def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] { match (%l) { Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil } } "
               "def @main() -> int32 { @length(@map(fn (%x: int32) { add(%x, 1) }, Cons(1, Cons(2, Nil)))) }", [], 2),
    "an open match": (LIST + "def @hd[A](%l: List[A]) -> A { match? (%l) { Cons(%h, _) => %h } } def @main() -> int32 { @hd(Cons(7, Nil)) }", [], 7),
    "nested patterns": (LIST + "def @second(%l: List[(int32, int32)]) -> int32 { match (%l) { Cons(_, Cons((%a, %b), _)) => add(%a, %b), _ => -1 } } "
                        "def @main() -> int32 { @second(Cons((1, 2), Cons((3, 4), Nil))) }", [], 7),
    "variants": ("type Shape { Circle(float32), Square(float32), Dot } def @area(%s: Shape) -> float32 { match (%s) { Circle(%r) => %r * %r * 3f, "
                 "Square(%a) => %a * %a, Dot => 0f } } def @main() -> float32 { @area(Circle(2f)) }", [], 12),
    "an option": ("type Option[A] { Some(A), None } def @main() -> int32 { match (Some(3)) { Some(%v) => %v, None => 0 } }", [], 3),
    "a function of any type": ("def @apply[A, B](%f: fn (A) -> B, %x: A) -> B { %f(%x) } def @main() -> int32 { @apply(fn (%x: int32) { %x + 1 }, 3) }", [], 4),
    "mutual recursion": ("def @even(%n: int32) -> bool { if (%n == 0) { True } else { @odd(%n - 1) } } def @odd(%n: int32) -> bool "
                         "{ if (%n == 0) { False } else { @even(%n - 1) } } def @main(%n: int32) -> bool { @even(%n) }", [n], True),
    "recursion": ("def @fib(%n: int32) -> int32 { if (%n < 2) { %n } else { @fib(%n - 1) + @fib(%n - 2) } } def @main() { @fib(10) }", [], 55),
    "a loop by a closure": ("def @main(%n: int32) -> int32 { let %loop = fn (%i: int32, %a: int32) -> int32 { if (%i == 0) { %a } else "
                            "{ %loop(%i - 1, %a + %i) } }; %loop(%n, 0) }", [np.int32(10)], 55),
    "nested branches": ("/* a comment */ def @main(%n: int32) -> int32 { if (%n > 3) { %n - 1 } else { if (%n == 2) { 0 } else { %n * 2 } } }", [n], 0),
    "a field of a tuple": ("def @main() { let %y = (1, (3f, 4f)); %y.1 }", [], [3, 4]),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["debug", "vm"])
@pytest.mark.parametrize("text, args, want", PROGRAMS.values(), ids=PROGRAMS)
def test_value(text, args, want, kind):
    mod = parsed(text)
    for again in (mod, relay.transform.InferType()(mod), parsed(mod.astext().partition("\n")[2])):
        np.testing.assert_array_equal(evaluated(again, *args, kind=kind), want)


@pytest.mark.parametrize("value, want", [(5, 4), (2, 0), (1, 2)])
def test_branches(value, want):
    assert evaluated(parsed(PROGRAMS["nested branches"][0]), np.int32(value)) == want


def test_a_partial_evaluation_and_closures_as_data():
    text = PROGRAMS["a function of any type"][0]
    mod = relay.transform.InferType()(parsed(text))
    assert evaluated(relay.transform.PartialEvaluate()(mod)) == 4
    made = relay.transform.Defunctionalization(mod["main"], mod)
    assert not any(isinstance(p.checked_type, relay.FuncType) for p in made.params)


# ---- The prelude


@pytest.fixture
def prelude():
    mod = tvm.IRModule()
    made = Prelude(mod)
    mod.import_from_std("nat.rly")
    return mod, made


def test_natural_numbers(prelude):
    mod, made = prelude
    five = relay.testing.make_nat_expr(made, 5)
    double, add, nat = mod.get_global_var("nat_double"), mod.get_global_var("nat_add"), mod.get_type("nat")[0]
    for expr, want in ((five, 5), (double(five), 10), (add(five, five), 10)):
        assert relay.testing.count(made, relay.create_executor("debug", mod=mod).evaluate(expr)) == want
    assert mod[double].checked_type == relay.FuncType([nat()], nat())


def test_values_of_data_types(prelude):
    mod, _ = prelude
    option, some, none = mod.get_type("Option")
    interpreter = relay.backend.interpreter
    made = relay.create_executor("debug", mod=mod).evaluate(some(relay.const(1)))
    assert isinstance(made, interpreter.ConstructorValue) and made.constructor == some and made.tag == some.tag
    x, y = relay.var("x", option(INT)), relay.var("y")
    first = relay.Clause(relay.PatternConstructor(some, [relay.PatternVar(y)]), y)
    func = relay.Function([x], relay.Match(x, [first, relay.Clause(relay.PatternWildcard(), relay.const(0))]))
    for value, want in ((interpreter.ConstructorValue(some.tag, [tvm.nd.array(np.int32(4))], some), 4), (interpreter.ConstructorValue(none.tag, [], none), 0)):
        assert relay.create_executor("debug", mod=mod).evaluate(func)(value).numpy() == want
    assert interpreter.RefValue(tvm.nd.array(np.int32(1))).value.numpy() == 1
    _, cons, nil = mod.get_type("List")
    found = relay.create_executor("debug", mod=mod).evaluate(cons(relay.Tuple([]), nil()))
    assert found.constructor == cons
    python = relay.testing.py_converter.run_as_python(cons(relay.const(1), nil()), mod)
    assert python.constructor.name_hint == "Cons" and python.fields[0].numpy() == 1


def test_a_list_of_the_machine(prelude):
    mod, _ = prelude
    _, cons, nil = mod.get_type("List")
    mod["main"] = relay.Function([], mod.get_global_var("map")(relay.Function([x := relay.var("x", "int32")], x + relay.const(1)), cons(relay.const(1), nil())))
    result = relay.create_executor("vm", mod=mod).evaluate()()
    assert result.tag == cons.tag and result[0].numpy() == 2 and len(result) == 2
    mod["main"] = relay.Function([], mod.get_global_var("hd")(cons(relay.const(3), nil())))
    assert evaluated(relay.transform.PartialEvaluate()(relay.transform.InferType()(mod))) == 3


def test_arrays_of_tensors():
    mod = tvm.IRModule()
    made = Prelude(mod)
    array, read, write = (made.get_global_var(f"tensor_array{part}", "int32") for part in ("", "_read", "_write"))
    one = made.get_tensor_ctor("tensor1", "int32")(relay.const(np.array([5, 6], "int32")))
    mod["main"] = relay.Function([], read(write(array(relay.const(2)), relay.const(1), one), relay.const(1)))
    assert relay.create_executor("debug", mod=mod).evaluate()().fields[0].numpy().tolist() == [5, 6]


def test_text_of_the_prelude(prelude):
    mod, _ = prelude
    text = mod.astext()
    assert "type List[A]" in text and "Cons(A, List[A])" in text and "match (" in text
    tvm.ir.assert_structural_equal(tvm.parser.parse(text), mod)
    tvm.ir.assert_structural_equal(tvm.parser.fromtext(text), mod)
    data, cons, nil = mod.get_type("List")
    assert data in mod.get_global_type_vars() and mod.get_constructor(cons.tag) == cons and mod.get_constructor(nil.tag).name_hint == "Nil"
    with pytest.raises(ValueError, match="tag 12345"):
        mod.get_constructor(12345)


# ---- Data types of a program


def test_a_data_type():
    mod, box, a = tvm.IRModule(), relay.GlobalTypeVar("box"), relay.TypeVar("a")
    make = relay.Constructor("Box", [a], box)
    data = mod[box] = relay.TypeData(box, [a], [make])
    assert (data.header, list(data.type_vars), list(data.constructors)) == (box, [a], [make]) and mod[box].constructors[0] == make
    assert (make.name_hint, make.belong_to, len(make.inputs), mod.get_constructor(make.tag), mod.get_type("box")[1]) == ("Box", box, 1, make, make)
    assert mod.get_global_type_var("box") == box and list(mod.get_global_type_vars()) == [box]
    kind = box(relay.TensorType(()))
    assert isinstance(kind, relay.TypeCall) and (kind.func, len(kind.args)) == (box, 1) and kind == box(relay.TensorType(()))
    assert kind == relay.TypeCall(box, [relay.TensorType(())]) == tvm.ir.TypeCall(box, [relay.TensorType(())])
    x = relay.var("x")
    match = relay.Match(make(relay.const(1)), [relay.Clause(relay.PatternConstructor(make, [relay.PatternVar(x)]), x)])
    assert match.complete and match.clauses[0].lhs.patterns[0].var == x and match.data.op == make
    wild = relay.PatternWildcard()
    assert len(relay.PatternTuple([wild, wild]).patterns) == 2
    mod["main"] = relay.Function([], match)
    mod["boxed"] = relay.Function([], make(relay.const(1)))
    mod = relay.transform.InferType()(mod)
    assert mod["main"].ret_type == INT and mod["boxed"].ret_type == box(INT) and evaluated(mod) == 1


def test_cases_that_no_clause_covers(prelude):
    mod, _ = prelude
    kind, cons, nil = mod.get_type("List")
    assert isinstance(cons, relay.Constructor) and cons.belong_to == kind and len(cons.inputs) == 2 and cons.tag is not None
    v, any_ = relay.var("v"), relay.PatternWildcard()
    for have, missing in ((relay.PatternConstructor(cons, [any_, any_]), nil), (relay.PatternConstructor(nil, []), cons)):
        (found,) = relay.analysis.unmatched_cases(relay.Match(v, [relay.Clause(have, v)], complete=False), mod)
        assert isinstance(found, relay.PatternConstructor) and found.constructor == missing
    assert relay.analysis.unmatched_cases(relay.Match(v, [relay.Clause(any_, v)]), mod) == []
    x = relay.var("x", kind(INT))
    mod["main"] = relay.Function([x], relay.Match(x, [relay.Clause(relay.PatternConstructor(nil, []), relay.const(1))]))
    with pytest.raises(tvm.error.DiagnosticError, match="Cons"):
        relay.transform.InferType()(mod)


def test_an_extern_type():
    mod = parsed("extern type Blob def @main(%b: Blob) -> Blob { %b }")
    assert mod.get_global_type_var("Blob").name_hint == "Blob" and mod["main"].params[0].type_annotation.func == mod.get_global_type_var("Blob")


# ---- Programs that are built


def test_scopes():
    builder, c, x = relay.ScopeBuilder(), relay.var("c", "bool"), relay.var("x", "int32")
    with builder.if_scope(c):
        builder.ret(builder.let("y", x + relay.const(1)))
    with builder.else_scope():
        builder.ret(x)
    run = relay.create_executor("debug").evaluate(relay.Function([c, x], builder.get()))
    assert (run(True, np.int32(1)).numpy(), run(False, np.int32(1)).numpy()) == (2, 1)
    builder = relay.ScopeBuilder()
    y = builder.let("y", relay.Tuple([relay.const(1), relay.const(np.array([3, 4], "float32"))]))
    builder.ret(relay.TupleGetItem(y, 1))
    assert evaluated(builder.get()).tolist() == [3, 4]


def test_a_function_is_a_value():
    both = relay.create_executor("debug").evaluate(relay.Tuple([relay.const(1), relay.Function([], relay.const(1))]))
    assert len(both) == 2 and both[0].numpy() == 1


def loop(body, *variables, until=3):
    i = relay.var("i", shape=(), dtype="int32")
    return relay.loops.while_loop(lambda i, *rest: relay.less(i, relay.const(until)), [i, *variables], lambda i, *rest: (i + relay.const(1), *body(i, *rest)))


def test_loops():
    assert numbers(relay.create_executor("debug").evaluate(loop(lambda i: (), until=10)(relay.const(0))))[0] == 10
    x = relay.var("x", shape=(2,))
    doubled = loop(lambda i, a: (a * relay.const(2.0),), relay.var("a", shape=(2,)))(relay.const(0), x)
    for kind in ("debug", "vm"):
        assert evaluated(relay.Function([x], relay.TupleGetItem(doubled, 1)), np.ones(2, "float32"), kind=kind).tolist() == [8, 8]
    rows = relay.var("rows", shape=(relay.Any(), 1), dtype="int32")
    grown = loop(lambda i, r: (relay.concatenate((r, relay.reshape(i, (1, 1))), axis=0),), rows, until=5)(relay.const(0), relay.reshape(relay.const(0), (1, 1)))
    assert evaluated(relay.Function([], relay.TupleGetItem(grown, 1)), kind="vm").ravel().tolist() == [0, 0, 1, 2, 3, 4]


def test_calls_of_a_graph():
    graph = relay.analysis.CallGraph(parsed("def @r(%x: int32) -> int32 { @r(%x) } def @main(%x: int32) -> int32 { @r(%x) }"))
    assert graph.is_recursive("r") and not graph.is_recursive("main") and graph.ref_count("r") == 2
    graph = relay.analysis.CallGraph(
        parsed("def @a(%x: int32) -> int32 { %x } def @b(%x: int32) -> int32 { @a(%x) } def @main(%x: int32) -> int32 { @b(@a(%x)) }")
    )
    assert "a" in graph and (graph.ref_count("a"), graph.global_call_count("main")) == (2, 2) and not graph.is_recursive("a")
    assert all(name in str(graph) for name in ("a", "b", "main")) and "b" in graph.print_var("b") and graph["a"].name_hint == "a"


def test_a_function_of_type_parameters():
    a = relay.TypeVar("a")
    kind = typed(relay.Function([relay.Var("x", a)], relay.const(1), type_params=[a])).checked_type
    assert len(kind.type_params) == 1 and kind.ret_type == INT
    y = relay.var("y", shape=(2,))
    unbound = relay.Function([], y)
    assert relay.analysis.free_vars(unbound) == [y] and relay.analysis.well_formed(unbound) and function(y).params[0] == y
