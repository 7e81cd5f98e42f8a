# SPDX-License-Identifier: Apache-2.0
"""`--fp`: what simplifying may change in floating values."""

import pytest

PROGRAM = """def @main(%x: Tensor[(4), float32]) { power(add(%x, 0f), 2f) }
"""


@pytest.mark.parametrize("level, kept", [(None, {"add", "power"}), ("strict", {"add", "power"}), ("contract", {"power"}), ("fast", {"multiply"})])
def test_level(baton, compiler, tmp_path, level, kept):
    (tmp_path / "in.relay").write_text(PROGRAM)
    out = baton("opt", "in.relay", "--passes", "InferType,SimplifyExpr", *(["--fp", level] if level else [])).stdout
    assert {n for n in ("add", "power", "multiply") if f"{n}(" in out} == kept


def test_wrong_use(baton, compiler, tmp_path):
    (tmp_path / "in.relay").write_text(PROGRAM)
    assert "quick" in baton("opt", "in.relay", "--passes", "InferType", "--fp", "quick", code=2).stderr
    assert "--fp" in baton("opt", "in.relay", "--passes", "InferType", "--fp", "fast", "--pass-config", "fp=strict", code=2).stderr
