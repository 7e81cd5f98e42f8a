# SPDX-License-Identifier: Apache-2.0
"""Golden programs mean the same before and after their passes: the interpreter runs both."""

from pathlib import Path

import golden
import numpy as np
import pytest
from meaning import arguments, evaluate

from baton import relay

HERE = Path(__file__).parent
FILES = sorted(p for p in HERE.glob("*.relay") if golden.is_golden(p))
# What cannot be run by the interpreter of one device, or gives another type on purpose.
NOT_RUN = {"plan_devices.relay", "first_order_gradient.relay", "gradient.relay", "to_cps.relay"}
# Those that compute in narrow types on purpose: a few roundings to 11 or 8 bits.
NARROW = {"to_mixed_precision.relay": 1e-2, "to_mixed_precision_known.relay": 2e-2}
ENDLESS = {"recursion stays, and functions without the attribute", "what is in the form already", "a function that calls itself needs its name",
           "all are used, in a circle too"}
CASES = [(golden.read(p), c) for p in FILES if p.name not in NOT_RUN for c in golden.read(p).cases if c.kind != "error" and c.title not in ENDLESS]


@pytest.mark.parametrize("file, case", CASES, ids=[f"{g.path.stem}-{c.title}" for g, c in CASES])
def test_passes_keep_what_a_program_means(file, case):
    """AN-018: the result is equal, within the tolerance of another order of additions."""
    module = relay.transform.InferType()(golden.parse(file.path, case.first))
    if "main" not in [str(v.name_hint) for v in module.get_global_vars()] or not isinstance(module["main"], relay.Function):
        pytest.skip("no main")
    args = arguments(module["main"])
    if any(a is None for a in args):
        pytest.skip("a parameter is a function, a reference or of a data type")
    try:
        want = evaluate(module, args)
    except Exception as error:  # noqa: BLE001
        pytest.skip(f"the program itself does not run: {error}")
    _, after = golden.run(file, module)
    got = evaluate(after, args)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=False):
        assert g.shape == w.shape and g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=NARROW.get(file.path.name, 1e-4), atol=1e-5)


def test_most_programs_are_run():
    """A test of nothing but skipped cases would say nothing."""
    run = [c for _, c in CASES if "@main" in "\n".join(c.first[1])]
    assert len(run) > 50
