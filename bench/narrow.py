# SPDX-License-Identifier: Apache-2.0
"""Half-float and integer models beside the same models in float32, beside ONNX Runtime, and in bfloat16 beside OpenVINO.

    python bench/narrow.py                          # for this processor
    python bench/narrow.py --cpu x86-64-v2          # for another one of its kind
    python bench/narrow.py --only resnet50 --check  # exit code 1 where a bar is missed

Engines take turns and sleep between runs; a ratio is of the least times. Bars: half floats take at most 1.2 times what
their float32 twin takes, integers 1.0; networks whose layers are quantized by ONNX Runtime's tools take at most 0.75 of its time, transformers
with dynamic scales 0.8 (for this processor, if it has VNNI). An artifact is at most 0.6 times as large for half floats (for processors that
widen them), 0.3 for integers. Rows named bf16 are float32 models that `precision="bf16"` compiles, beside OpenVINO's bf16 where that is installed
(and the processor has instructions for it): never above float32.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import models
import numpy as np

ANY = float("inf")


@dataclass
class Row:
    """`make()` gives the float32 model and its inputs, `narrow(model, inputs)` the narrow model, `convert` each input of it. Bars are ratios:
    of times to float32 and to ONNX Runtime, and of sizes.
    """

    name: str
    make: Callable
    narrow: Callable
    convert: Callable[[np.ndarray], np.ndarray]
    bar: float
    size_bar: float = ANY
    peer_bar: float = ANY


def _model(nodes, inputs, outputs, weights):
    import onnx
    from onnx import helper, numpy_helper

    made = helper.make_model(
        helper.make_graph(nodes, "narrow", inputs, outputs, [numpy_helper.from_array(value, name) for name, value in weights.items()]),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.checker.check_model(made)
    return made


def _info(name: str, dtype: str, shape):
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, getattr(TensorProto, dtype), shape)


def product(rows: int, depth: int, columns: int):
    """(float32 model, its inputs by name)."""
    from onnx import helper

    rng = np.random.default_rng(0)
    weight = rng.normal(0, depth**-0.5, (depth, columns)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    made = _model([node], [_info("x", "FLOAT", [rows, depth])], [_info("y", "FLOAT", [rows, columns])], {"w": weight})
    return made, {"x": rng.standard_normal((rows, depth), np.float32)}


def convolution(channels: int, size: int, window: int, groups: int = 1):
    from onnx import helper

    rng = np.random.default_rng(0)
    weight = rng.normal(0, (channels // groups * window**2) ** -0.5, (channels, channels // groups, window, window)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[window // 2] * 4, group=groups)
    shape = [1, channels, size, size]
    made = _model([node], [_info("x", "FLOAT", shape)], [_info("y", "FLOAT", shape)], {"w": weight})
    return made, {"x": rng.standard_normal(shape, np.float32)}


def network(name: str):
    import onnx

    made = models.load(name)
    return onnx.load(made.path), made.inputs


def in_half(proto, inputs):
    """The model with weights, inputs and outputs in float16."""
    import onnx
    from onnx import TensorProto, numpy_helper

    half = onnx.ModelProto()
    half.CopyFrom(proto)
    for tensor in half.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for value in (*half.graph.input, *half.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    del half.graph.value_info[:]
    return half


def _weight(proto) -> np.ndarray:
    from onnx import numpy_helper

    return numpy_helper.to_array(proto.graph.initializer[0])


def _int8(weight: np.ndarray) -> np.ndarray:
    return np.clip(np.round(weight / np.abs(weight).max() * 127), -127, 127).astype(np.int8)


def integer_product(proto, inputs):
    """MatMulInteger of the same shapes, of uint8 with a zero point by int8."""
    from onnx import helper

    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    weight = _weight(proto)
    node = helper.make_node("MatMulInteger", ["x", "w", "zero"], ["y"])
    weights = {"w": _int8(weight), "zero": np.array(117, np.uint8)}
    return _model([node], [_info("x", "UINT8", shape)], [_info("y", "INT32", [shape[0], weight.shape[1]])], weights)


def integer_convolution(proto, inputs):
    """QLinearConv of the same shapes, with a scale a channel."""
    from onnx import helper

    conv = proto.graph.node[0]
    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    weight, attrs = _weight(proto), {a.name: helper.get_attribute_value(a) for a in conv.attribute}
    node = helper.make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"], **attrs)
    weights = {
        "xs": np.array(0.02, np.float32),
        "xz": np.array(120, np.uint8),
        "w": _int8(weight),
        "ws": np.random.default_rng(0).uniform(0.001, 0.01, weight.shape[0]).astype(np.float32),
        "wz": np.array(0, np.int8),
        "ys": np.array(0.05, np.float32),
        "yz": np.array(128, np.uint8),
    }
    return _model([node], [_info("x", "UINT8", shape)], [_info("y", "UINT8", shape)], weights)


class _Samples:
    """Inputs to calibrate with, as ONNX Runtime's tools read them."""

    def __init__(self, inputs: dict[str, np.ndarray]):
        rng = np.random.default_rng(1)
        self._left = [inputs] + [{name: rng.standard_normal(x.shape, np.float32) for name, x in inputs.items()} for _ in range(3)]

    def get_next(self):
        return self._left.pop() if self._left else None


