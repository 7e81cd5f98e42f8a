# SPDX-License-Identifier: Apache-2.0
"""Seeded miscompiles in the default pipeline: the guard finds them, `baton.bisect` makes them small, and sound pipelines raise no alarm."""

import pytest
from mutants import MODELS, MUTANTS, model, pipeline

import baton
from baton.driver import passes
from baton.instrument import SemanticGuard
from baton.transform import PassContext

# What is missed, and what stays larger than three calls. The figures below hold this list to account.
MISSED: frozenset = frozenset()
LARGE: frozenset = frozenset()


def pass_name(name):
    return "".join(part.capitalize() for part in name.split("_"))


def test_figures():
    """At least 40 mutants; 95% found, 80% shrunk to at most three calls."""
    assert len(MUTANTS) >= 40
    assert len(MISSED) <= 0.05 * len(MUTANTS) and len(LARGE | MISSED) <= 0.2 * len(MUTANTS)
    assert MISSED | LARGE <= set(MUTANTS)


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant(name):
    result = baton.bisect(model(MUTANTS[name][0]), pipeline(name), budget=200)
    found = result.found and result.pass_name == pass_name(name)
    assert found == (name not in MISSED), str(result)
    if found:
        assert (result.calls <= 3) == (name not in LARGE), str(result)
        assert result.text.startswith("#[version") and "def @main" in result.text
        assert result.rewrite is not None or result.no_rewrite


@pytest.mark.parametrize("name", ["product_overflows", "write_is_lost", "relu_is_dropped", "length_is_taken_for_fixed"])
def test_the_small_program_shows_the_fault_again(name):
    """Out of its text, by the pass alone."""
    result = baton.bisect(model(MUTANTS[name][0]), pipeline(name), budget=200)
    again = baton.bisect(result.text, MUTANTS[name][2](), kinds=[result.finding.kind])
    assert again.found and again.pass_name == pass_name(name) and again.calls <= 3


@pytest.mark.parametrize("sample", ["all", "changed", 4])
@pytest.mark.parametrize("name", MODELS)
def test_no_alarm_on_the_pipeline_as_it_is(name, sample):
    guard = SemanticGuard(sample=sample)
    with PassContext(opt_level=3, instruments=[guard]):
        passes.pipeline("default")(model(name))
    assert not guard.findings and not guard.not_checked and guard.checked
