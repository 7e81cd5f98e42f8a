# SPDX-License-Identifier: Apache-2.0
"""The rule of tools/plain_english.py finds the grammar of a translation in prose alone, and its list may only fall."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import plain_english  # noqa: E402


def found(path, text):
    return [(line, name) for line, name, _, _ in plain_english.found_in(path, text)]


SENTENCES = [
    ("What a pass returns.", ["What ..."]),
    ("Returns it. What is left stays.", ["What ..."]),
    ("Those that are known come first.", ["What ..."]),
    ("What is a pass?", []),
    ("Says what a pass returns.", []),
    ("Of the types the first.", ["Of the ..."]),
    ("The first of the types.", []),
    ("The call stands in a branch.", ["stands"]),
    ("`x` stands for a shape.", []),
    ("It lies in memory.", ["lies"]),
    ("Lays a tensor out; lay out.", []),
    ("A buffer of its own.", ["of its own"]),
    ("Its own buffer.", []),
    ("The value is no number.", ["is no"]),
    ("There is no number; it is no longer there.", []),
    ("An axis that the kernel has not.", ["has not"]),
    ("It has not been set.", []),
    ("Text with `What stands` in backticks.", []),
]


@pytest.mark.parametrize("text, patterns", SENTENCES)
@pytest.mark.parametrize(
    "path, form",
    [
        ("src/ir/a.cpp", "int a;\n/// {}\nint b;\n"),
        ("include/baton/a.h", "int a;\nint b;  // {}\n"),
        ("src/ir/a.cpp", 'int a;\nFail("{}");\n'),
        ("python/baton/a.py", "a = 1\n# {}\n"),
        ("python/baton/a.py", 'a = 1\nraise ValueError("{}")\n'),
        ("docs/a.md", "# Title\n{}\n"),
    ],
    ids=["comment", "behind", "message", "python", "python-message", "page"],
)
def test_patterns_in_each_kind_of_prose(path, form, text, patterns):
    assert found(path, form.format(text)) == [(2, name) for name in patterns]


def test_docstrings_count_and_code_does_not():
    assert found("python/baton/a.py", 'def what():\n    """First.\n\n    What follows.\n    """\n    stands = 1\n') == [(4, "What ...")]
    assert found("src/a.cpp", "int lies = stands;  // fine\n") == []
    assert found("docs/a.md", "Text.\n\n```\nWhat stands here lies.\n```\n") == []
    assert found("docs/a.md", "## What is measured\n\n- What counts.\n") == [(3, "What ...")]


def test_a_sentence_goes_on_in_the_next_line():
    assert found("src/a.cpp", "/// An extent is\n/// no constant here, and lies\n/// elsewhere.\n") == [(1, "is no"), (2, "lies")]
    assert found("src/a.cpp", 'Fail("the key is "\n     "no text");\n') == [(1, "is no")]
    assert found("src/a.cpp", "// This one\n// What begins a line is not always a sentence.\n") == []


@pytest.mark.parametrize("path", ["third_party/a.h", "tests/a.py", "src/a.txt", "CHANGELOG.md", "src/relay/op/README.md"])
def test_other_files_are_not_measured(path):
    assert not plain_english.measured(path)


@pytest.fixture
def tree(tmp_path):
    """A function that writes `src/a.cpp` and the list, and returns the root and the paths."""

    def write(text, left=""):
        for path, content in (("src/a.cpp", text), (plain_english.LEFT, left)):
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_text(content)
        return tmp_path, ["src/a.cpp"]

    return write


def test_the_list_allows_what_was_there_and_only_falls(tree):
    two = "// It lies there.\n// x\n\n// It stands here.\n"
    assert [(line, rule) for _, line, rule, _ in plain_english.check(*tree(two, "  2 src/a.cpp\n"))] == []
    assert [(line, rule) for _, line, rule, _ in plain_english.check(*tree(two, "  1 src/a.cpp\n"))] == [(1, "english"), (4, "english")]
    root, paths = tree("// It stands here.\n", "  2 src/a.cpp\n")
    plain_english.lower(root, paths)
    assert plain_english.read_left(root) == {"src/a.cpp": 1}
    root, paths = tree(two, "  1 src/a.cpp\n")
    plain_english.lower(root, paths)
    assert plain_english.read_left(root) == {"src/a.cpp": 1}
