# SPDX-License-Identifier: Apache-2.0
"""PartialEvaluate on what is too large to read: deep programs, long recursion, growth; and that effects keep their order."""

import numpy as np
import pytest
from meaning import evaluate

import baton as tvm
from baton import relay
from baton.relay import transform

HEAD = '#[version = "0.0.5"]\n'


def parse(text):
    return transform.InferType()(relay.fromtext(HEAD + text))


def partial(mod):
    with tvm.transform.PassContext(opt_level=3):
        return tvm.transform.Sequential([transform.PartialEvaluate(), transform.DeadCodeElimination()])(mod)


def same(mod, *args):
    after = transform.InferType()(partial(mod))
    for got, want in zip(evaluate(after, args), evaluate(mod, args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    return after.astext(show_meta_data=False)


F = np.float32


@pytest.mark.parametrize(
    "name, text",
    [
        (
            "a closure that writes what it captured",
            """
def @main(%x: float32) {
  let %r = ref(%x);
  let %add = fn (%y: float32) { ref_write(%r, add(ref_read(%r), %y)) };
  let %a = %add(1f);
  let %b = %add(2f);
  ref_read(%r)
}""",
        ),
        (
            "a function that makes functions",
            """
def @main(%x: float32) {
  let %adder = fn (%n: float32) { fn (%y: float32) { add(%n, %y) } };
  let %f = %adder(1f);
  let %g = %adder(%x);
  %f(%g(%x))
}""",
        ),
        (
            "a reference to a function",
            """
def @main(%x: float32) {
  let %r = ref(fn (%y: float32) -> float32 { %y });
  let %w = ref_write(%r, fn (%y: float32) -> float32 { multiply(%y, 3f) });
  let %f = ref_read(%r);
  %f(%x)
}""",
        ),
        (
            "recursion through a reference",
            """
def @main(%x: float32) {
  let %r = ref(fn (%n: int32) -> float32 { 0f });
  let %f = fn (%n: int32) -> float32 {
    if (equal(%n, 0)) { %x } else { let %g = ref_read(%r); multiply(2f, %g(subtract(%n, 1))) }
  };
  let %w = ref_write(%r, %f);
  %f(5)
}""",
        ),
        (
            "a branch that writes",
            """
def @main(%x: float32) {
  let %r = ref(1f);
  let %s = ref(2f);
  let %u = if (less(%x, 0f)) { ref_write(%r, 5f) } else { ref_write(%r, 6f) };
  add(ref_read(%r), ref_read(%s))
}""",
        ),
        (
            "mutual recursion",
            """
def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }
def @main(%x: float32) { if (@even(10)) { negative(%x) } else { %x } }""",
        ),
        (
            "recursion that counts up ends when it runs",
            """
def @main(%x: float32) {
  let %f = fn (%i: int32, %a: float32) -> float32 {
    if (less(%i, 5)) { %f(add(%i, 1), multiply(%a, 2f)) } else { %a }
  };
  %f(0, %x)
}""",
        ),
        (
            "a map and a fold over a list",
            """
type List[A] { Nil, Cons(A, List[A]) }
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Nil => Nil, Cons(%a, %r) => Cons(%f(%a), @map(%f, %r)), }
}
def @fold[A, B](%f: fn (A, B) -> A, %a: A, %l: List[B]) -> A {
  match (%l) { Nil => %a, Cons(%b, %r) => @fold(%f, %f(%a, %b), %r), }
}
def @main(%x: float32) {
  let %l = Cons(%x, Cons(2f, Cons(3f, Nil)));
  @fold(fn (%a: float32, %b: float32) { add(%a, %b) }, 0f, @map(fn (%y: float32) { multiply(%y, %y) }, %l))
}""",
        ),
    ],
)
def test_meaning(name, text):
    mod = parse(text)
    for value in (-1.5, 2.0):
        same(mod, F(value))


def test_a_known_program_is_only_its_result():
    left = same(
        parse("""
type List[A] { Nil, Cons(A, List[A]) }
def @sum(%l: List[float32]) -> float32 { match (%l) { Nil => 0f, Cons(%a, %r) => add(%a, @sum(%r)), } }
def @count(%n: int32) -> List[float32] { if (equal(%n, 0)) { Nil } else { Cons(2f, @count(subtract(%n, 1))) } }
def @main() { @sum(@count(20)) }""")
    )
    assert "40f" in left and "match" not in left.split("@main")[1]


def test_growth_is_bounded():
    """Functions that call the next one twice: all unfolded they would be 2 ** 40."""
    lines = ["def @f0(%x: float32) -> float32 { negative(%x) }"]
    lines += [f"def @f{i}(%x: float32) -> float32 {{ @f{i - 1}(@f{i - 1}(%x)) }}" for i in range(1, 41)]
    mod = parse("\n".join([*lines, "def @main(%x: float32) { @f3(%x) }"]))
    out = transform.PartialEvaluate()(mod)
    assert out.astext(show_meta_data=False).count("\n") < 400_000
    assert evaluate(transform.InferType()(out), [F(1)])[0] == 1


def test_a_deep_chain_and_a_deep_nest():
    x = y = relay.var("x", shape=())
    for i in range(20_000):
        y = relay.add(y, relay.const(F(1))) if i % 2 else relay.negative(y)
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], y)))
    assert partial(mod)["main"] is not None
    nested = "%x"
    for _ in range(300):
        nested = f"if (less(%x, 0f)) {{ {nested} }} else {{ %x }}"
    partial(parse(f"def @main(%x: float32) {{ {nested} }}"))


def test_long_recursion_over_what_is_known():
    left = same(
        parse(
            "def @f(%n: int32, %x: float32) -> float32 { if (equal(%n, 0)) { %x } else { add(1f, @f(subtract(%n, 1), %x)) } }\n"
            "def @main(%x: float32) { @f(2000, %x) }"
        ),
        F(1),
    )
    assert left.count("add(") >= 2000


def test_functions_that_are_to_be_left_alone_are():
    mod = parse("def @f(%x: float32, Primitive=1) -> float32 { negative(%x) }\ndef @main(%x: float32) { @f(add(%x, add(1f, 1f))) }")
    out = transform.PartialEvaluate()(mod)
    assert out["f"].same_as(mod["f"]) and "@f(" in out.astext(show_meta_data=False).split("@main")[1]
    assert transform.PartialEvaluate().info.opt_level == 1
