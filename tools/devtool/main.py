# SPDX-License-Identifier: Apache-2.0
"""The commands of `./dev`."""

import argparse
import os
import subprocess
import sys

from . import cross, doctor, machine, places, scaffold
from .build import build, ccache_environment, check_sanitizers, python_environment, run_tests_of
from .step import ROOT, StepFailed, as_typed, run, say, shown

EXAMPLES = """examples:
  ./dev demo "how do I parse dates?"     set-up, build, then the demo with your own question
  ./dev test                             set-up, build, all tests
  ./dev test tests/relay -k conv2d       only these Python tests; what follows is pytest's
  ./dev test src/runtime/ndarray.cpp     the tests of this file
  ./dev build --sanitize address,undefined
  ./dev bless tests/relay/transform      accept new output in golden files

variables:
  BATON_VENV=DIR   virtual environment to use instead of .venv
  BATON_JOBS=N     compilers to run at once (default: by processors and memory)
"""

# Libraries that the command `baton` loads.
COMMAND_LIBRARIES = ("baton", "_core", "baton_vm", "baton_host", "baton_opencl", "baton_cuda", "baton_dnnl", "baton_rpc", "baton_rpc_server")


def parser():
    """The argument parser of `./dev`."""
    top = argparse.ArgumentParser(
        prog="./dev", description="One command for everything a developer of Baton does.", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name, text, function):
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=function)
        return sub

    def sanitize(sub):
        sub.add_argument("--sanitize", default="", metavar="LIST", help="address, undefined, thread, leak; comma-separated")

    command("demo", "set up, build, and run the main job on real input", demo).add_argument("question", nargs="*")
    command("setup", "install system packages (as root), the virtual environment and Python packages", setup)
    sub = command("build", "set up and build the libraries, the extension and the C++ tests", build_all)
    sanitize(sub)
    sub.add_argument("--runtime-only", action="store_true", help="leave the compiler out (needs no LLVM)")
    sub.add_argument("--separate", action="store_true", help="compile each file on its own: a whole build takes twice as long, a file less")
    sub = command("test", "set up, build, and run layer check, C++ tests and Python tests; or only those of the paths", test)
    sub.add_argument("paths", nargs="*", metavar="PATH", help="test files or folders, or source files whose tests to run")
    sanitize(sub)
    sub = command("bless", "rewrite the expectations of golden files to what is printed now", bless)
    sub.add_argument("path", nargs="?", default="tests")
    command("lint", "layers, lone headers, format", lint)
    command("tidy", "run clang-tidy with the checks of .clang-tidy, on all of src or on PATHs", tidy).add_argument("paths", nargs="*", metavar="PATH")
    command("format", "format C++ and Python files in place", format_files)
    sub = command("bench", "run a benchmark of bench/; without a name, list them", bench)
    sub.add_argument("name", nargs="?")
    sub = command("fuzz", "feed mutated files to the readers, with sanitizers; what follows goes to tests/fuzz/run.py", fuzz)
    sub.add_argument("suite", nargs="?", choices=["rpc", "calls"], help="the parsers of remote sessions instead, or calls of open models")
    sub = command("new", "write the files of a new operator, pass or target, with a test that passes", new)
    sub.add_argument("kind", choices=["op", "pass", "target"])
    sub.add_argument("name", help="for an operator like nn.leaky_relu, for a pass like FoldReshape, for a target like metal")
    sub = command("wheel", "build the wheel into dist/ and try it in its own virtual environment", wheel)
    sub.add_argument(
        "--portable", action="store_true", help="for any Linux with glibc 2.28 and CPython 3.10 to 3.13, with LLVM inside; to try it: tools/try_wheel.py"
    )
    sub.add_argument("--runtime", action="store_true", help="of the runtime alone (baton-runtime), for any Linux; goes with --portable")
    command("cross", "build the runtime and baton-rpc-server for another machine, with Debian's cross compiler", cross_build).add_argument(
        "machine", choices=list(cross.MACHINES)
    )
    command("stubs", "write the stubs (.pyi) that editors and type checkers read, beside the Python files", stubs)
    sub = command("docs", "write the reference into build/docs, or DIR: HTML pages that need no network", docs)
    sub.add_argument("--out", default="build/docs", metavar="DIR")
    sub = command(
        "places", "list the source files that know an operator (nn.conv2d), an intrinsic (tir.exp), a pass (FoldConstant) or a node type (Let)", show_places
    )
    sub.add_argument("name")
    command("doctor", "show what this machine and checkout have and lack", lambda args, rest: doctor.main())
    return top


