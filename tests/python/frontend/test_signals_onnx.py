# SPDX-License-Identifier: Apache-2.0
"""STFT and DFT of ONNX beside NumPy's transforms: batches and signals of open length, windows, complex signals."""

import numpy as np
import pytest

import baton

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

RNG = np.random.default_rng(0)
DTYPES = {"float32": (TensorProto.FLOAT, 2e-5), "float64": (TensorProto.DOUBLE, 1e-12)}


def compiled(node, shapes, dtype="float32", opset=17, **weights):
    inputs = [helper.make_tensor_value_info(name, DTYPES[dtype][0], shape) for name, shape in shapes.items()]
    stored = [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()]
    outputs = [helper.make_tensor_value_info("y", DTYPES[dtype][0], None)]
    graph = helper.make_graph([node], "g", inputs, outputs, stored)
    return baton.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9))


def parts(spectrum, dtype):
    return np.stack([spectrum.real, spectrum.imag], -1).astype(dtype)


def stft(x, size, step, window, onesided):
    frames = np.stack([x[:, at : at + size] * window for at in range(0, x.shape[1] - size + 1, step)], 1)
    return np.fft.rfft(frames) if onesided else np.fft.fft(frames)


def assert_near(got, want, dtype):
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=DTYPES[dtype][1] * max(1.0, float(np.abs(want).max(initial=0))))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("shape", [["n", "t"], ["n", "t", 1], [2, 50]], ids=str)
def test_frames_of_signals(shape, onesided, dtype):
    window = np.hanning(12).astype(dtype)
    node = helper.make_node("STFT", ["x", "step", "w"], ["y"], onesided=onesided)
    made = compiled(node, {"x": shape}, dtype, step=np.array(5), w=window)
    for n, t in ((2, 50), (1, 12), (3, 31)) if shape[0] == "n" else ((2, 50),):
        x = RNG.standard_normal((n, t)).astype(dtype)
        got = made(x[..., None] if len(shape) == 3 else x)
        assert_near(got, parts(stft(x, 12, 5, window, onesided), dtype), dtype)


def test_a_window_that_comes_with_the_call():
    node = helper.make_node("STFT", ["x", "step", "w"], ["y"])
    made = compiled(node, {"x": ["n", "t"], "w": [16]}, step=np.array(4))
    x, window = RNG.standard_normal((2, 40), "float32"), RNG.standard_normal(16, "float32")
    assert_near(made(x, window), parts(stft(x, 16, 4, window, True), "float32"), "float32")


def test_frames_without_a_window():
    node = helper.make_node("STFT", ["x", "step", "", "size"], ["y"])
    made = compiled(node, {"x": [1, "t"]}, step=np.array(8), size=np.array(8))
    x = RNG.standard_normal((1, 30), "float32")
    assert_near(made(x), parts(stft(x, 8, 8, 1, True), "float32"), "float32")


def test_a_frame_longer_than_the_signal_is_an_error():
    made = compiled(helper.make_node("STFT", ["x", "step", "w"], ["y"]), {"x": ["n", "t"]}, step=np.array(4), w=np.ones(16, "float32"))
    with pytest.raises(ValueError, match="STFT"):
        made(np.zeros((1, 9), "float32"))


@pytest.mark.parametrize("axis", [1, 2, -2])
@pytest.mark.parametrize("length", [None, 5, 12])
@pytest.mark.parametrize("onesided", [0, 1])
def test_transforms_along_an_axis(axis, length, onesided):
    weights = {} if length is None else {"k": np.array(length)}
    node = helper.make_node("DFT", ["x", *weights], ["y"], axis=axis, onesided=onesided)
    made = compiled(node, {"x": ["n", 8, 9, 1]}, **weights)
    for n in (1, 3):
        x = RNG.standard_normal((n, 8, 9), "float32")
        at = 2 if axis == -2 else axis
        want = (np.fft.rfft if onesided else np.fft.fft)(x, length, axis=at)
        assert_near(made(x[..., None]), parts(want, "float32"), "float32")


def test_complex_signals_and_inverse_transforms():
    x = RNG.standard_normal((2, 8, 2), "float32")
    z = x[..., 0] + 1j * x[..., 1]
    made = compiled(helper.make_node("DFT", ["x"], ["y"], axis=1), {"x": [2, 8, 2]})
    assert_near(made(x), parts(np.fft.fft(z), "float32"), "float32")
    made = compiled(helper.make_node("DFT", ["x"], ["y"], axis=1, inverse=1), {"x": [2, 8, 2]})
    assert_near(made(x), parts(np.fft.ifft(z), "float32"), "float32")


def test_features_of_speech():
    """A log spectrogram whose length follows from STFT and pads by values: parts of kernels, no function of the host."""
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["s"], start=1, end=2),
        node("Sub", ["total", "s"], ["gap"]),
        node("Mul", ["gap", "last"], ["pads"]),
        node("Pad", ["x", "pads"], ["long"]),
        node("Slice", ["long", "zero", "minus", "one"], ["most"]),
        node("STFT", ["most", "step", "w"], ["f"]),
        node("ReduceSumSquare", ["f"], ["power"], axes=[-1], keepdims=0),
        node("MatMul", ["power", "mel"], ["y0"]),
        node("Shape", ["y0"], ["s2"], start=1, end=2),
        node("Squeeze", ["s2"], ["count"]),
        node("Range", ["zero0", "count", "one0"], ["steps"]),
        node("Cast", ["steps"], ["weights"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["weights", "one"], ["column"]),
        node("Mul", ["y0", "column"], ["y"]),
    ]
    mel = RNG.uniform(0, 1, (9, 4)).astype("float32")
    window = np.hanning(16).astype("float32")
    weights = {
        "total": np.array([101]), "last": np.array([0, 0, 0, 1]), "zero": np.array([0]), "one": np.array([1]), "minus": np.array([-1]),
        "step": np.array(4), "w": window, "mel": mel, "zero0": np.array(0), "one0": np.array(1),
    }  # fmt: skip
    stored = [numpy_helper.from_array(v, k) for k, v in weights.items()]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, ["n", "t"])], [value("y", TensorProto.FLOAT, None)], stored)
    made = baton.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))
    for n, t in ((1, 101), (2, 60)):
        x = RNG.standard_normal((n, t), "float32")
        frames = stft(np.pad(x, [(0, 0), (0, 101 - t)])[:, :-1], 16, 4, window, True)
        want = (np.abs(frames) ** 2 @ mel) * np.arange(frames.shape[1])[:, None]
        np.testing.assert_allclose(made(x).numpy(), want, rtol=1e-4, atol=1e-3)
