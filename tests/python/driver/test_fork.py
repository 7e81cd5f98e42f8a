# SPDX-License-Identifier: Apache-2.0
"""Forked children compile and save, whatever the parent did before. Each in a process of its own, with a limit against a hang."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import multiprocessing, os, sys, threading
import numpy as np
import baton

TEXT = "def @main(%x: Tensor[(4), float32]) {{ nn.relu(add(%x, {}f)) }}\\n"

def work(i):
    path = f"child{i}.so"
    baton.compile(TEXT.format(i)).save(path)
    return float(baton.load(path)(np.ones(4, "float32")).numpy()[0])

if __name__ == "__main__":
    baton.compile(TEXT.format(1)).save("parent.so")
    BODY
"""

FORK = """
    for i in range(3):
        child = os.fork()
        if child == 0:
            os._exit(0 if work(i) == 1 + i else 3)
        assert os.waitpid(child, 0)[1] == 0
"""
POOL = """
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(work, range(4)) == [1, 2, 3, 4]
"""
BUSY = """
    stop = threading.Event()
    def busy():
        while not stop.is_set():
            baton.compile(TEXT.format(9)).save(f"busy{threading.get_ident()}.so")
    threads = [threading.Thread(target=busy) for _ in range(2)]
    for t in threads: t.start()
    for i in range(8):
        child = os.fork()
        if child == 0:
            os._exit(0 if work(i) == 1 + i else 3)
        assert os.waitpid(child, 0)[1] == 0
    stop.set()
    for t in threads: t.join()
"""


@pytest.mark.parametrize("body", [FORK, POOL, BUSY], ids=["fork", "pool", "while others save"])
def test_a_forked_child_saves(body, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.replace("    BODY", body.strip("\n")))
    done = subprocess.run([sys.executable, "-W", "ignore", "program.py"], cwd=tmp_path, timeout=120, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
    assert done.returncode == 0, done.stderr
