# SPDX-License-Identifier: Apache-2.0
"""The output of ONNX Runtime's own tools for ten models, compiled by Baton and compared with ONNX Runtime on the same file.

    python bench/tools_graphs.py
    python bench/tools_graphs.py --only bert --show   # the operators of every graph too
    python bench/tools_graphs.py --check              # exit code 1 where a graph is refused or differs

The tools: `SessionOptions.optimized_model_filepath` at every level (the highest one has the NCHWc layout),
`onnxruntime.transformers.optimizer` (where the package `sympy` is installed), and `onnxruntime.quantization` (dynamic, QDQ and QOperator,
then optimised again; weights of 4 and 8 bits where `onnx_ir` is installed). A result agrees where it is within a tolerance of ONNX Runtime's, relative to its
largest element; graphs whose integers round at other places have a wider one.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib.util
import logging
import sys
import tempfile
from pathlib import Path

import numpy as np

FLOATS, INTEGERS = 2e-4, 3e-2
LEVELS = {"basic": 1, "extended": 2, "layout": 3, "all": 99}


class Builder:
    """A graph that grows by a call a node; weights are drawn in the order of the calls."""

    def __init__(self, **inputs):
        from onnx import helper

        self.helper, self.rng = helper, np.random.default_rng(0)
        self.feed = inputs
        self.nodes, self.weights, self.outputs, self.count = [], {}, [], 0

    def weight(self, value) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(value)
        return name

    def random(self, *shape, scale=None) -> str:
        scale = 1 / np.sqrt(np.prod(shape[1:]) if len(shape) > 2 else shape[0]) if scale is None else scale
        return self.weight((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def ints(self, *values) -> str:
        return self.weight(np.array(values, np.int64))

    def __call__(self, op, *inputs, outputs=1, **attrs):
        names = [f"v{self.count + i}" for i in range(outputs)]
        self.count += outputs
        self.nodes.append(self.helper.make_node(op, list(inputs), names, name=f"{op}_{names[0]}", **attrs))
        return names[0] if outputs == 1 else names

    def model(self, *outputs):
        from onnx import ValueInfoProto, checker, numpy_helper, shape_inference

        inputs = [self.helper.make_tensor_value_info(k, self.helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in self.feed.items()]
        weights = [numpy_helper.from_array(v, k) for k, v in self.weights.items()]
        graph = self.helper.make_graph(self.nodes, "g", inputs, [ValueInfoProto(name=o) for o in outputs], weights)
        made = self.helper.make_model(graph, opset_imports=[self.helper.make_opsetid("", 17)], ir_version=8)
        made = shape_inference.infer_shapes(made)
        for out in made.graph.output:  # the inferred types, which tools want
            found = [v for v in made.graph.value_info if v.name == out.name]
            if found:
                out.CopyFrom(found[0])
        checker.check_model(made)
        return made, self.feed

    # ---- layers
    def conv(self, x, given, made, size=3, *, act="Relu", bias=True, **attrs):
        attrs.setdefault("pads", [size // 2] * 4)
        weights = [self.random(made, given // attrs.get("group", 1), size, size)] + ([self.random(made, scale=0.1)] if bias else [])
        y = self("Conv", x, *weights, kernel_shape=[size, size], **attrs)
        return self(act, y) if act else y

    def norm(self, x, channels):
        ones = self.weight(np.abs(self.rng.standard_normal(channels)).astype(np.float32) + 0.5)
        return self("BatchNormalization", x, ones, self.random(channels, scale=0.1), self.random(channels, scale=0.1), ones)

    def dense(self, x, given, made):
        return self("Add", self("MatMul", x, self.random(given, made)), self.random(made, scale=0.1))

    def layer_norm(self, x, n):
        """As exporters before version 17 write it."""
        centered = self("Sub", x, self("ReduceMean", x, axes=[-1]))
        square = self("Pow", centered, self.weight(np.float32(2)))
        deviation = self("Sqrt", self("Add", self("ReduceMean", square, axes=[-1]), self.weight(np.float32(1e-5))))
        gain = self.weight((1 + 0.1 * self.rng.standard_normal(n)).astype(np.float32))
        return self("Add", self("Mul", self("Div", centered, deviation), gain), self.random(n, scale=0.1))

    def gelu(self, x):
        e = self("Erf", self("Div", x, self.weight(np.float32(np.sqrt(2)))))
        return self("Mul", self("Mul", x, self("Add", e, self.weight(np.float32(1)))), self.weight(np.float32(0.5)))

    def heads(self, x, batch, heads, size, turned=False):
        cut = self("Reshape", x, self.ints(batch, -1, heads, size))
        return self("Transpose", cut, perm=[0, 2, 3, 1] if turned else [0, 2, 1, 3])


def image(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def cnn():
    b = Builder(x=image(1, 3, 32, 32))
    x = b("MaxPool", b.conv("x", 3, 16), kernel_shape=[2, 2], strides=[2, 2])
    x = b("MaxPool", b.conv(x, 16, 32), kernel_shape=[2, 2], strides=[2, 2])
    x = b("Flatten", b.conv(x, 32, 40))
    return b.model(b("Softmax", b("Gemm", x, b.random(10, 40 * 64), b.random(10, scale=0.1), transB=1), axis=-1))


def resnet():
    b = Builder(x=image(2, 3, 32, 32))
    x = b("Relu", b.norm(b.conv("x", 3, 32, 5, act=None, bias=False, strides=[2, 2]), 32))
    for given, made, stride in ((32, 32, 1), (32, 64, 2)):
        y = b("Relu", b.norm(b.conv(x, given, made, act=None, bias=False, strides=[stride] * 2), made))
        y = b.norm(b.conv(y, made, made, act=None, bias=False), made)
        short = x if stride == 1 else b.norm(b.conv(x, given, made, 1, act=None, bias=False, strides=[2, 2]), made)
        x = b("Relu", b("Add", y, short))
    x = b("Flatten", b("GlobalAveragePool", x))
    return b.model(b("Gemm", x, b.random(10, 64), b.random(10, scale=0.1), transB=1))


def mobilenet():
    b = Builder(x=image(1, 3, 32, 32))

    def clipped(v):
        return b("Clip", v, b.weight(np.float32(0)), b.weight(np.float32(6)))

    x = b.conv("x", 3, 16, act="HardSwish", strides=[2, 2])
    for _ in range(2):
        y = clipped(b.conv(x, 16, 48, 1, act=None))
        y = clipped(b.conv(y, 48, 48, act=None, group=48))
        squeeze = b.conv(b("GlobalAveragePool", y), 48, 12, 1)
        y = b("Mul", y, b("HardSigmoid", b.conv(squeeze, 12, 48, 1, act=None), alpha=1 / 6, beta=0.5))
        x = b("Add", x, b.conv(y, 48, 16, 1, act=None))
    x = b("LeakyRelu", b.conv(x, 16, 24, 1, act=None), alpha=0.1)
    return b.model(b("Flatten", b("ReduceMean", x, axes=[2, 3], keepdims=0)))


def unet():
    b = Builder(x=image(1, 1, 32, 32))
    top = b.conv(b.conv("x", 1, 16), 16, 16)
    middle = b.conv(b("MaxPool", top, kernel_shape=[2, 2], strides=[2, 2]), 16, 32)
    low = b.conv(b("AveragePool", middle, kernel_shape=[2, 2], strides=[2, 2]), 32, 32, act="Tanh")
    up = b("ConvTranspose", low, b.random(32, 32, 2, 2), b.random(32, scale=0.1), kernel_shape=[2, 2], strides=[2, 2])
    x = b.conv(b("Concat", up, middle, axis=1), 64, 16)
    factor = b.weight(np.array([1, 1, 2, 2], np.float32))
    x = b("Resize", x, "", factor, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    return b.model(b.conv(b("Concat", x, top, axis=1), 32, 1, 1, act="Sigmoid"))


def detector():
    b = Builder(x=image(1, 3, 48, 48))
    x = b.conv("x", 3, 16, strides=[2, 2])
    x = b("Mul", x, b("Sigmoid", x))
    outs = []
    for _ in range(2):
        x = b.conv(x, 16, 16, strides=[2, 2])
        count = 144 if not outs else 36
        head = b("Transpose", b("Reshape", b.conv(x, 16, 12, 1, act=None), b.ints(1, 12, count)), perm=[0, 2, 1])
        box, score = b("Split", head, b.ints(4, 8), outputs=2, axis=2)
        centre, size = b("Split", box, b.ints(2, 2), outputs=2, axis=2)
        size = b("Exp", b("Clip", size, b.weight(np.float32(-4)), b.weight(np.float32(4))))
        outs.append(b("Concat", b("Sigmoid", centre), size, b("Softmax", score, axis=2), axis=2))
    return b.model(b("Concat", *outs, axis=1))


def encoder_layer(b, x, batch, heads, size, mask):
    hidden = heads * size
    q, k, v = (b.dense(x, hidden, hidden) for _ in range(3))
    q, k, v = b.heads(q, batch, heads, size), b.heads(k, batch, heads, size, turned=True), b.heads(v, batch, heads, size)
    scores = b("Add", b("Div", b("MatMul", q, k), b.weight(np.float32(np.sqrt(size)))), mask)
    y = b("Transpose", b("MatMul", b("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    y = b.dense(b("Reshape", y, b.ints(batch, -1, hidden)), hidden, hidden)
    x = b.layer_norm(b("Add", y, x), hidden)
    y = b.dense(b.gelu(b.dense(x, hidden, 4 * hidden)), 4 * hidden, hidden)
    return b.layer_norm(b("Add", y, x), hidden)


def bert():
    ids = np.random.default_rng(2).integers(0, 50, (2, 12))
    seen = np.ones_like(ids)
    seen[1, 8:] = 0
    b = Builder(input_ids=ids, segment_ids=(ids > 25).astype(np.int64), input_mask=seen)
    words, places, segments = b.random(50, 64, scale=1.0), b.random(12, 64, scale=1.0), b.random(2, 64, scale=1.0)
    x = b("Add", b("Gather", words, "input_ids"), b("Gather", segments, "segment_ids"))
    x = b.layer_norm(b("Add", x, b("Gather", places, b.weight(np.arange(12)[None]))), 64)
    mask = b("Cast", b("Unsqueeze", b("Unsqueeze", "input_mask", b.ints(1)), b.ints(2)), to=1)
    mask = b("Mul", b("Sub", b.weight(np.float32(1)), mask), b.weight(np.float32(-10000)))
    for _ in range(2):
        x = encoder_layer(b, x, 2, 4, 16, mask)
    first = b("Gather", x, b.weight(np.array(0)), axis=1)
    return b.model(x, b("Tanh", b("Gemm", first, b.random(64, 64), b.random(64, scale=0.1), transB=1)))


def gpt():
    """A step of a decoder with past keys and values, gelu by tanh, a mask of later positions."""
    rng = np.random.default_rng(3)
    b = Builder(input_ids=rng.integers(0, 50, (1, 3)), past=image(2, 1, 4, 5, 16))
    x = b("Add", b("Gather", b.random(50, 64, scale=1.0), "input_ids"), b("Gather", b.random(12, 64, scale=1.0), b.weight(np.arange(5, 8)[None])))
    y = b.layer_norm(x, 64)
    parts = b("Split", b.dense(y, 64, 192), b.ints(64, 64, 64), outputs=3, axis=2)
    q, k, v = (b.heads(p, 1, 4, 16) for p in parts)
    past_k, past_v = (b("Squeeze", p, b.ints(0)) for p in b("Split", "past", b.ints(1, 1), outputs=2, axis=0))
    k, v = b("Concat", past_k, k, axis=2), b("Concat", past_v, v, axis=2)
    scores = b("Div", b("MatMul", q, b("Transpose", k, perm=[0, 1, 3, 2])), b.weight(np.float32(4)))
    later = np.tril(np.ones((1, 1, 8, 8), bool))[:, :, 5:]
    scores = b("Where", b.weight(later), scores, b.weight(np.float32(-10000)))
    y = b("Transpose", b("MatMul", b("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    x = b("Add", x, b.dense(b("Reshape", y, b.ints(1, -1, 64)), 64, 64))
    h = b.dense(b.layer_norm(x, 64), 64, 256)
    cube = b("Mul", b("Pow", h, b.weight(np.float32(3))), b.weight(np.float32(0.044715)))
    t = b("Tanh", b("Mul", b("Add", h, cube), b.weight(np.float32(0.7978845608))))
    h = b("Mul", b("Mul", h, b.weight(np.float32(0.5))), b("Add", t, b.weight(np.float32(1))))
    x = b.layer_norm(b("Add", x, b.dense(h, 256, 64)), 64)
    present = b("Concat", b("Unsqueeze", k, b.ints(0)), b("Unsqueeze", v, b.ints(0)), axis=0)
    return b.model(b("MatMul", x, b.random(64, 50)), present)


def lstm():
    b = Builder(x=image(9, 2, 16))
    y = "x"
    for given, count in ((16, 2), (48, 1)):
        weights = b.random(count, 96, given), b.random(count, 96, 24), b.random(count, 192, scale=0.1)
        y, *_ = b("LSTM", y, *weights, outputs=3, hidden_size=24, direction="bidirectional" if count == 2 else "forward")
        y = b("Reshape", b("Transpose", y, perm=[0, 2, 1, 3]), b.ints(9, 2, 24 * count))
    return b.model(b.dense(y, 24, 7))


def mlp():
    b = Builder(x=image(4, 64))
    x = "x"
    for act, attrs in (("Relu", {}), ("Sigmoid", {}), ("LeakyRelu", {"alpha": 0.2}), ("Tanh", {})):
        x = b(act, b("Gemm", x, b.random(64, 64), b.random(64, scale=0.1), transB=1), **attrs)
    return b.model(b("Softmax", b.dense(x, 64, 10), axis=-1))


def embedding():
    """Sentences in one space: words, an encoder layer, the mean of what is not padding, of length one."""
    ids = np.random.default_rng(4).integers(0, 40, (2, 8))
    seen = np.ones((2, 8), np.int64)
    seen[0, 5:] = 0
    b = Builder(ids=ids, mask=seen)
    x = b.layer_norm(b("Gather", b.random(40, 32, scale=1.0), "ids"), 32)
    kept = b("Cast", "mask", to=1)
    hide = b("Mul", b("Sub", b.weight(np.float32(1)), b("Unsqueeze", kept, b.ints(1, 2))), b.weight(np.float32(-1e4)))
    x = encoder_layer(b, x, 2, 2, 16, hide)
    kept = b("Unsqueeze", kept, b.ints(2))
    mean = b("Div", b("ReduceSum", b("Mul", x, kept), b.ints(1), keepdims=0), b("ReduceSum", kept, b.ints(1), keepdims=0))
    return b.model(b("Div", mean, b("ReduceL2", mean, axes=[1], keepdims=1)))


MODELS = {f.__name__: f for f in (cnn, resnet, bert, gpt, lstm, mlp, mobilenet, unet, detector, embedding)}


# ---- tools


def session(path, level=None, save=None):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    if level is not None:
        options.graph_optimization_level = ort.GraphOptimizationLevel(level)
    if save is not None:
        options.optimized_model_filepath = str(save)
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class Feeds:
    """The calibration data: the model's own inputs, twice."""

    def __init__(self, feed):
        self.left = [feed, feed]

    def get_next(self):
        return self.left.pop() if self.left else None


