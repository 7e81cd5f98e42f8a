# SPDX-License-Identifier: Apache-2.0
"""The tables of operators by C: the values that NumPy gives, and text that no compiler warns of."""

import importlib
import zlib
from pathlib import Path

import numpy as np
import pytest
from cases import agree, call, evaluate
from strict import accept, needs_compiler

import baton
from baton import relay

TABLES = Path(__file__).parents[2] / "relay" / "op"


def _rows():
    modules = [importlib.import_module(path.stem) for path in sorted(TABLES.glob("test_*.py"))]
    for module in modules:
        for table in vars(module).values():
            for case in table.rows if isinstance(getattr(table, "rows", None), list) else ():
                if getattr(case, "compiled", False) and hasattr(case, "value"):
                    yield next(iter(case.rows()))


ROWS = list(_rows())


def _check(case, attrs, folder):
    rng = np.random.default_rng(zlib.crc32(case.op.encode()))

    def draw(i):
        return [draw(x) for x in i] if isinstance(i, list) else i(rng)

    arrays = [draw(i) for i in case.inputs]
    with np.errstate(all="ignore"):
        want = case.value(*arrays, **attrs)
    want = list(want) if isinstance(want, (tuple, list)) else [want]
    expr, variables, values = call(case.op, arrays, attrs, case.constant)
    func = relay.Function(variables, expr)
    agree(evaluate(func, values, "graph", "c"), want, case.rtol, case.atol, f"{case.op}, by C")
    module = relay.vm.compile(baton.IRModule.from_expr(func), target="c").mod
    (folder / "op.c").write_text(module.get_source("c"))
    accept(folder / "op.c", folder)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("case, attrs", ROWS[::20])
def test_operators_by_c(case, attrs, tmp_path):
    _check(case, attrs, tmp_path)


@needs_compiler
@pytest.mark.long
@pytest.mark.parametrize("case, attrs", [row for i, row in enumerate(ROWS) if i % 20])
def test_more_operators_by_c(case, attrs, tmp_path):
    _check(case, attrs, tmp_path)
