# SPDX-License-Identifier: Apache-2.0
"""Every operator has a row, and every requirement that its documentation numbers has one that breaks it."""

import importlib
import re
from pathlib import Path

import pytest
from cases import Case, Reject, Typed

import baton
from baton import _core

HERE = Path(__file__).parent


def functions():
    for path in sorted(HERE.glob("test_*.py")):
        if path.stem != Path(__file__).stem:
            yield from vars(importlib.import_module(path.stem)).values()


def rows():
    """All rows of the tables in this folder."""
    for test in functions():
        if isinstance(getattr(test, "rows", None), list):
            yield from test.rows


def drawn():
    """Operators of random numbers: their test says which it has."""
    return set().union(*(test.operators for test in functions() if isinstance(getattr(test, "operators", None), set)))


def operators():
    """Relay's: those of PrimFuncs stand in the same registry."""
    return {n for n in baton.ir.Op.list_op_names() if baton.ir.Op.get(n).get_attr("output") is not None}


def cited(name):
    """The requirements that an operator's documentation numbers."""
    op = baton.ir.Op.get(name)
    texts = [op.description, op.get_attr("output") or "", *(a.description for a in op.arguments)]
    if op.attrs_type_key:
        texts += [doc for _, _, doc, *_ in _core.describe_type(op.attrs_type_key)[2]]
    return {r for t in texts for r in re.findall(r"\bR\d+\b", t)}


@pytest.fixture(scope="module")
def found():
    everything = list(rows())
    assert len(everything) > 500
    return everything


def test_every_operator_has_a_row(found):
    have = {r.op for r in found if isinstance(r, (Case, Typed))}
    missing = operators() - have - drawn()
    assert not missing, f"no row in tests/relay/op for: {', '.join(sorted(missing))}"


def test_every_requirement_has_a_row_that_breaks_it(found):
    have = {(r.op, r.rule) for r in found if isinstance(r, Reject)}
    have |= {(r.op, r.dynamic) for r in found if isinstance(r, Case) and isinstance(r.dynamic, str)}
    wanted = {(op, rule) for op in operators() for rule in cited(op)}
    missing = {f"{op} {rule}" for op, rule in wanted - have}
    assert not missing, f"no Reject row in tests/relay/op for: {', '.join(sorted(missing))}"
    unknown = {f"{op} {rule}" for op, rule in have - wanted}
    assert not unknown, f"rows break requirements that no documentation has: {', '.join(sorted(unknown))}"