TAKES_MORE = ("test", "bench", "fuzz", "demo")


def split(argv):
    """(arguments of ./dev, arguments of the program it runs): the latter begin at the first option that is not ours."""
    if not argv or argv[0] not in TAKES_MORE:
        return argv, []
    skip = False
    for at, word in enumerate(argv):
        if word.startswith("-") and not skip and word not in ("-h", "--help") and not word.startswith("--sanitize"):
            return argv[:at], argv[at + (word == "--") :]
        skip = word == "--sanitize"
    return argv, []


def main(argv):
    """Runs one command. Returns the exit code: 0 done, 1 failed, 2 wrong usage."""
    own, rest = split(argv)
    args = parser().parse_args(own)
    try:
        return args.run(args, rest) or 0
    except StepFailed as failure:
        sys.stdout.flush()
        failure.report()
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; run the same command again to go on where it stopped", file=sys.stderr)
        return 130


def python(argv, env):
    """Runs the virtual environment's Python with the tree's `baton` on its path; returns the exit code."""
    command = [str(machine.venv_python()), *argv]
    sys.stdout.flush()
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, stdin=subprocess.DEVNULL, check=False).returncode


def needs(path, what):
    """Raises StepFailed where the tree lacks `path`."""
    if not (ROOT / path).exists():
        raise StepFailed(f"{what}: {path} is not in this checkout", None, "update to a revision that has it")


def demo(args, rest):
    """Builds all that the command `baton` needs, no tests, and runs the demo."""
    needs("python/baton/demo", "demo")
    machine.setup()
    build(targets=COMMAND_LIBRARIES)
    say("demo", "python -m baton.demo")
    code = python(["-m", "baton.demo", *args.question, *rest], python_environment())
    if code == 0:
        say("demo", f"the command `baton` is ready: {shown(machine.command_path())} --help")
    return code


def setup(args, rest):
    """System packages, virtual environment, Python packages."""
    machine.setup()


def build_all(args, rest):
    """Everything, or a runtime or sanitizer build."""
    check_sanitizers(args.sanitize)
    machine.setup()
    build(args.sanitize, args.runtime_only, separate=args.separate)
    if not args.sanitize and not args.runtime_only:
        refresh_stubs()


def tests_of(path):
    """(C++ filters, pytest paths) for a path that the user gave: a test, a folder of tests, or a source file."""
    given = (ROOT / path).resolve() if not os.path.isabs(path) else os.path.realpath(path)
    given = type(ROOT)(str(given).split("::")[0])
    if not given.exists():
        raise StepFailed(f"test: {path} does not exist", None, "give a path under tests/, or a source file that has tests there")
    relative = given.relative_to(ROOT) if given.is_relative_to(ROOT) else given
    parts = relative.parts
    for prefix, room in ((("src",), ()), (("include", "baton"), ()), (("python", "baton"), ("python",)), (("tools",), ("tools",))):
        if parts[: len(prefix)] == prefix:
            mirrored = ROOT.joinpath("tests", *room, *parts[len(prefix) :])
            stem = mirrored.with_suffix("")
            found = (
                [mirrored]
                if mirrored.is_dir()
                else sorted(
                    p
                    for p in stem.parent.glob("*")
                    if p.suffix in (".cpp", ".py", ".relay") and p.stem in (stem.name, "test_" + stem.name, stem.name + "_test")
                )
            )
            if not found:
                raise StepFailed(f"test: {path} has no tests in {shown(stem.parent)}", None, f"tests mirror sources: write {shown(stem)}.cpp, .py or .relay")
            break
    else:
        found = [given]
    filters, files = [], []
    for one in found:
        if one.suffix == ".cpp":
            filters.append(f"--source-file=*{one.relative_to(ROOT)}")
        elif one.is_dir():
            if any(one.rglob("*.cpp")):
                filters.append(f"--source-file=*{one.relative_to(ROOT)}/*")
            if any(p for p in one.rglob("*") if p.suffix in (".py", ".relay") and p.is_file()):
                files.append(str(one.relative_to(ROOT)))
        else:
            files.append(path if "::" in path else str(one.relative_to(ROOT)))
    return filters, files


