# SPDX-License-Identifier: Apache-2.0
"""`./dev places NAME`: every source file that knows an operator, an intrinsic of TIR, a pass or a node type."""

import difflib
import re
from pathlib import Path
from typing import NamedTuple

from .step import ROOT, StepFailed

FOLDERS = ("src", "include", "python")
SUFFIXES = (".cpp", ".h", ".py")
# Names of functions of `topi`, which are spelt as operators are.
TABLES_OF_OTHERS = {"python/baton/tvm/topi/signatures.py"}
# Rules of PyTorch's converter make calls by an operator's name, as programs do.
CALLERS = "python/baton/contrib/torch/ops/"
INTRINSICS_IN = ("src/tir/intrin",)
CONSTANTS_OF_TIR = "baton/tir/intrin.h"
DEFINED_IN = ("src/relay/op", "src/relay/op.cpp", "src/frontend")
OPERATOR = r"[a-z]\w*(?:\.[a-z]\w*)*"
# Where a definition gives its operator's name: a field, a template argument, a row of a table, an argument.
DEFINITION = re.compile(rf'(?:\.name = |\bk\w+Op = |kName = |<|Row k\w+{{\s*|\bDefine\w*\(\s*)"({OPERATOR})"')
# The C++ name of an operator, where that is not the last part of its name: `op::resize_nd = ...<"image.resize"`.
IDENTIFIER = re.compile(rf'\bop::(\w+)\s*=\s*[\w:]+(?:<|\()(?:\{{\s*\.name = )?\s*"({OPERATOR})"')
DECLARATION = re.compile(r"\bextern (?:BATON_DLL )?const Op [^;]*;")
# Comments, and Python's strings over several lines, which are documentation. Other strings are kept as they are.
CPP_TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|(R"(\w*)\(.*?\)\2"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.DOTALL)
PYTHON_TOKENS = re.compile(r'#[^\n]*|"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.DOTALL)


class Place(NamedTuple):
    """One line that knows a name. line is 1-based."""

    path: str
    line: int
    text: str


def code(path, text):
    """`text` with blanks for comments and documentation; lines stay where they are."""

    def blank(found):
        return found[0] if found[1] else re.sub(r"[^\n]", " ", found[0])

    return (PYTHON_TOKENS if path.endswith(".py") else CPP_TOKENS).sub(blank, text)


def line_of(text, at):
    """The 1-based line of a position."""
    return text.count("\n", 0, at) + 1


def sources(root=ROOT, folders=FOLDERS):
    """(path relative to `root`, code) of the source files below `folders`."""
    for folder in folders:
        base = Path(root) / folder
        for path in sorted([base] if base.is_file() else base.rglob("*")):
            relative = path.relative_to(root).as_posix()
            if path.suffix in SUFFIXES and path.is_file() and relative not in TABLES_OF_OTHERS:
                yield relative, code(relative, path.read_text(encoding="utf-8"))


def operators(root=ROOT):
    """{name: its identifier in C++} of the operators that the sources define."""
    found, renamed = {}, {}
    for _, text in sources(root, DEFINED_IN):
        for match in DEFINITION.finditer(text):
            family, _, short = match[1].rpartition(".")
            found[match[1]] = {"qnn": "qnn::", "dyn": "dyn_", "onnx": "onnx_"}.get(family, "") + short
        for match in IDENTIFIER.finditer(text):
            renamed[match[2]] = match[1]
    return found | renamed


def intrinsics(root=ROOT):
    """Names of the intrinsics of TIR that rows define, as "exp"."""
    return {match[1] for _, text in sources(root, INTRINSICS_IN) for match in re.finditer(r'\.name = "(\w+)"', text)}


def intrinsics_used(text, known):
    """(line, name) of each intrinsic that C++ code names: as intrin::exp, or as `"tir.exp"`, by string, by a prefix of one, or by a comparison."""
    found = [(m.start(), f"intrin::{m[1]}") for m in re.finditer(r"\bintrin::(\w+)\b", text) if m[1] in known]
    for m in re.finditer(r'"tir\.(\w+)"', text):
        if m[1] in known or (m[1].endswith("_") and any(name.startswith(m[1]) for name in known)):
            found.append((m.start(), m[0]))
    compared = r'\bIntrinName\([^()]*\)\s*(?:[!=]=|\.(?:substr|starts_with|r?find|compare)\b)'
    found += [(m.start(), '"IntrinName"') for m in re.finditer(compared, text)]
    return [(line_of(text, at), name) for at, name in sorted(found)]


def intrinsic_pattern(name):
    """Patterns of a line that knows an intrinsic: its row, its constant, where these and its C++ function are declared, and its name as a string."""
    declared = rf"\bX\({name}\)|\bBATON_TIR_FUNCTION\({name}\)|\bPrimExpr {name}\((?=PrimExpr|DataType)"
    return re.compile(rf"[\"']tir\.{name}[\"']|\.name = \"{name}\"|\bintrin::{name}\b|{declared}")


def pattern(name, known):
    """Patterns of a line that knows `name`: the name as a string, and its identifiers.

    An operator is known by its name (`"nn.leaky_relu"`), its constant (`op::leaky_relu`, and where that is declared), the attributes named
    after it (`LeakyReluAttrs`) and rows of the importers (`{"LeakyRelu", ...`). A program that calls it, as the models of `relay.testing` and the
    rules of PyTorch's converter do, is not a place: it need not change with the operator.
    """
    string = rf"[\"'](?:relay\.|relay\._transform\.|tir\.|tir\.transform\.|baton\.)?{re.escape(name)}[\"']"
    if name in known:
        camel = name.rsplit(".", 1)[-1].replace("_", "")
        words = rf"\bop::{known[name]}\b|(?i:\b{camel}Attrs\b)|{{(?:\"[\w.]*\", )?\"(?=[A-Z])(?i:{camel})\""
    else:
        words = rf"\b{re.escape(name)}(?:Node)?\b"
    return re.compile(f"{string}|{words}")


def places(name, root=ROOT):
    """The lines that know an operator (`nn.conv2d`), an intrinsic (`tir.exp`), a pass (`FoldConstant`) or a node type (`Let`)."""
    known, of_tir = operators(root), intrinsics(root)
    every = [(path, text) for path, text in sources(root) if not path.startswith(CALLERS)]
    intrinsic = name.removeprefix("tir.") if name.startswith("tir.") and name.removeprefix("tir.") in of_tir else None
    if intrinsic:  # a row of another table may have its name
        every = [(path, text) for path, text in every if not path.startswith(DEFINED_IN)]
    wanted = intrinsic_pattern(intrinsic) if intrinsic else pattern(name, known)
    found = []
    for path, text in every:
        lines = {line_of(text, m.start()) for m in wanted.finditer(text)}
        if name in known and not path.endswith(CONSTANTS_OF_TIR) and path.endswith("/qnn.h") == known[name].startswith("qnn::"):
            constant = known[name].removeprefix("qnn::")
            lines |= {line_of(text, m.start() + n.start()) for m in DECLARATION.finditer(text) for n in re.finditer(rf"\b{constant}\b", m[0])}
        if intrinsic and path.endswith(CONSTANTS_OF_TIR):
            lines |= {line_of(text, m.start() + n.start()) for m in DECLARATION.finditer(text) for n in re.finditer(rf"\b{intrinsic}\b", m[0])}
        found += [Place(path, line, text.splitlines()[line - 1].strip()) for line in sorted(lines)]
    if not found:
        words = set(known) | {f"tir.{one}" for one in of_tir} | {word for path, text in every for word in re.findall(r"\b[A-Z]\w+\b", text)}
        near = difflib.get_close_matches(name, words, 3)
        raise StepFailed(
            f"places: no source file knows `{name}`", None, f"near: {', '.join(near)}" if near else "give an operator, an intrinsic, a pass or a node type"
        )
    return found


def files_that_know(name, root=ROOT):
    """{path: the number of lines that know `name`}, sorted by path."""
    counts = {}
    for place in places(name, root):
        counts[place.path] = counts.get(place.path, 0) + 1
    return counts


# ---- Rows that rewrite: {"x + 0 -> x", x + Zero(), ...}
ROW = re.compile(r'\{\s*"[^"\n]* -> [^"\n]*"')


def without_rows(text):
    """C++ code with blanks for the rows of tables of rewrites, which name the operators that they are about."""
    out, at = [], 0
    for row in ROW.finditer(text):
        if row.start() < at:
            continue
        depth, end = 0, row.start()
        for token in re.finditer(r'"(?:\\.|[^"\\\n])*"|[{}]', text[row.start() :]):
            depth += (token[0] == "{") - (token[0] == "}")
            end = row.start() + token.end()
            if depth == 0:
                break
        out += [text[at : row.start()], re.sub(r"[^\n]", " ", text[row.start() : end])]
        at = end
    return "".join([*out, text[at:]])


def names_used(text, known):
    """(line, name) of each operator that C++ code outside rewrite rows names, by string or as op::x."""
    text = without_rows(text)
    found = [(m.start(), m[1]) for m in re.finditer(rf'"({OPERATOR})"', text) if m[1] in known]
    by_identifier = {identifier: name for name, identifier in known.items()}
    found += [(m.start(), by_identifier.get(m[1], m[1])) for m in re.finditer(r"\bop::((?:qnn::)?\w+)\b", text)]
    return [(line_of(text, at), name) for at, name in sorted(found)]


def names_compared(text, known):
    """(line, name) of each operator by whose name C++ code decides: compared with a string, or in a list of names alone."""
    found = [(m.start(1), m[1]) for m in re.finditer(rf'[=!]=\s*"({OPERATOR})"', text) if m[1] in known]
    for listed in re.finditer(rf'\{{\s*"{OPERATOR}"(?:\s*,\s*"{OPERATOR}")+\s*\}}', text):
        found += [(listed.start() + m.start(), m[1]) for m in re.finditer(rf'"({OPERATOR})"', listed[0]) if m[1] in known]
    return [(line_of(text, at), name) for at, name in sorted(found)]


def show(name):
    """Prints the files that know `name`, with the number of lines of each, and the number of files."""
    counts = files_that_know(name)
    for path, lines in counts.items():
        print(f"{lines:4}  {path}")
    print(f"{name}: {len(counts)} file{'s' if len(counts) != 1 else ''}, {sum(counts.values())} lines")
