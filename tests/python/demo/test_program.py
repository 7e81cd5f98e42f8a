# SPDX-License-Identifier: Apache-2.0
"""`python -m baton.demo` as a person runs it."""

import os
import subprocess
import sys

import numpy as np
import pytest

from baton.demo import __main__ as demo
from baton.demo.engines import ENGINES, Engine
from baton.demo.reference import Reference
from baton.demo.tokenize import load_tokenizer


def run(*args, **env):
    return subprocess.run(
        [sys.executable, "-m", "baton.demo", *args],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
    )


def baton_is_built():
    try:
        import baton
    except ImportError:
        return False
    return hasattr(baton, "compile")


def test_reference_gives_the_known_answer(trained):
    tokenizer, reference = load_tokenizer(trained.folder), Reference(trained)
    a, b, c = (reference.embed(tokenizer.encode(text)) for text in demo.KNOWN_SENTENCES)
    assert (round(a @ b, 4), round(a @ c, 4), round(b @ c, 4)) == (0.6660, 0.1046, 0.1411)


@pytest.mark.parametrize("name", ["onnxruntime", "baton"])
def test_finds_modules(trained, name, tmp_path):
    if name == "baton" and not baton_is_built():
        pytest.skip("Baton is not built")
    if name == "onnxruntime":
        pytest.importorskip("onnxruntime")
    trained.onnx_file()  # so that only this copy is made, not 90 MB a test
    cache = tmp_path / "baton"
    cache.mkdir()
    os.symlink(trained.onnx_file(), cache / trained.onnx_file().name)
    first = run("compress a file", "send e-mail", "--engine", name, XDG_CACHE_HOME=str(tmp_path))
    assert first.returncode == 0, first.stderr
    assert first.stdout.count("   ok") == 3 and "0.6660" in first.stdout and "0.1046" in first.stdout and "0.1411" in first.stdout
    found = first.stdout.split("\ncompress a file\n")[1].split("\n\n")[0]
    assert "bz2" in found or "zipfile" in found or "gzip" in found
    assert "mail" in first.stdout.split("\nsend e-mail\n")[1]
    assert "from the NumPy reference at most" in first.stdout
    assert first.stderr == ""  # no progress in a pipe
    again = run("compress a file", "--engine", name, "--no-compare", XDG_CACHE_HOME=str(tmp_path))
    assert again.returncode == 0 and "embedded in an earlier run" in again.stdout
    assert again.stdout.split("\ncompress a file\n")[1].split("\n\n")[0] == found


class Wrong(Engine):
    """An engine that is off by a little, or gives NaN."""

    name, version, offset = "wrong", "1", 0.0

    def __init__(self, model, threads=None):
        super().__init__()
        self._reference = Reference(model)

    def run(self, ids, mask):
        return (self._reference.embed(ids[0, : mask.sum()]) + self.offset)[None].astype(np.float32)


@pytest.mark.parametrize("offset, code", [(0.0, 0), (3e-4, 1), (np.nan, 1)])
def test_wrong_engine_is_found_out(trained, monkeypatch, capsys, offset, code):
    monkeypatch.setitem(ENGINES, "wrong", Wrong)
    monkeypatch.setattr(Wrong, "offset", offset)
    monkeypatch.setattr(demo, "standard_library", lambda: {"csv": "read and write CSV files"})
    monkeypatch.setattr(demo, "embed_corpus", lambda engine, model, tokens, fresh: np.stack([engine.embed(t) for t in tokens]))
    assert demo.main(["--engine", "wrong", "--no-compare", "tables"]) == code
    out, err = capsys.readouterr()
    assert ("WRONG" in out) == bool(code) and ("known answer" in err) == bool(code)


def test_damaged_cache_is_not_used(tmp_path):
    good = np.ones((2, 3), np.float32)
    np.save(tmp_path / "a.npy", good)
    np.testing.assert_array_equal(demo._load(tmp_path / "a.npy", 2, 3), good)
    data = (tmp_path / "a.npy").read_bytes()
    for size in range(len(data)):
        (tmp_path / "cut.npy").write_bytes(data[:size])
        assert demo._load(tmp_path / "cut.npy", 2, 3) is None, size
    assert demo._load(tmp_path / "a.npy", 3, 3) is None and demo._load(tmp_path / "none.npy", 2, 3) is None
    np.save(tmp_path / "b.npy", np.full((2, 3), np.nan, np.float32))
    assert demo._load(tmp_path / "b.npy", 2, 3) is None


@pytest.mark.parametrize("args", [["--engine", "magic"], ["--top", "0"], ["--threads", "-1"], ["--top", "x"], [" "], ["--nonsense"]])
def test_wrong_usage(args):
    out = run(*args)
    assert out.returncode == 2 and "Traceback" not in out.stderr and out.stdout == ""


def test_cache_folder_cannot_be_made(trained, tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "baton").write_text("a file is in the way")
    out = run("--engine", "onnxruntime", XDG_CACHE_HOME=str(tmp_path))
    assert out.returncode == 1 and "XDG_CACHE_HOME" in out.stderr and "Traceback" not in out.stderr


def test_baton_not_built_is_said():
    if baton_is_built():
        pytest.skip("Baton is built")
    out = run()
    assert out.returncode == 1 and "./dev build" in out.stderr and "Traceback" not in out.stderr


def test_help_has_examples():
    out = run("--help")
    assert out.returncode == 0 and "examples:" in out.stdout