def test(args, rest):
    """Layer check, C++ tests, Python tests; goes on after a failure so that one run shows all."""
    check_sanitizers(args.sanitize)
    filters, files = [], []
    for path in args.paths:
        more_filters, more_files = tests_of(path)
        filters += more_filters
        files += more_files
    machine.setup()
    if not args.paths:
        machine.emulators()
        machine.optional_packages()
    folder = build(args.sanitize)
    failed = []
    if not args.paths:
        say("layers", "tools/check_layers.py")
        if python(["tools/check_layers.py"], {}) != 0:
            failed.append(("the layer check found something", "python3 tools/check_layers.py"))
    if filters or not args.paths:
        # doctest takes one list for a filter that occurs more than once.
        joined = "--source-file=" + ",".join(f.split("=", 1)[1] for f in filters)
        failed += run_tests_of(folder, [joined] if filters else [])
    if files or not args.paths:
        argv = ["-m", "pytest", *(files or ["tests"]), "-n", str(max(1, min(machine.cpus(), 8)) if not files else 0), *rest]
        env = {**python_environment(args.sanitize), "BATON_BUILT": "1"}
        if args.sanitize:
            argv += ["-o", f"pythonpath={shown(folder)}"]
        say("python tests", as_typed(["pytest", *argv[2:]]))
        code = python(argv, env)
        if code != 0:
            why = "found no test" if code == 5 else f"ended with exit code {code}"
            failed.append((f"pytest {why}", as_typed([machine.venv_python(), *argv], env)))
    for what, command in failed:
        StepFailed(f"test: {what}", command, "the first failure above is the cause").report()
    return 1 if failed else 0


def wheel(args, rest):
    """Builds dist/baton_compiler-*.whl from the checkout and tries what a user would do first with it."""
    machine.setup()
    dist = ROOT / "dist"
    if args.portable or args.runtime:
        from . import wheel as wheels

        for make in [wheels.compiler] * args.portable + [wheels.runtime] * args.runtime:
            make(dist)
        return
    for old in dist.glob("baton_compiler-*.whl"):
        old.unlink()
    run(
        "wheel",
        "pip builds the wheel",
        [
            machine.venv_python(),
            "-m",
            "pip",
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            dist,
            "--config-settings",
            "build-dir=build-wheel",
            ".",
        ],  # ccache finds the same paths and compiler as in build/
        env={**ccache_environment(), "CC": "cc", "CXX": "c++"},
        mend="the first `error:` in the log is the cause; `./dev build` shows it sooner",
    )
    built = next(dist.glob("baton_compiler-*.whl"))
    trial = ROOT / "build" / "wheel-trial"
    run("wheel trial", f"makes the virtual environment {shown(trial)}", [machine.base_python(), "-m", "venv", "--clear", trial], mend="remove it and repeat")
    run(
        "wheel trial",
        f"installs {shown(built)}",
        [trial / "bin/pip", "install", "--disable-pip-version-check", "-q", built],
        mend="see that pip reaches its package index",
    )
    run(
        "wheel trial",
        "runs tools/try_wheel.py",
        [trial / "bin/python", "-I", ROOT / "tools/try_wheel.py"],
        mend="the log says what the installed package lacks; pyproject.toml and the install rules of CMakeLists.txt decide it",
    )
    say("wheel", f"{shown(built)}: {built.stat().st_size / 2**20:.1f} MiB")


