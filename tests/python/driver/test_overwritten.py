# SPDX-License-Identifier: Apache-2.0
"""Compiled models of more than 16 MiB are read where they lie: what another program does to the file meanwhile is an error, never a crash."""

import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import baton
from baton import relay

ROWS = 2304  # 2304 * 2304 floats: 20 MiB
WEIGHT = np.random.default_rng(0).standard_normal((ROWS, ROWS)).astype("float32")


def static():
    x = relay.var("x", shape=(1, ROWS))
    return relay.Function([x], relay.nn.dense(x, relay.const(WEIGHT))), {}


def looped():
    """A model that the virtual machine runs."""
    x, n = relay.var("x", shape=(relay.Any(), ROWS)), relay.var("n", shape=(), dtype="bool")
    w = relay.const(WEIGHT)
    return relay.Function([x, n], relay.If(n, relay.nn.dense(x, w), x)), {}


@pytest.fixture(scope="module", params=[static, looped], ids=["one function", "a program"])
def model(request, tmp_path_factory):
    function, options = request.param()
    path = tmp_path_factory.mktemp("m") / "m.so"
    baton.compile(baton.IRModule.from_expr(function), **options).save(str(path))
    assert path.stat().st_size > 16 << 20
    return path


def feeds(path):
    x = np.ones((1, ROWS), "float32")
    return {"x": x} if len(baton.load(str(path)).inputs) == 1 else {"x": x, "n": np.array(True)}


WAYS = {
    "cut": lambda path: os.truncate(path, 100_000),
    "emptied": lambda path: path.write_bytes(b""),
    "written over": lambda path: path.write_bytes(path.read_bytes()[:-4096] + b"\0" * 4096),
    "copied over": lambda path: shutil.copyfile("/bin/sh", path),
    "lengthened": lambda path: path.open("ab").write(b"x"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_written_to_is_an_error_of_the_call(model, way, tmp_path):
    """In a process of its own, which a signal would end."""
    path = shutil.copy(model, tmp_path / "m.so")
    code = f"""
        import os, shutil, sys
        from pathlib import Path
        import numpy as np
        import baton
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        from test_overwritten import WAYS, feeds
        path = Path({str(path)!r})
        given = feeds(path)
        exe = baton.load(str(path))
        before = exe(**given).numpy()
        WAYS[{way!r}](path)
        for use in (lambda: exe(**given), lambda: exe.save({str(tmp_path / "copy.so")!r}), lambda: exe(**given)):
            try:
                use()
            except baton.Error as error:
                assert "written to since it was loaded" in str(error) and "m.so" in str(error), error
            else:
                raise SystemExit("no error")
        print("said so")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "said so\n"), done.stderr[-2000:]


def test_a_file_that_another_takes_the_name_of_goes_on(model, tmp_path):
    path = tmp_path / "m.so"
    shutil.copy(model, path)
    exe, given = baton.load(str(path)), feeds(model)
    before = exe(**given).numpy()
    shutil.copy(model, tmp_path / "new.so")
    os.replace(tmp_path / "new.so", path)
    assert (exe(**given).numpy() == before).all()
    os.unlink(path)
    assert (exe(**given).numpy() == before).all()
