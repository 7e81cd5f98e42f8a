# SPDX-License-Identifier: Apache-2.0
"""The nine light models of the onnx package: real architectures, compiled, against ONNX Runtime on random input."""

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
pytest.importorskip("baton._core", reason="the extension is not built")
import baton  # noqa: E402

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MODELS = sorted(path.stem for path in FOLDER.glob("light_*.onnx"))


def inputs_of(path, seed):
    graph = onnx.load(path).graph
    weights = {tensor.name for tensor in graph.initializer}
    rng = np.random.default_rng(seed)
    return {
        value.name: rng.standard_normal([d.dim_value for d in value.type.tensor_type.shape.dim], dtype=np.float32)
        for value in graph.input
        if value.name not in weights
    }


def test_there_are_nine():
    assert len(MODELS) == 9


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_onnx_runtime(name):
    path = FOLDER / f"{name}.onnx"
    model = baton.compile(path)
    assert not model.dynamic and model.module.type_key_of_module == "aot", "static shapes become one native function"
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for seed in (0, 1):
        inputs = inputs_of(path, seed)
        got, want = model(inputs).numpy(), session.run(None, inputs)[0]
        assert got.shape == want.shape and got.dtype == want.dtype
        assert np.abs(got - want).max() <= 1e-3 * np.abs(want).max()
        assert np.array_equal(model(inputs).numpy(), got), "the same input gives the same bits"
