# SPDX-License-Identifier: Apache-2.0
"""The table of operators in src/relay/op/README.md: below its marker, a row an operator, from the registry."""

from pathlib import Path

import baton

from . import model

MARKER = "<!-- What follows is generated: python -m baton.describe operators --out src/relay/op/README.md -->"


def operator_table():
    """Markdown: a table a family, with how an operator is called, what it gives, how it is differentiated, and where its meaning is from."""
    describe = baton.get_global_func("relay.op.Describe")
    families = {}
    for name, op in model.operators().items():
        families.setdefault(name.rpartition(".")[0], []).append((name, op))
    lines = []
    for family, members in sorted(families.items()):
        lines += ["", f"## {family or 'Tensors'}", "", "| operator | result | gradient | as |", "| --- | --- | --- | --- |"]
        for name, op in members:
            facts = describe(op.op)
            gradient = str(facts["gradient"]) or ("none" if facts["no_gradient"] else "")
            cells = (f"`{name}{op.__signature__}`", op.op.description, gradient, facts["source"])
            lines.append("| " + " | ".join(" ".join(str(c).split()).replace("|", "\\|") for c in cells) + " |")
    return "\n".join(lines) + "\n"


def with_table(text):
    """`text`, a README, with the table below its marker brought up to date."""
    head, marker, _ = text.partition(MARKER)
    if not marker:
        raise ValueError(f"the file has no line `{MARKER}`")
    return head + MARKER + "\n" + operator_table()


def write_table(path):
    """Brings the table in the file up to date. Returns the paths written."""
    path = Path(path)
    path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")
    return [path]
