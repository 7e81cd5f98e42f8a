# SPDX-License-Identifier: Apache-2.0
"""Reliability figure 33: each rule of the verifiers has a test that trips it.

The rules are the messages in the sources. Each of those has to be met by what a test expects to read: in the test cases of C++ below, which
build programs that Python refuses to, or in the table here.
"""

import re
from pathlib import Path

import pytest

import baton as tvm
from baton import relay
from baton.instrument import VerifyIR
from baton.transform import PassContext, Sequential, module_pass

ROOT = Path(__file__).resolve().parents[2]
# Source -> (what a message follows, the test whose literals have to meet it).
SOURCES = {
    "src/relay/types/well_formed.cpp": (r"\bProblem\(", "tests/relay/analysis.cpp"),
    "src/tir/verify.cpp": (r"\bSay\(", "tests/tir/verify_test.cpp"),
    "src/relay/transform/properties.cpp": (r"(?:Where\(e\) \+|return) ", "here"),
    "src/ir/instrument/verify.cpp": (r"\bFail\(", "here"),
}
LITERAL = r'"((?:[^"\\]|\\.)*)"'

MAIN = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { tanh(exp(%x)) }'


def _changes(mod, ctx):
    _Kept.module["more"] = _Kept.module["main"]
    return _Kept.module


def _changes_what_it_was_given(mod, ctx):
    _Kept.module["more"] = _Kept.module["main"]
    return relay.fromtext(MAIN)


class _Kept:
    module, rounds = None, 0


def _differs(mod, ctx):
    _Kept.rounds += 1
    out = mod.shallow_copy()
    out[f"more{_Kept.rounds}"] = mod["main"]
    return out


# What a pass does, what is verified, what is said.
HERE = {
    "left a module that is not WellFormed": (lambda mod, ctx: tvm.IRModule({"main": relay.Function([], relay.var("free"))}), {"properties": ["WellFormed"]}),
    "returned the module that it got, but changed it in place": (_changes, {}),
    "changed the module that it was given; a pass makes a new one": (_changes_what_it_was_given, {}),
    "is not deterministic: a second run on the same module gave another result, at ": (_differs, {"determinism": True}),
    " has no type": (lambda mod, ctx: relay.fromtext(MAIN), {"properties": ["Typed"]}),
    " has a part that is no variable and no constant": (lambda mod, ctx: relay.fromtext(MAIN), {"properties": ["ANF"]}),
    " has a condition that is no variable and no constant": (
        lambda mod, ctx: relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: bool) { if (logical_not(%x)) { 1f } else { 2f } }'),
        {"properties": ["ANF"]},
    ),
}  # fmt: skip


def messages(source):
    """The messages of a source: what stands between the literals of a call is a hole."""
    text = re.sub(r"//.*", "", (ROOT / source).read_text(encoding="utf-8"))
    out = []
    for start in re.finditer(SOURCES[source][0], text):
        call, depth, at = "", 1, start.end()
        while at < len(text) and depth and text[at] != ";":
            literal = re.compile(LITERAL).match(text, at)
            if literal:
                call, at = call + "\0" + literal.group(1) + "\0", literal.end()
                continue
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            call, at = call + ("?" if text[at] in "?:" else ""), at + 1
        words = [part for part in call.split("\0")[1::2] if len(part) > 3]
        if "?" in call.replace("\0", "") and len(words) > 1:
            out += words  # either of them
        elif words:
            out.append("{}".join(words))
    return out


def as_pattern(message):
    return re.compile(".*".join(map(re.escape, re.split(r"\{\}", message))))


def literals(test):
    """What the cases that name the figure expect to read."""
    if test == "here":
        return list(HERE)
    text = (ROOT / test).read_text(encoding="utf-8")
    cases = re.split(r"\nTEST_CASE\(", text)[1:]
    return [s for case in cases if "reliability figure 33" in case.split("\n")[0] for s in re.findall(LITERAL, case)[1:]]


@pytest.mark.parametrize("source", SOURCES)
def test_each_rule_has_a_test(source):
    rules, expected = messages(source), literals(SOURCES[source][1])
    missing = [rule for rule in rules if not any(as_pattern(rule).search(text) or text in rule for text in expected if len(text) > 5)]
    assert not missing, f"rules of {source} that no test trips: {missing}; add one to {SOURCES[source][1]}"
    assert len(rules) >= {"src/relay/types/well_formed.cpp": 22, "src/tir/verify.cpp": 16, "src/relay/transform/properties.cpp": 3}.get(source, 4), rules


def test_a_rule_without_a_test_is_found():
    rules = messages("src/relay/types/well_formed.cpp")
    expected = [text for text in literals("tests/relay/analysis.cpp") if "bound twice" not in text]
    missing = [rule for rule in rules if not any(as_pattern(rule).search(text) or text in rule for text in expected if len(text) > 5)]
    assert len(missing) == 1 and "is bound twice" in missing[0]


@pytest.mark.parametrize("said", HERE)
def test_the_rule_is_tripped(said):
    body, options = HERE[said]
    mod = relay.transform.InferType()(relay.fromtext(MAIN))
    _Kept.module = mod
    breaks = module_pass(body, opt_level=0, name="Breaks")
    with pytest.raises(tvm.Error, match="(?s)verification after pass `Breaks`.*" + re.escape(said)):
        with PassContext(instruments=[VerifyIR(**options)]):
            Sequential([breaks])(mod)
