# SPDX-License-Identifier: Apache-2.0
"""Files and folders that a page names exist: a file that moves or is taken apart takes its mention along."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOP = ("src", "include", "python", "tests", "tools", "examples", "bench", "cmake", "docs")
CODE = ("cpp", "h", "inc", "py")
FOLDER_OR_FILE = re.compile(rf"(?<![\w./$-])(?:{'|'.join(TOP)})/[\w./*{{}},<>-]+")
INLINE = re.compile(r"`([^`\s]+)`")
NAME_OF_FILE = re.compile(rf"[\w./]*\w\.(?:{'|'.join(CODE)})")
MADE_BY_BUILD = {"python/baton/lib"}


def pages():
    found = [*ROOT.glob("*.md")]
    for top in TOP:
        found += (p for p in (ROOT / top).rglob("*.md") if "node_modules" not in p.parts)
    return sorted(p for p in found if p.name != "CHANGELOG.md")  # which tells of files that were there


def files():
    """Names of files, and for each the paths that end in it."""
    table = {}
    for top in TOP:
        for path in (ROOT / top).rglob("*"):
            if path.suffix[1:] in CODE:
                table.setdefault(path.name, []).append(path.relative_to(ROOT).as_posix())
    return table


def alternatives(text):
    """a/{b,c} is a/b and a/c."""
    group = re.search(r"\{([^{}]*,[^{}]*)\}", text)
    if not group:
        return [text]
    return [t for one in group[1].split(",") for t in alternatives(text[: group.start()] + one + text[group.end() :])]


def is_placeholder(path):
    return "<" in path or re.search(r"(?<![A-Za-z])(?:NAME|PATH)(?![A-Za-z])", path) is not None


def made_by_page(text):
    """Stems of files that a page has `./dev new` write, or that stand on it."""
    names = re.findall(r"\./dev new (?:op|pass) ([\w.]+)", text)
    stems = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", n.rsplit(".", 1)[-1]).lower() for n in names}
    stems |= {f"test_{stem}" for stem in stems}  # an operator's rows
    return stems | {pathlib.PurePosixPath(f).stem for f in re.findall(r"<!-- file: (\S+) -->", text)}


def missing(text, names_of_files):
    """What the page names and is not there: (line, path)."""
    made = made_by_page(text)
    result = []
    for number, line in enumerate(text.splitlines(), 1):
        if "[new] wrote" in line:
            continue
        for found in FOLDER_OR_FILE.findall(line):
            for path in alternatives(found.rstrip(".,/-")):
                if is_placeholder(path) or path in MADE_BY_BUILD or pathlib.PurePosixPath(path).stem in made:
                    continue
                if not ((ROOT / path).exists() or ("*" in path and next(ROOT.glob(path), None))):
                    result.append((number, path))
        for found in INLINE.findall(line):
            path = found.lstrip("./")
            name = path.rsplit("/", 1)[-1]
            if not NAME_OF_FILE.fullmatch(found) or path.startswith(TOP) or pathlib.PurePosixPath(name).stem in made:
                continue
            if not is_placeholder(path) and not any(("/" + f).endswith("/" + path) for f in names_of_files.get(name, [])):
                result.append((number, path))
    return result


@pytest.fixture(scope="module")
def known_files():
    return files()


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_files_that_a_page_names_exist(page, known_files):
    found = missing(page.read_text(encoding="utf-8"), known_files)
    assert not found, "\n".join(f"{page.relative_to(ROOT)}:{line}: there is no {path}" for line, path in found)


@pytest.mark.parametrize(
    "text, gone",
    [
        ("see `src/ir/module.cpp` and `module.cpp`, `pass/text.cpp` and src/ir/*.cpp.", []),
        ("see src/ir/no_such.cpp.", ["src/ir/no_such.cpp"]),
        ("`no_such.cpp` and `ir/text_of_old.h`", ["no_such.cpp", "ir/text_of_old.h"]),
        ("`src/{ir,tir,none}/README.md`, src/codegen/NAME, `include/baton/relay/op/<family>.h`", ["src/none/README.md"]),
        ("`tests/none/**/*.relay` `tests/relay/transform/*.relay`", ["tests/none/**/*.relay"]),
        ("`./dev new pass DropIt` writes src/relay/transform/drop_it.cpp", []),
        ("<!-- file: plugin_of_page.cpp --> then `plugin_of_page.cpp`", []),
    ],
)
def test_the_check_trips(text, gone, known_files):
    assert [path for _, path in missing(text, known_files)] == gone
