# SPDX-License-Identifier: Apache-2.0
"""Sizes of files, functions and classes, for the rule `size` of check_layers.py. Standard library only.

C++ is read by its braces: the text before a `{` says what it opens. Bodies that a preprocessor condition states twice may mislead it.
"""

import ast
import re
from typing import NamedTuple

MAX_FILE, MAX_FUNCTION, MAX_CLASS = 700, 100, 400

# Things that are larger today, with the lines it may have: entries may only shrink, and go when they are not needed.
ALLOWED = {
    "src/relay/op/image/grid.cpp::LowerGridSample": 101,
    "src/relay/transform/convert_layout.cpp::Converter": 430,
}

_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<delim>[^()\s\\]{0,16})\(.*?\)(?P=delim)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'"""
    r"""|^[ \t]*\#(?:\\\n|[^\n])*|[{};]""",
    re.DOTALL | re.MULTILINE,
)
_NAMESPACE = re.compile(r"(^|\s)(namespace\b|extern\s*\"\")")
_CLASS = re.compile(r"^(?:typedef\s+)?(?:const\s+)?(?:class|struct|union)\s+(?:[A-Z_]+\s+)?([A-Za-z_]\w*)\s*(?:<[^()]*>\s*)?(?:final\s*)?(?::.*)?$", re.DOTALL)
_NAME = re.compile(r"(operator\s*(?:\(\)|\[\]|[^\s\w(]+)|[~\w]+(?:::[~\w]+)*)\s*$")
_ROW = re.compile(r"\s*(?:[{(\[\"'-]|[A-Z]\w*[({]|\w+:?\s*=\s*[\"{\[(\d])")


class Size(NamedTuple):
    """One thing that was measured. name is empty for a file; line is 1-based."""

    path: str
    line: int
    kind: str
    name: str
    lines: int

    @property
    def key(self):
        return f"{self.path}::{self.name}" if self.name else self.path


def _blank(match):
    """Comments and literals as blanks with the same line ends; other tokens as they are."""
    text = match[0]
    if text in "{};":
        return text
    return ('""' if text[0] in "\"R'" else " ") + "\n" * text.count("\n")


def _head_name(head):
    """Name of the function that `head`, the text before a brace, declares; None where it declares none."""
    plain = re.sub(r"^\s*template\s*<[^{]*?>\s*(?=[\w\[])", "", head)
    at = plain.find("(")
    if at < 0 or re.search(r"(?<![=!<>])=(?!=)", re.sub(r"operator\s*\S+", "", plain[:at])):
        return None
    if plain[:at].rstrip().endswith("operator"):
        at = plain.index("(", at + 1)
    name = _NAME.search(plain[:at])
    return re.sub(r"\s+", "", name[1]) if name else None


def cpp_sizes(path, text):
    """Functions and classes of a C++ file."""
    plain = _TOKEN.sub(_blank, text)
    stack, start, opened = [], 0, None
    for token in re.finditer(r"[{};]", plain):
        at = token.start()
        if token[0] == "}":
            if stack:
                kind, name, line = stack.pop()
                if kind in ("function", "class"):
                    yield Size(path, line, kind, name, plain.count("\n", 0, at) + 1 - line + 1)
                opened = (kind, name, line)
            start = at + 1
            continue
        head = re.sub(r"^\s*(?:(?:public|private|protected)\s*:)?\s*", "", plain[start:at])
        if token[0] == "{":
            line = plain.count("\n", 0, at - len(plain[start:at].lstrip())) + 1
            inside = stack[-1][0] if stack else "namespace"
            found = _CLASS.match(re.sub(r"^template\s*<.*?>\s*(?=class|struct)", "", head.strip(), flags=re.DOTALL))
            if inside in ("function", "block"):
                stack.append(("block", "", line))
            elif _NAMESPACE.search(head):
                stack.append(("namespace", "", line))
            elif found:
                stack.append(("class", found[1], line))
            elif (not head.strip() or head.startswith(",")) and opened and opened[0] == "function":
                stack.append(opened)  # what ended was an initializer of a constructor
            elif name := _head_name(head):
                owner = next((n for k, n, _ in reversed(stack) if k == "class"), "")
                stack.append(("function", f"{owner}::{name}" if owner else name, line))
            else:
                stack.append(("block", "", line))
        opened = None
        start = at + 1


def python_sizes(path, text):
    """Functions and classes of a Python file."""
    waiting = [(ast.parse(text), "")]
    while waiting:
        node, owner = waiting.pop()
        for child in ast.iter_child_nodes(node):
            name = owner
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{owner}.{child.name}" if owner else child.name
                kind = "class" if isinstance(child, ast.ClassDef) else "function"
                yield Size(path, child.lineno, kind, name, child.end_lineno - child.lineno + 1)
            waiting.append((child, name))


def is_table(lines):
    """Whether most lines are rows: they begin with a bracket, a literal, or a call or name that a literal follows."""
    lines = [line for line in lines if line.strip()]
    return sum(bool(_ROW.match(line)) for line in lines) * 2 > len(lines)


def measured(path):
    """Whether the file is one that the rule is about: the product's own code."""
    return path.startswith(("src/", "include/", "python/", "tools/")) and path.endswith((".cpp", ".h", ".py"))


def too_large(path, text):
    """Returns what is above the limits in a file."""
    lines = text.splitlines()
    if len(lines) > MAX_FILE and not is_table(lines):
        yield Size(path, 1, "file", "", len(lines))
    if len(lines) <= min(MAX_FUNCTION, MAX_CLASS):
        return
    for size in (python_sizes if path.endswith(".py") else cpp_sizes)(path, text):
        limit = MAX_CLASS if size.kind == "class" else MAX_FUNCTION
        if size.lines > limit and not is_table(lines[size.line - 1 : size.line - 1 + size.lines]):
            yield size


def breaches(sizes, allowed):
    """(path, line, what) for what is larger than it may be, and for entries of `allowed` that allow more than is needed."""
    largest = {}
    for size in sizes:
        if size.key not in largest or size.lines > largest[size.key].lines:
            largest[size.key] = size
    for key, size in sorted(largest.items()):
        limit = {"file": MAX_FILE, "function": MAX_FUNCTION, "class": MAX_CLASS}[size.kind]
        if size.lines > allowed.get(key, limit):
            yield size.path, size.line, f"{size.kind} {size.name or 'as a whole'} has {size.lines} lines, more than {allowed.get(key, limit)}"
    for key, lines in sorted(allowed.items()):
        now = largest[key].lines if key in largest else 0
        if now < lines:
            yield key.split("::")[0], 0, f"{key} may have {lines} lines and has {now or 'few'}: shrink its entry in tools/code_sizes.py"