def _by_tools(proto, quantize: Callable[[Path, Path], None]):
    """Returns the result of `quantize(from, to)` for the model after ONNX Runtime's basic optimizations, which fold batch normalisation."""
    import onnx
    import onnxruntime
    from onnx import version_converter

    if proto.opset_import[0].version < 13:  # the first whose DequantizeLinear has a scale a channel
        proto = version_converter.convert_version(proto, 17)

    with tempfile.TemporaryDirectory(prefix="baton-narrow-") as name:
        folder = Path(name)
        onnx.save(proto, folder / "wide.onnx")
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level, options.log_severity_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC, 3
        options.optimized_model_filepath = str(folder / "basic.onnx")
        onnxruntime.InferenceSession(str(folder / "wide.onnx"), options, providers=["CPUExecutionProvider"])
        quantize(folder / "basic.onnx", folder / "narrow.onnx")
        return onnx.load(folder / "narrow.onnx")


def quantized(proto, inputs):
    """All layers between QuantizeLinear and DequantizeLinear: activations in uint8, weights in int8 with a scale a channel."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    def quantize(source: Path, to: Path) -> None:
        quantize_static(
            source,
            to,
            _Samples(inputs),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )

    return _by_tools(proto, quantize)


def dynamic(proto, inputs):
    """Products with scales of activations that each call computes, weights in int8."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    return _by_tools(proto, lambda source, to: quantize_dynamic(source, to, weight_type=QuantType.QInt8))


def _bytes(x: np.ndarray) -> np.ndarray:
    return np.clip(np.round(x / 0.02) + 120, 0, 255).astype(np.uint8)


PRODUCTS = {
    "product 384x768x3072": lambda: product(384, 768, 3072),
    "product 1x4096x4096": lambda: product(1, 4096, 4096),
    "product 16x1024x1024": lambda: product(16, 1024, 1024),
}
CONVOLUTIONS = {
    "conv 256 14 3x3": lambda: convolution(256, 14, 3),
    "conv 64 56 1x1": lambda: convolution(64, 56, 1),
    "conv 128 28 depthwise": lambda: convolution(128, 28, 3, 128),
}
NETWORKS = {name: lambda name=name: network(name) for name in ("resnet50", "squeezenet", "mobilenet_v2")}
# Functions between layers, gates, and values that two operators read.
GATED = {name: lambda name=name: network(name) for name in ("mobilenet_v3", "efficientnet", "detector")}
TRANSFORMERS = {name: lambda name=name: network(name) for name in ("minilm", "bert")}


def rows() -> list[Row]:
    def half(x):
        return x.astype(np.float16)

    def same(x):
        return x

    out = [Row(f"float16 {name}", make, in_half, half, 1.2, 0.6) for name, make in (PRODUCTS | CONVOLUTIONS | NETWORKS).items()]
    out += [Row(f"integer {name}", make, integer_product, _bytes, 1.0, 0.3) for name, make in PRODUCTS.items()]
    out += [Row(f"integer {name}", make, integer_convolution, _bytes, 1.0, 0.3) for name, make in CONVOLUTIONS.items()]
    out += [Row(f"QDQ {name}", make, quantized, same, 1.0, peer_bar=0.75) for name, make in (NETWORKS | GATED).items()]
    out += [Row(f"dynamic {name}", make, dynamic, same, 1.0, peer_bar=0.8) for name, make in TRANSFORMERS.items()]
    return out


def _has(*names: str) -> bool:
    return any(name in Path("/proc/cpuinfo").read_text() for name in names)


def _has_vnni() -> bool:
    return _has("avx512_vnni", "avx_vnni")


ASKED = {f"bf16 {name}": make for name, make in (PRODUCTS | CONVOLUTIONS | NETWORKS | TRANSFORMERS).items()}


