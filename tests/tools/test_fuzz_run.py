# SPDX-License-Identifier: Apache-2.0
"""tests/fuzz/run.py sees what it is there to see: here a stand-in for the fuzz program misbehaves at chosen mutants."""

import importlib.util
import stat
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

STAND_IN = """#!{python}
import os, signal, sys
first, count = int(os.environ["BATON_FUZZ_FIRST"]), int(os.environ["BATON_FUZZ_COUNT"])
keep, wrong = os.environ["BATON_FUZZ_KEEP"], []
for i in range(first, first + count):
    open(keep, "w").write("mutant")
    open(keep + ".index", "w").write(str(i))
    if i == 7:
        print("ERROR: AddressSanitizer: heap-buffer-overflow", file=sys.stderr)
        os._exit(1)
    if i == 12:
        os.kill(os.getpid(), signal.SIGPROF)  # what the watch over a mutant's time does
    if i == 21:
        wrong.append(i)
        print("mutant 21 of relay: internal error")
if 30 in range(first, first + count):
    print("ERROR: LeakSanitizer: detected memory leaks", file=sys.stderr)
print(f"fuzz: relay: from {{first}}: {{count}} mutants, {{count - len(wrong)}} accepted, 0 refused, {{len(wrong)}} wrong")
sys.exit(1 if wrong or 30 in range(first, first + count) else 0)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("fuzz_run", ROOT / "tests/fuzz/run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    program = tmp_path / "baton_tests"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(module, "BUILD", tmp_path)
    monkeypatch.setattr(module, "CHUNK", 10)

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["run.py", "--no-build", "--only", "relay", *args])
        return module.main()

    return call


def test_all_is_well(run, capsys):
    assert run("--first", "40", "-n", "25") == 0
    assert "mutants 40 to 64: 25 run, 25 accepted, 0 refused with an error, 0 bad" in capsys.readouterr().out


def test_what_goes_wrong_is_found_kept_and_repeatable(run, capsys, tmp_path):
    assert run("-n", "40") == 1
    out = capsys.readouterr().out
    # Every mutant has run, those behind a bad one too.
    assert "mutants 0 to 39: 40 run" in out and "4 bad" in out
    for index, words in ((7, "heap-buffer-overflow"), (12, "hang"), (21, "internal error")):
        assert f"repeat: ./dev fuzz --only relay --first {index} -n 1" in out
        assert words in (tmp_path / f"failures/relay-{index}.txt").read_text()
    for index in (7, 12):  # these have not come to their end: their bytes are kept
        assert (tmp_path / f"failures/relay-{index}.bin").read_text() == "mutant"
    # A leak is seen at the end of a process: the whole of it is to repeat.
    assert "repeat: ./dev fuzz --only relay --first 30 -n 10" in out
    assert run("--first", "7", "-n", "1", "--jobs", "1") == 1
