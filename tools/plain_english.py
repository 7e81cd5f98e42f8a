# SPDX-License-Identifier: Apache-2.0
"""Plain English: comments, docstrings, messages and pages without the grammar of a translation.

`tools/check_layers.py` runs this; standard library only. `tools/plain_english.txt` counts the places that are left in each file; a number may only fall.
`python3 tools/plain_english.py [PATH]` prints the places below a path.
"""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

LEFT = "tools/plain_english.txt"
HEAD = """# SPDX-License-Identifier: Apache-2.0
# Sentences in the grammar of a translation (rule `english`): how many are left in each file. A number may only fall:
# `python3 tools/check_layers.py --names` lowers it.
"""
_BEGIN = r"(?:^|(?<=[.:;?!] )|(?<=[.:;?!]\n)|(?<=\| )|(?<=\*\* ))(?:[-*>]+ |\d+\. )?"
# Each pattern with the words to use in its place. Questions are left alone.
PATTERNS = (
    ("What ...", re.compile(_BEGIN + r"(?:What|That which|Those that|Those which|Whatever)\b(?![^.;]*\?)"), "begin with the subject"),
    ("Of the ...", re.compile(_BEGIN + r"Of (?:the|a|an|each|those|these|its|two|several|all|what|which)\b"), "begin with the subject"),
    ("stands", re.compile(r"\b(?:stands?|stood)\b(?!-| (?:for|alone|still|out|in for)\b)", re.IGNORECASE), "is, or is written"),
    ("lies", re.compile(r"\b(?:lies|lay)\b(?! out\b)", re.IGNORECASE), "is, or begins"),
    ("of its own", re.compile(r"\bof (?:its|their|our) own\b", re.IGNORECASE), "its own X, or a separate X"),
    (
        "is no",
        re.compile(
            r"(?<!\bthere )(?<!\bThere )\b(?:is|are|was|were|be) no (?!longer\b|more\b|less\b|matter\b|one\b|other\b|further\b|(?:bett|fast|slow|larg|small|short|wid|cheap|high|low|lat)er\b)",
            re.IGNORECASE,
        ),
        "is not a",
    ),
    ("has not", re.compile(r"\b(?:has|have|had) not(?=\s*(?:[.,;:)!]|$))", re.IGNORECASE), "lacks, or does not have"),
)
_TREES = ("src/", "include/", "python/", "tools/", "docs/", "bench/", "examples/", "packaging/", "cmake/")
_CPP = (".h", ".hpp", ".c", ".cc", ".cpp")
_SKIP = re.compile(r"^(third_party/|docs/reference/shown\.md$|docs/design/plan\.md$|src/relay/op/README\.md$|tools/plain_english\.py$)|/(data|corpus)/")
_CPP_TOKEN = re.compile(
    r"""(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)|R"(?P<delim>[^()\s\\]{0,16})\((?P<raw>.*?)\)(?P=delim)"|"(?P<text>(?:\\.|[^"\\\n])*)"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'""",
    re.DOTALL,
)


def measured(path):
    """Whether the rule is about the file."""
    if _SKIP.search(path):
        return False
    return path.startswith(_TREES) and path.endswith((*_CPP, ".py", ".md")) or "/" not in path and path.endswith(".md") and path != "CHANGELOG.md"


def _of_cpp(text):
    """(line, prose) of comments, neighbours as one, and of literals with several words, neighbours as one."""
    found, end, kind_before = [], 0, ""
    for m in _CPP_TOKEN.finditer(text):
        if m["line"] is not None:
            kind, prose = "comment", m["line"].lstrip("/!<").strip()
        elif m["block"] is not None:
            kind, prose = "comment", " ".join(one.strip(" */") for one in m["block"].splitlines())
        elif m["text"] is not None or m["raw"] is not None:
            kind, prose = "text", m["text"] if m["text"] is not None else m["raw"]
        else:
            continue
        between = text[end : m.start()]
        joined = kind == kind_before and not between.strip() and (kind == "text" or between.count("\n") == 1)
        if joined:
            found[-1][1].append((text.count("\n", 0, m.start()) + 1, prose))
        else:
            found.append((kind, [(text.count("\n", 0, m.start()) + 1, prose)]))
        end, kind_before = m.end(), kind
    return [rows for kind, rows in found if kind == "comment" or " " in "".join(p for _, p in rows)]


