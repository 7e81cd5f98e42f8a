# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows while a model is compiled."""

import os
import re
import select
import subprocess
import sys
import time

from baton.cli import terminal

SLOW = """
import time
import baton
from baton import relay

@relay.transform.function_pass(opt_level=0, name="TakesItsTime")
def takes_its_time(func, mod, ctx):
    time.sleep(2.5)
    return func

baton.transform.join_pipeline("python.slow_pass.takes_its_time", before="FuseOps")
"""


def shown(*args, cwd):
    """What the command writes to a terminal on standard error."""
    master, slave = os.openpty()
    path = os.pathsep.join(filter(None, [str(cwd), os.environ.get("PYTHONPATH")]))
    child = subprocess.Popen(
        [sys.executable, "-m", "baton", *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "TERM": "xterm"},
        stdout=subprocess.DEVNULL,
        stderr=slave,
        stdin=subprocess.DEVNULL,
    )
    os.close(slave)
    out = b""
    while True:
        ready, _, _ = select.select([master], [], [], 0.2)
        if ready:
            try:
                data = os.read(master, 4096)
            except OSError:
                break
            if not data:
                break
            out += data
        elif child.poll() is not None:
            break
    os.close(master)
    assert child.wait() == 0, out
    return out.decode()


def test_the_pass_that_runs_is_named(compiler, good, tmp_path):
    (tmp_path / "slow_pass.py").write_text(SLOW)
    text = shown("compile", str(good), "--load", "slow_pass.py", "-o", "m.so", cwd=tmp_path)
    assert re.search(r"compiling: TakesItsTime [12] s", text), text


def test_a_stage_replaces_the_one_before(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with terminal.Progress("importing") as progress:
        assert len(progress.instruments()) == 1
        progress.stage("linking")
        time.sleep(1.3)
    assert "linking 1 s" in capsys.readouterr().err


def test_nothing_is_watched_where_nothing_is_shown(capsys):
    with terminal.Progress("importing", quiet=True) as progress:
        assert progress.instruments() == []
