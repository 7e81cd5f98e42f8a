#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the code blocks of a page in order, in an empty folder, and compares what they print with what the page says.

    $ python tools/run_page.py docs/tutorial/first_model.md            # fails where a block fails or prints something else
    $ python tools/run_page.py --write docs/design/architecture.md     # writes what was printed into the page

Blocks, by the word behind their fence:
  console   lines that begin with `$ ` are commands; the lines below one are its output. No lines: the output is not compared.
  python    runs in one namespace a page; a block marked `<!-- output -->` behind it has what it prints.
  any, below `<!-- file: NAME -->`    is written to that file.
  any, below `<!-- not run: WHY -->`  is left alone.
`<!-- check: COMMAND -->` alone on a line runs a command that readers do not see. `...` in expected output stands for anything. The folder has
copies of `dev` and `tools`; `baton` and `python` are commands there, `$CHECKOUT` is the checkout.
"""

import argparse
import contextlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"^<!-- check: (?P<check>[^\n]*) -->$|(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<kind>\w*)[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)


class PageError(Exception):
    """A block fails, or prints what the page does not say."""


def package():
    """The folder that has the package `baton`: the one that Python finds, such as a sanitized build's, else the checkout's."""
    found = importlib.util.find_spec("baton")
    return str(Path(found.origin).parents[1]) if found and found.origin else str(ROOT / "python")


def trimmed(text):
    """Without spaces at ends of lines and empty lines at the end."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def agrees(expected, printed):
    """Whether output is what the page says; `...` there stands for anything."""
    pattern = ".*?".join(map(re.escape, trimmed(expected).split("...")))
    return re.fullmatch(pattern, trimmed(printed), re.DOTALL) is not None


def commands(body):
    """[(command, output that the page shows)] of a console block; a command goes on where a line ends in a backslash."""
    found, open_command = [], False
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif open_command:
            found[-1][0] += "\n" + line
        elif found:
            found[-1][1].append(line)
        else:
            raise PageError(f"a console block begins with `$ `, not with `{line}`")
        open_command = bool(found) and not found[-1][1] and line.endswith("\\")
    return found


class Runner:
    """The state that blocks of one page share: folder, names of Python, last output."""

    def __init__(self, folder, write):
        self.folder, self.write = Path(folder), write
        module = sys.modules["__page__"] = types.ModuleType("__page__")  # found by what imports the module of a class, as pickle does
        self.names, self.printed = module.__dict__, ""
        shutil.copy2(ROOT / "dev", self.folder)
        shutil.copytree(ROOT / "tools", self.folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        for readme in [*(ROOT / "src/relay").rglob("README.md"), *(ROOT / "tests/relay").rglob("README.md")]:
            copy = self.folder / readme.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(readme, copy)
        programs = self.folder / ".bin"
        programs.mkdir()
        for name, words in (("python", ""), ("baton", "-m baton")):
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            (programs / name).chmod(0o755)
        path = os.pathsep.join([package(), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.env = {
            **os.environ,
            "PYTHONPATH": path,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "BATON_CACHE_DIR": str(self.folder / ".cache"),
            "CHECKOUT": str(ROOT),
        }

    def compare(self, what, expected, printed):
        """Returns the text that the page is to show."""
        if agrees(expected, printed):
            return expected
        if self.write:
            return trimmed(printed) + "\n"
        raise PageError(f"{what}\nprints\n{printed}\nand the page says\n{expected}")

    def console(self, body):
        shown = []
        for command, lines in commands(body):
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            # A page may show a command that fails: then its output says so.
            if done.returncode and not lines:
                raise PageError(f"`{command}` ends with {done.returncode}:\n{done.stdout}")
            shown.append(f"$ {command}\n")
            if lines:
                shown.append(self.compare(f"`{command}`", "\n".join(lines) + "\n", done.stdout))
        return "".join(shown)

    def python(self, body):
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(body, "block", "exec"), self.names)
        except Exception:
            raise PageError(f"this block fails:\n{body}\n{traceback.format_exc()}") from None
        self.printed = out.getvalue()
        return body

    def block(self, match):
        """Runs one block; returns it as the page is to show it."""
        if match["check"]:
            self.console(f"$ {match['check']}\n")
            return match[0]
        mark, kind, body = match["mark"] or "", match["kind"], match["body"]
        if mark.startswith("not run: "):
            new = body
        elif mark.startswith("file: "):
            path = self.folder / mark.removeprefix("file: ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, encoding="utf-8")
            new = body
        elif mark == "output":
            new = self.compare("the block above", body, self.printed)
        elif kind in ("console", "python"):
            new = getattr(self, kind)(body)
        else:
            raise PageError(f"a block of `{kind}` must be a file, output, or not run:\n{body}")
        return match[0][: match.start("body") - match.start()] + new + match[0][match.end("body") - match.start() :]


def run(page, write=False):
    """Runs a page's blocks; with `write`, outputs in the page become what was printed."""
    text = page.read_text(encoding="utf-8")
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            sys.path.insert(0, folder)
            runner = Runner(folder, write)
            new = BLOCK.sub(runner.block, text)
        finally:
            os.chdir(here)
            sys.path.remove(folder)
    if write and new != text:
        page.write_text(new, encoding="utf-8")


def main(argv):
    """Returns 1 where a page does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write what was printed into the pages")
    parser.add_argument("pages", nargs="+", type=Path)
    args = parser.parse_args(argv)
    if package() not in sys.path:
        sys.path.insert(0, package())
    bad = 0
    for page in args.pages:
        try:
            run(page.resolve(), args.write)
        except PageError as error:
            print(f"{page}: {error}", file=sys.stderr)
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
