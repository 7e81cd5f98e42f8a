# SPDX-License-Identifier: Apache-2.0
"""docs/reference/shown.md is what its source says, and the commands on it are there."""

import functools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import shown  # noqa: E402

TEXT = shown.SOURCE.read_text(encoding="utf-8")
COMMANDS = sorted({c for _, rows in shown.demands(TEXT) for _, commands in rows for c in commands})
CHOICES = [shlex.split(c)[1:] for c in COMMANDS if c.startswith("pytest ") and " -k " in c]


@functools.cache
def names_of_cases():
    sources = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("*.cpp"))
    return re.findall(r'TEST_CASE\(\s*"((?:[^"\\]|\\.)*)"', sources)


def test_the_page_is_fresh():
    assert shown.PAGE.read_text(encoding="utf-8") == shown.page(TEXT), "run python3 tools/shown.py"


def test_a_demand_without_a_command_is_an_error():
    with pytest.raises(ValueError, match="no command shows `b`"):
        shown.demands("## A\na\n    c\nb\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_names_is_there(command):
    from baton.cli import VERBS

    program, *words = shlex.split(command)
    if program in ("pytest", "python", "bash"):
        paths = [w for w in words if "/" in w and not w.startswith("-")]
        assert paths and all((ROOT / path).exists() for path in paths)
    elif program == "baton":
        assert words[0] in VERBS
    elif program.startswith("build/"):
        assert program in ("build/baton_tests", "build/baton_runtime_tests", "build/baton_fault_tests")
        for pattern in [p for word in words for p in word.removeprefix("-tc=").split(",")]:
            wanted = re.compile(".*".join(map(re.escape, pattern.split("*"))))
            assert any(wanted.fullmatch(name) for name in names_of_cases()), f"no test case is named {pattern}"
    else:
        assert program == "./dev" and re.search(rf'command\("{words[0]}"', (ROOT / "tools/devtool/main.py").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("args", CHOICES, ids=" ".join)
def test_pytest_finds_tests(args):
    """Expressions of -k may go stale where tests are renamed."""
    done = subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-q", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_the_tests_of_a_number():
    (command,) = shown.commands_for("PI-044")
    assert command.startswith("./dev test tests/ir/")
    assert shown.commands_for("PI-" + "999") == []
