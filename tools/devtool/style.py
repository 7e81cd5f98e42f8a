# SPDX-License-Identifier: Apache-2.0
"""Format of C++ (clang-format) and Python (ruff) files, both pinned in tools/requirements-lint.txt."""

import subprocess

from .machine import venv_dir
from .step import ROOT, probe, say


def tracked(*endings):
    """Tracked and new files of the checkout that end so, without third_party."""
    listed = probe(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"]) or ""
    return [f for f in listed.splitlines()
            if f.endswith(endings) and not f.startswith(("third_party/", "tools/devtool/templates/")) and (ROOT / f).is_file()]


def tools():
    """(name, files, command that checks, command that mends) of each formatter."""
    bin_dir = venv_dir() / "bin"
    cpp, py = tracked(".cpp", ".h"), [*tracked(".py"), "dev"]
    clang, ruff = str(bin_dir / "clang-format"), str(bin_dir / "ruff")
    return [("clang-format", cpp, [clang, "--dry-run", "-Werror"], [clang, "-i"]),
            ("ruff", py, [ruff, "check", "--quiet"], [ruff, "check", "--quiet", "--fix"])]


def check():
    """Returns how many tools found something; they print it."""
    bad = 0
    for name, files, command, _ in tools():
        say(name, f"checks {len(files)} files")
        if files and subprocess.run([*command, *files], cwd=ROOT, check=False).returncode != 0:
            bad += 1
            say(name, "mend with ./dev format")
    return bad


def format_in_place():
    """Lets each tool rewrite its files."""
    for name, files, _, command in tools():
        say(name, f"formats {len(files)} files")
        if files:
            subprocess.run([*command, *files], cwd=ROOT, check=False)
