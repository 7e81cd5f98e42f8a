# SPDX-License-Identifier: Apache-2.0
"""Half-float and integer models beside the same models in float32 and beside ONNX Runtime.

    python bench/narrow.py                          # for this processor
    python bench/narrow.py --cpu x86-64-v2          # for another one of its kind
    python bench/narrow.py --only resnet50 --check  # exit code 1 where a bar is missed

Engines take turns and sleep between runs; a ratio is of the least times. Bars: a narrow model takes at most 1.2 times
its float32 twin; its artifact is at most 0.6 times as large for half floats (for processors that widen them), 0.3 for
integers.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import models
import numpy as np

BAR = 1.2


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
    """(float32 model, its input)."""
    from onnx import helper

    rng = np.random.default_rng(0)
    weight = rng.normal(0, depth**-0.5, (depth, columns)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return _model([node], [_info("x", "FLOAT", [rows, depth])], [_info("y", "FLOAT", [rows, columns])], {"w": weight}), rng.standard_normal(
        (rows, depth), np.float32
    )


def convolution(channels: int, size: int, window: int, groups: int = 1):
    from onnx import helper

    rng = np.random.default_rng(0)
    weight = rng.normal(0, (channels // groups * window**2) ** -0.5, (channels, channels // groups, window, window)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[window // 2] * 4, group=groups)
    shape = [1, channels, size, size]
    return _model([node], [_info("x", "FLOAT", shape)], [_info("y", "FLOAT", shape)], {"w": weight}), rng.standard_normal(shape, np.float32)


def network(name: str):
    import onnx

    made = models.load(name)
    ((_, x),) = made.inputs.items()
    return onnx.load(made.path), x


def in_half(proto):
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


def integer_product(proto):
    """MatMulInteger of the same shapes, of uint8 with a zero point by int8."""
    from onnx import helper

    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    weight = _weight(proto)
    node = helper.make_node("MatMulInteger", ["x", "w", "zero"], ["y"])
    weights = {"w": _int8(weight), "zero": np.array(117, np.uint8)}
    return _model([node], [_info("x", "UINT8", shape)], [_info("y", "INT32", [shape[0], weight.shape[1]])], weights)


def integer_convolution(proto):
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


def quantized(proto):
    """Convolutions and products between QuantizeLinear and DequantizeLinear, weights in int8."""
    import onnx
    from onnx import helper, numpy_helper

    made = onnx.ModelProto()
    made.CopyFrom(proto)
    weights = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    nodes, done = [], {}

    def around(value: str) -> str:
        if value not in done:
            done[value] = value + "_dq"
            if value in weights and value in of_weights:
                scale = np.abs(weights[value]).max() / 127
                made.graph.initializer.extend(
                    [
                        numpy_helper.from_array(_int8(weights[value]), value + "_q"),
                        numpy_helper.from_array(np.array(scale, np.float32), value + "_s"),
                        numpy_helper.from_array(np.array(0, np.int8), value + "_z"),
                    ]
                )
            else:
                made.graph.initializer.extend(
                    [numpy_helper.from_array(np.array(0.03, np.float32), value + "_s"), numpy_helper.from_array(np.array(128, np.uint8), value + "_z")]
                )
                nodes.append(helper.make_node("QuantizeLinear", [value, value + "_s", value + "_z"], [value + "_q"]))
            nodes.append(helper.make_node("DequantizeLinear", [value + "_q", value + "_s", value + "_z"], [value + "_dq"]))
        return done[value]

    of_weights = {n.input[1] for n in made.graph.node if n.op_type in ("Conv", "Gemm", "MatMul")}
    for node in made.graph.node:
        if node.op_type in ("Conv", "Gemm", "MatMul"):
            node.input[0], node.input[1] = around(node.input[0]), around(node.input[1])
        nodes.append(node)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    kept = [t for t in made.graph.initializer if t.name not in of_weights]
    del made.graph.initializer[:]
    made.graph.initializer.extend(kept)
    made.opset_import[0].version = max(made.opset_import[0].version, 11)
    return made


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


def rows() -> list[tuple[str, Callable, Callable, Callable, float]]:
    """(name, float32 model and input, the narrow model, its input, bar of its size over the float32 one's)."""
    half = [(f"float16 {name}", make, in_half, lambda x: x.astype(np.float16), 0.6) for name, make in (PRODUCTS | CONVOLUTIONS | NETWORKS).items()]
    ints = [(f"integer {name}", make, integer_product, _bytes, 0.3) for name, make in PRODUCTS.items()]
    ints += [(f"integer {name}", make, integer_convolution, _bytes, 0.3) for name, make in CONVOLUTIONS.items()]
    pairs = [(f"QDQ {name}", make, quantized, lambda x: x, float("inf")) for name, make in NETWORKS.items()]
    return half + ints + pairs


def measure(row, cpu: str, threads: int, rounds: int) -> list[str]:
    """Prints a row; what misses its bar, in words."""
    import onnx
    import onnxruntime

    import baton

    name, make, narrow, convert, size_bar = row
    wide, x = make()
    small, feed = narrow(wide), convert(x)
    key = small.graph.input[0].name
    folder = Path(tempfile.mkdtemp(prefix="baton-narrow-"))
    runs, sizes = {}, {}
    for which, proto, value in (("float32", wide, x), ("narrow", small, feed)):
        onnx.save(proto, folder / f"{which}.onnx")
        made = baton.compile(str(folder / f"{which}.onnx"), target=f"llvm -mcpu={cpu}" if cpu else None)
        made.save(folder / f"{which}.so")
        sizes[which] = (folder / f"{which}.so").stat().st_size
        runs[which] = lambda m=made, v=value: m(v)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(str(folder / "narrow.onnx"), options, providers=["CPUExecutionProvider"])
    runs["peer"] = lambda: session.run(None, {key: feed})
    got, want = runs["narrow"]().numpy(), runs["peer"]()[0]
    apart = np.abs(got.astype(np.float64) - want).max() / max(np.abs(want.astype(np.float64)).max(), 1e-30)
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for which, run in runs.items():
            time.sleep(0.03)
            start = time.perf_counter()
            run()
            best[which] = min(best[which], (time.perf_counter() - start) * 1e3)
    ratio, size = best["narrow"] / best["float32"], sizes["narrow"] / sizes["float32"]
    print(
        f"{name:32} narrow {best['narrow']:8.3f}  float32 {best['float32']:8.3f}  ONNX Runtime {best['peer']:8.3f} ms   "
        f"ratios {ratio:.2f} {best['narrow'] / best['peer']:.2f}   size {size:.2f}   apart {apart:.1e}",
        flush=True,
    )
    missed = [f"{name}: {ratio:.2f} times float32, the bar is {BAR}"] if ratio > BAR else []
    if cpu != "x86-64-v2" and sizes["float32"] > 1 << 20 and size > size_bar:  # a smaller one is code for the most part
        missed.append(f"{name}: {size:.2f} times the size of float32, the bar is {size_bar}")
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
    missed = [line for row in rows() if args.only in row[0] for line in measure(row, args.cpu, args.threads, args.rounds)]
    print(*missed, sep="\n")
    return 1 if missed and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