def in_turns(runs: dict[str, Callable], rounds: int) -> dict[str, float]:
    """The least time of each, in milliseconds."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for which, run in runs.items():
            time.sleep(0.03)
            start = time.perf_counter()
            run()
            best[which] = min(best[which], (time.perf_counter() - start) * 1e3)
    return best


def _openvino(path: str, inputs: dict[str, np.ndarray], threads: int) -> Callable | None:
    """A run in bfloat16; None where OpenVINO is not installed."""
    try:
        import openvino
    except ImportError:
        return None
    core = openvino.Core()
    read = core.read_model(path)
    read.reshape({port.any_name: list(inputs[port.any_name].shape) for port in read.inputs})
    config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "bf16"}
    request = core.compile_model(read, "CPU", config).create_infer_request()
    return lambda: request.infer(inputs, share_inputs=True, share_outputs=True)


def measure_asked(name: str, make: Callable, cpu: str, threads: int, rounds: int) -> list[str]:
    """Prints a row of a model that is compiled in bfloat16; what misses its bar, in words."""
    import onnx

    import baton

    proto, inputs = make()
    runs, target = {}, f"llvm -mcpu={cpu}" if cpu else None
    in_order = [inputs[i.name] for i in proto.graph.input if i.name in inputs]
    with tempfile.TemporaryDirectory(prefix="baton-narrow-") as folder:
        path = str(Path(folder) / "model.onnx")
        onnx.save(proto, path)
        shape = {key: x.shape for key, x in inputs.items()}
        for precision in ("exact", "bf16"):
            made = baton.compile(path, shape=shape, target=target, precision=precision)
            runs[precision] = lambda m=made: m(*in_order)
        if peer := _openvino(path, inputs, threads):
            runs["peer"] = peer
    want, got = (y[0] if isinstance(y, (list, tuple)) else y for y in (runs["exact"](), runs["bf16"]()))
    apart = np.abs(got.numpy() - want.numpy()).max() / np.abs(want.numpy()).max()
    best = in_turns(runs, rounds)
    ratio, beside = best["bf16"] / best["exact"], ""
    if peer:
        beside = f"  OpenVINO's {best['peer']:8.3f} ms   ratio {best['bf16'] / best['peer']:.2f}"
    print(f"{name:32} bf16 {best['bf16']:8.3f}  float32 {best['exact']:8.3f} ms   ratio {ratio:.2f}{beside}   apart {apart:.1e}", flush=True)
    native = not cpu and _has("avx512_bf16")
    return [f"{name}: {ratio:.2f} times float32, the bar is 1.0"] if native and ratio > 1 else []


def measure(row: Row, cpu: str, threads: int, rounds: int) -> list[str]:
    """Prints a row; what misses its bar, in words."""
    import onnx
    import onnxruntime

    import baton

    wide, inputs = row.make()
    small, feed = row.narrow(wide, inputs), {name: row.convert(x) for name, x in inputs.items()}
    runs, sizes = {}, {}
    with tempfile.TemporaryDirectory(prefix="baton-narrow-") as name:
        folder = Path(name)
        for which, proto, values in (("float32", wide, inputs), ("narrow", small, feed)):
            onnx.save(proto, folder / f"{which}.onnx")
            shape = {key: x.shape for key, x in values.items()}
            made = baton.compile(str(folder / f"{which}.onnx"), shape=shape, target=f"llvm -mcpu={cpu}" if cpu else None)
            made.save(folder / f"{which}.so")
            sizes[which] = (folder / f"{which}.so").stat().st_size
            in_order = [values[i.name] for i in proto.graph.input if i.name in values]
            runs[which] = lambda m=made, v=in_order: m(*v)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        session = onnxruntime.InferenceSession(str(folder / "narrow.onnx"), options, providers=["CPUExecutionProvider"])
    runs["peer"] = lambda: session.run(None, feed)
    got, want = runs["narrow"](), runs["peer"]()[0]
    got = (got[0] if isinstance(got, (list, tuple)) else got).numpy()
    apart = np.abs(got.astype(np.float64) - want).max() / max(np.abs(want.astype(np.float64)).max(), 1e-30)
    best = in_turns(runs, rounds)
    ratio, over_peer, size = best["narrow"] / best["float32"], best["narrow"] / best["peer"], sizes["narrow"] / sizes["float32"]
    print(
        f"{row.name:32} narrow {best['narrow']:8.3f}  float32 {best['float32']:8.3f}  ONNX Runtime {best['peer']:8.3f} ms   "
        f"ratios {ratio:.2f} {over_peer:.2f}   size {size:.2f}   apart {apart:.1e}",
        flush=True,
    )
    missed = [f"{row.name}: {ratio:.2f} times float32, the bar is {row.bar}"] if ratio > row.bar else []
    if not cpu and _has_vnni() and over_peer > row.peer_bar:
        missed.append(f"{row.name}: {over_peer:.2f} times ONNX Runtime, the bar is {row.peer_bar}")
    if cpu != "x86-64-v2" and sizes["float32"] > 1 << 20 and size > row.size_bar:  # a smaller one is code for the most part
        missed.append(f"{row.name}: {size:.2f} times the size of float32, the bar is {row.size_bar}")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--cpu", default="", help="as in -mcpu (default: this processor)")
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=20, help="runs of each engine (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a bar is missed")
    args = parser.parse_args()
    os.environ["BATON_NUM_THREADS"] = str(args.threads)
    missed = [line for row in rows() if args.only in row.name for line in measure(row, args.cpu, args.threads, args.rounds)]
    for name, make in ASKED.items():
        if args.only in name:
            missed += measure_asked(name, make, args.cpu, args.threads, args.rounds)
    print(*missed, sep="\n")
    return 1 if missed and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
