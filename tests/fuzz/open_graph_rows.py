# SPDX-License-Identifier: Apache-2.0
"""Kinds of nodes and of small patterns that exporters write, over open lengths: what `open_graphs.py` draws from. A row is a function of the graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ROWS = {}


@dataclass
class Value:
    name: str
    shapes: tuple  # one a call
    dtype: np.dtype
    dims: list | None = None  # of an input: names and numbers

    @property
    def elements(self):
        return max(int(np.prod(shape)) for shape in self.shapes)

    def same(self, axis):
        """The length of an axis where it is the same in each call, else None."""
        lengths = {shape[axis] for shape in self.shapes}
        return lengths.pop() if len(lengths) == 1 else None


def row(function):
    ROWS[function.__name__.rstrip("_")] = function
    return function


def rows(*names):
    """The same function under several names: it takes the graph and the name."""

    def add(function):
        for name in names:
            ROWS[name] = lambda g, name=name: function(g, name)
        return function

    return add


def each(value, function):
    return [tuple(function(shape)) for shape in value.shapes]


def tensor(g, rank, least=1):
    """A value of this rank, or an input whose lengths are open but for about a third."""
    found = g.value(rank, where=lambda v: all(min(shape, default=least) >= least for shape in v.shapes))
    return found or g.input([g.length(least) if g.rng.random() < 0.7 else max(least, g.rng.randint(1, 5)) for _ in range(rank)])


def channelled(g, rank, channels, axis=1, least=1):
    """A value with so many channels at an axis, the rest open."""
    found = g.value(rank, where=lambda v: v.same(axis) == channels and all(min(s[:axis] + s[axis + 1 :], default=least) >= least for s in v.shapes))
    return found or g.input([channels if a == axis else g.length(least if a > 1 else 1) for a in range(rank)])


def any_rank(g, low=1, high=4):
    return tensor(g, g.rng.randint(low, high))


def lengths_of(g, x, axis):
    """A scalar in a vector of one element: the length of an axis, as exporters ask for it."""
    shape = g.node("Shape", [x])
    return g.node("Gather", [shape, g.ints(axis)], axis=0)


@rows(
    "Relu",
    "Tanh",
    "Sigmoid",
    "Abs",
    "Neg",
    "Exp",
    "Erf",
    "HardSigmoid",
    "HardSwish",
    "Softplus",
    "Elu",
    "Selu",
    "Celu",
    "Sign",
    "Floor",
    "LeakyRelu",
    "Softsign",
    "ThresholdedRelu",
    "Sin",
    "Ceil",
    "Round",
)
def unary(g, kind):
    x = any_rank(g)
    g.made(g.node(kind, [x]), x.shapes)


@rows("Add", "Mul", "Sub", "Max", "Min")
def binary(g, kind):
    x = any_rank(g)
    y = g.value(where=lambda v: v is not x and broadcasts(v.shapes, x.shapes))
    if y is None:
        y = g.input([1 if g.rng.random() < 0.3 else d for d in x.dims[g.rng.randint(0, len(x.dims) - 1) :]]) if x.dims else x
    shapes = [np.broadcast_shapes(a, b) for a, b in zip(x.shapes, y.shapes, strict=True)]
    g.made(g.node(kind, [x, y]), shapes)


def broadcasts(left, right):
    try:
        for a, b in zip(left, right, strict=True):
            np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


@row
def MatMul(g):
    x = tensor(g, g.rng.randint(2, 4))
    k = x.same(-1)
    if k:
        g.made(g.node("MatMul", [x, g.weight(k, 6)]), each(x, lambda s: (*s[:-1], 6)))
    else:  # x @ x^T
        perm = [*range(len(x.shapes[0]) - 2), len(x.shapes[0]) - 1, len(x.shapes[0]) - 2]
        g.made(g.node("MatMul", [x, g.node("Transpose", [x], perm=perm)]), each(x, lambda s: (*s[:-1], s[-2])))


@row
def Gemm(g):
    flip = g.rng.random() < 0.4
    x = tensor(g, 2)
    k = x.same(0 if flip else 1)
    if k:
        transposed = g.rng.random() < 0.5
        w = g.weight(5, k) if transposed else g.weight(k, 5)
        operands = [x, w] + ([g.weight(5)] if g.rng.random() < 0.7 else [])
        g.made(g.node("Gemm", operands, transA=int(flip), transB=int(transposed), alpha=0.5), each(x, lambda s: (s[1] if flip else s[0], 5)))
    else:
        bias = g.input([1]) if g.rng.random() < 0.5 else None
        operands = [x, x] + ([bias] if bias else [])
        g.made(g.node("Gemm", operands, transA=int(flip), transB=int(not flip), beta=2.0), each(x, lambda s: (s[1], s[1]) if flip else (s[0], s[0])))


@row
def Einsum(g):
    x = tensor(g, 3)
    equation, shape = g.rng.choice(
        [
            ("bij,bkj->bik", lambda s: (s[0], s[1], s[1])),
            ("bij,bij->bi", lambda s: s[:2]),
            ("bij,bij->b", lambda s: s[:1]),
            ("bij,bik->bjk", lambda s: (s[0], s[2], s[2])),
        ]
    )
    g.made(g.node("Einsum", [x, x], equation=equation), each(x, shape))


def windows(n, kernel, stride, pads, dilation=1):
    return (n + pads - (dilation * (kernel - 1) + 1)) // stride + 1


@row
def Conv(g):
    spatial = g.rng.choice((1, 1, 2, 2))
    channels = g.rng.choice((3, 3, 5, 8, 16))
    kernel, stride, pad, dilation = g.rng.choice((1, 3)), g.rng.choice((1, 2)), g.rng.choice((0, 1)), g.rng.choice((1, 1, 2))
    x = channelled(g, spatial + 2, channels, least=5)
    group = g.rng.choice((1, 1, 1, channels))
    made = channels * g.rng.choice((1, 2)) if group > 1 else g.rng.choice((1, 6, 8, 16, 30, 34))
    attrs = dict(kernel_shape=[kernel] * spatial, strides=[stride] * spatial, pads=[pad] * 2 * spatial, dilations=[dilation] * spatial, group=group)
    out = g.node("Conv", [x, g.weight(made, channels // group, *[kernel] * spatial), g.weight(made)], **attrs)
    g.made(out, each(x, lambda s: (s[0], made, *(windows(n, kernel, stride, 2 * pad, dilation) for n in s[2:]))))


@row
def ConvTranspose(g):
    spatial = g.rng.choice((1, 2, 2))
    kernel, stride, pad = g.rng.choice((2, 3)), g.rng.choice((1, 2)), g.rng.choice((0, 1))
    x = channelled(g, spatial + 2, 3, least=2)
    out = g.node("ConvTranspose", [x, g.weight(3, 4, *[kernel] * spatial)], strides=[stride] * spatial, pads=[pad] * 2 * spatial)
    g.made(out, each(x, lambda s: (s[0], 4, *((n - 1) * stride + kernel - 2 * pad for n in s[2:]))))


@rows("MaxPool", "AveragePool")
def pool(g, kind):
    spatial = g.rng.choice((1, 2))
    kernel, stride, pad = g.rng.choice((2, 3)), g.rng.choice((1, 2)), g.rng.choice((0, 1))
    x = channelled(g, spatial + 2, 3, least=4)
    out = g.node(kind, [x], kernel_shape=[kernel] * spatial, strides=[stride] * spatial, pads=[pad] * 2 * spatial)
    g.made(out, each(x, lambda s: (*s[:2], *(windows(n, kernel, stride, 2 * pad) for n in s[2:]))))


@rows("GlobalAveragePool", "GlobalMaxPool")
def global_pool(g, kind):
    x = tensor(g, 4)
    g.made(g.node(kind, [x]), each(x, lambda s: (*s[:2], 1, 1)))


@row
def Resize(g):
    x = tensor(g, 4, 2)
    mode = g.rng.choice(("nearest", "linear", "cubic"))
    if g.rng.random() < 0.5:
        scales = g.constant(np.array([1, 1, 2, 2], "float32"))
        out = g.node("Resize", [x, "", scales], mode=mode, coordinate_transformation_mode=g.rng.choice(("half_pixel", "asymmetric", "align_corners")))
        g.made(out, each(x, lambda s: (*s[:2], s[2] * 2, s[3] * 2)))
    else:  # to the sides of another image
        y = tensor(g, 4, 2)
        starts = g.node("Slice", [g.node("Shape", [x]), g.ints(0), g.ints(2), g.ints(0)])
        ends = g.node("Slice", [g.node("Shape", [y]), g.ints(2), g.ints(4), g.ints(0)])
        out = g.node("Resize", [x, "", "", g.node("Concat", [starts, ends], axis=0)], mode=mode)
        g.made(out, [(*a[:2], *b[2:]) for a, b in zip(x.shapes, y.shapes, strict=True)])


@row
def Windows(g):
    """Swin's windows: pad to a multiple, view, transpose, view; and rolled by half a window."""
    size, channels = g.rng.choice((2, 3)), 4
    x = channelled(g, 4, channels, axis=3)
    zero, one = g.ints(0), g.ints(1)
    if g.rng.random() < 0.6:  # torch.roll
        for axis in (1, 2):
            shift = g.ints(1)
            back = g.node("Slice", [x, shift, g.ints(2**62), g.ints(axis)])
            front = g.node("Slice", [x, zero, shift, g.ints(axis)])
            x = Value(g.node("Concat", [back, front], axis=axis), x.shapes, x.dtype)
    width = g.ints(size)
    sides = []
    pads = []
    for axis in (1, 2):
        side = lengths_of(g, x, axis)
        rest = g.node("Mod", [g.node("Sub", [width, g.node("Mod", [side, width])]), width])
        sides.append(g.node("Add", [side, rest]))
        pads.append(rest)
    padded = g.node("Pad", [x, g.node("Concat", [zero, zero, zero, zero, zero, pads[0], pads[1], zero], axis=0)])
    batch = lengths_of(g, x, 0)
    counts = [g.node("Div", [side, width]) for side in sides]
    depth = g.ints(channels)
    view = g.node("Reshape", [padded, g.node("Concat", [batch, counts[0], width, counts[1], width, depth], axis=0)])
    turned = g.node("Transpose", [view], perm=[0, 1, 3, 2, 4, 5])
    flat = g.node("Reshape", [turned, g.ints(-1, size * size, channels)])
    full = [tuple(-(-n // size) * size for n in s[1:3]) for s in x.shapes]
    number = [s[0] * (f[0] // size) * (f[1] // size) for s, f in zip(x.shapes, full, strict=True)]
    y = g.made(flat, [(n, size * size, channels) for n in number])
    if g.rng.random() < 0.7:  # back to the image, and cut
        w = g.node("MatMul", [y, g.weight(channels, channels)])
        share = g.node("Div", [g.node("Mul", [sides[0], sides[1]]), g.ints(size * size)])
        first = g.node("Div", [lengths_of(g, y, 0), share]) if g.rng.random() < 0.5 else batch
        again = g.node("Reshape", [w, g.node("Concat", [first, counts[0], counts[1], width, width, g.ints(-1)], axis=0)])
        again = g.node("Reshape", [g.node("Transpose", [again], perm=[0, 1, 3, 2, 4, 5]), g.node("Concat", [first, sides[0], sides[1], g.ints(-1)], axis=0)])
        ends = [lengths_of(g, x, 1), lengths_of(g, x, 2)]
        out = again
        for axis in (1, 2):
            out = g.node("Slice", [out, zero, ends[axis - 1], g.ints(axis), one])
        g.made(out, x.shapes)


@row
def WindowMask(g):
    """Swin's mask of shifted windows: a picture that is numbered by ScatterND or Where, cut into windows, compared with itself."""
    size = 2
    x = channelled(g, 4, 4, axis=3)
    width, one = g.ints(size), g.ints(1)
    sides = [g.node("Mul", [g.node("Div", [g.node("Add", [lengths_of(g, x, a), one]), width]), width]) for a in (1, 2)]
    rowsof = g.node("Range", [g.node("Squeeze", [g.ints(0)]), g.node("Squeeze", [sides[0]]), g.node("Squeeze", [one])])
    cols = g.node("Range", [g.node("Squeeze", [g.ints(0)]), g.node("Squeeze", [sides[1]]), g.node("Squeeze", [one])])
    late = g.node("Cast", [g.node("GreaterOrEqual", [rowsof, g.node("Sub", [sides[0], one])])], to=TensorProto.FLOAT)
    right = g.node("Cast", [g.node("GreaterOrEqual", [cols, g.node("Sub", [sides[1], one])])], to=TensorProto.FLOAT)
    grid = g.node("Add", [g.node("Mul", [g.node("Unsqueeze", [late, g.ints(1)]), g.constant(np.float32(2))]), g.node("Unsqueeze", [right, g.ints(0)])])
    counts = [g.node("Div", [side, width]) for side in sides]
    view = g.node("Reshape", [grid, g.node("Concat", [counts[0], width, counts[1], width], axis=0)])
    flat = g.node("Reshape", [g.node("Transpose", [view], perm=[0, 2, 1, 3]), g.ints(-1, size * size)])
    mask = g.node("Sub", [g.node("Unsqueeze", [flat, g.ints(1)]), g.node("Unsqueeze", [flat, g.ints(2)])])
    different = g.node("Not", [g.node("Equal", [mask, g.constant(np.float32(0))])])
    out = g.node("Where", [different, g.constant(np.float32(-100)), g.constant(np.float32(0))])
    number = [((s[1] + 1) // 2) * ((s[2] + 1) // 2) for s in x.shapes]
    g.made(out, [(n, 4, 4) for n in number])


@row
def Heads(g):
    """Attention as exporters write it: views by the lengths of the input."""
    x = channelled(g, 3, 8, axis=2)
    batch, steps = lengths_of(g, x, 0), lengths_of(g, x, 1)
    parts = []
    for _ in range(3):
        p = g.node("MatMul", [x, g.weight(8, 8)])
        p = g.node("Reshape", [p, g.node("Concat", [batch, steps, g.ints(2), g.ints(4)], axis=0)])
        parts.append(p)
    q, v = (g.node("Transpose", [p], perm=[0, 2, 1, 3]) for p in (parts[0], parts[2]))
    k = g.node("Transpose", [parts[1]], perm=[0, 2, 3, 1])
    scores = g.node("Softmax", [g.node("Mul", [g.node("MatMul", [q, k]), g.constant(np.float32(0.5))])], axis=-1)
    out = g.node("Transpose", [g.node("MatMul", [scores, v])], perm=[0, 2, 1, 3])
    g.made(g.node("Reshape", [out, g.node("Concat", [batch, g.ints(-1), g.ints(8)], axis=0)]), x.shapes)


@row
def Gather(g):
    x = any_rank(g, 1, 3)
    axis = g.rng.randrange(len(x.shapes[0]))
    indices = g.input([g.length()] if g.rng.random() < 0.6 else [g.length(), 2], "int64", 0, min(s[axis] for s in x.shapes))
    g.made(g.node("Gather", [x, indices], axis=axis), [s[:axis] + i + s[axis + 1 :] for s, i in zip(x.shapes, indices.shapes, strict=True)])


@row
def GatherElements(g):
    x = tensor(g, 2)
    axis = g.rng.randrange(2)
    dims = [g.length(), 1] if axis == 0 else [1, g.length()]
    indices = g.input(dims, "int64", 0, min(s[axis] for s in x.shapes))
    g.made(g.node("GatherElements", [x, indices], axis=axis), indices.shapes)


@row
def GatherND(g):
    x = tensor(g, 3)
    count = g.rng.choice((1, 2, 3))
    batch = g.rng.choice((0, 0, 1)) if count < 3 and x.dims else 0
    least = min(min(s) for s in x.shapes)
    dims = ([x.dims[0]] if batch else []) + [g.length(), count]
    indices = g.input(dims, "int64", -least, least)
    out = g.node("GatherND", [x, indices], batch_dims=batch)
    g.made(out, [i[:-1] + s[batch + count :] for s, i in zip(x.shapes, indices.shapes, strict=True)])


@row
def ScatterND(g):
    x = tensor(g, 2)
    n = g.length()
    low = min(s[0] for s in x.shapes)
    indices = g.input([n, 1], "int64", 0, low)
    if not x.dims:
        return
    updates = g.input([n, x.dims[1]])
    g.made(g.node("ScatterND", [x, indices, updates], reduction="add"), x.shapes)


@row
def ScatterElements(g):
    x = tensor(g, 2)
    dims = [g.length(), 1]
    indices = g.input(dims, "int64", 0, min(s[0] for s in x.shapes))
    g.made(g.node("ScatterElements", [x, indices, g.input(dims)], axis=0, reduction="add"), x.shapes)


@rows("GRU", "LSTM", "RNN")
def recurrent(g, kind):
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[kind]
    direction = g.rng.choice(("forward", "reverse", "bidirectional"))
    both = 1 + (direction == "bidirectional")
    x = channelled(g, 3, 4, axis=2)
    operands = [x, g.weight(both, gates * 5, 4), g.weight(both, gates * 5, 5), g.weight(both, 2 * gates * 5)]
    if g.rng.random() < 0.4 and x.dims:
        operands += ["", g.input([both, x.dims[1], 5])]
    elif g.rng.random() < 0.4 and x.dims:
        operands += [g.node("Cast", [g.input([x.dims[1]], "int64", 1, 1 + min(s[0] for s in x.shapes))], to=TensorProto.INT32)]
    attrs = dict(linear_before_reset=g.rng.randint(0, 1)) if kind == "GRU" else {}
    names = g.node(kind, operands, results=2, hidden_size=5, direction=direction, **attrs)
    y = Value(names[0], tuple((s[0], both, s[1], 5) for s in x.shapes), x.dtype)
    if both == 1 and g.rng.random() < 0.6:
        g.made(g.node("Squeeze", [y, g.ints(1)]), [(s[0], s[1], 5) for s in x.shapes])
    elif g.rng.random() < 0.5:  # the directions side by side, as PyTorch has them
        turned = g.node("Transpose", [y], perm=[0, 2, 1, 3])
        g.made(g.node("Reshape", [turned, g.ints(0, 0, -1)]), [(s[0], s[1], both * 5) for s in x.shapes])
    else:
        g.made(names[0], y.shapes)


@row
def Scan(g):
    """A running sum over the steps of a sequence, backwards too."""
    x = tensor(g, 2)
    if not x.dims:
        return
    add = helper.make_node("Add", ["state", "step"], ["next"])
    act = helper.make_node("Tanh", ["next"], ["out"])
    body = helper.make_graph(
        [add, act],
        "body",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("state", "step")],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("next", "out")],
    )
    start = g.input([x.dims[1]])
    names = g.node("Scan", [start, x], results=2, body=body, num_scan_inputs=1, scan_input_directions=[g.rng.randint(0, 1)])
    g.made(names[0], start.shapes)
    g.made(names[1], x.shapes)


def loop_body(nodes, outputs, carried, outer=()):
    """A body with the counter `i`, the condition `go` and what is carried."""
    keep = helper.make_node("Identity", ["go"], ["go_on"])
    inputs = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        *(helper.make_tensor_value_info(name, kind, None) for name, kind in carried),
    ]
    results = [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []), *(helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs)]
    return helper.make_graph([keep, *nodes], "body", inputs, results)


@row
def EmbeddingBag(g):
    """What PyTorch writes for an EmbeddingBag: a Loop over bags, each the sum of some rows of the table."""
    n, bags = g.length(3), g.length(2)
    table = g.weight(12, 5)
    indices = g.input([n], "int64", 0, 12)
    total = [s[0] for s in indices.shapes]
    count = [g.lengths[bags][call] for call in range(len(total))]
    name = f"x{len(g.inputs)}"
    arrays = [np.sort(g.arrays.integers(0, t, c)).astype("int64") for t, c in zip(total, count, strict=True)]
    for a in arrays:
        a[0] = 0
    g.inputs.append((name, [bags], arrays))
    ends = g.node("Concat", [g.node("Slice", [name, g.ints(1), g.ints(2**62), g.ints(0)]), g.node("Shape", [indices])], axis=0)
    mode = g.rng.choice(("ReduceSum", "ReduceMean"))
    axes = ["axis0"] if mode == "ReduceSum" or g.opset >= 18 else []
    body = loop_body(
        [
            helper.make_node("Constant", [], ["axis0"], value_ints=[0]),
            helper.make_node("Gather", [name, "i"], ["b"], axis=0),
            helper.make_node("Gather", [ends, "i"], ["e"], axis=0),
            helper.make_node("Unsqueeze", ["b", "axis0"], ["b1"]),
            helper.make_node("Unsqueeze", ["e", "axis0"], ["e1"]),
            helper.make_node("Slice", [indices.name, "b1", "e1", "axis0"], ["part"]),
            helper.make_node("Gather", [table, "part"], ["found"], axis=0),
            helper.make_node(mode, ["found", *axes], ["out"], keepdims=0, **({} if axes else {"axes": [0]})),
        ],
        ["out"],
        [],
    )
    trip = g.node("Gather", [g.node("Shape", [name]), g.constant(np.int64(0))], axis=0)
    out = g.node("Loop", [trip, g.constant(np.array(True))], body=body)
    if mode == "ReduceSum":
        g.made(out, [(c, 5) for c in count])


@row
def Loop(g):
    """A state that grows by a function of itself, as often as there are rows."""
    x = tensor(g, 2)
    body = loop_body(
        [
            helper.make_node("Gather", [x.name, "i"], ["r"], axis=0),
            helper.make_node("Mul", ["s", "r"], ["m"]),
            helper.make_node("Add", ["m", "r"], ["next"]),
            helper.make_node("Identity", ["next"], ["out"]),
        ],
        ["next", "out"],
        [("s", TensorProto.FLOAT)],
    )
    trip = g.node("Gather", [g.node("Shape", [x]), g.constant(np.int64(0))], axis=0)
    first = g.node("Gather", [x, g.constant(np.int64(0))], axis=0)
    names = g.node("Loop", [trip, g.constant(np.array(True)), first], results=2, body=body)
    g.made(names[1], x.shapes)


@row
def SequenceLoop(g):
    """Rows that a Loop collects in a sequence, joined behind it."""
    x = tensor(g, 2)
    empty = g.node("SequenceEmpty", [])
    nodes = [
        helper.make_node("Gather", [x.name, "i"], ["r"], axis=0),
        helper.make_node("Relu", ["r"], ["a"]),
        helper.make_node("SequenceInsert", ["s", "a"], ["next"]),
        helper.make_node("Identity", ["go"], ["go_on"]),
    ]
    kind = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    out = helper.make_tensor_sequence_value_info("next", TensorProto.FLOAT, None)
    flags = [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, [])]
    body = helper.make_graph(nodes, "body", [*flags, kind], [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []), out])
    trip = g.node("Gather", [g.node("Shape", [x]), g.constant(np.int64(0))], axis=0)
    collected = g.node("Loop", [trip, g.constant(np.array(True)), empty], body=body)
    g.made(g.node("ConcatFromSequence", [collected], axis=0, new_axis=1), x.shapes)


@row
def If(g):
    """Branches of one type, chosen by a length."""
    x = any_rank(g, 1, 3)
    branches = {}
    for key, kind in (("then_branch", "Relu"), ("else_branch", "Neg")):
        out = helper.make_tensor_value_info(f"{key}_out", TensorProto.FLOAT, None)
        branches[key] = helper.make_graph([helper.make_node(kind, [x.name], [out.name])], key, [], [out])
    n = g.node("Squeeze", [lengths_of(g, x, 0), g.ints(0)])
    g.made(g.node("If", [g.node("Greater", [n, g.constant(np.int64(4))])], **branches), x.shapes)


@rows("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceProd", "ReduceLogSumExp")
def reduction(g, kind):
    x = any_rank(g, 1, 4)
    axis, keep = g.rng.randrange(len(x.shapes[0])), g.rng.randint(0, 1)
    if kind == "ReduceSum" or g.opset >= 18:
        out = g.node(kind, [x, g.ints(axis)], keepdims=keep)
    else:
        out = g.node(kind, [x], axes=[axis], keepdims=keep)
    g.made(out, each(x, lambda s: s[:axis] + ((1,) if keep else ()) + s[axis + 1 :]))


@rows("Softmax", "LogSoftmax")
def softmax(g, kind):
    x = any_rank(g)
    g.made(g.node(kind, [x], axis=g.rng.randrange(len(x.shapes[0]))), x.shapes)


@row
def LayerNormalization(g):
    x = channelled(g, 3, 8, axis=2)
    g.made(g.node("LayerNormalization", [x, g.weight(8), g.weight(8)], axis=-1), x.shapes)


@row
def InstanceNormalization(g):
    x = channelled(g, g.rng.choice((3, 4)), 3, least=2)
    g.made(g.node("InstanceNormalization", [x, g.weight(3), g.weight(3)]), x.shapes)


@row
def BatchNormalization(g):
    x = channelled(g, g.rng.choice((2, 4)), 3)
    positive = g.constant(np.array([0.5, 1, 2], "float32"))
    g.made(g.node("BatchNormalization", [x, g.weight(3), g.weight(3), g.weight(3), positive]), x.shapes)


@row
def Transpose(g):
    x = any_rank(g, 2, 4)
    perm = list(range(len(x.shapes[0])))
    g.rng.shuffle(perm)
    g.made(g.node("Transpose", [x], perm=perm), each(x, lambda s: [s[p] for p in perm]))


@row
def Flatten(g):
    x = any_rank(g, 2, 4)
    axis = g.rng.randint(1, len(x.shapes[0]) - 1)
    g.made(g.node("Flatten", [x], axis=axis), each(x, lambda s: (int(np.prod(s[:axis])), int(np.prod(s[axis:])))))


@row
def Reshape(g):
    x = any_rank(g, 2, 4)
    g.made(g.node("Reshape", [x, g.ints(0, -1)]), each(x, lambda s: (s[0], int(np.prod(s[1:])))))


@row
def ReshapeLike(g):
    """Two axes joined by the product of their lengths."""
    x = tensor(g, 3)
    a, b, c = (lengths_of(g, x, axis) for axis in range(3))
    order = g.rng.choice((([g.node("Mul", [a, b]), c], lambda s: (s[0] * s[1], s[2])), ([a, g.node("Mul", [b, c])], lambda s: (s[0], s[1] * s[2]))))
    g.made(g.node("Reshape", [x, g.node("Concat", order[0], axis=0)]), each(x, order[1]))


@row
def Unsqueeze(g):
    x = any_rank(g, 1, 3)
    axis = g.rng.randint(0, len(x.shapes[0]))
    g.made(g.node("Unsqueeze", [x, g.ints(axis)]), each(x, lambda s: (*s[:axis], 1, *s[axis:])))


@row
def Expand(g):
    x = tensor(g, 2)
    y = tensor(g, 1)
    shape = g.node("Concat", [g.node("Shape", [y]), g.node("Shape", [x])], axis=0)
    g.made(g.node("Expand", [x, shape]), [(*b, *a) for a, b in zip(x.shapes, y.shapes, strict=True)])


@row
def Tile(g):
    x = tensor(g, 2)
    if g.rng.random() < 0.5:
        g.made(g.node("Tile", [x, g.ints(2, 3)]), each(x, lambda s: (2 * s[0], 3 * s[1])))
    else:
        y = tensor(g, 1)
        repeats = g.node("Concat", [g.node("Shape", [y]), g.ints(1)], axis=0)
        g.made(g.node("Tile", [x, repeats]), [(a[0] * b[0], a[1]) for a, b in zip(x.shapes, y.shapes, strict=True)])


@row
def Concat(g):
    x = any_rank(g, 1, 3)
    axis = g.rng.randrange(len(x.shapes[0]))
    y = x
    if x.dims and g.rng.random() < 0.7:
        y = g.input([g.length() if a == axis else d for a, d in enumerate(x.dims)])
    out = g.node("Concat", [x, y], axis=axis)
    g.made(out, [a[:axis] + (a[axis] + b[axis],) + a[axis + 1 :] for a, b in zip(x.shapes, y.shapes, strict=True)])


@row
def Slice(g):
    x = any_rank(g, 1, 3)
    axis = g.rng.randrange(len(x.shapes[0]))
    start, end, step = g.rng.choice(((0, -1, 1), (1, 2**62, 1), (0, 2**62, 2), (-1, -(2**62), -1), (-2, 2**62, 1), (0, 3, 1)))
    out = g.node("Slice", [x, g.ints(start), g.ints(end), g.ints(axis), g.ints(step)])
    g.made(out, each(x, lambda s: s[:axis] + (len(range(s[axis])[start:end:step]),) + s[axis + 1 :]))


@row
def SliceByLength(g):
    """The first rows of a table, as many as another value has: positions in a decoder."""
    x = tensor(g, 2)
    table = g.weight(64, 5)
    if any(s[0] > 64 for s in x.shapes):
        return
    g.made(g.node("Slice", [table, g.ints(0), lengths_of(g, x, 0), g.ints(0)]), each(x, lambda s: (s[0], 5)))


@row
def Split(g):
    x = any_rank(g, 1, 3)
    axes = [a for a in range(len(x.shapes[0])) if all(s[a] % 2 == 0 for s in x.shapes)]
    if not axes:
        return
    axis = g.rng.choice(axes)
    half = g.node("Div", [lengths_of(g, x, axis), g.ints(2)])
    names = g.node("Split", [x, g.node("Concat", [half, half], axis=0)], results=2, axis=axis)
    for name in names:
        g.made(name, each(x, lambda s: s[:axis] + (s[axis] // 2,) + s[axis + 1 :]))


@row
def Pad(g):
    x = tensor(g, 2, 3)
    mode = g.rng.choice(("constant", "reflect", "edge"))
    g.made(g.node("Pad", [x, g.ints(0, 1, 2, 0)], mode=mode), each(x, lambda s: (s[0] + 2, s[1] + 1)))


@row
def TopK(g):
    x = any_rank(g, 1, 3)
    axis = len(x.shapes[0]) - 1
    k = min(s[axis] for s in x.shapes)
    k = g.ints(g.rng.randint(1, k)) if g.rng.random() < 0.6 and k else lengths_of(g, x, axis)
    names = g.node("TopK", [x, k], results=2, axis=axis)
    if k.startswith("w"):
        count = int(numpy_helper.to_array(g.weights[-1])[0])
        g.made(names[0], each(x, lambda s: (*s[:-1], count)))
    else:
        g.made(names[0], x.shapes)


@rows("ArgMax", "ArgMin")
def arg(g, kind):
    x = any_rank(g, 1, 3)
    axis = g.rng.randrange(len(x.shapes[0]))
    out = g.node(kind, [x], axis=axis, keepdims=1)
    g.made(g.node("Cast", [out], to=TensorProto.FLOAT), each(x, lambda s: s[:axis] + (1,) + s[axis + 1 :]))


@row
def CumSum(g):
    x = any_rank(g, 1, 3)
    axis = g.constant(np.int64(g.rng.randrange(len(x.shapes[0]))))
    g.made(g.node("CumSum", [x, axis], exclusive=g.rng.randint(0, 1), reverse=g.rng.randint(0, 1)), x.shapes)


@row
def Where(g):
    x = any_rank(g)
    condition = g.node("Greater", [x, g.constant(np.float32(0))])
    g.made(g.node("Where", [condition, x, g.constant(np.float32(-1))]), x.shapes)


@row
def NonZero(g):
    """The positions of what is above zero; how many there are is known to nobody, so the sum of the rows there is what goes on."""
    x = tensor(g, 2)
    found = g.node("NonZero", [g.node("Greater", [x, g.constant(np.float32(0))])])
    rows_ = g.node("Gather", [found, g.constant(np.int64(0))], axis=0)
    picked = g.node("Gather", [x, rows_], axis=0)
    g.made(g.node("ReduceSum", [picked, g.ints(0)], keepdims=0), each(x, lambda s: s[1:]))


@row
def Compress(g):
    x = tensor(g, 2)
    keep = g.node("Greater", [g.node("Gather", [x, g.constant(np.int64(0))], axis=1), g.constant(np.float32(-0.2))])
    picked = g.node("Compress", [x, keep], axis=0)
    g.made(g.node("ReduceSum", [picked, g.ints(0)], keepdims=0), each(x, lambda s: s[1:]))


@row
def OneHot(g):
    n = g.length()
    indices = g.input([n], "int64", 0, 5)
    depth = g.constant(np.int64(5))
    g.made(g.node("OneHot", [indices, depth, g.constant(np.array([0, 1], "float32"))], axis=-1), [(s[0], 5) for s in indices.shapes])


@row
def Trilu(g):
    x = tensor(g, 2)
    g.made(g.node("Trilu", [x], upper=g.rng.randint(0, 1)), x.shapes)


@row
def CausalMask(g):
    x = tensor(g, 3)
    n = lengths_of(g, x, 1)
    ones = g.node("ConstantOfShape", [g.node("Concat", [n, n], axis=0)], value=helper.make_tensor("v", TensorProto.FLOAT, [1], [-10.0]))
    mask = g.node("Trilu", [ones, g.constant(np.int64(1))], upper=1)
    scores = g.node("MatMul", [x, g.node("Transpose", [x], perm=[0, 2, 1])])
    g.made(g.node("Softmax", [g.node("Add", [scores, mask])], axis=-1), each(x, lambda s: (s[0], s[1], s[1])))


@row
def Range(g):
    x = any_rank(g, 1, 3)
    n = g.node("Squeeze", [lengths_of(g, x, 0), g.ints(0)])
    steps = g.node("Range", [g.constant(np.int64(0)), n, g.constant(np.int64(1))])
    g.made(g.node("Cast", [steps], to=TensorProto.FLOAT), each(x, lambda s: s[:1]))


@row
def DepthToSpace(g):
    x = channelled(g, 4, 4)
    g.made(g.node("DepthToSpace", [x], blocksize=2, mode=g.rng.choice(("DCR", "CRD"))), each(x, lambda s: (s[0], 1, 2 * s[2], 2 * s[3])))


@row
def ReverseSequence(g):
    x = tensor(g, 3)
    if not x.dims:
        return
    lengths = g.input([x.dims[1]], "int64", 1, 1 + min(s[0] for s in x.shapes))
    g.made(g.node("ReverseSequence", [x, lengths], time_axis=0, batch_axis=1), x.shapes)


@row
def Clip(g):
    x = any_rank(g)
    g.made(g.node("Clip", [x, g.constant(np.float32(-0.5)), g.constant(np.float32(0.5))]), x.shapes)


@row
def QuantizeLinear(g):
    x = any_rank(g)
    scale, zero = g.constant(np.float32(0.05)), g.constant(np.uint8(7))
    q = g.node("QuantizeLinear", [x, scale, zero])
    g.made(g.node("DequantizeLinear", [q, scale, zero]), x.shapes)


@row
def SplitToSequence(g):
    x = tensor(g, 2)
    pieces = g.node("SplitToSequence", [x], axis=0, keepdims=1)
    first = g.node("SequenceAt", [pieces, g.constant(np.int64(0))])
    g.made(first, each(x, lambda s: (1, s[1])))


@row
def GridSample(g):
    x = tensor(g, 4, 2)
    if not x.dims:
        return
    grid = g.input([x.dims[0], g.length(), g.length(), 2])
    name = "bilinear" if g.opset < 20 else "linear"
    g.made(g.node("GridSample", [x, grid], mode=name), [(*s[:2], *t[1:3]) for s, t in zip(x.shapes, grid.shapes, strict=True)])


@row
def Tuck(g):
    """Rows of a batch turned into one sequence and back by -1: what PyTorch writes for time-distributed layers."""
    x = channelled(g, 3, 4, axis=2)
    flat = g.node("Reshape", [x, g.ints(-1, 4)])
    made = g.node("Gemm", [flat, g.weight(4, 6), g.weight(6)])
    back = g.node("Concat", [g.ints(-1), lengths_of(g, x, 1), g.ints(6)], axis=0)
    g.made(g.node("Reshape", [made, back]), each(x, lambda s: (s[0], s[1], 6)))


@row
def MatMulNBits(g):
    """com.microsoft: rows by a weight of 4 bits in blocks."""
    x = g.input([g.length(), g.length(), 32])
    packed = g.constant(g.arrays.integers(0, 255, (8, 1, 16)).astype("uint8"))
    scales = g.constant(g.arrays.uniform(0.01, 0.1, (8,)).astype("float32"))
    g.made(g.node("MatMulNBits", [x, packed, scales], domain="com.microsoft", K=32, N=8, bits=4, block_size=32), each(x, lambda s: (*s[:-1], 8)))