def loads(path) -> bool:
    """Whether ONNX Runtime takes the file: 4 bits in QDQ form raise the operator set of nodes that it does not convert."""
    try:
        return bool(session(path))
    except Exception:  # several classes of onnxruntime's, none of them public
        return False


def optimised(path, folder):
    for name, level in LEVELS.items():
        save = folder / f"{path.stem}-{name}.onnx"
        session(path, level, save)
        yield save.stem, save


def transformers(path, folder, name):
    if importlib.util.find_spec("sympy") is None:
        return
    from onnxruntime.transformers import optimizer

    for kind, only in (("bert", False), ("gpt2", False), ("bert", True)):
        heads, hidden = (2, 32) if name == "embedding" else (4, 64)
        made = optimizer.optimize_model(str(path), kind, num_heads=heads, hidden_size=hidden, opt_level=0, only_onnxruntime=only)
        save = folder / f"{path.stem}-transformers-{kind}{'-ort' if only else ''}.onnx"
        made.save_model_to_file(str(save))
        yield save.stem, save


def quantised(path, folder, feed):
    from onnxruntime import quantization as q

    for name, kind, channel in (("dynamic", q.QuantType.QUInt8, False), ("dynamic-channels", q.QuantType.QInt8, True)):
        save = folder / f"{path.stem}-{name}.onnx"
        q.quantize_dynamic(str(path), str(save), weight_type=kind, per_channel=channel)
        yield save.stem, save
    for form in (q.QuantFormat.QDQ, q.QuantFormat.QOperator):
        for kind in (q.QuantType.QUInt8, q.QuantType.QInt8):
            save = folder / f"{path.stem}-{form.name}-{kind.name}.onnx"
            q.quantize_static(str(path), str(save), Feeds(feed), quant_format=form, activation_type=kind, weight_type=q.QuantType.QInt8,
                              per_channel=kind is q.QuantType.QInt8)  # fmt: skip
            yield save.stem, save


