#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a whole build takes without a compiler cache, and where the time goes.

  python3 bench/build_time.py               configure and build in a new folder; the slowest steps
  python3 bench/build_time.py --touch FILE  also: the build after FILE has changed
  python3 bench/build_time.py --separate    each file on its own

Bars, on two idle cores: a whole build 240 s, after one `.cpp` 20 s. Peer: the same sources compiled separately.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def steps(folder):
    """(seconds, output) of each step, from Ninja's log, slowest first."""
    rows = {}
    for line in (folder / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        rows[output] = (int(end) - int(start)) / 1000
    return sorted(((seconds, output) for output, seconds in rows.items()), reverse=True)


def timed(argv, env):
    """Wall seconds of a command; ends this program where it fails."""
    begin = time.monotonic()
    done = subprocess.run([str(a) for a in argv], env=env, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(f"{argv[0]} ended with {done.returncode}")
    return time.monotonic() - begin


def main(argv):
    """Prints seconds; returns 1 with --check where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--touch", type=Path, help="a source file; it is built again after its time stamp has changed")
    parser.add_argument("--separate", action="store_true", help="without unity builds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at once")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a bar is missed")
    parser.add_argument("--top", type=int, default=10, help="how many of the slowest steps to print")
    args = parser.parse_args(argv)
    env = dict(os.environ, CCACHE_DISABLE="1")
    with tempfile.TemporaryDirectory() as source:
        # A copy: the build writes libraries into the tree.
        tree = Path(source) / "tree"
        made = shutil.ignore_patterns(".venv", ".git", "*.so", "__pycache__")
        folders = shutil.ignore_patterns("build", "build-*", "dist")  # of the checkout itself: sources are called build.cpp too
        shutil.copytree(ROOT, tree, ignore=lambda at, names: made(at, names) | (folders(at, names) if Path(at) == ROOT else set()), symlinks=True)
        folder = tree / "build"
        configure = timed(
            ["cmake", "-S", tree, "-B", folder, "-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}", f"-DBATON_UNITY={'OFF' if args.separate else 'ON'}"],
            env,
        )
        whole = timed(["ninja", "-C", folder, f"-j{args.jobs}"], env)
        print(f"configure {configure:6.1f} s\nbuild     {whole:6.1f} s ({args.jobs} jobs, no cache)")
        for seconds, output in steps(folder)[: args.top]:
            print(f"  {seconds:6.1f} s  {output}")
        again = 0.0
        if args.touch:
            (tree / args.touch).touch()
            again = timed(["ninja", "-C", folder, f"-j{args.jobs}"], env)
            print(f"after {args.touch} {again:6.1f} s")
    return int(args.check and (whole > 240 or again > 20))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
