# SPDX-License-Identifier: Apache-2.0
"""`python -m baton.describe`."""

import argparse
import ctypes
import sys


def main(argv=None):
    """Writes stubs, the reference, or the table of operators in a README. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m baton.describe", description="Writes stubs (.pyi) or the reference of what this process knows.")
    parser.add_argument("what", choices=["stubs", "reference", "operators"])
    parser.add_argument("--out", required=True, metavar="PATH", help="folder to write to; for operators the README whose table to bring up to date")
    parser.add_argument(
        "--load", action="append", default=[], metavar="LIBRARY", help="shared library to load first; its types, operators and passes are described too"
    )
    parser.add_argument(
        "--package", default="baton", help="the package to describe (default: baton); for a library of your own the first part of its type keys"
    )
    args = parser.parse_args(argv)
    from .._ffi import load_compiler

    load_compiler()
    for path in args.load:
        ctypes.CDLL(path)
    if args.what == "stubs":
        from .stubs import write_stubs

        written = write_stubs(args.out, args.package)
    elif args.what == "operators":
        from .table import write_table

        written = write_table(args.out)
    else:
        from .pages import write_pages

        written = write_pages(args.out, args.package)
    print(f"wrote {len(written)} files to {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