def cross_build(args, rest):
    """The runtime for another machine."""
    cross.build(args.machine)


def bless(args, rest):
    """Lets the golden-test runner rewrite expectations; the diff is to be read like code."""
    machine.setup()
    build()
    code = python(["-m", "pytest", args.path, "--bless", "-q"], python_environment())
    say("bless", "read `git diff` of the golden files as carefully as code")
    return code


def lint(args, rest):
    """The checks that need no build: layers, headers alone, format."""
    machine.setup()
    machine.lint_packages()
    from . import style

    say("layers", "tools/check_layers.py --headers")
    bad = python(["tools/check_layers.py", "--headers", "--jobs", str(machine.jobs())], {})
    return 1 if style.check() or bad else 0


def tidy(args, rest):
    """clang-tidy; needs no build."""
    machine.setup()
    machine.tidy_packages()
    from . import style

    return style.tidy(args.paths)


def format_files(args, rest):
    """Formats in place."""
    machine.setup()
    machine.lint_packages()
    from . import style

    style.format_in_place()


def bench(args, rest):
    """Runs one benchmark, or lists them."""
    # The others are modules that benchmarks share.
    found = sorted(p for p in (ROOT / "bench").glob("*.py") if "__main__" in p.read_text(encoding="utf-8"))
    names = {p.stem: p for p in found}
    if args.name is None:
        for path in found:
            lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith('"""')]
            print(f"{path.stem:24} {lines[0].strip(chr(34)) if lines else ''}")
        if not found:
            print("no benchmark in bench/ yet")
        return 0
    if args.name not in names:
        raise StepFailed(f"bench: no benchmark {args.name}", None, f"one of: {', '.join(names) or '(none yet)'}")
    machine.setup()
    build(targets=COMMAND_LIBRARIES)
    return python([str(names[args.name]), *rest], python_environment())


def stubs(args, rest):
    """Builds what describes itself, and writes the stubs into the tree."""
    machine.setup()
    build(targets=("baton_runtime", "baton", "baton_host", "baton_vm", "_core"))
    refresh_stubs()


def refresh_stubs():
    """Step: the stubs beside the Python files say what the build says."""
    run(
        "stubs",
        "writes python/baton/**/*.pyi",
        [machine.venv_python(), "-m", "baton.describe", "stubs", "--out", ROOT / "python"],
        env=python_environment(),
        mend="the last line of the log says what could not be described",
    )


def docs(args, rest):
    """Builds what describes itself, and writes the reference."""
    machine.setup()
    build(targets=("baton_runtime", "baton", "baton_host", "baton_vm", "_core"))
    return python(["-m", "baton.describe", "reference", "--out", str(args.out)], python_environment())


def fuzz(args, rest):
    """Runs the mutators of tests/fuzz, which build what they need with sanitizers."""
    needs("tests/fuzz/run.py", "fuzz")
    machine.setup()
    if args.suite == "calls":  # models are compiled here, and called by a runtime with sanitizers
        build(targets=("baton_runtime", "baton", "baton_host", "baton_vm", "_core"))
        return python(["tests/fuzz/calls.py", "--sanitize", *rest], {**python_environment(), **ccache_environment()})
    return python(["tests/fuzz/run.py", *([args.suite] if args.suite else []), *rest], {**python_environment(), **ccache_environment()})


def show_places(args, rest):
    """The files that a change of one operator, pass or node type may have to touch."""
    places.show(args.name)


def new(args, rest):
    """Writes an operator, a pass or a target and its test from templates."""
    scaffold.new(args.kind, args.name)
