# SPDX-License-Identifier: Apache-2.0
"""`./dev`: what it takes, what it runs, and what it says when a step fails."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from devtool import build, machine, main, step  # noqa: E402


def dev(*args, **env):
    return subprocess.run(
        [sys.executable, ROOT / "dev", *args], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env={**os.environ, **env}
    )


def test_help_lists_every_command():
    run = dev("--help")
    assert run.returncode == 0
    for name in ("demo", "setup", "build", "test", "bless", "lint", "tidy", "format", "bench", "fuzz", "new", "stubs", "docs", "places", "doctor", "cross"):
        assert re.search(rf"^    {name} ", run.stdout, re.MULTILINE), name


@pytest.mark.parametrize("args", [[], ["bogus"], ["new", "visitor", "X"], ["lint", "--no-such"]])
def test_wrong_usage_is_exit_code_2(args):
    run = dev(*args)
    assert run.returncode == 2
    assert "usage:" in run.stderr and "Traceback" not in run.stderr


@pytest.mark.parametrize(
    "given, ours, rest",
    [
        (["test", "tests/x", "-k", "conv"], ["test", "tests/x"], ["-k", "conv"]),
        (["test", "--sanitize", "address", "-x"], ["test", "--sanitize", "address"], ["-x"]),
        (["test", "--sanitize=address", "a"], ["test", "--sanitize=address", "a"], []),
        (["bench", "run", "--", "x"], ["bench", "run"], ["x"]),
        (["demo", "how do I sort?"], ["demo", "how do I sort?"], []),
        (["lint", "-k"], ["lint", "-k"], []),
    ],
)
def test_options_of_the_program_behind_are_passed_on(given, ours, rest):
    assert main.split(given) == (ours, rest)


def test_a_failed_step_says_how_to_repeat_and_mend(capsys):
    code = "print('cause of it'); raise SystemExit(3)"
    with pytest.raises(step.StepFailed) as failure:
        step.run("try out", "does it", [sys.executable, "-c", code], env={"NAME": "a b"}, mend="buy a disk")
    failure.value.report()
    out, err = capsys.readouterr()
    assert out.splitlines() == ["[try out] does it"]
    assert err.splitlines()[0] == "cause of it"
    assert "ended with exit code 3 (whole log: build/logs/try-out.log)" in err
    repeat = re.search(r"repeat: (.*)", err)[1]
    again = subprocess.run(repeat, shell=True, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (again.returncode, again.stdout) == (3, "cause of it\n"), "the printed command repeats the failure"
    assert err.rstrip().endswith("mend:   buy a disk")
    (step.LOGS / "try-out.log").unlink()


def test_a_missing_program_is_a_failed_step():
    with pytest.raises(step.StepFailed, match="cannot run no-such-program: No such file"):
        step.run("try out", "does it", ["no-such-program"], mend="install it")


def test_stamps_follow_contents(tmp_path):
    one = tmp_path / "one"
    one.write_text("a")
    first = step.digest(one, "x")
    step.stamp(tmp_path / "deep" / "mark", first)
    assert step.stamped(tmp_path / "deep" / "mark", step.digest(one, "x"))
    one.write_text("b")
    assert not step.stamped(tmp_path / "deep" / "mark", step.digest(one, "x"))
    assert not step.stamped(tmp_path / "none", first)


def test_paths_name_their_tests():
    assert main.tests_of("tools/check_layers.py") == ([], ["tests/tools/test_check_layers.py"])
    assert main.tests_of("tests/tools") == ([], ["tests/tools"])
    assert main.tests_of("tests/tools/test_dev.py::test_x") == ([], ["tests/tools/test_dev.py::test_x"])
    filters, files = main.tests_of("src/support")
    assert filters == ["--source-file=*tests/support/*"]
    for wrong in ("no/such/file", "tests/../../elsewhere"):
        with pytest.raises(step.StepFailed, match="does not exist"):
            main.tests_of(wrong)


def test_a_path_without_tests_fails(tmp_path):
    run = dev("test", "cmake/no_such.cpp")
    assert run.returncode == 1 and "does not exist" in run.stderr
    with pytest.raises(step.StepFailed, match="has no tests in tests/tools"):
        main.tests_of("tools/README.md")


@pytest.mark.parametrize("names", ["adress", "address,thread", "address;undefined"])
def test_sanitizers_are_checked_before_set_up(names):
    run = dev("build", "--sanitize", names)
    assert run.returncode == 1 and f"cannot use --sanitize {names}" in run.stderr
    assert "[" not in run.stdout, "no step was taken"


def test_builds_do_not_mix():
    assert build.build_dir() == ROOT / "build"
    assert build.build_dir("address,undefined") == ROOT / "build-address-undefined"


def test_not_root_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(machine, "missing_things", lambda: (["cmake", "libfmt-dev"], ["mold"]))
    monkeypatch.setattr(machine, "has_apt", lambda: True)
    monkeypatch.setattr(machine.os, "geteuid", lambda: 1000)
    with pytest.raises(step.StepFailed, match="only root may install them: cmake libfmt-dev") as failure:
        machine.packages()
    assert "apt-get install --no-install-recommends cmake libfmt-dev mold" in failure.value.mend


def test_no_debian_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(machine, "missing_things", lambda: (["llvm-19-dev"], []))
    monkeypatch.setattr(machine, "has_apt", lambda: False)
    with pytest.raises(step.StepFailed, match="not found on this machine: llvm-19-dev"):
        machine.packages()


def test_tests_run_without_emulators(monkeypatch, capsys):
    """Root gets those that Debian has; the others are named, and nothing fails."""
    asked = []

    def run(name, message, argv, **more):
        asked.append(argv[-1])
        if argv[-1] == "qemu-user":
            raise step.StepFailed("packages: no such package", None, more["mend"])

    monkeypatch.setattr(machine, "seen", lambda mark: mark != "qemu-aarch64" and mark != "arm-none-eabi-gcc")
    monkeypatch.setattr(machine, "has_apt", lambda: True)
    monkeypatch.setattr(machine, "run", run)
    for user, want in ((1000, []), (0, ["qemu-user", "gcc-arm-none-eabi"])):
        monkeypatch.setattr(machine.os, "geteuid", lambda user=user: user)
        asked.clear()
        machine.emulators()
        said = capsys.readouterr().out
        assert asked == want and "--no-install-recommends qemu-user" in said and ("gcc-arm-none-eabi" in said) == (user != 0)


def test_set_up_makes_baton_a_command(tmp_path, monkeypatch):
    """The command finds the checkout from any folder, takes nothing from that folder, and leaves one that pip installed alone."""
    (tmp_path / "venv with space" / "bin").mkdir(parents=True)
    (tmp_path / "venv with space" / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(machine, "venv_dir", lambda: tmp_path / "venv with space")
    machine.command()
    (tmp_path / "numpy.py").write_text("raise SystemExit('the folder of the caller is searched')")
    run = subprocess.run(
        [machine.command_path(), "opt", "--list"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    assert run.returncode == 0 and "FoldConstant" in run.stdout.split(), run.stderr
    machine.command_path().write_text("#!/usr/bin/python\n# of pip\n")
    machine.command()
    assert "of pip" in machine.command_path().read_text()


def test_the_demo_ends_with_how_to_call_baton(monkeypatch, capsys):
    monkeypatch.setattr(machine, "setup", lambda: None)
    monkeypatch.setattr(main, "build", lambda **options: None)
    monkeypatch.setattr(main, "python", lambda argv, env: 0)
    assert main.main(["demo"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("bin/baton --help")


def test_jobs_are_bounded_by_memory(monkeypatch):
    monkeypatch.delenv("BATON_JOBS", raising=False)
    monkeypatch.setattr(machine, "cpus", lambda: 64)
    monkeypatch.setattr(machine, "memory_gib", lambda: 6.0)
    assert machine.jobs() == 5
    monkeypatch.setattr(machine, "memory_gib", lambda: 0.5)
    assert machine.jobs() == 1
    monkeypatch.setenv("BATON_JOBS", "7")
    assert machine.jobs() == 7


def test_every_requirement_is_pinned():
    for listing in (machine.REQUIREMENTS, machine.REQUIREMENTS_ALONE, machine.REQUIREMENTS_LINT, machine.REQUIREMENTS_TIDY):
        for line in listing.read_text().splitlines():
            assert line.startswith("#") or re.match(r"[\w.-]+==[\w.]+(;|$)", line), line


def test_every_dependency_has_its_reason():
    page = (ROOT / "docs/design/dependencies.md").read_text()
    for listing in (machine.REQUIREMENTS, machine.REQUIREMENTS_ALONE, machine.REQUIREMENTS_LINT, machine.REQUIREMENTS_TIDY):
        for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", listing.read_text(), re.MULTILINE):
            assert name in page, f"{name} has no row in docs/design/dependencies.md"
            if (name, version) != ("numpy", "2.2.6"):
                assert version in page or version.rsplit(".", 1)[0] in page, f"{name} {version} is not what the page says"


def test_ci_runs_the_second_command_of_the_readme():
    readme = (ROOT / "README.md").read_text()
    first = re.findall(r"^\$ (\./dev \w+)", readme, re.MULTILINE)[:2]
    assert first == ["./dev demo", "./dev test"]
    assert "./dev test" in (ROOT / ".ci" / "run").read_text()
    for path in ("dev", ".ci/run"):
        assert os.access(ROOT / path, os.X_OK), f"{path} must be executable"


def test_hooks_have_the_pinned_versions():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    pinned = re.findall(r"^[\w.-]+==[\w.]+$", machine.REQUIREMENTS_LINT.read_text(), re.MULTILINE)
    assert list(dict.fromkeys(re.findall(r"additional_dependencies: \[(.*)\]", hooks))) == pinned


def test_the_public_workflow_runs_what_ci_runs():
    """.ci/run is the one list of what is checked; the workflow has each command of it, and lint."""

    def commands(path):
        return set(re.findall(r"\./dev\"? (\w+)", (ROOT / path).read_text().split("jobs:")[-1]))

    assert commands(".ci/run") == {"test", "wheel"}
    assert commands(".github/workflows/ci.yml") == {"test", "wheel", "lint"}


def test_tidy_names_what_is_no_source():
    from devtool import style

    with pytest.raises(step.StepFailed, match="no source file in docs"):
        style.tidy(["docs"])


def test_ci_script_is_valid_bash():
    assert subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=False).returncode == 0


def test_dev_and_its_modules_use_the_standard_library_alone():
    code = (
        "import sys; sys.path[:0] = [sys.argv[1]]; import devtool.main, devtool.style, devtool.scaffold; "
        "print(*sorted({m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names) - {'devtool', '__main__'}))"
    )
    # -S -I: no site-packages, as on a machine where nothing is installed.
    run = subprocess.run([sys.executable, "-S", "-I", "-c", code, ROOT / "tools"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, ""), run.stderr
