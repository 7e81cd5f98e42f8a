# SPDX-License-Identifier: Apache-2.0
"""What a user does first with the installed package, each step as its own program. Run by `./dev wheel`, in an environment
that has the wheel and NumPy alone; says what is missing and ends with exit code 1 at the first thing that fails."""

import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

PACKAGE = Path(sysconfig.get_paths()["purelib"]) / "baton"
BIN = Path(sys.executable).parent
FILES = ("py.typed", "lib/libbaton.so", "lib/libbaton_runtime.so", "lib/libbaton_vm.so", "lib/libbaton_opencl.so",
         "lib/cmake/Baton/BatonConfig.cmake", "include/baton/runtime/c_runtime_api.h", "__init__.pyi", "relay/op/nn.pyi",
         "relay/expr.pyi", "include/dlpack/dlpack.h")
C_PROGRAM = "#include <baton/runtime/c_runtime_api.h>\nint main(void) { return sizeof(DLTensor) == 0; }\n"


def do(*argv, cwd):
    """Runs a program; returns its output, or ends this one with what went wrong."""
    print("$", shlex.join(map(str, argv)), flush=True)
    done = subprocess.run([str(a) for a in argv], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    """Files, import, command, flags, a C program, a CMake project."""
    missing = [name for name in FILES if not (PACKAGE / name).exists()]
    if not list(PACKAGE.glob("_core*.so")):
        missing.append("_core*.so")
    if missing:
        sys.exit(f"{PACKAGE} lacks {', '.join(missing)}")
    with tempfile.TemporaryDirectory() as folder:
        python = sys.executable
        print(do(python, "-c", "import baton; print('baton', baton.__version__, baton.__file__)", cwd=folder))
        print(do(BIN / "baton", "--version", cwd=folder))
        do(BIN / "baton", "--help", cwd=folder)
        flags = shlex.split(do(python, "-m", "baton.config", "--cflags", "--libs", cwd=folder))
        Path(folder, "main.c").write_text(C_PROGRAM)
        do("gcc", "main.c", *flags, "-o", "main", cwd=folder)
        do("./main", cwd=folder)
        Path(folder, "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.18)\nproject(user C CXX)\nfind_package(Baton CONFIG REQUIRED COMPONENTS runtime compiler)\n"
            "add_executable(a main.c)\ntarget_link_libraries(a PRIVATE Baton::runtime)\n"
            "add_executable(b main.c)\ntarget_link_libraries(b PRIVATE Baton::compiler)\n")
        cmakedir = do(python, "-m", "baton.config", "--cmakedir", cwd=folder).strip()
        do("cmake", "-S", ".", "-B", "b", "-G", "Ninja", f"-DBaton_DIR={cmakedir}", cwd=folder)
        do("cmake", "--build", "b", cwd=folder)
        do("b/a", cwd=folder)
        do("b/b", cwd=folder)
    print("the wheel works")


if __name__ == "__main__":
    main()
