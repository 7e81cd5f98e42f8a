# SPDX-License-Identifier: Apache-2.0
"""What holds for every message about an ill-typed program; the cases themselves are golden files."""

import re
from pathlib import Path

import golden
import pytest

from baton.error import CompileError

FILES = sorted(Path(__file__).parent.glob("*.relay"))
CASES = [(golden.read(p), c) for p in FILES for c in golden.read(p).cases]


def test_there_are_two_hundred():
    """AN-003: at least 200 programs, each with a title of its own in its file."""
    assert len(CASES) >= 200 and all(c.kind == "error" for _, c in CASES)
    titles = [(g.path.name, c.title) for g, c in CASES]
    assert len(set(titles)) == len(titles)


def reported(file, case):
    with pytest.raises(CompileError) as error:
        golden.run(file, golden.parse(file.path, case.first))
    return str(error.value)


@pytest.mark.parametrize("file", [golden.read(p) for p in FILES], ids=lambda g: g.path.stem)
def test_messages_say_what_where_and_how(file):
    """AN-003: file, line and column; the line itself, underlined; lower case, no full stop; names as the user wrote them."""
    for case in file.cases:
        text = reported(file, case)
        assert golden.reports(CompileError(text)), text
        for line, message in golden.reports(CompileError(text)):
            assert case.first[0] <= line < case.first[0] + len(case.first[1]), text
            assert message[0] in "`[@" or message[0].islower(), message
            assert not message.endswith("."), message
            assert not re.search(r"Node\b|0x|relay\.[A-Z]|runtime\.[A-Z]|IncompleteType|FuncType|TypeCall", message), message
        assert re.search(r"\|\s+\^", text), text
