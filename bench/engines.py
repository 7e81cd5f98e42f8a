# SPDX-License-Identifier: Apache-2.0
"""How a model is compiled and run by each engine: `ENGINES[name](model, threads)` gives a callable of no argument ->
outputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from models import Model


class NotReady(Exception):
    """The engine cannot be used here; the message says how to mend it."""


def _baton(model: Model, threads: int) -> Callable[[], list]:
    os.environ["BATON_NUM_THREADS"] = str(threads)
    try:
        import baton

        compile_model = baton.compile
    except (ImportError, AttributeError) as error:
        raise NotReady(f"Baton is not built ({error}); build it first: ./dev build") from None
    executable = compile_model(str(model.path), shape=model.shape)
    inputs = model.inputs
    return lambda: executable(**inputs) if all(map(str.isidentifier, inputs)) else executable(inputs)


def _onnxruntime(model: Model, threads: int) -> Callable[[], list]:
    try:
        import onnxruntime
    except ImportError:
        raise NotReady("ONNX Runtime is not installed; mend with: python -m pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model.path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, model.inputs)


def _onnxruntime_open(path: str, threads: int) -> Callable[[dict], list]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, feed)


def _openvino_open(path: str, threads: int) -> Callable[[dict], list]:
    import openvino

    core = openvino.Core()
    config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(core.read_model(path), "CPU", config).create_infer_request()
    return lambda feed: list(request.infer(feed, share_inputs=True, share_outputs=True).values())


def open_peers(path: str, threads: int) -> dict[str, Callable[[dict], list]]:
    """By the name of each peer that is installed: a callable of inputs by name, whose shapes may differ from call to call."""
    found = {}
    for name, make in {"ONNX Runtime": _onnxruntime_open, "OpenVINO": _openvino_open}.items():
        try:
            found[name] = make(path, threads)
        except ImportError:
            pass
    if not found:
        raise NotReady("no peer is installed; mend with: python -m pip install onnxruntime openvino")
    return found


ENGINES = {"baton": _baton, "onnxruntime": _onnxruntime}


def to_numpy(outputs) -> list[np.ndarray]:
    """An engine's result as arrays, whatever it hands out."""
    if not isinstance(outputs, (list, tuple)):
        outputs = [outputs]
    return [out if isinstance(out, np.ndarray) else out.numpy() for out in outputs]


def difference(got: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """The largest difference, relative to the largest value of the output that it is in; NaN or infinite where either
    is wrong.
    """
    worst = 0.0
    for a, b in zip(got, wanted, strict=True):
        if a.shape != b.shape:
            return float("inf")
        apart = np.abs(a.astype(np.float64) - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30)
        worst = float(np.maximum(worst, apart))
    return worst
