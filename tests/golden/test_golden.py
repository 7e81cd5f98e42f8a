# SPDX-License-Identifier: Apache-2.0
"""The runner of golden files: each kind of expectation holds where it should and trips where it should."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import golden
import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = "// RUN: InferType, FoldConstant\n"
FOLDED = "def @main() -> float32 { multiply(2f, 3f) }\n"
OPEN = "def @main(%x: float32) -> float32 { negative(%x) }\n"


@pytest.fixture
def check(tmp_path):
    """Runs all cases of a text; returns the messages of those that do not hold."""

    def checked(text):
        path = tmp_path / "a.relay"
        path.write_text(text)
        read = golden.read(path)
        failed = []
        for case in read.cases:
            try:
                golden.check(read, case)
            except golden.Mismatch as mismatch:
                failed.append(str(mismatch))
        return failed

    return checked


@pytest.fixture
def bless(tmp_path):
    """The text that blessing makes of a text."""

    def blessed(text):
        path = tmp_path / "a.relay"
        path.write_text(text)
        return golden.blessed(golden.read(path))

    return blessed


def test_results_are_compared_by_structure(check):
    text = RUN + "// --- folds\n" + FOLDED + "// =>\ndef @main() -> float32 {\n  6f\n}\n"
    assert check(text) == []
    renamed = RUN + "// --- names\ndef @main(%x: float32) { add(%x, multiply(2f, 3f)) }\n// =>\ndef @main(%other: float32) { add(%other, 6f) }\n"
    assert check(renamed) == []


def test_another_result_trips(check):
    failed = check(RUN + "// --- folds\n" + FOLDED + "// =>\ndef @main() -> float32 { 7f }\n")
    assert len(failed) == 1
    assert "-  7f" in failed[0] and "+  6f" in failed[0] and "./dev bless" in failed[0]


def test_a_case_without_expectation_trips(check):
    assert "no expectation" in check(RUN + "// --- folds\n" + FOLDED)[0]
    assert "no expectation" in check(RUN + "// --- same: folds\n" + FOLDED)[0]


def test_unchanged(check):
    assert check(RUN + "// --- unchanged: open\n" + OPEN) == []
    assert "+  6f" in check(RUN + "// --- unchanged: folds\n" + FOLDED)[0]


def test_unchanged_is_said_of_the_pass_before_a_last_inference(check):
    assert check(RUN.replace("\n", ", InferType\n") + "// --- unchanged: open\n" + OPEN) == []
    assert "+  6f" in check(RUN.replace("\n", ", InferType\n") + "// --- unchanged: folds\n" + FOLDED)[0]
    assert "+  6f" in check(RUN + "// --- unchanged: folds\n" + FOLDED)[0]


def test_unchanged_wants_the_very_same_object(check, monkeypatch):
    from baton.driver import passes

    run, remade = passes.run, []

    def run_and_rebuild(one, module):
        out = passes.parse(passes.text(run(one, module)), "again")
        remade.append(out)
        return out

    monkeypatch.setattr(passes, "run", run_and_rebuild)
    assert "equal, but not the same object: `FoldConstant` rebuilt" in check(RUN + "// --- unchanged: open\n" + OPEN)[0]
    assert remade


def test_same(check):
    assert check(RUN + "// --- same: both\n" + FOLDED + "// ==\ndef @main() -> float32 { add(2f, 4f) }\n") == []
    assert "+  6f" in check(RUN + "// --- same: both\n" + FOLDED + "// ==\ndef @main() -> float32 { add(2f, 5f) }\n")[0]


ERROR = "def @main(%x: Tensor[(2, 3), int32]) {{\n  nn.leaky_relu(%x){}\n}}{}\n"


def test_errors_have_a_message_and_a_place(check):
    text = RUN + "// --- error: dtype\n"
    said = "  // error: [nn.leaky_relu R1] `data` has dtype int32"
    assert check(text + ERROR.format(said, "")) == []
    assert "was not said" in check(text + ERROR.format("  // error: something else", ""))[0]
    assert "line 5: " in check(text + ERROR.format("", said))[0], "the right message in the wrong line"
    assert "no line says" in check(text + ERROR.format("", ""))[0]
    assert "said was: nothing" in check(text + OPEN.replace("\n", said + "\n"))[0]


def test_errors_of_the_parser_count_too(check):
    assert check(RUN + "// --- error: unknown\ndef @main(%x: float32) {\n  frob(%x)  // error: there is no operator `frob`\n}\n") == []


@pytest.mark.parametrize(
    "text, where",
    [
        ("// RUN: InferType(\n// --- a\n" + OPEN, ":1: not a list of passes"),
        (RUN + OPEN, ":2: a program before"),
        (RUN, "no case"),
        (RUN + "// --- unchanged: a\n" + OPEN + "// =>\n" + OPEN, ":4: `// =>` does not belong"),
        (RUN + "// --- same: a\n" + OPEN + "// =>\n" + OPEN, ":4: `// =>` does not belong"),
        (RUN + "// --- a\n" + OPEN + "// =>\n" + OPEN + "// =>\n" + OPEN, ":6: `// =>` does not belong"),
    ],
)
def test_malformed_files_are_refused(tmp_path, text, where):
    path = tmp_path / "a.relay"
    path.write_text(text)
    with pytest.raises(ValueError, match="a.relay") as error:
        golden.read(path)
    assert where in str(error.value)


def test_the_target_is_current_while_passes_run(check):
    text = (
        "// RUN: InferType, FoldConstant, InferType, PackDense\n// TARGET: {}\n// --- unchanged: a target whose kernels read weights as they are\n"
        "def @main(%x: Tensor[(1, 2), float32]) {{ nn.dense(%x, broadcast_to(2f, shape=[3, 2])) }}\n"
    )
    assert check(text.format("opencl")) == []
    assert "nn.contrib_dense_pack" in check(text.format("llvm"))[0]


def test_passes_take_options():
    assert golden.parse_passes(" A, B(x=1, y='z')") == [("A", {}), ("B", {"x": 1, "y": "z"})]


def test_blessing_writes_what_is_missing_and_keeps_what_holds(bless, check):
    good = "// --- good\n" + OPEN + "// =>\n// kept as it is\n" + OPEN + "\n"
    text = RUN + "// --- none yet\n" + FOLDED + "\n" + good + "// --- wrong\n" + FOLDED + "// =>\ndef @main() -> float32 { 7f }\n"
    new = bless(text)
    assert good in new
    assert new.count("  6f\n") == 2 and "7f" not in new
    assert check(new) == []
    assert bless(new) == new


def test_blessing_an_error_moves_it_to_its_line(bless, check):
    new = bless(RUN + "// --- error: dtype\n" + ERROR.format("", "  // error: stale"))
    assert "nn.leaky_relu(%x)  // error: [nn.leaky_relu R1]" in new and "stale" not in new
    assert check(new) == []


def test_claims_are_not_blessed(bless):
    with pytest.raises(golden.Mismatch):
        bless(RUN + "// --- unchanged: folds\n" + FOLDED)


def test_pytest_collects_and_blesses(tmp_path):
    shutil.copytree(ROOT / "tests" / "golden", tmp_path / "golden", ignore=shutil.ignore_patterns("test_*"))
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    file = tmp_path / "a.relay"
    file.write_text(RUN + "// --- folds\n" + FOLDED + "// =>\ndef @main() -> float32 { 7f }\n// --- unchanged: open\n" + OPEN)
    (tmp_path / "not_golden.relay").write_text(OPEN)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]

    import baton

    env = {**os.environ, "PYTHONPATH": str(Path(baton.__file__).parents[1])}

    def pytest_says(*more):
        return subprocess.run([*argv, *more], capture_output=True, text=True, check=False, cwd=tmp_path, env=env).stdout

    first = pytest_says()
    assert first.splitlines()[-1].startswith("1 failed, 1 passed") and f"{file}:2: folds" in first and "Traceback" not in first
    assert "blessed" in pytest_says("--bless")
    assert pytest_says().splitlines()[-1].startswith("2 passed")


def test_every_pass_has_a_golden_file():
    from baton._ffi import get_global_func

    read = [golden.read(p) for suffix in ("relay", "tir") for p in sorted((ROOT / "tests").rglob(f"*.{suffix}")) if golden.is_golden(p)]
    tested = {name for file in read for name, _ in file.passes}
    names = {str(n).removeprefix("tir.") for n in get_global_func("transform.PassNames")()}
    # PrintIR makes nothing, and neither do passes whose subject there is not. Passes of tests are made while they run.
    idle = {"PrintIR", "InjectPrefetch", "InjectRollingBuffer", "LowerCrossThreadReduction", "LowerCustomDatatypes", "TextureFlatten"}
    assert {n for n in names - tested if not n.startswith("Test")} == idle