def few_bits(path, folder):
    """Products with constants as MatMulNBits and MatMulBnb4; nothing without the package `onnx_ir`."""
    import onnx

    if importlib.util.find_spec("onnx_ir") is None:
        return
    from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    for name, options in (("4bits", {"is_symmetric": True}), ("4bits-zero", {"is_symmetric": False}), ("8bits", {"bits": 8}),
                          ("4bits-QDQ", {"quant_format": __import__("onnxruntime").quantization.QuantFormat.QDQ})):  # fmt: skip
        work = MatMulNBitsQuantizer(onnx.load(str(path)), block_size=32, **options)
        work.process()
        save = folder / f"{path.stem}-{name}.onnx"
        work.model.save_model_to_file(str(save))
        yield save.stem, save
    for kind in (0, 1):
        work = MatMulBnb4Quantizer(onnx.load(str(path)), kind, 64)
        work.process()
        save = folder / f"{path.stem}-bnb{kind}.onnx"
        work.model.save_model_to_file(str(save))
        yield save.stem, save


@contextlib.contextmanager
def quiet():
    """The tools log and print what they do."""
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(None):
            yield
    finally:
        logging.disable(logging.NOTSET)


def graphs(name, folder: Path):
    """(name, path, inputs) of the model and of all that the tools make of it."""
    import onnx

    with quiet():
        made, feed = MODELS[name]()
        plain = folder / f"{name}.onnx"
        onnx.save(made, str(plain))
        found = [(name, plain), *optimised(plain, folder)]
        found += transformers(plain, folder, name)
        for stem, path in [*quantised(plain, folder, feed), *few_bits(plain, folder)]:
            if not loads(path):
                continue
            found.append((stem, path))
            found += [(s, p) for s, p in optimised(path, folder) if s.endswith(("-extended", "-all"))]
    return [(stem, path, feed) for stem, path in found]


