# SPDX-License-Identifier: Apache-2.0
"""A compilation that is killed leaves nothing in the folder for temporary files."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time

COMPILES = """
    import baton
    from baton import relay
    x = relay.var("x", shape=(8, 64))
    y = x
    for _ in range(4):
        y = relay.nn.softmax(relay.exp(y))
    model = baton.IRModule.from_expr(relay.Function([x], y))
    print("begins", flush=True)
    while True:
        baton.compile(model).save("m.so")
"""


def test_nothing_is_left_of_a_compilation_that_is_killed(tmp_path):
    folder, work = tmp_path / "temporary", tmp_path / "work"
    folder.mkdir()
    work.mkdir()
    chance = random.Random(0)
    for _ in range(8):
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(COMPILES)], cwd=work, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)})
        with child:
            assert child.stdout.readline() == b"begins\n"
            time.sleep(chance.uniform(0, 0.5))
            child.send_signal(signal.SIGKILL)
        assert os.listdir(folder) == []
