# SPDX-License-Identifier: Apache-2.0
"""A limit of address space makes a compilation a MemoryError: never an abort, a crash or a hang."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import numpy as np
import baton

baton.compile("def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }\\n")  # loads the compiler
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = held + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    model = baton.compile('''def @main(%x: Tensor[(8, 64), float32], %w: Tensor[(64, 64), float32]) {
      %0 = nn.dense(%x, %w, units=None);
      sum(nn.softmax(%0), axis=[1])
    }
    ''')
    model(np.zeros((8, 64), "float32"), np.zeros((64, 64), "float32"))
    model.save(sys.argv[2])
    print("done")
except MemoryError as error:
    print("MemoryError", error)
"""


def run(limit, path):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(limit), str(path)], capture_output=True, text=True)
    assert done.returncode == 0, f"{limit} bytes: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [1, 3, 6, 9, 12, 14, 17, 20, 24, 28, 32, 36, 42, 50, 60, 80, 110, 150])
def test_a_compilation_under_a_limit(megabytes, tmp_path):
    out = run(megabytes << 20, tmp_path / "m.so")
    assert out.startswith(("done", "MemoryError")) and (out.startswith("done") or not (tmp_path / "m.so").exists())


def test_the_error_says_what_is_missing(tmp_path):
    assert "MB of address space, and the limit of this process (RLIMIT_AS" in run(20 << 20, tmp_path / "m.so")


def test_enough_is_enough(tmp_path):
    assert run(1 << 30, tmp_path / "m.so") == "done\n"
