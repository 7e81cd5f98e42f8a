# SPDX-License-Identifier: Apache-2.0
"""Every numbered requirement of docs/reference/requirements.md is named by a test that shows it, and no other number is.

Python tests name theirs in a docstring, in a comment on the line of the `def`, or in a string (a pytest id, a key of a table);
C++ tests in the name of a TEST_CASE or SUBCASE; golden files in the title of a case.
"""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
PAGE = ROOT / "docs" / "reference" / "requirements.md"

# Section -> how many numbers it has, from 001 on: the page cannot lose one by oversight.
SECTIONS = {
    "GE": 15,  # the whole
    "OB": 22,  # objects
    "AT": 17,  # attributes
    "RF": 18,  # reflection, serialization
    "PF": 30,  # packed functions, the C interface
    "CF": 33,  # constant folding
    "MO": 15,  # modules, devices' code
    "EX": 5,  # extension types
    "IR": 18,  # values and IR objects
    "NM": 11,  # names
    "PI": 67,  # passes in C++
    "PY": 23,  # passes in Python
    "IN": 39,  # pass instruments
    "FN": 24,  # functors, visitors, mutators
    "AN": 19,  # type inference, normal forms, named passes
    "DV": 26,  # devices
    "TR": 29,  # traps in the founding documents
}
# Sections of the page of which nothing is there yet; a section moves up once all its numbers have a test.
OPEN_SECTIONS = {"RPC": 13}
# Numbers that no test shows yet, and why. One that gets its test must leave this table.
OPEN = {
    "MO-006": "kernels for CUDA, Metal and OpenCL and dynamic libraries are made, saved and loaded; nothing launches those for Metal",
}
# Traps that are remarks about the documents' text: nothing of Baton's can show or break them.
REMARKS = {
    "TR-08": "one document is a lossy copy of another",
    "TR-09": "a cut sentence",
    "TR-10": "a document is a diff without its unchanged lines",
    "TR-20": "a table that grows more than it must; what it answers is the same",
    "TR-22": "a list that is made more often than it must; what it does is the same",
    "TR-23": "a document is a generated page of one revision",
    "TR-27": "one declaration is given two places",
    "TR-28": "what no document says",
}
# PI-044, RPC-001, TR-05.
NUMBER = re.compile(r"\b[A-Z]{2,3}-\d{2,3}\b")


def python_names(text):
    """Numbers in strings that are not plain code comments, and in comments that end the line of a `def`."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(NUMBER.findall(node.value))
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and re.match(r"\s*def test_", lines[token.start[0] - 1]):
            found.update(NUMBER.findall(token.string))
    return found


def cpp_names(text):
    """Numbers in names of test cases."""
    names = re.findall(r'\b(?:TEST_CASE|SUBCASE)\w*\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', text)
    return {n for name in names for n in NUMBER.findall(name)}


def golden_names(text):
    """Numbers in titles of cases."""
    return {n for line in text.splitlines() if line.startswith("// ---") for n in NUMBER.findall(line)}


READERS = {".py": python_names, ".cpp": cpp_names, ".relay": golden_names}


def named():
    """Number -> the test files that name it."""
    found = {}
    for path in sorted(TESTS.rglob("*")):
        if path.suffix in READERS and path != Path(__file__):
            for number in READERS[path.suffix](path.read_text(encoding="utf-8")):
                found.setdefault(number, []).append(str(path.relative_to(ROOT)))
    return found


@pytest.fixture(scope="module")
def tests():
    return named()


def numbers(section):
    digits = 2 if section == "TR" else 3
    return [f"{section}-{i:0{digits}}" for i in range(1, {**SECTIONS, **OPEN_SECTIONS}[section] + 1)]


def lines():
    """Section -> its (number, text) in the order of the page."""
    found = {}
    for section, body in re.findall(r"^## ([A-Z]+)\. [^\n]+\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        found[section] = re.findall(r"^- \*\*(\S+)\*\* (.+)$", body, re.MULTILINE)
    return found


def test_the_page_has_every_number_once_and_in_order():
    page = lines()
    assert set(page) == {*SECTIONS, *OPEN_SECTIONS}
    for section, rows in page.items():
        assert [number for number, _ in rows] == numbers(section)
        assert all(text.endswith(".") and len(text) < 200 for _, text in rows)


def test_whatever_cites_a_number_cites_one_of_the_page():
    known = {number for rows in lines().values() for number, _ in rows}
    sections = "|".join([*SECTIONS, *OPEN_SECTIONS])
    for folder in ("docs", "include", "python", "src", "tests", "tools"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".md", ".py", ".h", ".cpp", ".relay", ".tir") and path != Path(__file__):
                cited = set(re.findall(rf"\b(?:{sections})-\d{{2,3}}\b", path.read_text(encoding="utf-8")))
                assert cited <= known, f"{path.relative_to(ROOT)} cites {', '.join(sorted(cited - known))}"


@pytest.mark.parametrize("section", SECTIONS)
def test_every_number_has_a_test(tests, section):
    missing = [n for n in numbers(section) if n not in tests and n not in OPEN and n not in REMARKS]
    assert not missing, f"no test names {', '.join(missing)}"


def test_what_is_open_has_no_test(tests):
    shown = {n: tests[n] for n in {**OPEN, **REMARKS} if n in tests}
    assert not shown, f"these have a test now; take them out of the table: {shown}"


@pytest.mark.parametrize("section", SECTIONS)
def test_no_number_beyond_the_last(tests, section):
    """A misprint would count for nothing."""
    known = set(numbers(section))
    assert not {n: where for n, where in tests.items() if n.startswith(section + "-") and n not in known}


def test_only_what_names_a_test_counts():
    assert python_names("def test_a():  # ZZ-001\n    # ZZ-002\n    x = 1  # ZZ-003\n") == {"ZZ-001"}
    assert python_names('def test_a():\n    """ZZ-001 holds."""\n') == {"ZZ-001"}
    assert cpp_names('// ZZ-001\nTEST_CASE("ZZ-002 ZZ-003 name") {}\nCHECK(s == "ZZ-004");') == {"ZZ-002", "ZZ-003"}
    assert golden_names("// --- ZZ-001 title\n// ZZ-002\n") == {"ZZ-001"}
