# SPDX-License-Identifier: Apache-2.0
"""Format of C++ (clang-format) and Python (ruff) files, and clang-tidy; all pinned in tools/requirements-*.txt."""

import subprocess
from concurrent.futures import ThreadPoolExecutor

from .machine import jobs, venv_dir
from .step import ROOT, StepFailed, probe, say


def tracked(*endings):
    """Tracked and new files of the checkout that end so, without third_party."""
    listed = probe(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"]) or ""
    return [f for f in listed.splitlines() if f.endswith(endings) and not f.startswith(("third_party/", "tools/devtool/templates/")) and (ROOT / f).is_file()]


def tools():
    """(name, files, command that checks, command that mends) of each formatter."""
    bin_dir = venv_dir() / "bin"
    cpp, py = tracked(".cpp", ".h"), [*tracked(".py"), "dev"]
    clang, ruff = str(bin_dir / "clang-format"), str(bin_dir / "ruff")
    return [
        ("clang-format", cpp, [clang, "--dry-run", "-Werror"], [clang, "-i"]),
        ("ruff check", py, [ruff, "check", "--quiet"], [ruff, "check", "--quiet", "--fix"]),
        ("ruff format", py, [ruff, "format", "--check", "--quiet"], [ruff, "format", "--quiet"]),
    ]


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


# Returns clang-tidy's arguments for a file; the extension module is left out, whose headers come with Python packages.
TIDY_FLAGS = ["-std=c++20", f"-I{ROOT / 'include'}", f"-I{ROOT / 'src'}", "-I/usr/lib/llvm-19/include"]


def tidy(paths):
    """Runs clang-tidy over source files, all of `src` or those of `paths`. Returns 1 where it finds something."""
    sources = [f for f in tracked(".cpp") if f.startswith("src/") and not f.startswith("src/python/")]
    wanted = [str(p).rstrip("/") for p in paths]
    chosen = [f for f in sources if not wanted or any(f == p or f.startswith(p + "/") for p in wanted)]
    if not chosen:
        raise StepFailed(f"tidy: no source file in {' '.join(paths)}", None, "give files or folders of src/, without src/python")
    program = str(venv_dir() / "bin" / "clang-tidy")
    say("clang-tidy", f"checks {len(chosen)} files")

    def one(file):
        done = subprocess.run([program, "--quiet", file, "--", *TIDY_FLAGS], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode else ""

    with ThreadPoolExecutor(jobs()) as pool:
        found = [text for text in pool.map(one, chosen) if text]
    print("".join(dict.fromkeys(found)), end="")
    say("clang-tidy", f"{len(found)} files to mend" if found else "nothing to mend")
    return 1 if found else 0
