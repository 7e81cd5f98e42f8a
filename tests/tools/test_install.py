# SPDX-License-Identifier: Apache-2.0
"""An installation of the built libraries: layout, run paths, exported symbols, and a CMake project that uses it."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def out(*argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    if not (ROOT / "build" / "build.ninja").exists():
        pytest.fail("no build; run ./dev build")
    where = tmp_path_factory.mktemp("prefix")
    out("cmake", "--install", ROOT / "build", "--prefix", where)
    return where


def test_layout(prefix):
    for name in (
        "lib/libbaton_runtime.so",
        "lib/libbaton.so",
        "lib/cmake/Baton/BatonConfig.cmake",
        "lib/cmake/Baton/BatonConfigVersion.cmake",
        "include/baton/runtime/c_runtime_api.h",
        "include/dlpack/dlpack.h",
    ):
        assert (prefix / name).is_file(), name


def test_libraries_find_each_other_wherever_they_are(prefix):
    dynamic = out("readelf", "-d", prefix / "lib/libbaton.so")
    assert re.search(r"RUNPATH.*\[\$ORIGIN\]", dynamic), dynamic
    assert "libbaton_runtime.so" in dynamic
    assert "RUNPATH" not in out("readelf", "-d", prefix / "lib/libbaton_runtime.so")


def test_the_runtime_needs_no_llvm_and_no_python(prefix):
    needed = re.findall(r"NEEDED.*\[(.*)\]", out("readelf", "-d", prefix / "lib/libbaton_runtime.so"))
    allowed = {"libstdc++.so.6", "libgcc_s.so.1", "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
    assert set(needed) <= allowed, "libbaton_runtime must run where nothing else is installed"


def test_symbols_of_lld_and_llvm_stay_inside(prefix):
    exported = out("nm", "-DC", "--defined-only", prefix / "lib/libbaton.so")
    foreign = [line for line in exported.splitlines() if re.search(r" [TDBRVW] (lld|llvm)::|LLVM[A-Z]", line)]
    assert foreign == []


def test_a_project_uses_the_installation(prefix, tmp_path):
    (tmp_path / "main.cpp").write_text("#include <baton/runtime/c_runtime_api.h>\nint main() { return sizeof(DLTensor) == 0; }\n")
    (tmp_path / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.18)
project(user CXX)
find_package(Baton 0.1 CONFIG REQUIRED COMPONENTS runtime compiler)
add_executable(main main.cpp)
target_link_libraries(main PRIVATE Baton::compiler Baton::runtime)
get_target_property(where Baton::runtime IMPORTED_LOCATION_RELEASE)
message(STATUS "runtime at ${where}")
""")
    told = out("cmake", "-S", tmp_path, "-B", tmp_path / "b", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    assert f"runtime at {prefix}/lib/libbaton_runtime.so" in told
    out("cmake", "--build", tmp_path / "b")
    out(tmp_path / "b" / "main")