# ---- comparison


def differs(got, want) -> float:
    """The largest difference, relative to the largest element; infinite where shapes or types differ."""
    if len(got) != len(want):
        return np.inf
    worst = 0.0
    for g, w in zip(map(np.asarray, got), want, strict=True):
        if g.shape != w.shape or g.dtype != w.dtype or not np.isfinite(g).all():
            return np.inf
        worst = max(worst, float(np.abs(g.astype(np.float64) - w).max(initial=0) / max(np.abs(w).max(initial=0), 1e-3)))
    return worst


INTEGER_OPS = ("QLinear", "QGemm", "QAttention", "DynamicQuantize", "MatMulInteger", "ConvInteger", "uantizeLinear", "NBits", "QEmbed")


def compare(path, feed):
    """(difference, tolerance, operators) of a graph."""
    import onnx

    import baton

    ops = collections.Counter(f"{n.domain}.{n.op_type}".lstrip(".") for n in onnx.load(str(path)).graph.node)
    rounds = any(part in op for op in ops for part in INTEGER_OPS)
    want = session(path).run(None, feed)
    program = baton.compile(str(path))
    got = program(**feed)
    return differs(got if isinstance(got, (tuple, list)) else [got], want), INTEGERS if rounds else FLOATS, ops


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="models, with commas between them")
    parser.add_argument("--graph", default="", help="graphs whose name contains this text")
    parser.add_argument("--show", action="store_true", help="print the operators of every graph")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a graph is refused or differs")
    args = parser.parse_args(argv)
    names = args.only.split(",") if args.only else list(MODELS)
    good, bad, seen = 0, [], collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for stem, path, feed in graphs(name, Path(folder)):
                if args.graph not in stem:
                    continue
                try:
                    difference, tolerance, ops = compare(path, feed)
                    text = f"{difference:.1e}" if difference <= tolerance else f"{difference:.1e} is more than {tolerance:.0e}"
                    seen += ops
                except Exception as error:  # whatever it is, the graph does not run
                    difference, tolerance, ops, text = np.inf, 0, {}, f"{type(error).__name__}: {str(error)[:600]}"
                fine = difference <= tolerance
                good += fine
                if not fine:
                    bad.append(stem)
                print(f"{'ok  ' if fine else 'FAIL'} {stem:44} {text}", flush=True)
                if args.show and ops:
                    print("     " + ", ".join(f"{op} {n}" for op, n in sorted(ops.items())))
    print(f"{good} of {good + len(bad)} graphs agree; operators of ONNX Runtime in them: {', '.join(sorted(o for o in seen if '.' in o))}")
    return 1 if bad and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
