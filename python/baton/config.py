# SPDX-License-Identifier: Apache-2.0
"""Which Baton this is, and where its headers, libraries and CMake files are, for building C and C++ programs against it.

$ c++ -std=c++20 main.cpp $(python -m baton.config --cflags --libs) -o main
$ cmake -S . -B build -DBaton_DIR=$(python -m baton.config --cmakedir)
"""

import argparse
import os
import shlex
import sys

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def include_dir():
    """Folder to put on the include path; `#include <baton/runtime/c_runtime_api.h>` then works."""
    for path in (os.path.join(_PACKAGE, "include"), os.path.join(_PACKAGE, os.pardir, os.pardir, "include")):
        if os.path.isdir(os.path.join(path, "baton")):
            return os.path.realpath(path)
    raise FileNotFoundError(f"no headers beside {_PACKAGE}; mend with: pip install --force-reinstall baton-compiler")


def lib_dir():
    """Folder of libbaton_runtime.so and, where the compiler is installed, libbaton.so."""
    path = os.path.join(_PACKAGE, "lib")
    if not os.path.isfile(os.path.join(path, "libbaton_runtime.so")):
        raise FileNotFoundError(f"no libbaton_runtime.so in {path}; mend with `./dev build` in a checkout, else pip install --force-reinstall baton-compiler")
    return path


def cmake_dir():
    """Folder of BatonConfig.cmake, for `find_package(Baton CONFIG)`."""
    path = os.path.join(lib_dir(), "cmake", "Baton")
    if not os.path.isfile(os.path.join(path, "BatonConfig.cmake")):
        raise FileNotFoundError(f"no BatonConfig.cmake in {path}; mend with `./dev build` in a checkout, else pip install --force-reinstall baton-compiler")
    return path


def version():
    """The version of this Baton, as "0.2.0"."""
    path = os.path.join(_PACKAGE, "lib", "cmake", "Baton", "BatonConfigVersion.cmake")
    try:
        with open(path, encoding="utf-8") as f:
            for line in f:
                if line.startswith("set(PACKAGE_VERSION "):
                    return line.split('"')[1]
    except FileNotFoundError:
        pass
    from importlib.metadata import version as installed

    return installed("baton-compiler")


def cflags():
    """Compiler flags for a program that includes Baton's headers, as a list."""
    return ["-I" + include_dir()]


def libs(compiler=False):
    """Linker flags for a program that uses the runtime, or also the compiler, as a list."""
    path = lib_dir()
    return ["-L" + path, "-Wl,-rpath," + path, *(["-lbaton"] if compiler else []), "-lbaton_runtime"]


def main(argv=None):
    """Prints what was asked for on one line. Returns the exit code: 0, 1 if it is not installed, 2 for wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m baton.config", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cflags", action="store_true", help="compiler flags")
    parser.add_argument("--libs", action="store_true", help="linker flags of the runtime")
    parser.add_argument("--compiler", action="store_true", help="with --libs: link the compiler too")
    parser.add_argument("--cmakedir", action="store_true", help="folder of BatonConfig.cmake")
    parser.add_argument("--includedir", action="store_true", help="folder of the headers")
    parser.add_argument("--libdir", action="store_true", help="folder of the libraries")
    args = parser.parse_args(argv)
    try:
        words = []
        if args.cflags:
            words += cflags()
        if args.libs or args.compiler:
            words += libs(args.compiler)
        words += [f() for flag, f in ((args.cmakedir, cmake_dir), (args.includedir, include_dir), (args.libdir, lib_dir)) if flag]
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not words:
        parser.print_usage(sys.stderr)
        return 2
    print(shlex.join(words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