def _of_python(text):
    """The same of a Python file: comments, and literals with several words."""
    found, before = [], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row = (token.start[0], token.string.lstrip("#! "))
            if found and before == token.start[0] - 1:
                found[-1].append(row)
            else:
                found.append([row])
            before = token.start[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            found.append([(node.lineno + i, one) for i, one in enumerate(node.value.split("\n"))])
    return found


def _of_page(text):
    """The same of a page: paragraphs without blocks of code and words in backticks."""
    found, paragraph, code = [], [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        if code or not line.strip() or line.lstrip().startswith("```"):
            if paragraph:
                found.append(paragraph)
            paragraph = []
        elif line.lstrip().startswith(("- ", "* ", "|", "#", ">")) and paragraph:
            found.append(paragraph)
            paragraph = [(number, line)]
        else:
            paragraph.append((number, line))
    return [*found, paragraph] if paragraph else found


def prose(path, text):
    """Paragraphs of prose in a file, each a list of (line, text)."""
    read = _of_page if path.endswith(".md") else _of_python if path.endswith(".py") else _of_cpp
    for block in read(text):
        paragraph = []
        for line, one in [*block, (0, "")]:
            if one.strip():
                paragraph.append((line, one))
            if paragraph and (not one.strip() or one.lstrip().startswith("#")):
                yield paragraph
                paragraph = []


def found_in(path, text):
    """[(line, pattern, words around it, what to write instead)] in a file, in order."""
    out = []
    for rows in prose(path, text):
        joined, starts = "", []
        for line, one in rows:
            starts.append((len(joined), line))
            joined += re.sub(r"`[^`]*`", lambda m: "`" + "x" * (len(m[0]) - 2) + "`", one.strip()) + "\n"
        flat = joined.replace("\n", " ")
        for name, pattern, instead in PATTERNS:
            for m in pattern.finditer(flat):
                line = max((line for at, line in starts if at <= m.start()), default=rows[0][0])
                out.append((line, name, flat[max(0, m.start() - 30) : m.end() + 40].strip(), instead))
    return sorted(out)


def counted(root, paths):
    """{path: places} of the files that the rule is about."""
    found = {}
    for path in filter(measured, paths):
        try:
            places = found_in(path, (root / path).read_text(encoding="utf-8"))
        except (SyntaxError, tokenize.TokenError, UnicodeDecodeError):
            continue  # reported by other rules
        if places:
            found[path] = places
    return found


def read_left(root):
    """{path: number} of tools/plain_english.txt."""
    file = root / LEFT
    rows = (row.split() for row in file.read_text(encoding="utf-8").splitlines() if not row.startswith("#")) if file.is_file() else ()
    return {path: int(number) for number, path in rows}


def written(rows):
    """The text of tools/plain_english.txt for rows path -> number."""
    return HEAD + "".join(f"{number:3} {path}\n" for path, number in sorted(rows.items()) if number)


def lower(root, paths):
    """Lowers the numbers of tools/plain_english.txt to what is there; none rises."""
    left, found = read_left(root), counted(root, paths)
    if left:
        (root / LEFT).write_text(written({path: min(number, len(found.get(path, ()))) for path, number in left.items()}), encoding="utf-8")


def check(root, paths):
    """(path, line, "english", what) of each breach."""
    left = read_left(root)
    for path, places in counted(root, paths).items():
        if len(places) > left.get(path, 0):
            for line, name, around, instead in places:
                yield path, line, "english", f"`{name}` in \"{around}\": {instead} ({len(places)} here, at most {left.get(path, 0)})"


def main(argv):
    """Prints the places below the paths of `argv`, or all, and their number."""
    from check_layers import ROOT, files_of

    wanted = tuple(argv) or ("",)
    total = 0
    for path, places in counted(ROOT, [p for p in files_of(ROOT) if p.startswith(wanted)]).items():
        for line, name, around, _ in places:
            print(f"{path}:{line}: [{name}] {around}")
        total += len(places)
    print(f"{total} places", file=sys.stderr)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main(sys.argv[1:])
