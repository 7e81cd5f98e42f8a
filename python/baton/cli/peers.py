# SPDX-License-Identifier: Apache-2.0
"""Others that run an ONNX file, for `baton bench --vs`: each through its public API, on the same inputs and with as many threads."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import NamedTuple

from .errors import Failure


class Peer(NamedTuple):
    """`packages`: what is installed for it; `make(model, inputs, threads)`: a function of no argument that gives the outputs in the order of the
    graph, NumPy arrays or what `numpy.asarray` takes; `note`: what a reader of its times has to know."""

    title: str
    packages: str
    make: Callable
    note: str = ""


def _onnxruntime(model: str, inputs: dict, threads: int) -> Callable:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def _openvino(model: str, inputs: dict, threads: int) -> Callable:
    import openvino

    core = openvino.Core()
    # Its default, but in float32: bfloat16 is another computation.
    config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    read = core.read_model(model)
    read.reshape({port.any_name: list(inputs[port.any_name].shape) for port in read.inputs})
    request = core.compile_model(read, "CPU", config).create_infer_request()
    outputs = request.model_outputs if hasattr(request, "model_outputs") else None

    def run():
        found = request.infer(inputs, share_inputs=True, share_outputs=True)
        return [found[port] for port in outputs] if outputs else list(found.values())

    return run


def _names(proto) -> list[str]:
    """The inputs of an ONNX model that a caller gives, in order."""
    weights = {i.name for i in proto.graph.initializer}
    return [i.name for i in proto.graph.input if i.name not in weights]


def _torch(model: str, inputs: dict, threads: int) -> Callable:
    import onnx
    import onnx2torch
    import torch

    torch.set_num_threads(threads)
    proto = onnx.load(model)
    module = onnx2torch.convert(proto).eval()
    tensors = [torch.from_numpy(inputs[name].copy()) for name in _names(proto)]

    def run():
        with torch.inference_mode():
            value = module(*tensors)
        return [t.numpy() for t in (value if isinstance(value, (list, tuple)) else (value,))]

    return run


def _tvm(model: str, inputs: dict, threads: int) -> Callable:
    os.environ.setdefault("TVM_NUM_THREADS", str(threads))
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    proto = onnx.load(model)
    mod = from_onnx(proto, shape_dict={name: list(array.shape) for name, array in inputs.items()})
    machine = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    tensor = getattr(tvm.runtime, "tensor", None) or tvm.nd.array
    arguments = [tensor(inputs[name]) for name in _names(proto)]

    def run():
        value = machine["main"](*arguments)
        return [t.numpy() for t in (value if not hasattr(value, "numpy") else (value,))]

    return run


PEERS = {
    "onnxruntime": Peer("ONNX Runtime", "onnxruntime", _onnxruntime),
    "openvino": Peer("OpenVINO", "openvino", _openvino),
    "torch": Peer(
        "PyTorch", "torch onnx2torch", _torch, "PyTorch reads no ONNX files: the package onnx2torch makes a module of one, which runs without torch.compile"
    ),
    "tvm": Peer("Apache TVM", "apache-tvm onnx", _tvm, "Apache TVM runs the default pipeline of its importer for ONNX (Relax), without tuning"),
}


def load(name: str, model: str, inputs: dict, threads: int) -> Callable:
    """The function that runs a model through a peer. Failure where the peer is not installed, or does not take the model."""
    peer = PEERS[name]
    try:
        with _silent():
            run = peer.make(model, inputs, threads)
            run()
        return run
    except ImportError as error:
        missing = f": {error.name} is missing" if error.name else f": {error}"
        why = f" ({peer.note})" if name == "torch" else ""
        raise Failure(f"{peer.title} is not installed{missing}{why}", f"python -m pip install {peer.packages}") from None
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()] or [""]
        raise Failure(f"{peer.title} does not take `{model}`: {type(error).__name__}: {lines[-1 if name == 'tvm' else 0].strip()}") from None


@contextlib.contextmanager
def _silent():
    """Keeps the output of peers out of our answers."""
    import io
    import warnings

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
