# SPDX-License-Identifier: Apache-2.0
"""All of the language: data types and match, references, polymorphism, the prelude; text, types, evaluation."""

import itertools
import random

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay.prelude import Prelude

_HEAD = '#[version = "0.0.5"]\n'
_LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"


def _trip(text):
    mod = relay.parse(_HEAD + text)
    tvm.ir.assert_structural_equal(relay.parse(mod.astext()), mod)
    assert tvm.ir.structural_hash(relay.parse(mod.astext())) == tvm.ir.structural_hash(mod)
    tvm.ir.assert_structural_equal(tvm.ir.load_json(tvm.ir.save_json(mod)), mod)
    typed = relay.transform.InferType()(mod)
    assert relay.analysis.well_formed(typed)
    tvm.ir.assert_structural_equal(relay.parse(typed.astext()), typed)
    return typed


def _run(mod, *args):
    return relay.create_executor("debug", mod=mod).evaluate()(*args)


def _refused(text, message):
    with pytest.raises(tvm.error.CompileError, match=message) as caught:
        relay.transform.InferType()(relay.parse(_HEAD + text))
    assert "from_string:" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (
            _LIST
            + """def @len[A](%l: List[A]) -> int32 { match (%l) { Cons(_, %t) => add(1, @len(%t)), Nil => 0 } }
def @main() -> int32 { @len(Cons(1f, Cons(2f, Nil))) }""",
            2,
        ),
        ("def @main() -> int32 { let %r = ref(1); let %u = ref_write(%r, 5); add(ref_read(%r), ref_read(%r)) }", 10),
        ("def @main() -> int32 { let %id = fn [A](%x: A) -> A { %x }; let %b = %id(True); if (%b) { %id(3) } else { 4 } }", 3),
        (
            "type Nat { S(Nat), Z, }\ndef @num(%n: Nat) -> int32 { match (%n) { S(%m) => add(1, @num(%m)), Z => 0 } }\n"
            "def @main() -> int32 { @num(S(S(S(Z)))) }",
            3,
        ),
        ("def @main() -> int32 { match ((1, (2, 3))) { (%a, (%b, %c)) => add(%a, multiply(%b, %c)) } }", 7),
        (_LIST + "def @main() -> int32 { match? (Cons(4, Nil)) { Cons(%x: int32, Nil) => %x } }", 4),
        (
            _LIST
            + """def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil } }
type Option[A] { Some(A), None, }
def @main() -> int32 { match? (@map(Some, Cons(7, Nil))) { Cons(Some(%x), _) => %x } }""",
            7,
        ),
        (
            "def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }\n"
            "def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }\n"
            "def @main() -> bool { @even(10) }",
            True,
        ),
        ("def @main() -> int32 { let %f = fn (%n: int32) -> int32 { if (equal(%n, 0)) { 0 } else { add(%n, %f(subtract(%n, 1))) } }; %f(100) }", 5050),
        ("def @main() -> int32 { let %add = fn (%a: int32) { fn (%b: int32) { add(%a, %b) } }; %add(1)(2) }", 3),
    ],
)
def test_text_types_and_value(text, want):
    assert _run(_trip(text)).numpy() == want


def test_types_in_text():
    mod = _trip(_LIST + "def @f[A, B](%p: (A, B), %g: fn (A) -> ref(B), %u: (), %l: List[(A,)], %x: Tensor[(?, 3), float32]) -> ref(B) { %g(%p.0) }")
    kinds = [type(p.type_annotation).__name__ for p in mod["f"].params]
    assert kinds == ["TupleType", "FuncType", "TupleType", "TypeCall", "TensorType"]


def test_type_arguments_in_text():
    mod = _trip(_LIST + "def @id[A](%x: A) -> A { %x }\ndef @main() -> List[int32] { Cons[int32](@id[int32](1), Nil[int32]()) }")
    assert _run(mod).fields[0].numpy() == 1


