# SPDX-License-Identifier: Apache-2.0
"""`--weights`: what products' weights are stored in."""

import numpy as np
import onnx_files
import pytest


@pytest.fixture
def model(tmp_path):
    """A product with a weight of a megabyte."""
    weight = np.random.default_rng(0).normal(0, 0.05, (512, 640)).astype(np.float32)
    ends = {"inputs": [onnx_files.value("x", [4, 512])], "outputs": [onnx_files.value("y", [4, 640])]}
    return onnx_files.write(tmp_path / "net.onnx", [onnx_files.node("MatMul", ["x", "w"], ["y"])], [("w", weight)], **ends)


def outputs(baton, tmp_path, file, *args):
    baton("run", file, "--save", "y.npy", *args)
    return np.load(tmp_path / "y.npy")


@pytest.mark.parametrize("form, most, share", [("exact", 0, 1.1), ("int8", 1e-2, 0.35), ("int4:64", 1.5e-1, 0.2)])
def test_run_and_compile(baton, compiler, model, tmp_path, form, most, share):
    want, got = outputs(baton, tmp_path, "net.onnx"), outputs(baton, tmp_path, "net.onnx", "--weights", form)
    assert np.abs(want - got).max() <= most * np.abs(want).max()
    baton("compile", "net.onnx", "--weights", form, "-o", "net.so")
    assert (tmp_path / "net.so").stat().st_size < share * 4 * 512 * 640 + (100 << 10)
    np.testing.assert_array_equal(outputs(baton, tmp_path, "net.so"), got)


def test_mistakes(baton, compiler, model):
    assert 'weights is "int5"; it is "exact", "int8" or "int4"' in baton("run", "net.onnx", "--weights", "int5", code=1).stderr
    assert (
        "both --weights and --pass-config weights=... are given"
        in baton("run", "net.onnx", "--weights", "int8", "--pass-config", "weights=int4", code=2).stderr
    )
    baton("compile", "net.onnx", "-o", "net.so")
    assert "--weights comes with `baton compile`" in baton("run", "net.so", "--weights", "int8", code=2).stderr
