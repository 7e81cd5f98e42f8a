# SPDX-License-Identifier: Apache-2.0
"""Flags for C and C++ programs over the runtime library of this package.

$ cc -std=c99 main.c $(python -m baton_runtime --cflags --libs) -o main
$ cmake -S . -B build -DBaton_DIR=$(python -m baton_runtime --cmakedir)
"""

import argparse
import os
import shlex
import sys


def main(argv=None):
    """Prints what was asked for on one line. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m baton_runtime", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cflags", action="store_true", help="compiler flags")
    parser.add_argument("--libs", action="store_true", help="linker flags")
    parser.add_argument("--cmakedir", action="store_true", help="folder of BatonConfig.cmake")
    args = parser.parse_args(argv)
    here = os.path.dirname(os.path.abspath(__file__))
    lib = os.path.join(here, "lib")
    words = ["-I" + os.path.join(here, "include")] if args.cflags else []
    words += ["-L" + lib, "-Wl,-rpath," + lib, "-lbaton_runtime"] if args.libs else []
    words += [os.path.join(lib, "cmake", "Baton")] if args.cmakedir else []
    if not words:
        parser.print_usage(sys.stderr)
        return 2
    print(shlex.join(words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
