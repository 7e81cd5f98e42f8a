# SPDX-License-Identifier: Apache-2.0
"""Properties over generated programs: text and JSON read back, equality ignores names, equal programs hash alike."""

import re

import pytest

pytest.importorskip("baton._core", reason="the extension is not built")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from baton._ffi import get_global_func  # noqa: E402
from baton._ffi.base import load_compiler  # noqa: E402

load_compiler()

F, V, B = "float32", "Tensor[(2, 3), float32]", "bool"
TYPES = (F, V, B)
TUPLE = f"({F}, {V})"


class Program:
    """Draws a well-typed program as text. `suffix` goes into every name, so two suffixes give one program twice."""

    def __init__(self, draw, suffix=""):
        self.draw, self.suffix, self.names = draw, suffix, 0

    def pick(self, options):
        return options[self.draw(st.integers(0, len(options) - 1))]

    def name(self):
        self.names += 1
        stem = f"v{self.names}{self.suffix}"
        return f'%"{stem}/a:0"' if self.names % 7 == 3 else f"%{stem}"

    def leaf(self, want, scope):
        known = [n for n, t in scope if t == want]
        if known and self.draw(st.booleans()):
            return self.pick(known)
        if want == B:
            return self.pick(["True", "False"])
        if want == F:
            return self.pick(["1f", "-0.5f", "2.5e-3f", "-0f"])
        if want == TUPLE:
            return f"({self.leaf(F, scope)}, {self.leaf(V, scope)})"
        return "ones(shape=[2, 3], dtype=\"float32\")"

    def expr(self, want, scope, depth):
        """One expression of type `want`."""
        if depth <= 0:
            return self.leaf(want, scope)
        sub = lambda t: self.expr(t, scope, depth - 1)  # noqa: E731
        kinds = ["leaf", "if", "let", "block", "call", "part", "ref"]
        kinds += ["unary", "binary", "global"] if want in (F, V) else ["compare"] if want == B else ["tuple"]
        kind = self.pick(kinds)
        if kind == "if":
            return f"if ({sub(B)}) {self.block(want, scope, depth - 1)} else {self.block(want, scope, depth - 1)}"
        if kind in ("let", "block"):
            return self.block(want, scope, depth - 1)
        if kind == "call":
            arg, param = self.pick(TYPES), self.name()
            note = self.pick(["", f": {arg}"])
            return f"fn ({param}{note}) {self.block(want, scope + [(param, arg)], depth - 1)}({self.expr(arg, scope, depth - 1)})"
        if kind == "part":
            index = self.pick([0, 1])
            other = self.expr(self.pick(TYPES), scope, depth - 1)
            pair = (sub(want), other) if index == 0 else (other, sub(want))
            return f"({pair[0]}, {pair[1]}).{index}"
        if kind == "ref":
            return f"ref_read(ref({sub(want)}))"
        if kind == "unary":
            return f"{self.pick(['negative', 'abs', 'nn.relu'])}({sub(want)})"
        if kind == "binary":
            return f"{self.pick(['add', 'subtract', 'multiply', 'maximum'])}({sub(want)}, {sub(want)})"
        if kind == "compare":
            return f"less({sub(F)}, {sub(F)})"
        if kind == "global":
            return f"@helper{self.suffix}({sub(want)})" if want == F else f"negative({sub(want)})"
        if kind == "tuple":
            return f"({sub(F)}, {sub(V)})"
        return self.leaf(want, scope)

    def block(self, want, scope, depth):
        """`{ statements; value }`."""
        scope, lines = list(scope), []
        for _ in range(self.draw(st.integers(0, 2))):
            kind = self.pick(TYPES + (TUPLE,))
            value = self.expr(kind, scope, depth - 1)
            if self.draw(st.booleans()):
                name = self.name()
                lines.append(f"let {name} = {value};")
            else:
                self.names += 1
                name = f"%{self.names}"
                lines.append(f"{name} = {value};")
            scope.append((name, kind))
        return "{ " + " ".join(lines) + " " + self.expr(want, scope, depth - 1) + " }"

    def module(self):
        p, q, r = self.name(), self.name(), self.name()
        want = self.pick(TYPES + (TUPLE,))
        body = self.block(want, [(p, F), (q, V), (r, B)], 4)
        return f"def @helper{self.suffix}({p}: {F}, Inline=1) -> {F} {{ negative({p}) }}\ndef @main({p}: {F}, {q}: {V}, {r}: {B}) -> {want} {body}\n"


class Replay:
    """Draws once, then gives the same answers again."""

    def __init__(self, draw):
        self.draw, self.log, self.at = draw, [], None

    def __call__(self, strategy):
        if self.at is None:
            self.log.append(self.draw(strategy))
            return self.log[-1]
        self.at += 1
        return self.log[self.at - 1]


@st.composite
def programs(draw):
    """The same program under two sets of local names."""
    replay = Replay(draw)
    first = Program(replay).module()
    replay.at = 0
    second = Program(replay, "x").module().replace("@helperx", "@helper")
    return first, second


parse = get_global_func("parser.ParseModule")
as_text = get_global_func("ir.AsText")
difference = get_global_func("node.StructuralDifference")
structural_hash = get_global_func("node.StructuralHash")
problems = get_global_func("relay.analysis.well_formed_problems")
infer = get_global_func("transform.GetPass")("InferType")


def _without_types(text):
    """The text without the types of results, and of parameters of functions within functions."""
    text = re.sub(r"(?<=\)) -> [^{]+(?= \{)", "", text)
    return re.sub(r"(?<== fn )\(.*\)(?= \{)", lambda m: re.sub(r": (\((?:[^()]|\([^()]*\))*\)|Tensor\[[^\]]*\]|\w+)", "", m[0]), text)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(programs())
def test_generated_programs(both):
    mod, other = (parse("generated", text) for text in both)
    assert str(problems(mod)) == ""
    assert str(difference(mod, other, False)) == ""
    assert structural_hash(mod, False) == structural_hash(other, False)
    text = str(as_text(mod))
    again = parse("printed", text)
    assert str(difference(mod, again, False)) == ""
    assert str(as_text(again)) == text
    assert structural_hash(mod, False) == structural_hash(again, False)
    save, load = get_global_func("node.SaveJSON"), get_global_func("node.LoadJSON")
    json = str(save(mod))
    assert str(difference(mod, load(json), False)) == ""
    assert str(save(load(json))) == json
    # What functions take and return is written into them, when it is known; nothing else changes.
    typed = infer(mod)
    assert _without_types(str(as_text(typed))) == _without_types(text)
    assert infer(typed).same_as(typed) or str(difference(infer(typed), typed, False)) == ""
    assert str(problems(typed)) == ""
