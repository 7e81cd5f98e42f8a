# SPDX-License-Identifier: Apache-2.0
"""`python -m baton.config`: flags with which C and C++ programs build against this Baton."""

import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# By path: these tests do not need the extension.
CONFIG = str(ROOT / "python" / "baton" / "config.py")

PROGRAM = """
#include <baton/runtime/c_runtime_api.h>
int main(void) { return sizeof(DLTensor) > 0 ? 0 : 1; }
"""


def config(*args):
    return subprocess.run([sys.executable, CONFIG, *args], capture_output=True, text=True, check=False)


def test_without_a_question_it_is_wrong_usage():
    run = config()
    assert (run.returncode, run.stdout) == (2, "") and "usage: python -m baton.config" in run.stderr


def test_a_package_without_libraries_says_how_to_mend(tmp_path):
    copy = tmp_path / "baton" / "config.py"
    copy.parent.mkdir()
    shutil.copy(CONFIG, copy)
    space = runpy.run_path(str(copy))
    for function in ("lib_dir", "cmake_dir", "include_dir"):
        with pytest.raises(FileNotFoundError, match="mend with"):
            space[function]()
    assert space["main"](["--libs"]) == 1


def test_a_c_program_builds_with_the_flags(tmp_path):
    source, program = tmp_path / "main.c", tmp_path / "main"
    source.write_text(PROGRAM)
    flags = config("--cflags", "--libs")
    assert flags.returncode == 0, flags.stderr
    done = subprocess.run(["gcc", str(source), *shlex.split(flags.stdout), "-o", str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([str(program)], check=False).returncode == 0


@pytest.mark.parametrize("target", ["headers", "runtime", "compiler"])
def test_a_cmake_project_finds_the_built_tree(tmp_path, target):
    cmakedir = config("--cmakedir")
    assert cmakedir.returncode == 0, cmakedir.stderr
    (tmp_path / "main.cpp").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(f"""
cmake_minimum_required(VERSION 3.18)
project(user CXX)
find_package(Baton 0.1 CONFIG REQUIRED COMPONENTS {target})
add_executable(main main.cpp)
target_link_libraries(main PRIVATE Baton::{target})
""")
    for argv in (
        ["cmake", "-S", tmp_path, "-B", tmp_path / "b", "-G", "Ninja", f"-DBaton_DIR={cmakedir.stdout.strip()}"],
        ["cmake", "--build", tmp_path / "b"],
        [tmp_path / "b" / "main"],
    ):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_an_unknown_component_is_refused(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.18)\nproject(user CXX)\nfind_package(Baton CONFIG REQUIRED COMPONENTS cuda)\n")
    run = subprocess.run(
        ["cmake", "-S", tmp_path, "-B", tmp_path / "b", "-G", "Ninja", f"-DBaton_DIR={config('--cmakedir').stdout.strip()}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode != 0 and "no component `cuda`" in " ".join(run.stderr.split())
