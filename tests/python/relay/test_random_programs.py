# SPDX-License-Identifier: Apache-2.0
"""Generated programs with all kinds of nodes through random pipelines; `tests/fuzz/programs.py` runs 20,000 of them."""

import contextlib
import importlib
import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from baton import relay
from baton.relay.testing import random_inputs, random_program

_spec = importlib.util.spec_from_file_location("fuzz_programs", Path(__file__).parents[2] / "fuzz" / "programs.py")
fuzz = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fuzz)
kinds = importlib.import_module("baton.relay.testing.random_program")


@pytest.mark.parametrize("first", range(0, 240, 20))
def test_pipelines_keep_the_value(first):
    for seed in range(first, first + 20):
        fuzz.check(seed, vm=seed % 20 == 0)


@pytest.mark.parametrize("kind", ["empty", "symbolic", "named", "levels", "devices"])
def test_other_kinds(kind):
    """Tensors without elements; open extents; each level and each pass left out; two devices."""
    refused = 0
    for seed in range({"levels": 6, "empty": 60}.get(kind, 30)):
        refused += bool(fuzz.check(seed, kind=kind) if kind == "empty" else fuzz.KINDS[kind](seed))
    assert refused < 15


def test_kinds_are_what_they_say():
    """Generators that stop making what they are for would make the properties say less."""
    empty = [fuzz.program_text("empty", seed) for seed in range(60)]
    assert sum("(0, 3)" in text or "(2, 0)" in text for text in empty) > 15
    opened = [fuzz.with_open_extents(fuzz.program_text("symbolic", seed), seed).split("def @main")[1] for seed in range(60)]
    assert sum("?" in text.split("{")[0] for text in opened) > 30
    assert "FuseOps" in fuzz.pipeline() and len(fuzz.pipeline()) > 8


def test_all_kinds_of_nodes_occur():
    """A generator that stops making a kind of node would make the property above say less."""
    found = set()
    for seed in range(60):
        mod = relay.fromtext(random_program(seed))
        for var in mod.get_global_vars():
            relay.analysis.post_order_visit(mod[var], lambda e: found.add(type(e).__name__))
    assert {
        "Call",
        "Constant",
        "Constructor",
        "Function",
        "GlobalVar",
        "If",
        "Let",
        "Match",
        "Op",
        "RefCreate",
        "RefRead",
        "RefWrite",
        "Tuple",
        "TupleGetItem",
        "Var",
    } <= found


def test_the_same_for_the_same_seed_and_nothing_that_is_left_out():
    assert random_program(5) == random_program(5) != random_program(6)
    for seed in range(30):
        text = random_program(seed, skip=("ref", "data", "recursion", "closure")).split("def @main")[1]
        assert "ref(" not in text and "match" not in text and "fn (" not in text


def test_types_of_other_kinds_differ_though_their_parts_are_equal():
    """Program 1105520 named a function where a tuple of the same parts was asked for."""
    one, two = kinds._Tensor((3,)), kinds._Tensor((), "bool")
    made = [kinds._Fn(((one,), two)), kinds._Tuple(((one,), two)), kinds._Tuple((kinds._Tuple((one,)), two)), ((one,), two)]
    assert len(set(made)) == len(made) and all((a == b) == (a is b) != (a != b) for a in made for b in made)
    assert kinds._Fn(((one,), two)) == made[0] and hash(kinds._Fn(((one,), two))) == hash(made[0])
    assert not kinds._Fn(((one,), two)) != made[0]
    relay.transform.InferType()(relay.fromtext(random_program(1105520)))


def test_a_program_that_cannot_be_made_is_bad_and_the_next_is_looked_at(monkeypatch, capsys):
    def made(seed, **_):
        if seed == 1:
            raise ValueError("no such program")
        if seed == 2:
            raise AssertionError  # without a text
        return random_program(seed)

    monkeypatch.setattr(fuzz, "random_program", made)
    pool = contextlib.nullcontext(SimpleNamespace(imap=map))  # in this process
    monkeypatch.setattr(fuzz.multiprocessing, "get_context", lambda _: SimpleNamespace(Pool=lambda *_, **__: pool))
    assert fuzz.main(["-n", "4", "--vm-every", "0"]) == 1
    said = capsys.readouterr().out
    assert "program 1 " in said and "in made" in said and "ValueError: no such program" in said
    assert "program 2 " in said and "--first 2 -n 1" in said and "4 programs, 2 bad" in said
    assert fuzz.main(["--first", "3", "-n", "1", "--vm-every", "0"]) == 0


def test_a_wrong_pass_is_seen():
    """What the property would say of a pass that swaps the operands of subtractions."""

    class Swap(relay.ExprMutator):
        def visit_call(self, call):
            new = super().visit_call(call)
            if getattr(new.op, "name", "") == "subtract" and len(new.args) == 2:
                return relay.Call(new.op, [new.args[1], new.args[0]], new.attrs)
            return new

    seen = 0
    for seed in range(40):
        mod = relay.transform.InferType()(relay.fromtext(random_program(seed)))
        args = random_inputs(mod, seed)
        want = relay.create_executor("debug", mod).evaluate()(*args)
        changed = mod.shallow_copy()
        changed["main"] = Swap().visit(mod["main"])
        try:
            seen += bool(fuzz.difference(want, relay.create_executor("debug", changed).evaluate()(*args)))
        except Exception:  # shapes that no longer broadcast
            seen += 1
    assert seen >= 2


def test_special_inputs():
    mod = relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(64), float32], %n: Tensor[(64), int8]) { (%x, %n) }')
    x, n = random_inputs(mod, 3, special=True)
    assert np.isnan(x).any() and np.isinf(x).any() and (n == -128).any()