def test_constructor_of_no_fields_as_a_value():
    mod = relay.parse(_HEAD + _LIST)
    _, _, nil = mod.get_type("List")
    mod["f"] = relay.Function([], relay.Tuple([nil, nil()]))
    again = relay.parse(mod.astext())
    tvm.ir.assert_structural_equal(again, mod)
    assert isinstance(again["f"].body.fields[0], relay.Constructor) and isinstance(again["f"].body.fields[1], relay.Call)


@pytest.mark.parametrize(
    ("clauses", "missing"),
    [
        ("Cons(%h, Cons(%g, %t)) => %h, Nil => 0", r"`Cons\(_, Nil\)`"),
        ("Cons(%h, _) => %h", "`Nil`"),
        ("Nil => 0", r"`Cons\(_, _\)`"),
        ("Cons(%h, Nil) => %h, Nil => 0", r"`Cons\(_, Cons\(_, _\)\)`"),
    ],
)
def test_a_match_covers_all(clauses, missing):
    text = _LIST + f"def @main(%l: List[int32]) -> int32 {{ match (%l) {{ {clauses} }} }}"
    assert "match?" in _refused(text, missing)
    open_match = relay.parse(_HEAD + text.replace("match (", "match? ("))
    typed = relay.transform.InferType()(open_match)
    assert len(relay.analysis.unmatched_cases(typed["main"].body, typed)) >= 1


def test_a_match_that_covers_all():
    text = (
        _LIST
        + """def @main(%p: (List[int32], List[int32])) -> int32 {
  match (%p) { (Nil, Nil) => 0, (Cons(%x, _), Nil) => %x, (_, Cons(%y, _)) => %y } }"""
    )
    mod = _trip(text)
    assert relay.analysis.unmatched_cases(mod["main"].body, mod) == []


_CASES = {"T": {"A": [], "B": ["U"], "C": ["(U, U)"]}, "U": {"P": [], "Q": [], "R": ["(U, U)"]}}


def _values(type_, depth):
    """Values of a type as (constructor or None, parts), of a depth."""
    if type_.startswith("("):
        return [(None, (a, b)) for a in _values(type_[1], depth) for b in _values(type_[-2], depth)]
    return [(name, parts) for name, fields in _CASES[type_].items() if depth or not fields
            for parts in itertools.product(*(_values(f, depth - 1) for f in fields))]  # fmt: skip


def _random_pattern(rng, type_, depth):
    if not depth or rng.random() < 0.35:
        return "_"
    if type_.startswith("("):
        return f"({_random_pattern(rng, type_[1], depth)}, {_random_pattern(rng, type_[-2], depth)})"
    name = rng.choice(list(_CASES[type_]))
    parts = ", ".join(_random_pattern(rng, f, depth - 1) for f in _CASES[type_][name])
    return f"{name}({parts})" if parts else name


def _fits(pattern, value):
    kind = type(pattern).__name__
    if kind in ("PatternWildcard", "PatternVar"):
        return True
    own = str(pattern.constructor.name_hint) if kind == "PatternConstructor" else None
    return own == value[0] and all(_fits(p, v) for p, v in zip(pattern.patterns, value[1], strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_cases_that_no_clause_covers(seed):
    """Against all values of a depth that patterns look no deeper than: each is covered by a clause, or by one missing case."""
    rng = random.Random(seed)
    clauses = ", ".join(f"{_random_pattern(rng, '(T, U)', 3)} => 1" for _ in range(rng.randint(1, 8)))
    mod = relay.parse(_HEAD + "type U { P, Q, R((U, U)) }\ntype T { A, B(U), C((U, U)) }\n"
                      f"def @main(%x: (T, U)) -> int32 {{ match? (%x) {{ {clauses} }} }}")  # fmt: skip
    match = relay.transform.InferType()(mod)["main"].body
    missing, values = relay.analysis.unmatched_cases(match, mod), [(None, (t, u)) for t in _values("T", 2) for u in _values("U", 1)]
    assert len(values) > 100
    for value in values:
        covered = any(_fits(c.lhs, value) for c in match.clauses)
        assert sum(_fits(m, value) for m in missing) == (not covered)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def @main(%x: int32) -> int32 { match (%x) { } }", "the match has no clause"),
        ("def @main(%x: int32) -> int32 { %x.0 }", "no tuple"),
        ("def @main() -> int32 { ().0 }", "part 0 is taken of a tuple of 0"),
        (_LIST + "def @main() -> List[int32] { Cons(1) }", "`Cons` takes 2 arguments, got 1"),
        (_LIST + "def @main() -> List[int32] { Cons(1, Cons(2f, Nil)) }", r"List\[float32\]"),
        (_LIST + "def @main(%l: List[int32]) -> int32 { match (%l) { Cons(%a) => %a, _ => 0 } }", "has 2 fields, the pattern names 1"),
        ("def @main() -> int32 { let %r = ref(1); ref_write(%r, 2f); 1 }", "a value of type float32 is written to a reference of int32"),
        ("def @f(%x: int32) -> int32 { ref_read(%x) }", "a reference is wanted"),
        ("def @f[A](%x: A) -> A { 1 }", "is declared to return A"),
        ("def @f(%g: fn (int32) -> int32) -> int32 { %g(1f) }", "argument 0 of `%g` has type float32, must be int32"),
    ],
)
def test_mistakes(text, message):
    try:
        _refused(text, message)
    except tvm.error.ParseError as error:
        pytest.fail(f"does not parse: {error}")


