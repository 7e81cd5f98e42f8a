# SPDX-License-Identifier: Apache-2.0
"""Continuation-passing style and back: the same values, on generated programs and on those that tell forms apart."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay import transform
from baton.relay.testing import random_inputs, random_program

HEAD = '#[version = "0.0.5"]\n'
LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"


def parse(text):
    return transform.InferType()(relay.fromtext(HEAD + text))


def run(mod, *args, kind="debug"):
    return relay.create_executor(kind, mod).evaluate()(*args)


def leaves(value):
    if hasattr(value, "numpy"):
        return [value.numpy()]
    if hasattr(value, "tag"):
        return [np.asarray(value.tag), *(x for f in (value.fields if hasattr(value, "fields") else value) for x in leaves(f))]
    return [x for f in value for x in leaves(f)] if hasattr(value, "__iter__") else []


def same(want, got):
    a, b = leaves(want), leaves(got)
    return len(a) == len(b) and all(x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in zip(a, b, strict=True))


def there_and_back(mod):
    """The module with @main converted and converted back."""
    out = tvm.IRModule(dict(mod.functions), dict(mod.type_definitions))
    out["main"] = transform.un_cps(transform.to_cps(mod["main"], out), out)
    assert relay.analysis.well_formed(out)
    return transform.InferType()(out)


def test_the_type_of_a_function_of_functions():
    """Each function takes a continuation; the answer is one type parameter more."""
    mod = parse("def @main[T](%f: fn (T) -> T, %x: T) -> T { %f(%f(%x)) }")
    cps = transform.to_cps(mod["main"])
    t, a = relay.TypeVar("T"), relay.TypeVar("Answer")
    k = relay.FuncType([t], a)
    want = relay.FuncType([relay.FuncType([t, k], a), t, k], a, [t, a])
    assert tvm.ir.structural_equal(transform.InferTypeLocal(cps), want)


def test_nothing_is_done_after_a_call_but_to_go_on():
    """Calls of functions, branches and matches stand last, in what is converted and in its continuations."""
    mod = parse(
        LIST + "def @f(%n: int32) -> int32 { if (less(%n, 1)) { 0 } else { add(@f(subtract(%n, 1)), %n) } }\n"
        "def @main(%n: int32) -> int32 { let %xs = Cons(@f(%n), Nil); let %y = match (%xs) { Cons(%x, _) => multiply(%x, 2), Nil => 3 }; add(%y, @f(2)) }"
    )
    out = tvm.IRModule(dict(mod.functions), dict(mod.type_definitions))
    out["main"] = transform.to_cps(mod["main"], out)
    assert {str(v.name_hint) for v in out.get_global_vars()} == {"f", "f_cps", "main"}

    def jumps(e):
        return isinstance(e, (relay.If, relay.Match)) or (isinstance(e, relay.Call) and isinstance(e.op, (relay.Var, tvm.ir.GlobalVar, relay.Function)))

    def check(e):
        if isinstance(e, relay.Let):
            assert not jumps(e.value)

    for name in ("main", "f_cps"):
        relay.analysis.post_order_visit(out[name], check)
        body = out[name].body
        while isinstance(body, relay.Let):
            body = body.body
        assert jumps(body)
    assert int(run(there_and_back(mod), 4).numpy()) == 23


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_generated_programs_keep_their_values(first):
    converted = 0
    for seed in range(first, first + 20):
        mod = transform.InferType()(relay.fromtext(random_program(seed)))
        args = random_inputs(mod, seed)
        back = there_and_back(mod)
        assert same(run(mod, *args), run(back, *args)), seed
        again = transform.InferType()(relay.fromtext(back.astext()))
        tvm.ir.assert_structural_equal(back, again, map_free_vars=True)
        converted += "join" in back.astext() or "_cps" in back.astext()
        if seed % 20 == 0:
            assert same(run(mod, *args), run(back, *args, kind="vm")), seed
    assert converted > 5  # else nothing was tried


def test_the_passes_do_the_same():
    mod = parse("def @f(%x: int32) -> int32 { add(%x, 1) }\ndef @main(%x: int32) -> int32 { @f(@f(%x)) }")
    cps = transform.InferType()(transform.ToCPS()(mod))
    assert len(cps["main"].params) == 2 and cps["f_cps"].params[1].name_hint == "k"
    back = transform.InferType()(transform.UnCPS()(cps))
    assert int(run(back, 3).numpy()) == 5
    assert transform.UnCPS()(mod).same_as(mod)


def test_functions_of_a_module_as_values_and_constructors():
    mod = parse(
        LIST + "def @id[A](%x: A) -> A { %x }\n"
        "def @map[A, B](%f: fn (A) -> B, %xs: List[A]) -> List[B] { match (%xs) { Cons(%x, %r) => Cons(%f(%x), @map(%f, %r)), Nil => Nil } }\n"
        "def @one[A](%x: A) -> List[A] { Cons(%x, Nil) }\n"
        "def @main(%x: int32) { let %f = @id; (@map(@one, @map(@id, Cons(%x, Nil))), %f(%x), %f(2f)) }"
    )
    assert same(run(mod, 3), run(there_and_back(mod), 3))


def test_effects_keep_their_order():
    mod = parse(
        "def @bump(%r: ref(int32), %by: int32) -> () { ref_write(%r, add(multiply(ref_read(%r), 2), %by)) }\n"
        "def @main(%x: int32) { let %r = ref(%x); let %a = @bump(%r, 1); let %b = if (less(%x, 5)) { @bump(%r, 2) } else { () }; "
        "let %c = @bump(%r, 3); ref_read(%r) }"
    )
    assert int(run(there_and_back(mod), 1).numpy()) == int(run(mod, 1).numpy()) == ((1 * 2 + 1) * 2 + 2) * 2 + 3


def test_partial_evaluation_follows_references_through_branches():
    """What a branch did to a reference is known in its continuation, so nothing reads it."""
    mod = parse("def @main(%c: bool, %x: int32) { let %r = ref(%x); let %a = if (%c) { ref_write(%r, 7) } else { ref_write(%r, 8) }; ref_read(%r) }")
    out = there_and_back(mod)
    with tvm.transform.PassContext(opt_level=3):
        out = tvm.transform.Sequential([transform.PartialEvaluate(), transform.DeadCodeElimination(inline_once=True)])(out)
        assert relay.analysis.Feature.fRefRead in relay.analysis.detect_feature(transform.PartialEvaluate()(mod)["main"])
    assert relay.analysis.Feature.fRefRead not in relay.analysis.detect_feature(out["main"])
    assert [int(run(out, c, 1).numpy()) for c in (True, False)] == [7, 8]


def test_a_gradient_of_what_was_converted():
    mod = parse("def @main(%x: float32) -> float32 { if (less(%x, 0f)) { negative(%x) } else { multiply(%x, %x) } }")
    f = there_and_back(mod)["main"]
    grad = transform.gradient(f)
    for x, want in ((3.0, 6.0), (-2.0, -1.0)):
        assert float(relay.create_executor("debug").evaluate(grad)(np.float32(x))[1][0].numpy()) == want


@pytest.mark.parametrize(
    "text, says",
    [
        (
            "type Box { Put(fn (int32) -> int32), }\ndef @main(%b: Box) { match (%b) { Put(%f) => %f(1) } }",
            "constructor `Put` has a field whose type names a function",
        ),
        (
            "type Box { Put(fn (int32) -> int32), }\ndef @main(%x: int32) { Put(fn (%y: int32) { %y }) }",
            "constructor `Put` has a field whose type names a function",
        ),
    ],
)
def test_what_it_does_not_take(text, says):
    with pytest.raises(tvm.error.CompileError, match=says):
        mod = parse(text)
        transform.to_cps(mod["main"], mod)


def test_errors_say_how_to_mend_them():
    mod = parse("def @f(%x: int32) { %x }\ndef @main(%x: int32) { @f(%x) }")
    with pytest.raises(tvm.error.CompileError, match="no function @f"):
        transform.to_cps(mod["main"])
    with pytest.raises(tvm.error.CompileError, match="last parameter is a continuation"):
        transform.un_cps(mod["f"])
    x = relay.var("x", "int32")
    with pytest.raises(tvm.error.CompileError, match="%y is free"):
        transform.to_cps(relay.Function([x], x + relay.var("y", "int32")))


def test_primitive_functions_are_operators():
    x = relay.var("x", shape=(2,))
    mod = transform.FuseOps()(tvm.IRModule.from_expr(relay.Function([x], relay.exp(relay.tanh(x)))))
    back = there_and_back(transform.InferType()(mod))
    np.testing.assert_allclose(run(back, np.ones(2, "float32")).numpy(), np.exp(np.tanh(np.ones(2))), rtol=1e-6)
    assert "join" not in back.astext()
