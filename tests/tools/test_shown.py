# SPDX-License-Identifier: Apache-2.0
"""docs/reference/shown.md is what its source says, and the commands on it are there."""

import functools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import baton

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


def test_commands_of_the_command_line_run(tmp_path):
    """In the order of the page, after the definitions at its top."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (tmp_path / "python").symlink_to(Path(baton.__file__).parents[1])
    commands = [c for _, rows in shown.demands(TEXT) for _, all_of_one in rows for c in all_of_one if c.startswith("baton ")]
    (head,) = re.findall(r"```bash\n(.*?)```", shown.HEAD, re.DOTALL)
    program = f'{head}python() {{ "{sys.executable}" "$@"; }}\n' + "".join(f"{c} > out.txt 2>&1 || echo {shlex.quote(c)}\n" for c in commands)
    program = program.replace("python -c", f'"{sys.executable}" -c')
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    failed = [c for c in done.stdout.splitlines() if "crash.abort" not in c]
    assert len(commands) >= 6 and not failed and "crash.abort" in done.stdout, done.stdout + done.stderr


def test_the_tests_of_a_number():
    (command,) = shown.commands_for("PI-044")
    assert command.startswith("./dev test tests/ir/")
    assert shown.commands_for("PI-" + "999") == []
