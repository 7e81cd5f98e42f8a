# SPDX-License-Identifier: Apache-2.0
"""`--precision`, and what `baton inspect` and `baton bench` say of it."""

import json

import numpy as np
import onnx_files
import pytest


@pytest.fixture
def model(tmp_path):
    """A product with a weight of a megabyte."""
    weight = np.random.default_rng(0).normal(0, 0.05, (512, 640)).astype(np.float32)
    ends = {"inputs": [onnx_files.value("x", [4, 512])], "outputs": [onnx_files.value("y", [4, 640])]}
    return onnx_files.write(tmp_path / "net.onnx", [onnx_files.node("MatMul", ["x", "w"], ["y"])], [("w", weight)], **ends)


@pytest.fixture
def offer(compiler):
    """What this processor offers; None on most."""
    from baton.driver import precision

    return precision.offer()


def outputs(baton, tmp_path, *args):
    baton("run", "net.onnx", "--save", "y.npy", *args)
    return np.load(tmp_path / "y.npy")


@pytest.mark.parametrize("precision, most", [("exact", 0), ("bf16", 2e-2), ("f16", 2e-3)])
def test_run(baton, compiler, model, tmp_path, precision, most):
    want, got = outputs(baton, tmp_path), outputs(baton, tmp_path, "--precision", precision)
    assert got.dtype == np.float32
    assert np.abs(want - got).max() <= most * np.abs(want).max()


def test_compile(baton, compiler, model, tmp_path):
    for precision in ("exact", "bf16"):
        baton("compile", "net.onnx", "--target", "llvm -mcpu=x86-64-v3", "--precision", precision, "-o", f"{precision}.so")
    assert (tmp_path / "bf16.so").stat().st_size < 0.7 * (tmp_path / "exact.so").stat().st_size


def test_inspect_says_what_the_processor_could_do(baton, offer, model):
    said = baton("inspect", "net.onnx").stdout
    line = f"this processor has {offer[0]} {offer[1]}: --precision {offer[0]}" if offer else None
    assert line in said if line else "--precision" not in said
    assert json.loads(baton("inspect", "net.onnx", "--json").stdout).get("precision") == line


def test_bench_measures_what_the_processor_could_do(baton, offer, model):
    answer = json.loads(baton("bench", "net.onnx", "--rounds", "2", "--json").stdout)
    if not offer:
        assert "precision" not in answer
        return
    assert answer["precision"]["precision"] == offer[0] and 0 < answer["precision"]["difference"] < 2e-2
    assert f"--precision {offer[0]} takes " in baton("bench", "net.onnx", "--rounds", "2").stdout
    assert "precision" not in json.loads(baton("bench", "net.onnx", "--rounds", "2", "--json", "--precision", "exact").stdout)


def test_wrong_use(baton, compiler, model):
    wrong = baton("run", "net.onnx", "--precision", "fp8", code=2).stderr
    assert "fp8" in wrong and all(name in wrong for name in ("exact", "bf16", "f16"))
    assert "--precision" in baton("run", "net.onnx", "--precision", "bf16", "--pass-config", "precision=f16", code=2).stderr
    baton("compile", "net.onnx", "-o", "net.so")
    assert "compiled already" in baton("run", "net.so", "--precision", "bf16", code=2).stderr