def test_polymorphic_functions_as_arguments():
    mod = _trip("def @id[A](%x: A) -> A { %x }\ndef @twice(%f: fn (int32) -> int32) -> int32 { %f(%f(3)) }\ndef @main() -> int32 { @twice(@id) }")
    assert _run(mod).numpy() == 3


def test_check_kind():
    kind = relay.analysis.check_kind
    mod = relay.parse(_HEAD + _LIST)
    lst, *_ = mod.get_type("List")
    a, s = relay.TypeVar("a"), relay.TypeVar("s", relay.TypeKind.ShapeVar)
    assert kind(a) == relay.TypeKind.Type and kind(s) == relay.TypeKind.ShapeVar and kind(lst) == relay.TypeKind.AdtHandle
    assert kind(relay.FuncType([a, relay.RefType(a)], relay.TupleType([]))) == relay.TypeKind.Type
    assert kind(lst(a), mod) == relay.TypeKind.Type
    for bad, message in [
        (relay.TupleType([s]), "is a shape"),
        (relay.RefType(lst), "without its arguments"),
        (lst(a, a), "takes 1 arguments, got 2"),
        (relay.TypeCall(a, [a]), "no data type"),
    ]:
        with pytest.raises(tvm.error.CompileError, match=message):
            kind(bad, mod)


def test_basic_block_normal_form():
    x, c = relay.var("x", shape=()), relay.var("c", shape=(), dtype="bool")
    y = relay.abs(x)
    check = relay.analysis.check_basic_block_normal_form
    assert check(relay.If(c, relay.abs(y), x)) and check(relay.add(y, y))
    with pytest.raises(tvm.TVMError, match="not in basic block normal form"):
        check(relay.If(c, y, relay.abs(y)))
    v = relay.var("v")
    assert check(relay.Let(v, y, relay.If(c, v, relay.abs(v))))


def test_constants_of_tuples():
    one = relay.const(1)
    assert relay.analysis.check_constant(relay.Tuple([one, relay.Tuple([])]))
    assert not relay.analysis.check_constant(relay.Tuple([one, relay.var("x")]))


def test_features():
    F = relay.analysis.Feature
    mod = relay.parse(_HEAD + _LIST + "def @main(%l: List[int32]) -> int32 { match (%l) { Cons(%h, _) => %h, Nil => 0 } }")
    assert relay.analysis.detect_feature(mod["main"]) == {F.fFunction, F.fVar, F.fMatch, F.fConstructor, F.fConstant}


# ---- Prelude


def _prelude():
    mod = tvm.IRModule()
    return mod, Prelude(mod)


def _list(p, values):
    out = p.nil()
    for v in reversed(values):
        out = p.cons(v if isinstance(v, relay.Expr) else relay.const(v), out)
    return out


