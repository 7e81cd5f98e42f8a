# SPDX-License-Identifier: Apache-2.0
"""Single operators in configurations that models use, beside ONNX Runtime: each engine while the other's threads sleep, and while they spin.

    python bench/ops.py                      # all rows: seven minutes
    python bench/ops.py --only ConvTranspose # rows whose name contains this (a regular expression)
    python bench/ops.py --check              # exit code 1 where a mean misses its bar or a row is above 1.5 without a reason
    python bench/ops.py --json rows.json

Engines take turns; a time is the least of the rounds. `asleep`: 30 ms of pause before each run; `spinning`: the other engine has returned just now,
so that its threads still look for work. Bars: geometric mean of ours over ONNX Runtime's at most 1.0 asleep, and 1.1 beside spinning threads.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

PAUSE_S = 0.03
ASLEEP_BAR, SPINNING_BAR, ROW_BAR = 1.0, 1.1, 1.5
SLOWEST_S = 0.25  # rows above get fewer rounds

#: Rows that may be above ROW_BAR, and why (docs/design/figures.md has the long form).
EXPLAINED: dict[str, str] = {
    "Range to 10000": "the length is a value: the loop interpreter runs it",
    **dict.fromkeys(
        ("QLinearConv 3x3 64 at 56", "ConvInteger 3x3 64 at 56", "MatMulInteger 128x768x768", "QLinearMatMul 128x768x768"),
        "exact sums through the kernels of float32, as fast as those; the peer has dot products of bytes",
    ),
}


class Row(NamedTuple):
    name: str
    op: str
    inputs: list  # In or None
    attrs: dict
    outputs: int = 1


class In(NamedTuple):
    value: np.ndarray
    fed: bool  # by the caller; else a weight of the model


_rng = np.random.default_rng(0)


def x(*shape: int) -> In:
    """An input, normally distributed."""
    return In(_rng.standard_normal(shape, np.float32), True)


def w(*shape: int) -> In:
    """A weight of the model."""
    return In(_rng.standard_normal(shape, np.float32) * 0.1, False)


def pos(*shape: int) -> In:
    return In(np.abs(_rng.standard_normal(shape, np.float32)) + 0.1, True)


def c(*values, dtype=np.int64) -> In:
    """A constant operand."""
    return In(np.array(values[0] if len(values) == 1 and not np.isscalar(values[0]) else values, dtype), False)


def scalar(value, dtype=np.float32) -> In:
    return In(np.array(value, dtype), False)


def ints(high: int, *shape: int, dtype=np.int64) -> In:
    """An input of whole numbers below `high`."""
    return In(_rng.integers(0, high, shape).astype(dtype), True)


def distinct(high: int, count: int, *tail: int) -> In:
    """An input of `count` different numbers below `high`, as index tuples of one."""
    return In(_rng.permutation(high)[:count].astype(np.int64).reshape(count, *tail), True)


def flags(share: float, *shape: int) -> In:
    return In(_rng.random(shape) < share, True)


def conv(name: str, op: str, image: tuple, weight: tuple, bias: int = 0, **attrs) -> Row:
    return Row(f"{op} {name}", op, [x(*image), w(*weight), *([w(bias)] if bias else [])], attrs)


def convolutions() -> list[Row]:
    square = {"pads": [1, 1, 1, 1]}
    two = {"strides": [2, 2]}
    return [
        conv("ResNet stem 7x7 s2 224", "Conv", (1, 3, 224, 224), (64, 3, 7, 7), 64, pads=[3, 3, 3, 3], **two),
        conv("ResNet 3x3 64 at 56", "Conv", (1, 64, 56, 56), (64, 64, 3, 3), 64, **square),
        conv("ResNet 3x3 128 at 28", "Conv", (1, 128, 28, 28), (128, 128, 3, 3), 128, **square),
        conv("ResNet 3x3 256 at 14", "Conv", (1, 256, 14, 14), (256, 256, 3, 3), 256, **square),
        conv("ResNet 3x3 512 at 7", "Conv", (1, 512, 7, 7), (512, 512, 3, 3), 512, **square),
        conv("ResNet 3x3 s2 128->256 at 28", "Conv", (1, 128, 28, 28), (256, 128, 3, 3), 256, **square, **two),
        conv("ResNet 1x1 256->64 at 56", "Conv", (1, 256, 56, 56), (64, 256, 1, 1), 64),
        conv("ResNet 1x1 64->256 at 56", "Conv", (1, 64, 56, 56), (256, 64, 1, 1), 256),
        conv("ResNet 1x1 1024->256 at 14", "Conv", (1, 1024, 14, 14), (256, 1024, 1, 1), 256),
        conv("ResNet 1x1 s2 256->512 at 56", "Conv", (1, 256, 56, 56), (512, 256, 1, 1), 512, **two),
        conv("ResNet 3x3 64 at 56 batch 8", "Conv", (8, 64, 56, 56), (64, 64, 3, 3), 64, **square),
        conv("MobileNet stem 3x3 s2", "Conv", (1, 3, 224, 224), (32, 3, 3, 3), 32, **square, **two),
        conv("MobileNet depthwise 96 s2 at 112", "Conv", (1, 96, 112, 112), (96, 1, 3, 3), 96, group=96, **square, **two),
        conv("MobileNet depthwise 144 at 56", "Conv", (1, 144, 56, 56), (144, 1, 3, 3), 144, group=144, **square),
        conv("MobileNet depthwise 960 at 7", "Conv", (1, 960, 7, 7), (960, 1, 3, 3), 960, group=960, **square),
        conv("MobileNet 1x1 96->24 at 56", "Conv", (1, 96, 56, 56), (24, 96, 1, 1), 24),
        conv("EfficientNet depthwise 5x5 240 at 28", "Conv", (1, 240, 28, 28), (240, 1, 5, 5), 240, group=240, pads=[2, 2, 2, 2]),
        conv("ConvNeXt depthwise 7x7 96 at 56", "Conv", (1, 96, 56, 56), (96, 1, 7, 7), 96, group=96, pads=[3, 3, 3, 3]),
        conv("ConvNeXt patch 4x4 s4", "Conv", (1, 3, 224, 224), (96, 3, 4, 4), 96, strides=[4, 4]),
        conv("ViT patch 16x16 s16", "Conv", (1, 3, 224, 224), (768, 3, 16, 16), 768, strides=[16, 16]),
        conv("ResNeXt 3x3 128 in 32 groups at 56", "Conv", (1, 128, 56, 56), (128, 4, 3, 3), 128, group=32, **square),
        conv("VGG 3x3 64 at 112", "Conv", (1, 64, 112, 112), (64, 64, 3, 3), 64, **square),
        conv("VGG 3x3 512 at 14", "Conv", (1, 512, 14, 14), (512, 512, 3, 3), 512, **square),
        conv("DeepLab 3x3 256 dilation 6 at 33", "Conv", (1, 256, 33, 33), (256, 256, 3, 3), 256, pads=[6] * 4, dilations=[6, 6]),
        conv("YOLO 3x3 64->128 at 80", "Conv", (1, 64, 80, 80), (128, 64, 3, 3), 128, **square),
        conv("YOLO head 1x1 256->255 at 40", "Conv", (1, 256, 40, 40), (255, 256, 1, 1), 255),
        conv("Inception 1x7 192 at 17", "Conv", (1, 192, 17, 17), (192, 192, 1, 7), 192, pads=[0, 3, 0, 3]),
        conv("super resolution 9x9 1->64 at 128", "Conv", (1, 1, 128, 128), (64, 1, 9, 9), 64, pads=[4] * 4),
        conv("super resolution 5x5 32->1 at 128", "Conv", (1, 32, 128, 128), (1, 32, 5, 5), 1, pads=[2] * 4),
        conv("WaveNet k3 dilation 8 of 64 at 4000", "Conv", (1, 64, 4000), (64, 64, 3), 64, pads=[8, 8], dilations=[8]),
        conv("wav2vec k10 s5 1->512 at 16000", "Conv", (1, 1, 16000), (512, 1, 10), 512, strides=[5]),
        conv("Whisper k3 80->384 at 3000", "Conv", (1, 80, 3000), (384, 80, 3), 384, pads=[1, 1]),
        conv("video 3x3x3 64 at 8x28x28", "Conv", (1, 64, 8, 28, 28), (64, 64, 3, 3, 3), 64, pads=[1] * 6),
        conv("video stem 3->32 at 16x56x56", "Conv", (1, 3, 16, 56, 56), (32, 3, 3, 3, 3), 32, pads=[1] * 6),
    ]


def transposed() -> list[Row]:
    def t(name: str, image: tuple, weight: tuple, bias: int = 0, **attrs) -> Row:
        return conv(name, "ConvTranspose", image, weight, bias, **attrs)

    gan = {"strides": [2, 2], "pads": [1, 1, 1, 1]}
    return [
        t("U-Net 2x2 s2 1024->512 at 14", (1, 1024, 14, 14), (1024, 512, 2, 2), 512, strides=[2, 2]),
        t("U-Net 2x2 s2 512->256 at 28", (1, 512, 28, 28), (512, 256, 2, 2), 256, strides=[2, 2]),
        t("U-Net 2x2 s2 256->128 at 56", (1, 256, 56, 56), (256, 128, 2, 2), 128, strides=[2, 2]),
        t("U-Net 2x2 s2 128->64 at 112", (1, 128, 112, 112), (128, 64, 2, 2), 64, strides=[2, 2]),
        t("Mask R-CNN 2x2 s2 256 at 14 batch 8", (8, 256, 14, 14), (256, 256, 2, 2), 256, strides=[2, 2]),
        t("DCGAN 4x4 s1 100->512 at 1", (1, 100, 1, 1), (100, 512, 4, 4)),
        t("DCGAN 4x4 s2 512->256 at 4", (1, 512, 4, 4), (512, 256, 4, 4), **gan),
        t("DCGAN 4x4 s2 256->128 at 8", (1, 256, 8, 8), (256, 128, 4, 4), **gan),
        t("DCGAN 4x4 s2 128->64 at 16", (1, 128, 16, 16), (128, 64, 4, 4), **gan),
        t("DCGAN 4x4 s2 64->3 at 32", (1, 64, 32, 32), (64, 3, 4, 4), **gan),
        t("pose 4x4 s2 256 at 32", (1, 256, 32, 32), (256, 256, 4, 4), **gan),
        t("3x3 s1 64 at 56", (1, 64, 56, 56), (64, 64, 3, 3), 64, pads=[1] * 4),
        t("CycleGAN 3x3 s2 256->128 at 64", (1, 256, 64, 64), (256, 128, 3, 3), 128, output_padding=[1, 1], **gan),
        t("CycleGAN 3x3 s2 128->64 at 128", (1, 128, 128, 128), (128, 64, 3, 3), 64, output_padding=[1, 1], **gan),
        t("autoencoder 5x5 s2 64->32 at 28", (1, 64, 28, 28), (64, 32, 5, 5), 32, strides=[2, 2], pads=[2] * 4, output_padding=[1, 1]),
        t("FCN 16x16 s8 of 21 at 28", (1, 21, 28, 28), (21, 21, 16, 16), strides=[8, 8], pads=[4] * 4),
        t("depthwise 4x4 s2 64 at 28", (1, 64, 28, 28), (64, 1, 4, 4), group=64, **gan),
        t("groups 4x4 s2 128 in 4 at 28", (1, 128, 28, 28), (128, 32, 4, 4), group=4, **gan),
        t("dilation 2 3x3 of 64 at 28", (1, 64, 28, 28), (64, 64, 3, 3), dilations=[2, 2], pads=[2] * 4),
        t("HiFi-GAN k16 s8 512->256 at 100", (1, 512, 100), (512, 256, 16), 256, strides=[8], pads=[4, 4]),
        t("HiFi-GAN k16 s8 256->128 at 800", (1, 256, 800), (256, 128, 16), 128, strides=[8], pads=[4, 4]),
        t("HiFi-GAN k4 s2 128->64 at 6400", (1, 128, 6400), (128, 64, 4), 64, strides=[2], pads=[1, 1]),
        t("3-d U-Net 2x2x2 s2 128->64 at 8", (1, 128, 8, 8, 8), (128, 64, 2, 2, 2), 64, strides=[2, 2, 2]),
        t("3-d U-Net 3x3x3 s2 64->32 at 16", (1, 64, 16, 16, 16), (64, 32, 3, 3, 3), 32, strides=[2] * 3, pads=[1] * 6, output_padding=[1] * 3),
    ]


def products() -> list[Row]:
    def mm(name: str, a: In, b: In) -> Row:
        return Row(f"MatMul {name}", "MatMul", [a, b], {})

    return [
        mm("BERT 128x768x768", x(1, 128, 768), w(768, 768)),
        mm("BERT 128x768x3072", x(1, 128, 768), w(768, 3072)),
        mm("BERT 128x3072x768", x(1, 128, 3072), w(3072, 768)),
        mm("MiniLM 32x384x1536", x(1, 32, 384), w(384, 1536)),
        mm("decoder 1x768x3072", x(1, 1, 768), w(768, 3072)),
        mm("decoder 1x2048x8192", x(1, 1, 2048), w(2048, 8192)),
        mm("vocabulary 1x768x32000", x(1, 1, 768), w(768, 32000)),
        mm("attention scores 12x128x64x128", x(1, 12, 128, 64), x(1, 12, 64, 128)),
        mm("attention values 12x128x128x64", x(1, 12, 128, 128), x(1, 12, 128, 64)),
        mm("attention one token 12x1x64x512", x(1, 12, 1, 64), x(1, 12, 64, 512)),
        mm("512x512x512", x(512, 512), x(512, 512)),
        mm("1024x1024x1024", x(1024, 1024), x(1024, 1024)),
        mm("recommender 256x13x512", x(256, 13), w(13, 512)),
        mm("recommender 256x512x256", x(256, 512), w(512, 256)),
        Row("Gemm classifier 1x2048x1000", "Gemm", [x(1, 2048), w(1000, 2048), w(1000)], {"transB": 1}),
        Row("Gemm VGG 1x25088x4096", "Gemm", [x(1, 25088), w(4096, 25088), w(4096)], {"transB": 1}),
        Row("Gemm MLP 64x784x256", "Gemm", [x(64, 784), w(256, 784), w(256)], {"transB": 1}),
        Row("Einsum bhid,bhjd->bhij", "Einsum", [x(1, 12, 128, 64), x(1, 12, 128, 64)], {"equation": "bhid,bhjd->bhij"}),
    ]


def pools() -> list[Row]:
    return [
        Row("MaxPool 3x3 s2 64 at 112", "MaxPool", [x(1, 64, 112, 112)], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
        Row("MaxPool 2x2 s2 128 at 112", "MaxPool", [x(1, 128, 112, 112)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        Row("MaxPool 5x5 s1 256 at 20", "MaxPool", [x(1, 256, 20, 20)], {"kernel_shape": [5, 5], "pads": [2] * 4}),
        Row("MaxPool with indices 2x2 64 at 56", "MaxPool", [x(1, 64, 56, 56)], {"kernel_shape": [2, 2], "strides": [2, 2]}, 2),
        Row("AveragePool 3x3 192 at 35", "AveragePool", [x(1, 192, 35, 35)], {"kernel_shape": [3, 3], "pads": [1] * 4}),
        Row("AveragePool 2x2 s2 128 at 56", "AveragePool", [x(1, 128, 56, 56)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        Row("GlobalAveragePool 2048 at 7", "GlobalAveragePool", [x(1, 2048, 7, 7)], {}),
        Row("GlobalMaxPool 512 at 14", "GlobalMaxPool", [x(1, 512, 14, 14)], {}),
        Row("MaxPool 1-d k2 128 at 4000", "MaxPool", [x(1, 128, 4000)], {"kernel_shape": [2], "strides": [2]}),
        Row("LpPool 3x3 64 at 28", "LpPool", [x(1, 64, 28, 28)], {"kernel_shape": [3, 3], "p": 2}),
    ]


def norms() -> list[Row]:
    def ln(*shape: int) -> list:
        return [x(*shape), w(shape[-1]), w(shape[-1])]

    return [
        Row("LayerNormalization 128x768", "LayerNormalization", ln(1, 128, 768), {"axis": -1}),
        Row("LayerNormalization 512x1024", "LayerNormalization", ln(1, 512, 1024), {"axis": -1}),
        Row("LayerNormalization 1x2048", "LayerNormalization", ln(1, 1, 2048), {"axis": -1}),
        Row("BatchNormalization 64 at 56", "BatchNormalization", [x(1, 64, 56, 56), w(64), w(64), w(64), In(np.ones(64, np.float32), False)], {}),
        Row("InstanceNormalization 64 at 128", "InstanceNormalization", [x(1, 64, 128, 128), w(64), w(64)], {}),
        Row("GroupNormalization 320 in 32 at 32", "GroupNormalization", [x(1, 320, 32, 32), w(320), w(320)], {"num_groups": 32}),
        Row("LRN 96 at 55", "LRN", [x(1, 96, 55, 55)], {"size": 5}),
        Row("LpNormalization 128x768", "LpNormalization", [x(128, 768)], {"axis": 1}),
        Row("Softmax 12x128x128", "Softmax", [x(1, 12, 128, 128)], {"axis": -1}),
        Row("Softmax 12x512x512", "Softmax", [x(1, 12, 512, 512)], {"axis": -1}),
        Row("Softmax 1x32000", "Softmax", [x(1, 32000)], {"axis": -1}),
        Row("Softmax 1x1000", "Softmax", [x(1, 1000)], {"axis": -1}),
        Row("Softmax over channels 21 at 65", "Softmax", [x(1, 21, 65, 65)], {"axis": 1}),
        Row("LogSoftmax 64x1000", "LogSoftmax", [x(64, 1000)], {"axis": -1}),
    ]


def reductions() -> list[Row]:
    def r(op: str, name: str, a: In, axes: list, **attrs) -> Row:
        return Row(f"{op} {name}", op, [a, c(axes)], attrs)

    return [
        r("ReduceMean", "spatial 512 at 28", x(1, 512, 28, 28), [2, 3]),
        r("ReduceMean", "last of 128x768", x(1, 128, 768), [-1]),
        r("ReduceMean", "tokens of 128x768", x(1, 128, 768), [1]),
        r("ReduceSum", "all of a million", x(1000, 1000), [0, 1]),
        r("ReduceSum", "columns of 1000x1000", x(1000, 1000), [0]),
        r("ReduceMax", "last of 12x128x128", x(12, 128, 128), [-1]),
        r("ReduceMax", "channels 64 at 56", x(1, 64, 56, 56), [1]),
        r("ReduceProd", "last of 256x64", x(256, 64), [-1]),
        r("ReduceL2", "last of 256x512", x(256, 512), [-1]),
        r("ReduceLogSumExp", "last of 64x1000", x(64, 1000), [-1]),
        Row("ArgMax 1x32000", "ArgMax", [x(1, 32000)], {"axis": -1}),
        Row("ArgMax channels 21 at 256", "ArgMax", [x(1, 21, 256, 256)], {"axis": 1}),
        Row("ArgMin 512x64", "ArgMin", [x(512, 64)], {"axis": 1}),
        Row("CumSum 128x512", "CumSum", [x(128, 512), scalar(1, np.int64)], {}),
        Row("CumSum rows of 512x512", "CumSum", [x(512, 512), scalar(0, np.int64)], {}),
    ]


def elementwise() -> list[Row]:
    image, tokens = (1, 64, 112, 112), (1, 128, 3072)
    rows = [Row(f"{op} 64 at 112", op, [x(*image)], {}) for op in ("Relu", "Sigmoid", "Tanh", "Exp", "HardSwish", "LeakyRelu", "Elu", "Softplus", "Abs", "Neg")]
    rows += [Row(f"{op} 128x3072", op, [x(*tokens)], {}) for op in ("Gelu", "Erf", "Mish", "Sin", "Cos", "Floor", "Round", "Sign")]
    rows += [Row(f"{op} 128x3072", op, [pos(*tokens)], {}) for op in ("Log", "Sqrt", "Reciprocal")]
    rows += [Row(f"{op} 64 at 112", op, [x(*image), x(*image)], {}) for op in ("Add", "Mul", "Sub", "Div", "Max")]
    return [
        *rows,
        Row("Relu of 1000", "Relu", [x(1, 1000)], {}),
        Row("Add of 1000", "Add", [x(1, 1000), x(1, 1000)], {}),
        Row("Add a channel 64 at 112", "Add", [x(*image), w(1, 64, 1, 1)], {}),
        Row("Add a row 128x3072", "Add", [x(*tokens), w(3072)], {}),
        Row("Mul squeeze and excite 240 at 28", "Mul", [x(1, 240, 28, 28), x(1, 240, 1, 1)], {}),
        Row("Pow of 2 128x3072", "Pow", [x(*tokens), scalar(2.0)], {}),
        Row("Pow of 1.7 128x768", "Pow", [pos(1, 128, 768), scalar(1.7)], {}),
        Row("Clip 0 to 6 64 at 112", "Clip", [x(*image), scalar(0.0), scalar(6.0)], {}),
        Row("PRelu 64 at 56", "PRelu", [x(1, 64, 56, 56), w(64, 1, 1)], {}),
        Row("Where mask 12x128x128", "Where", [flags(0.5, 1, 1, 128, 128), x(1, 12, 128, 128), scalar(-1e9)], {}),
        Row("Less 128x3072", "Less", [x(*tokens), x(*tokens)], {}),
        Row("Equal of ids 64x512", "Equal", [ints(9, 64, 512), scalar(3, np.int64)], {}),
        Row("And 256x256", "And", [flags(0.5, 256, 256), flags(0.5, 256, 256)], {}),
        Row("Not 512x512", "Not", [flags(0.5, 512, 512)], {}),
        Row("Mod of ids 64x512", "Mod", [ints(1000, 64, 512), scalar(7, np.int64)], {}),
        Row("Cast to int64 128x768", "Cast", [x(128, 768)], {"to": 7}),
        Row("Cast from uint8 3 at 224", "Cast", [ints(255, 1, 3, 224, 224, dtype=np.uint8)], {"to": 1}),
        Row("IsNaN 128x768", "IsNaN", [x(128, 768)], {}),
        Row("QuantizeLinear 64 at 56", "QuantizeLinear", [x(1, 64, 56, 56), scalar(0.02), scalar(128, np.uint8)], {}),
        Row("DequantizeLinear 64 at 56", "DequantizeLinear", [ints(255, 1, 64, 56, 56, dtype=np.uint8), scalar(0.02), scalar(128, np.uint8)], {}),
        Row("DynamicQuantizeLinear 128x768", "DynamicQuantizeLinear", [x(128, 768)], {}, 3),
    ]


def movement() -> list[Row]:
    image = (1, 64, 56, 56)
    return [
        Row("Transpose heads 128x12x64", "Transpose", [x(1, 128, 12, 64)], {"perm": [0, 2, 1, 3]}),
        Row("Transpose keys 12x128x64", "Transpose", [x(1, 12, 128, 64)], {"perm": [0, 1, 3, 2]}),
        Row("Transpose NCHW to NHWC 64 at 112", "Transpose", [x(1, 64, 112, 112)], {"perm": [0, 2, 3, 1]}),
        Row("Transpose NHWC to NCHW 3 at 224", "Transpose", [x(1, 224, 224, 3)], {"perm": [0, 3, 1, 2]}),
        Row("Transpose 1000x1000", "Transpose", [x(1000, 1000)], {"perm": [1, 0]}),
        Row("Concat channels 4 of 64 at 56", "Concat", [x(*image) for _ in range(4)], {"axis": 1}),
        Row("Concat key cache 12x511+1x64", "Concat", [x(1, 12, 511, 64), x(1, 12, 1, 64)], {"axis": 2}),
        Row("Split 3 of 128x2304", "Split", [x(1, 128, 2304), c([768] * 3)], {"axis": -1}, 3),
        Row("Split 2 of 128 at 40", "Split", [x(1, 128, 40, 40), c([64, 64])], {"axis": 1}, 2),
        Row("Slice half of 64 at 112", "Slice", [x(1, 64, 112, 112), c([0]), c([32]), c([1])], {}),
        Row("Slice steps of 2 64 at 112", "Slice", [x(1, 64, 112, 112), c([0, 0]), c([112, 112]), c([2, 3]), c([2, 2])], {}),
        Row("Pad by 1 64 at 112", "Pad", [x(1, 64, 112, 112), c([0, 0, 1, 1, 0, 0, 1, 1])], {}),
        Row("Pad reflect 3 64 at 128", "Pad", [x(1, 64, 128, 128), c([0, 0, 3, 3, 0, 0, 3, 3])], {"mode": "reflect"}),
        Row("Expand 1x1x128x128 to 12", "Expand", [x(1, 1, 128, 128), c([1, 12, 128, 128])], {}),
        Row("Tile 8 of 32x768", "Tile", [x(1, 32, 768), c([1, 8, 1])], {}),
        Row("Reshape 128x768 to heads", "Reshape", [x(1, 128, 768), c([1, 128, 12, 64])], {}),
        Row("DepthToSpace 2 256 at 56", "DepthToSpace", [x(1, 256, 56, 56)], {"blocksize": 2, "mode": "CRD"}),
        Row("SpaceToDepth 2 3 at 320", "SpaceToDepth", [x(1, 3, 320, 320)], {"blocksize": 2}),
        Row("Resize nearest 2 128 at 40", "Resize", [x(1, 128, 40, 40), None, c([1, 1, 2, 2], dtype=np.float32)], {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
        Row("Resize linear 2 64 at 64", "Resize", [x(1, 64, 64, 64), None, c([1, 1, 2, 2], dtype=np.float32)], {"mode": "linear"}),
        Row("Resize linear 21 65 to 513", "Resize", [x(1, 21, 65, 65), None, None, c([1, 21, 513, 513])], {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
        Row("Resize cubic 2 3 at 128", "Resize", [x(1, 3, 128, 128), None, c([1, 1, 2, 2], dtype=np.float32)], {"mode": "cubic"}),
        Row("GridSample 64 at 56", "GridSample", [x(1, 64, 56, 56), In(_rng.uniform(-1, 1, (1, 56, 56, 2)).astype(np.float32), True)], {}),
        Row("RoiAlign 100 boxes of 256 at 50", "RoiAlign", [x(1, 256, 50, 50), In(np.sort(_rng.uniform(0, 800, (100, 4)).astype(np.float32), 1), True), ints(1, 100)], {"output_height": 7, "output_width": 7, "sampling_ratio": 2, "spatial_scale": 0.0625}),
        Row("Trilu 12x128x128", "Trilu", [x(12, 128, 128)], {"upper": 0}),
    ]  # fmt: skip


def selection() -> list[Row]:
    return [
        Row("Gather embedding 128 of 30522x384", "Gather", [w(30522, 384), ints(30522, 1, 128)], {}),
        Row("Gather columns 64 of 512x512", "Gather", [x(512, 512), ints(512, 64)], {"axis": 1}),
        Row("Gather first token", "Gather", [x(8, 128, 768), scalar(0, np.int64)], {"axis": 1}),
        Row("GatherElements 512x512", "GatherElements", [x(512, 512), ints(512, 512, 512)], {"axis": 1}),
        Row("GatherND 1000 rows of 5000x64", "GatherND", [x(5000, 64), ints(5000, 1000, 1)], {}),
        Row("ScatterND 1000 rows of 5000x64", "ScatterND", [x(5000, 64), distinct(5000, 1000, 1), x(1000, 64)], {}),
        Row("ScatterND one row of 2048x768", "ScatterND", [x(2048, 768), distinct(2048, 1, 1), x(1, 768)], {}),
        Row("ScatterND add 4000 of 16x64x64", "ScatterND", [x(16, 64, 64), In(np.stack([_rng.integers(0, n, 4000) for n in (16, 64, 64)], 1), True), x(4000)], {"reduction": "add"}),
        Row("ScatterElements 512x512", "ScatterElements", [x(512, 512), In(np.argsort(_rng.random((512, 512)), 1), True), x(512, 512)], {"axis": 1}),
        Row("ScatterElements 512x512 axis 0", "ScatterElements", [x(512, 512), In(np.argsort(_rng.random((512, 512)), 0), True), x(512, 512)], {"axis": 0}),
        Row("ScatterElements add 64x1000", "ScatterElements", [x(64, 1000), ints(1000, 64, 200), x(64, 200)], {"axis": 1, "reduction": "add"}),
        Row("TopK 50 of 32000", "TopK", [x(1, 32000), c([50])], {}, 2),
        Row("TopK 5 of 1000", "TopK", [x(1, 1000), c([5])], {}, 2),
        Row("TopK 40 of 50257 batch 8", "TopK", [x(8, 50257), c([40])], {}, 2),
        Row("TopK 1000 of 8400", "TopK", [x(1, 8400), c([1000])], {}, 2),
        Row("TopK 300 of 25200 by column", "TopK", [x(1, 25200, 2), c([300])], {"axis": 1}, 2),
        Row("TopK smallest 16 of 512x512", "TopK", [x(512, 512), c([16])], {"largest": 0}, 2),
        Row("TopK all of 10000", "TopK", [x(1, 10000), c([10000])], {}, 2),
        Row("NonZero few of 640x640", "NonZero", [flags(0.01, 640, 640)], {}),
        Row("NonZero half of 64x64x64", "NonZero", [flags(0.5, 64, 64, 64)], {}),
        Row("NonZero of floats 1x8400", "NonZero", [In(_rng.standard_normal((1, 8400)).clip(0).astype(np.float32), True)], {}),
        Row("Compress 8400x80", "Compress", [x(8400, 80), flags(0.1, 8400)], {"axis": 0}),
        Row("OneHot 1000 of 64", "OneHot", [ints(1000, 64), scalar(1000, np.int64), c([0.0, 1.0], dtype=np.float32)], {}),
        Row("Unique 10000 of 500", "Unique", [ints(500, 10000)], {"sorted": 1}, 4),
        Row("Range to 10000", "Range", [scalar(0, np.int64), In(np.array(10000), True), scalar(1, np.int64)], {}),
        Row("NonMaxSuppression 1000 boxes", "NonMaxSuppression", [In(np.sort(_rng.random((1, 1000, 4)).astype(np.float32), 2), True), pos(1, 1, 1000), scalar(200, np.int64), scalar(0.5), scalar(0.05)], {}),
    ]  # fmt: skip


def integers_and_loops() -> list[Row]:
    def recurrent(op: str, gates: int, steps: int, batch: int, inputs: int, hidden: int) -> Row:
        weights = [w(1, gates * hidden, inputs), w(1, gates * hidden, hidden), w(1, 2 * gates * hidden)]
        return Row(f"{op} {steps} steps of {hidden} batch {batch}", op, [x(steps, batch, inputs), *weights], {"hidden_size": hidden}, 2)

    def i8(high: int, *shape: int, dtype=np.uint8, fed: bool = True) -> In:
        return In(_rng.integers(0, high, shape).astype(dtype), fed)

    return [
        recurrent("LSTM", 4, 50, 1, 128, 256),
        recurrent("LSTM", 4, 100, 8, 64, 128),
        recurrent("GRU", 3, 50, 1, 128, 256),
        recurrent("RNN", 1, 50, 1, 64, 128),
        Row("MatMulInteger 128x768x768", "MatMulInteger", [i8(255, 128, 768), i8(127, 768, 768, dtype=np.int8, fed=False)], {}),
        Row("ConvInteger 3x3 64 at 56", "ConvInteger", [i8(255, 1, 64, 56, 56), i8(255, 64, 64, 3, 3, fed=False)], {"pads": [1] * 4}),
        Row("QLinearMatMul 128x768x768", "QLinearMatMul", [i8(255, 128, 768), scalar(0.02), scalar(128, np.uint8), i8(127, 768, 768, dtype=np.int8, fed=False), scalar(0.02), scalar(0, np.int8), scalar(0.2), scalar(128, np.uint8)], {}),
        Row("QLinearConv 3x3 64 at 56", "QLinearConv", [i8(255, 1, 64, 56, 56), scalar(0.02), scalar(128, np.uint8), i8(127, 64, 64, 3, 3, dtype=np.int8, fed=False), scalar(0.02), scalar(0, np.int8), scalar(0.5), scalar(128, np.uint8)], {"pads": [1] * 4}),
    ]  # fmt: skip


def all_rows() -> list[Row]:
    return [
        *convolutions(), *transposed(), *products(), *pools(), *norms(), *reductions(), *elementwise(), *movement(), *selection(), *integers_and_loops(),
    ]  # fmt: skip


def model_of(row: Row) -> tuple[object, dict[str, np.ndarray]]:
    """(an ONNX model of one operator, its inputs)."""
    from onnx import helper, numpy_helper

    names, feeds, weights = [], {}, []
    for i, value in enumerate(row.inputs):
        names.append("" if value is None else f"in{i}")
        if value is None:
            continue
        if value.fed:
            feeds[names[-1]] = value.value
        else:
            weights.append(numpy_helper.from_array(value.value, names[-1]))
    results = [f"out{i}" for i in range(row.outputs)]
    node = helper.make_node(row.op, names, results, **row.attrs)
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feeds.items()}
    inputs = [helper.make_tensor_value_info(name, kinds[name], array.shape) for name, array in feeds.items()]
    outputs = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph([node], "row", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21 if row.op == "GroupNormalization" else 20)], ir_version=10)
    return model, feeds


def least(runs: list, rounds: int, pause: float) -> list[float]:
    """The least seconds of each, in turns."""
    best = [float("inf")] * len(runs)
    for _ in range(rounds):
        for i, run in enumerate(runs):
            if pause:
                time.sleep(pause)
            start = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def agrees(got: list[np.ndarray], want: list[np.ndarray]) -> bool:
    """Whether results are the same within what sums of different orders leave; selections may differ among equals."""
    for a, b in zip(got, want, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        apart = np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0)
        if not apart <= 1e-3 * max(np.abs(b.astype(np.float64)).max(initial=0), 1e-3) + (1 if b.dtype.itemsize == 1 and b.dtype != bool else 0):
            return False
    return True


def measure(row: Row, threads: int, rounds: int) -> dict:
    import onnx
    import onnxruntime

    import baton

    model, feeds = model_of(row)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    with tempfile.TemporaryDirectory(prefix="baton-ops-") as folder:
        path = str(Path(folder, "row.onnx"))
        onnx.save(model, path)
        start = time.perf_counter()
        executable = baton.compile(path)
        compiling = time.perf_counter() - start
    order = [feeds[info.name] for info in executable.inputs]
    own, peer = lambda: executable(*order), lambda: session.run(None, feeds)
    got = own()
    got = [out.numpy() for out in (got if isinstance(got, (list, tuple)) else [got])]
    same = agrees(got, peer())
    slow = max(least([own, peer], 1, PAUSE_S))
    rounds = max(3, round(rounds * min(1, SLOWEST_S / 10 / slow)))
    asleep = least([own, peer], rounds, PAUSE_S)
    spinning = least([own, peer], rounds, 0)
    figures = {"name": row.name, "own_ms": asleep[0] * 1e3, "peer_ms": asleep[1] * 1e3, "asleep": asleep[0] / asleep[1]}
    figures |= {"own_spinning_ms": spinning[0] * 1e3, "peer_spinning_ms": spinning[1] * 1e3, "spinning": spinning[0] / spinning[1]}
    return figures | {"agrees": same, "compile_s": compiling}


def mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a regular expression that a row's name contains")
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each engine a row (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="writes the rows")
    parser.add_argument("--list", action="store_true", help="prints the names of the rows")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a bar is missed")
    args = parser.parse_args()
    os.environ["BATON_NUM_THREADS"] = str(args.threads)
    rows = [row for row in all_rows() if re.search(args.only, row.name)]
    if args.list:
        print(*(row.name for row in rows), sep="\n")
        return 0
    done, wrong = [], []
    print(f"{'':42} {'ours':>9} {'theirs':>9}  asleep  spinning   (ms)")
    for row in rows:
        try:
            f = measure(row, args.threads, args.rounds)
        except Exception as error:  # a row that cannot run is a result too
            wrong.append(f"{row.name}: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
            print(wrong[-1], flush=True)
            continue
        done.append(f)
        note = "" if f["agrees"] else "  RESULTS DIFFER"
        print(f"{f['name']:42} {f['own_ms']:9.3f} {f['peer_ms']:9.3f} {f['asleep']:7.2f} {f['spinning']:9.2f}{note}", flush=True)
        if not f["agrees"]:
            wrong.append(f"{row.name}: results differ")
    if args.json:
        Path(args.json).write_text(json.dumps(done, indent=1))
    asleep, spinning = mean([f["asleep"] for f in done]), mean([f["spinning"] for f in done])
    print(f"\n{len(done)} rows: geometric mean {asleep:.3f} asleep, {spinning:.3f} spinning")
    above = sorted((f for f in done if f["asleep"] > ROW_BAR), key=lambda f: -f["asleep"])
    print(f"{len(above)} rows above {ROW_BAR}" + (":" if above else ""))
    for f in above:
        print(f"  {f['asleep']:6.2f}  {f['name']}  {EXPLAINED.get(f['name'], '')}")
    missed = wrong + [f"{f['name']}: {f['asleep']:.2f}" for f in above if f["name"] not in EXPLAINED]
    if not args.only:
        missed += [
            f"mean {what} {value:.3f}, the bar is {bar}"
            for what, value, bar in (("asleep", asleep, ASLEEP_BAR), ("spinning", spinning, SPINNING_BAR))
            if not value <= bar
        ]
    print(*missed, sep="\n")
    return 1 if missed and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
