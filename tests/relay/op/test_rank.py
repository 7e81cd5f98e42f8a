# SPDX-License-Identifier: Apache-2.0
"""What results are while extents are unknown: every relation gives rank and dtype, or names the requirement that wants an extent. Importers and
passes ask the relation; no list of ranks stands beside it."""

import numpy as np
import pytest
from cases import Case, _types, call
from test_complete import rows

import baton
from baton import relay

# Requirements that want extents: of axes that are resized or cropped, of index tuples and windows, of lists whose length is the result's rank.
WANTS = {
    "center_crop_pad": "R2",
    "dft": "R3",
    "gather_nd": "R3",
    "nn.deformable_conv2d": "R4",
    "scatter_nd": "R4",
    "squeeze": "R2",
    "nn.contrib_recurrence": "R4",
    "nn.contrib_recurrence_pack": "R4",
    **{f"dyn.{name}": "R2" for name in ("broadcast_to", "expand_dims", "full", "ones", "reshape", "sparse_to_dense", "squeeze", "tile", "zeros")},
}


def result(case, attrs, arrays, dynamic):
    """Rank and dtype of each result; the requirement where the relation refuses."""
    dims = {"dims": lambda n: relay.Any()} if dynamic else {}
    expr, variables, _ = call(case.op, arrays, attrs, case.constant, **dims)
    try:
        mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function(variables, expr)))
    except baton.error.CompileError as error:
        assert dynamic, error
        return str(error)
    return [(len(t.shape), str(t.dtype)) for t in _types(mod["main"].body.checked_type)]


def cases():
    by_op = {}
    for row in rows():
        if isinstance(row, Case):
            by_op.setdefault(row.op, []).append(row)
    return by_op


CASES = cases()


@pytest.mark.parametrize("op", CASES)
def test_rank_without_extents(op):
    refused = set()
    for row in CASES[op]:
        for case, attrs in (p.values for p in row.rows()):
            rng = np.random.default_rng(0)

            def draw(maker, rng=rng):
                return [draw(x) for x in maker] if isinstance(maker, list) else maker(rng)

            arrays = [draw(i) for i in case.inputs]
            want, got = (result(case, attrs, arrays, dynamic) for dynamic in (False, True))
            if isinstance(got, str):
                assert f" {WANTS.get(op)}] " in got, got
                refused.add(op)
            else:
                assert got == want, f"{op} {attrs}"
    assert bool(refused) == (op in WANTS), f"{op} wants no extent any more" if op in WANTS else op
