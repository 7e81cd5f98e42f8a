# SPDX-License-Identifier: Apache-2.0
"""The table of operators in the README of src/relay/op."""

from pathlib import Path

import pytest

from baton.describe import model, table

README = Path(__file__).resolve().parents[3] / "src/relay/op/README.md"


def test_the_table_is_up_to_date():
    text = README.read_text(encoding="utf-8")
    assert text == table.with_table(text), "run: python -m baton.describe operators --out src/relay/op/README.md"


def test_every_operator_has_a_row():
    rows = [line for line in table.operator_table().splitlines() if line.startswith("| `")]
    assert len(rows) == len(model.operators())
    assert "| `nn.leaky_relu(data, alpha=0.01)` | data > 0 ? data : alpha * data | rule | ONNX LeakyRelu-16 |" in rows
    assert any(r.startswith("| `random.normal(") and "| none |" in r for r in rows)


def test_a_file_without_the_marker_is_refused(tmp_path):
    (tmp_path / "a.md").write_text("# Operators\n")
    with pytest.raises(ValueError, match="has no line"):
        table.write_table(tmp_path / "a.md")