def _value(v):
    """A value of Relay in Python's terms."""
    if isinstance(v, tvm.nd.NDArray):
        return v.numpy().item()
    if hasattr(v, "constructor"):
        name = v.constructor.name_hint
        if name in ("Cons", "Nil"):
            out = []
            while v.constructor.name_hint == "Cons":
                out.append(_value(v.fields[0]))
                v = v.fields[1]
            return out
        return (name, *map(_value, v.fields))
    return tuple(map(_value, v))


def _fn(f, n=1):
    params = [relay.var(f"a{i}") for i in range(n)]
    return relay.Function(params, f(*params))


def test_prelude_is_a_program():
    mod, _ = _prelude()
    typed = relay.transform.InferType()(mod)
    tvm.ir.assert_structural_equal(relay.parse(typed.astext()), typed)
    mod.import_from_std("prelude.rly")  # once more is no harm
    with pytest.raises(ValueError, match=r"it has prelude\.rly"):
        mod.import_from_std("other.rly")
    with pytest.raises(ValueError, match="its own data type"):
        Prelude(relay.parse(_HEAD + _LIST))


one = relay.const(1)


@pytest.mark.parametrize(
    ("name", "make", "want"),
    [
        ("id", lambda p: p.id(relay.const(3)), 3),
        ("compose", lambda p: p.compose(_fn(lambda x: relay.add(x, one)), _fn(lambda x: relay.multiply(x, relay.const(5))))(relay.const(2)), 11),
        ("flip", lambda p: p.flip(_fn(relay.subtract, 2))(relay.const(2), relay.const(7)), 5),
        ("hd", lambda p: p.hd(_list(p, [4, 5])), 4),
        ("tl", lambda p: p.tl(_list(p, [4, 5])), [5]),
        ("nth", lambda p: p.nth(_list(p, [4, 5, 6]), relay.const(2)), 6),
        ("update", lambda p: p.update(_list(p, [4, 5, 6]), one, relay.const(9)), [4, 9, 6]),
        ("map", lambda p: p.map(_fn(lambda x: relay.add(x, one)), _list(p, [1, 2, 3])), [2, 3, 4]),
        ("foldl", lambda p: p.foldl(_fn(relay.subtract, 2), relay.const(10), _list(p, [1, 2])), 7),
        ("foldr", lambda p: p.foldr(_fn(relay.subtract, 2), relay.const(10), _list(p, [1, 2])), 9),
        ("foldr1", lambda p: p.foldr1(_fn(relay.subtract, 2), _list(p, [9, 5, 2])), 6),
        ("concat", lambda p: p.concat(_list(p, [1]), _list(p, [2, 3])), [1, 2, 3]),
        ("filter", lambda p: p.filter(_fn(lambda x: relay.greater(x, one)), _list(p, [0, 2, 1, 3])), [2, 3]),
        ("zip", lambda p: p.zip(_list(p, [1, 2]), _list(p, [3, 4, 5])), [(1, 3), (2, 4)]),
        ("rev", lambda p: p.rev(_list(p, [1, 2, 3])), [3, 2, 1]),
        ("map_accumr", lambda p: p.map_accumr(_fn(lambda a, b: relay.Tuple([relay.add(a, b), relay.multiply(a, b)]), 2), one, _list(p, [2, 3])), (6, [8, 3])),
        ("map_accuml", lambda p: p.map_accuml(_fn(lambda a, b: relay.Tuple([relay.add(a, b), relay.multiply(a, b)]), 2), one, _list(p, [2, 3])), (6, [9, 2])),
        ("sum", lambda p: p.sum(_list(p, [1, 2, 3])), 6),
        ("length", lambda p: p.length(_list(p, [1, 2, 3])), 3),
        ("size", lambda p: p.size(p.rose(one, _list(p, [p.rose(one, p.nil()), p.rose(one, _list(p, [p.rose(one, p.nil())]))]))), 4),
        ("tmap", lambda p: p.tmap(_fn(lambda x: relay.add(x, one)), p.rose(one, _list(p, [p.rose(one, p.nil())]))), ("Rose", 2, [("Rose", 2, [])])),
        ("iterate", lambda p: p.iterate(_fn(lambda x: relay.add(x, x)), relay.const(5))(one), 32),
    ],
)
def test_prelude_functions(name, make, want):
    mod, p = _prelude()
    mod["main"] = relay.Function([], make(p))
    assert _value(_run(mod)) == want


