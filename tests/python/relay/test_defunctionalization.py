# SPDX-License-Identifier: Apache-2.0
"""Functions as values become data: nothing higher-order is left, and values stay."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay import transform
from baton.relay.testing import random_inputs, random_program

from .test_cps import HEAD, LIST, parse, run, same

MAP = (
    LIST + "def @map[A, B](%f: fn (A) -> B, %xs: List[A]) -> List[B] { match (%xs) { Cons(%x, %r) => Cons(%f(%x), @map(%f, %r)), Nil => Nil } }\n"
    "def @foldl[A, B](%f: fn (A, B) -> A, %a: A, %xs: List[B]) -> A { match (%xs) { Cons(%x, %r) => @foldl(%f, %f(%a, %x), %r), Nil => %a } }\n"
    "def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C { fn (%x: A) -> C { %f(%g(%x)) } }\n"
    "def @id[A](%x: A) -> A { %x }\n"
)


def first_order(mod):
    """@main defunctionalized, and no function as a value left in what it reaches."""
    out = tvm.IRModule(dict(mod.functions), dict(mod.type_definitions))
    out["main"] = transform.Defunctionalization(mod["main"], out)
    assert relay.analysis.well_formed(out)
    out = transform.InferType()(out)
    left = transform.RemoveUnusedFunctions()(out)
    for var in left.get_global_vars():
        func = left[var]

        def check(e, func=func):
            if isinstance(e, relay.Function):
                assert e.same_as(func) or (e.attrs and "Primitive" in e.attrs), "a function within a function"
            if isinstance(e, relay.Call):
                assert not isinstance(e.op, (relay.Var, relay.Call, relay.TupleGetItem)), "a call of a value"
            if isinstance(e, relay.Var):
                assert "fn (" not in str(e.checked_type), "a variable of a function's type"

        relay.analysis.post_order_visit(func, check)
    return out


PROGRAMS = {
    "closure": "def @main(%x: int32) { let %f = fn (%y: int32) { add(%x, %y) }; %f(%f(1)) }",
    "passed on": MAP + "def @main(%x: int32) { @map(fn (%y: int32) { add(%x, %y) }, Cons(%x, Cons(2, Nil))) }",
    "two types": MAP
    + "def @main(%x: int32) { (@map(fn (%y: int32) { add(%x, %y) }, Cons(%x, Nil)), @map(fn (%y: int32) { cast(%y, dtype=\"float32\") }, Cons(%x, Nil))) }",
    "given back": MAP + "def @main(%x: int32) { let %f = @compose(fn (%y: int32) { add(%x, %y) }, fn (%y: int32) { multiply(%y, 3) }); %f(%f(2)) }",
    "curried": "def @main(%x: int32) { let %f = fn (%a: int32) { fn (%b: int32) { fn (%c: int32) { add(multiply(%a, %b), add(%c, %x)) } } }; %f(1)(2)(3) }",
    "recursion": "def @main(%x: int32) { let %f = fn (%n: int32) -> int32 { if (less(%n, 1)) { %x } else { add(%n, %f(subtract(%n, 1))) } }; %f(5) }",
    "recursion as a value": MAP
    + "def @main(%x: int32) { let %f = fn (%n: int32) -> int32 { if (less(%n, 1)) { %x } else { add(%n, %f(subtract(%n, 1))) } }; @map(%f, Cons(3, Cons(4, Nil))) }",
    "lists of functions": MAP
    + "def @main(%x: int32) { let %fs = Cons(fn (%y: int32) { add(%x, %y) }, Cons(fn (%y: int32) { multiply(%x, %y) }, Nil)); @map(fn (%f: fn (int32) -> int32) { %f(5) }, %fs) }",
    "tuples": "def @main(%x: int32) { let %p = (fn (%y: int32) { add(%x, %y) }, %x); %p.0(%p.1) }",
    "references": "def @main(%x: int32) { let %r = ref(fn (%y: int32) { add(%x, %y) }); let %f = ref_read(%r); let %w = ref_write(%r, fn (%y: int32) { %f(multiply(%y, 2)) }); ref_read(%r)(3) }",
    "recursion through a reference": "def @main(%x: int32) { let %r = ref(fn (%y: int32) { %y }); let %w = ref_write(%r, fn (%y: int32) -> int32 { if (less(%y, 1)) { %x } else { add(%y, ref_read(%r)(subtract(%y, 1))) } }); ref_read(%r)(4) }",
    "branches": "def @main(%x: int32) { let %f = if (less(%x, 2)) { fn (%y: int32) { add(%x, %y) } } else { fn (%y: int32) { multiply(%x, %y) } }; %f(10) }",
    "names": MAP + "def @main(%x: int32) { (@map(@id, Cons(%x, Nil)), @compose(@id, @id)(%x)) }",
    "constructors as values": MAP + "type Box[A] { Put(A), }\ndef @main(%x: int32) { @map(Put, Cons(%x, Nil)) }",
    "of type parameters, by let": "def @main(%x: int32) { let %f = fn[A](%y: A) -> (A, int32) { (%y, %x) }; (%f(1f), %f(%f(2))) }",
    "a global function by let": MAP + "def @main(%x: int32) { let %f = @id; (%f(%x), %f(2f)) }",
    "of type parameters, within another": "def @main(%x: int32) { let %f = fn[A](%y: A) -> (A, int32) { (%y, %x) }; let %g = fn (%z: int32) { %f((%z, %x)) }; (%g(1), %f(2f)) }",
    "data types of functions": "type Box[A] { Put(fn () -> A, Box[A]), End, }\ndef @get[A](%b: Box[A], %a: A) -> A { match (%b) { Put(%f, Put(%g, _)) => %g(), Put(%f, _) => %f(), End => %a } }\n"
    "def @main(%x: int32) { (@get(Put(fn () { add(%x, 1) }, Put(fn () { multiply(%x, 7) }, End)), 0), @get(Put(fn () { 2f }, End), 1f), @get(End, 5)) }",
    "never made": "type Maybe[A] { Some(A), No, }\ndef @main(%x: int32) { let %m: Maybe[fn (int32) -> int32] = No; match (%m) { Some(%f) => %f(%x), No => %x } }",
    "a function of functions of functions": "def @main(%x: int32) { let %twice = fn (%f: fn (int32) -> int32) { fn (%y: int32) { %f(%f(%y)) } }; %twice(%twice(fn (%z: int32) { add(%z, %x) }))(1) }",
    "through itself": "type D { Wrap(fn (D) -> int32), }\ndef @main(%x: int32) { let %f = fn (%d: D) -> int32 { match (%d) { Wrap(%g) => %x } }; %f(Wrap(%f)) }",
    "shared work": "def @main(%x: int32) { %0 = multiply(%x, %x); let %f = fn (%y: int32) { add(%0, %y) }; add(%f(1), %0) }",
    "unused": "def @main(%x: int32) { let %f = fn (%y: int32) { %y }; %x }",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_become_first_order_and_keep_their_values(name):
    mod = parse(PROGRAMS[name])
    out = first_order(mod)
    for x in (1, 3):
        want = run(mod, x)
        assert same(want, run(out, x)) and same(want, run(out, x, kind="vm"))
    again = transform.InferType()(relay.fromtext(out.astext()))
    tvm.ir.assert_structural_equal(out, again, map_free_vars=True)


@pytest.mark.parametrize("first", range(0, 160, 20))
def test_generated_programs_keep_their_values(first):
    changed = 0
    for seed in range(first, first + 20):
        text = random_program(seed)
        mod = transform.InferType()(relay.fromtext(text))
        out = first_order(mod)
        args = random_inputs(mod, seed)
        assert same(run(mod, *args), run(out, *args)), seed
        changed += len(out) > len(mod)
    assert changed > 5  # else nothing was tried


def test_a_first_order_program_stays_as_it_is():
    mod = parse("def @f[A](%x: A) -> A { %x }\ndef @main(%x: int32) { if (less(%x, 1)) { @f(%x) } else { %x } }")
    assert transform.Defunctionalization(mod["main"], mod).same_as(mod["main"])
    assert transform.Defunctionalization()(mod).same_as(mod)


def test_the_pass_does_the_same():
    mod = parse(PROGRAMS["curried"])
    out = transform.Defunctionalization()(mod)
    assert same(run(mod, 2), run(transform.InferType()(out), 2)) and "apply_Fn" in out.astext()
    assert "apply_Fn" not in mod.astext()


@pytest.mark.parametrize(
    "text, says",
    [
        ("def @main[A](%x: A) -> A { %x }", "has type parameters"),
        ("def @main(%f: fn (int32) -> int32) { %f(1) }", r"the parameter %f has type fn \(int32\) -> int32"),
        ("def @main(%x: int32) { fn (%y: int32) { add(%x, %y) } }", "the result has type"),
        (LIST + "def @main(%fs: List[fn (int32) -> int32]) { 1 }", "the parameter %fs"),
        ("type Box { Put(fn () -> int32), }\ndef @main(%b: Box) { 1 }", "the parameter %b"),
        ("def @main(%x: int32) { let %f = (fn[A](%y: A) -> A { %y }, 1); (%f.0(%x), %f.0(2f)) }", "with type parameters"),
        (
            "def @f[A](%x: A, %g: fn (A) -> int32, %n: int32) -> int32 { if (less(%n, 1)) { %g(%x) } else { @f((%x, %x), fn (%p: (A, A)) -> int32 { %g(%p.0) }, subtract(%n, 1)) } }\n"
            "def @main(%x: int32) { @f(%x, fn (%y: int32) { %y }, 3) }",
            "more than",
        ),
    ],
)
def test_what_it_does_not_take(text, says):
    mod = parse(text)
    with pytest.raises(tvm.error.CompileError, match=says):
        transform.Defunctionalization(mod["main"], mod)


def test_names_that_are_taken():
    mod = parse("type Fn { Fn_f, }\ndef @apply_Fn(%x: int32) { %x }\ndef @main(%x: int32) { let %f = fn (%y: int32) { add(%x, @apply_Fn(%y)) }; %f(1) }")
    assert same(run(mod, 2), run(first_order(mod), 2))


def test_after_fusion():
    x = relay.var("x", shape=(2,))
    f, y = relay.var("f"), relay.var("y", shape=(2,))
    body = relay.Let(f, relay.Function([y], relay.exp(relay.tanh(y))), relay.Call(f, [relay.Call(f, [x])]))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], body)))
    fused = transform.InferType()(transform.FuseOps()(mod))
    given = np.array([0.5, 2], "float32")
    assert same(run(fused, given), run(first_order(fused), given))


def test_the_header_is_what_texts_need():
    assert HEAD in parse(PROGRAMS["closure"]).astext()