@pytest.mark.parametrize(("name", "want"), [("unfoldr", [3, 2, 1]), ("unfoldl", [1, 2, 3])])
def test_prelude_unfold(name, want):
    mod, p = _prelude()
    n = relay.var("n", shape=(), dtype="int32")
    count = relay.Function([n], relay.If(relay.equal(n, relay.const(0)), p.none(), p.some(relay.Tuple([relay.subtract(n, one), n]))))
    mod["main"] = relay.Function([], p.get_global_var(name)(count, relay.const(3)))
    assert _value(_run(mod)) == want


def test_a_match_that_no_clause_fits_says_so():
    mod, p = _prelude()
    mod["main"] = relay.Function([], p.hd(p.tl(_list(p, [1]))))
    with pytest.raises(tvm.error.TVMError, match="no clause of the match fits"):
        _run(mod)


def test_long_lists():
    mod, p = _prelude()
    n = 20_000
    x = relay.var("x", p.l(relay.scalar_type("int32")))
    mod["main"] = relay.Function([x], p.sum(x))
    typed = relay.transform.InferType()(mod)
    build = relay.Function([], _list(p, list(range(n))))
    mod2 = mod.shallow_copy()
    mod2["main"] = build
    values = _run(mod2)
    assert _run(typed, values).numpy() == np.arange(n, dtype="int32").sum(dtype="int32")


# ---- Arguments of executors

_KINDS = ["debug", "graph", "aot", "vm"]


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize(
    ("params", "arg", "message"),
    [
        ("%x: Tensor[(4), float32]", np.ones(5, "float32"), "input 0 `x`: expected .*, got .*5"),
        ("%x: Tensor[(4), float32]", np.ones((4, 1), "float32"), "input 0 `x`: expected .*, got .*4, 1"),
        ("%x: Tensor[(4), int8]", np.full(4, 0.5, "float32"), "input 0 `x`: expected .*, got .*float32"),
        ("%x: (float32, float32)", np.float32(1), r"input 0 `x`: expected \(float32, float32\), got float32"),
        ("%x: (float32, float32)", (np.float32(1),) * 3, r"input 0 `x`: expected \(float32, float32\), got "),
    ],
)
def test_arguments_that_do_not_fit(kind, params, arg, message):
    mod = relay.fromtext(_HEAD + f"def @main({params}) {{ (%x, 1f) }}")
    with pytest.raises(ValueError, match=message):
        relay.create_executor(kind, mod=mod).evaluate()(arg)


@pytest.mark.parametrize("kind", _KINDS)
def test_arguments_of_python(kind):
    """Numbers get the dtype of the parameter, tuples of numbers are tuples where the parameter is one."""
    mod = relay.fromtext(_HEAD + "def @main(%n: int64, %p: (float32, (bool, float64))) { (%n, %p.0, %p.1.0, %p.1.1) }")
    out = relay.create_executor(kind, mod=mod).evaluate()(3, (1, (True, 2)))
    assert [(str(v.dtype), v.numpy().item()) for v in out] == [("int64", 3), ("float32", 1), ("bool", True), ("float64", 2)]


@pytest.mark.parametrize("kind", _KINDS[1:])
def test_a_variable_that_nothing_binds(kind):
    mod = tvm.IRModule.from_expr(relay.Function([], relay.add(relay.const(1.0), relay.var("z", shape=()))))
    with pytest.raises(tvm.error.CompileError, match="`%z` has no value in @main"):
        relay.create_executor(kind, mod=mod).evaluate()


def test_core_has_the_type_of_storage():
    mod = tvm.IRModule()
    for _ in range(2):
        mod.import_from_std("core.rly")
    assert [var.name_hint for var in mod.get_global_type_vars()] == ["Storage"]
