# SPDX-License-Identifier: Apache-2.0
"""ONNX models with open dimensions: every type is an expression of named symbols, and nothing is left for run time."""

import re

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton._ffi import get_global_func

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def model(nodes, inputs, outputs, weights=(), opset=17):
    graph = helper.make_graph(
        [helper.make_node(*n[:3], **(n[3] if len(n) > 3 else {})) for n in nodes],
        "g",
        [helper.make_tensor_value_info(name, dtype, shape) for name, dtype, shape in inputs],
        [helper.make_tensor_value_info(name, dtype, *(shape or [None])) for name, dtype, *shape in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in dict(weights).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


def opened(data, shape=None):
    return relay.transform.InferType()(get_global_func("relay.frontend.open_onnx_bytes")(data, shape or {}, ""))


def bind(mod, **dims):
    return get_global_func("driver.BindDims")(mod, dims)


def types(mod):
    """Texts of the types of all parts of main."""
    found = []
    relay.analysis.post_order_visit(mod["main"], lambda e: found.append(str(e.checked_type)) if not isinstance(e, tvm.ir.Op) else None)
    return found


def leaves(value):
    return [value] if hasattr(value, "numpy") else list(value)


def check(data, sizes, make, rtol=1e-5):
    """The open module has no unknown extent; at each size it gives what the model gives that is imported for it."""
    mod = opened(data)
    text = mod.astext()
    assert "dyn." not in text, text
    assert not any("?" in t for t in types(mod)), text
    optimised = get_global_func("driver.DefaultPipeline")()(mod)
    assert "dyn." not in optimised.astext(show_meta_data=False)
    assert not any("?" in t for t in types(optimised)), optimised.astext(show_meta_data=False)
    for dims in sizes:
        inputs = make(**dims)
        static, _ = get_global_func("relay.frontend.from_onnx_bytes")(data, {k: list(v.shape) for k, v in inputs.items()}, True, 0, "")
        order = [p.name_hint for p in static["main"].params]
        want = relay.create_executor("debug", static).evaluate()(*(inputs[n] for n in order))
        for module in (mod, optimised):
            bound = bind(module, **dims)
            assert "?" not in str(bound["main"].checked_type)
            got = relay.create_executor("debug", bound).evaluate()(*(inputs[p.name_hint] for p in bound["main"].params))
            for a, b in zip(leaves(got), leaves(want), strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=rtol, atol=1e-6)
    return mod


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


SIZES = [{"batch": 1, "seq": 1}, {"batch": 2, "seq": 7}, {"batch": 3, "seq": 13}]


def test_names_of_dimensions():
    data = model([("Relu", ["x"], ["y"])], [("x", FLOAT, ["batch", None, 4])], [("y", FLOAT)])
    mod = opened(data)
    assert "Tensor[(batch, x_1, 4), float32]" in str(mod["main"].checked_type)
    mod = opened(data, {"x": [2, "n", 4]})
    assert "Tensor[(2, n, 4), float32]" in str(mod["main"].checked_type)


def test_equal_names_are_equal():
    data = model([("Add", ["x", "y"], ["z"])], [("x", FLOAT, ["n", 4]), ("y", FLOAT, ["n", 4])], [("z", FLOAT)])
    mod = opened(data)
    assert mod["main"].attrs is None or "extent_guards" not in mod["main"].attrs
    assert "Tensor[(3, 4), float32]" in str(opened(data, {"x": [3, 4]})["main"].checked_type)


@pytest.mark.parametrize("name", ["", "?", "-1", "unk__7"])
def test_dimensions_without_a_name_of_their_own_differ(name):
    data = model([("Relu", ["x"], ["y"]), ("Relu", ["z"], ["u"])], [("x", FLOAT, [name, 3, name]), ("z", FLOAT, [name])], [("y", FLOAT), ("u", FLOAT)])
    assert "Tensor[(x_0, 3, x_2), float32]" in str(opened(data)["main"].checked_type)
    compiled = tvm.compile(data)
    assert [dim.name for dim in compiled.dims] == ["x_0", "x_2", "z_0"]
    assert [out.numpy().shape for out in compiled(floats(2, 3, 5), floats(4))] == [(2, 3, 5), (4,)]


def test_a_name_by_a_tool_stays_where_it_stands_once():
    data = model([("Relu", ["x"], ["y"])], [("x", FLOAT, ["unk__7", 3, "unk__8"])], [("y", FLOAT)])
    assert "Tensor[(unk__7, 3, unk__8), float32]" in str(opened(data)["main"].checked_type)


def test_formula_of_names():
    data = model(
        [("Concat", ["past", "x"], ["all"], {"axis": 1}), ("Add", ["all", "mask"], ["z"])],
        [("past", FLOAT, [1, "past"]), ("x", FLOAT, [1, "seq"]), ("mask", FLOAT, [1, "past + seq"])],
        [("z", FLOAT)],
    )
    mod = check(
        data,
        [{"past": 0, "seq": 3}, {"past": 5, "seq": 1}],
        lambda past, seq: {"past": floats(1, past), "x": floats(1, seq), "mask": floats(1, past + seq)},
    )
    assert "extent_guards" not in (mod["main"].attrs or {})


def test_different_names_are_assumed_to_fit():
    data = model([("Add", ["x", "y"], ["z"])], [("x", FLOAT, ["n"]), ("y", FLOAT, ["m"])], [("z", FLOAT)])
    mod = check(data, [{"n": 3, "m": 3}, {"n": 1, "m": 4}, {"n": 4, "m": 1}], lambda n, m: {"x": floats(n), "y": floats(m)})
    assert len(mod["main"].attrs["extent_guards"]) >= 1
    with pytest.raises(tvm.error.TVMError, match="extents m and n do not broadcast; they are"):
        bind(mod, n=3, m=4)


def test_split_heads():
    data = model(
        [
            ("Shape", ["x"], ["s"]),
            ("Gather", ["s", "zero"], ["b"], {"axis": 0}),
            ("Gather", ["s", "one"], ["n"], {"axis": 0}),
            ("Unsqueeze", ["b", "ax"], ["b1"]),
            ("Unsqueeze", ["n", "ax"], ["n1"]),
            ("Concat", ["b1", "n1", "heads"], ["want"], {"axis": 0}),
            ("Reshape", ["x", "want"], ["h"]),
            ("Transpose", ["h"], ["t"], {"perm": [0, 2, 1, 3]}),
            ("Transpose", ["t"], ["u"], {"perm": [0, 1, 3, 2]}),
            ("MatMul", ["t", "u"], ["q"]),
            ("Softmax", ["q"], ["p"], {"axis": -1}),
            ("MatMul", ["p", "t"], ["o"]),
            ("Transpose", ["o"], ["r"], {"perm": [0, 2, 1, 3]}),
            ("Concat", ["b1", "n1", "wide"], ["back"], {"axis": 0}),
            ("Reshape", ["r", "back"], ["y"]),
        ],
        [("x", FLOAT, ["batch", "seq", 12])],
        [("y", FLOAT)],
        {"zero": np.int64(0), "one": np.int64(1), "ax": np.int64([0]), "heads": np.int64([3, 4]), "wide": np.int64([-1])},
    )
    mod = check(data, SIZES, lambda batch, seq: {"x": floats(batch, seq, 12)})
    assert "Tensor[(batch, seq, 12), float32]" in str(mod["main"].ret_type)
    assert "extent_guards" not in (mod["main"].attrs or {})


def test_position_ids_and_expand():
    """As exporters write position ids and masks: a table cut to length, ConstantOfShape, Where(Equal(...)), Expand, Range."""
    table = np.arange(512, dtype=np.int64)[None]
    data = model(
        [
            ("Shape", ["ids"], ["s"]),
            ("Gather", ["s", "one"], ["n"], {"axis": 0}),
            ("Unsqueeze", ["n", "ax"], ["n1"]),
            ("Slice", ["table", "start", "n1", "axis1"], ["pos"]),
            ("ConstantOfShape", ["s"], ["zeros"], {"value": numpy_helper.from_array(np.int64([0]))}),
            ("Equal", ["s", "minus"], ["eq"]),
            ("ConstantOfShape", ["rank"], ["ones"], {"value": numpy_helper.from_array(np.int64([1]))}),
            ("Where", ["eq", "ones", "s"], ["target"]),
            ("Expand", ["pos", "target"], ["wide"]),
            ("Range", ["zero", "n", "one"], ["range"]),
            ("Add", ["wide", "zeros"], ["a"]),
            ("Add", ["a", "range"], ["b"]),
            ("Add", ["b", "ids"], ["y"]),
        ],
        [("ids", INT64, ["batch", "seq"])],
        [("y", INT64)],
        {
            "zero": np.int64(0),
            "one": np.int64(1),
            "ax": np.int64([0]),
            "start": np.int64([0]),
            "axis1": np.int64([1]),
            "table": table,
            "minus": np.int64([-1, -1]),
            "rank": np.int64([2]),
        },
    )
    mod = check(data, SIZES, lambda batch, seq: {"ids": np.arange(batch * seq).reshape(batch, seq)})
    assert "Tensor[(batch, seq), int64]" in str(mod["main"].ret_type)
    with pytest.raises(
        tvm.error.TVMError, match="node .pos. \\(Slice\\): extent 512 - seq must be at least 0; .* -88|makes `pos`.*512 - seq must be at least 0"
    ):
        bind(mod, batch=1, seq=600)


@pytest.mark.parametrize("shape,code", [([0, -1], ""), ([-1, 12], ""), ([0, 0, 3, 4], ""), ([-1], "")])
def test_reshape_codes(shape, code):
    data = model([("Reshape", ["x", "s"], ["y"])], [("x", FLOAT, ["batch", "seq", 12])], [("y", FLOAT)], {"s": np.int64(shape)})
    check(data, SIZES, lambda batch, seq: {"x": floats(batch, seq, 12)})


@pytest.mark.parametrize(
    "starts,ends,steps",
    [([0], [1], [1]), ([-1], [2**62], [1]), ([0], [-1], [1]), ([-1], [-(2**62)], [-1]), ([0], [2**62], [2]), ([1], [2**62], [1]), ([-3], [-1], [1])],
)
def test_slices_of_open_dimensions(starts, ends, steps):
    data = model(
        [("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"])],
        [("x", FLOAT, ["batch", "seq"])],
        [("y", FLOAT)],
        {"starts": np.int64(starts), "ends": np.int64(ends), "axes": np.int64([1]), "steps": np.int64(steps)},
    )
    check(data, SIZES, lambda batch, seq: {"x": floats(batch, seq)})


def test_convolutions_of_open_images():
    data = model(
        [
            ("Conv", ["x", "w"], ["a"], {"strides": [2, 2], "pads": [3, 3, 3, 3]}),
            ("MaxPool", ["a"], ["b"], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
            ("AveragePool", ["b"], ["c"], {"kernel_shape": [2, 2], "strides": [1, 1]}),
            ("GlobalAveragePool", ["c"], ["d"]),
            ("Flatten", ["d"], ["e"]),
            ("Gemm", ["e", "m"], ["y"], {"transB": 1}),
        ],
        [("x", FLOAT, ["batch", 3, "height", "width"])],
        [("y", FLOAT)],
        {"w": floats(4, 3, 7, 7), "m": floats(5, 4)},
    )
    mod = check(
        data,
        [{"batch": 1, "height": 16, "width": 17}, {"batch": 3, "height": 21, "width": 9}],
        lambda batch, height, width: {"x": floats(batch, 3, height, width)},
        rtol=1e-4,
    )
    assert re.search(r"floordiv\(height \+ 1, 2\)", " ".join(types(mod)))


def test_decoder_with_past():
    """As GPT-2 is exported: heads split, keys appended to the past, and a causal mask cut from a table."""
    table = np.tril(np.ones((1, 1, 32, 32), bool))
    data = model(
        [
            ("Split", ["x", "eights"], ["q0", "k0", "v0"], {"axis": 2}),
            ("Shape", ["q0"], ["s"]),
            ("Slice", ["s", "zero", "two"], ["lead"]),
            ("Concat", ["lead", "heads"], ["want"], {"axis": 0}),
            ("Reshape", ["q0", "want"], ["q1"]),
            ("Reshape", ["k0", "want"], ["k1"]),
            ("Reshape", ["v0", "want"], ["v1"]),
            ("Transpose", ["q1"], ["q"], {"perm": [0, 2, 1, 3]}),
            ("Transpose", ["k1"], ["k2"], {"perm": [0, 2, 1, 3]}),
            ("Transpose", ["v1"], ["v2"], {"perm": [0, 2, 1, 3]}),
            ("Concat", ["past_k", "k2"], ["k"], {"axis": 2}),
            ("Concat", ["past_v", "v2"], ["v"], {"axis": 2}),
            ("Transpose", ["k"], ["kt"], {"perm": [0, 1, 3, 2]}),
            ("MatMul", ["q", "kt"], ["w"]),
            ("Shape", ["w"], ["ws"]),
            ("Gather", ["ws", "at2"], ["nd"], {"axis": 0}),
            ("Gather", ["ws", "at3"], ["ns"], {"axis": 0}),
            ("Sub", ["ns", "nd"], ["begin"]),
            ("Unsqueeze", ["begin", "zero"], ["begin1"]),
            ("Unsqueeze", ["ns", "zero"], ["ns1"]),
            ("Slice", ["table", "begin1", "ns1", "at2v"], ["rows"]),
            ("Slice", ["rows", "zero", "ns1", "at3v"], ["mask"]),
            ("Where", ["mask", "w", "low"], ["masked"]),
            ("Softmax", ["masked"], ["p"], {"axis": -1}),
            ("MatMul", ["p", "v"], ["o"]),
            ("Transpose", ["o"], ["o1"], {"perm": [0, 2, 1, 3]}),
            ("Concat", ["lead", "wide"], ["back"], {"axis": 0}),
            ("Reshape", ["o1", "back"], ["y"]),
        ],
        [("x", FLOAT, ["batch", "seq", 24]), ("past_k", FLOAT, ["batch", 2, "past", 4]), ("past_v", FLOAT, ["batch", 2, "past", 4])],
        [("y", FLOAT), ("k", FLOAT), ("v", FLOAT)],
        {
            "zero": np.int64([0]),
            "two": np.int64([2]),
            "heads": np.int64([2, 4]),
            "wide": np.int64([8]),
            "at2": np.int64(2),
            "at3": np.int64(3),
            "at2v": np.int64([2]),
            "at3v": np.int64([3]),
            "table": table,
            "low": np.float32(-1e9),
            "eights": np.int64([8, 8, 8]),
        },
        opset=13,
    )
    mod = check(
        data,
        [{"batch": 1, "seq": 1, "past": 5}, {"batch": 2, "seq": 4, "past": 0}, {"batch": 3, "seq": 7, "past": 9}],
        lambda batch, seq, past: {"x": floats(batch, seq, 24), "past_k": floats(batch, 2, past, 4, seed=1), "past_v": floats(batch, 2, past, 4, seed=2)},
    )
    assert "Tensor[(batch, 2, past + seq, 4), float32]" in str(mod["main"].ret_type)
    texts = [str(g[2]) for g in mod["main"].attrs["extent_guards"]]
    assert len(texts) == 1 and "32 - past - seq must be at least 0" in texts[0], texts


def test_text_of_open_modules_reads_back():
    data = model(
        [("Concat", ["x", "x"], ["y"], {"axis": 0}), ("Reshape", ["y", "s"], ["z"])], [("x", FLOAT, ["n", 4])], [("z", FLOAT)], {"s": np.int64([-1, 2])}
    )
    mod = opened(data)
    again = relay.transform.InferType()(relay.fromtext(mod.astext()))
    assert str(again["main"].checked_type) == str(mod["main"].checked_type)
    assert "Tensor[(n*4, 2), float32]" in str(again["main"].checked_type)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_padding_by_elements_of_open_axes(mode):
    nodes = [("Pad", ["x", "pads"], ["y"], {"mode": mode}), ("Relu", ["y"], ["z"])]
    data = model(nodes, [("x", FLOAT, ["n", 4, "m"])], [("z", FLOAT)], {"pads": np.array([0, 1, 2, 0, 2, 3])}, opset=19)
    check(data, [{"n": 1, "m": 6}, {"n": 3, "m": 4}], lambda n, m: {"x": floats(n, 4, m)})
    with pytest.raises(ValueError, match="must be at least 1"):
        tvm.compile(data)(floats(1, 4, 0))


@pytest.mark.parametrize("kernel, stride, pad, more, dilation, group", [
    (2, 2, 0, 0, 1, 1), (3, 2, 1, 1, 1, 1), (4, 2, 1, 0, 1, 1), (3, 1, 1, 0, 1, 1), (3, 3, 0, 0, 1, 2), (5, 2, 2, 1, 1, 1), (2, 3, 0, 0, 1, 1), (3, 2, 0, 0, 2, 1), (3, 2, 2, 0, 1, 1),
])  # fmt: skip
def test_transposed_convolutions_of_open_images_are_convolutions(kernel, stride, pad, more, dilation, group):
    weight = floats(4, 6 // group, kernel, kernel)
    attrs = {"strides": [stride] * 2, "pads": [pad] * 4, "output_padding": [more] * 2, "dilations": [dilation] * 2, "group": group}
    data = model([("ConvTranspose", ["x", "w"], ["y"], attrs)], [("x", FLOAT, ["n", 4, "h", "wide"])], [("y", FLOAT)], {"w": weight})
    sizes = [{"n": 1, "h": 5, "wide": 7}, {"n": 2, "h": 2, "wide": 3}]
    check(data, sizes, lambda n, h, wide: {"x": floats(n, 4, h, wide)}, rtol=1e-4)
    text = relay.transform.Legalize()(opened(data)).astext(show_meta_data=False)
    assert ("conv2d_transpose" in text) == (stride > kernel or dilation > 1), text  # some results see no input


def test_states_tiled_over_an_open_batch():
    nodes = [
        ("Shape", ["x"], ["s"]), ("Slice", ["s", "one", "two"], ["n"]), ("Concat", ["two", "n", "one"], ["reps"], {"axis": 0}),
        ("Tile", ["h0", "reps"], ["h"]), ("Slice", ["h", "zero", "one", "zero"], ["h1"]), ("LSTM", ["x", "w", "r", "", "", "h1", "h1"], ["y"], {"hidden_size": 3}),
    ]  # fmt: skip
    weights = {"zero": np.array([0]), "one": np.array([1]), "two": np.array([2]), "h0": floats(1, 1, 3), "w": floats(1, 12, 4), "r": floats(1, 12, 3)}
    data = model(nodes, [("x", FLOAT, ["time", "batch", 4])], [("y", FLOAT)], weights)
    check(data, [{"time": 5, "batch": 1}, {"time": 2, "batch": 3}], lambda time, batch: {"x": floats(time, batch, 4)})


def test_squeeze_without_axes_takes_open_lengths_for_other_than_one():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Squeeze", ["x"], ["y"])], "g", [x], [y])
    exe = tvm.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    for n in (2, 5):
        data = np.random.default_rng(n).standard_normal((n, 1, 3)).astype("float32")
        np.testing.assert_array_equal(exe(data).numpy(), data[:, 0])
    with pytest.raises(IndexError, match="Squeeze node that makes `y` without axes.*open length that is 1 now.*shape="):
        exe(np.zeros((1, 1, 3), "float32"))


def test_squeeze_without_axes_follows_the_declared_rank():
    """A quality model of speech whose batch is open and has to be 1: its output is declared without it."""
    nodes = [
        ("Squeeze", ["x"], ["s"]), ("Sigmoid", ["s"], ["p"]), ("Mul", ["p", "four"], ["m"]), ("Add", ["m", "one"], ["a"]),
        ("Slice", ["a", "zeros", "ones"], ["b"]), ("Concat", ["b", "a"], ["y"], {"axis": 0}),
    ]  # fmt: skip
    weights = {"four": np.float32(4), "one": np.array([1], "float32"), "zeros": np.array([0]), "ones": np.array([1])}
    data = model(nodes, [("x", FLOAT, ["n", 1, 2])], [("y", FLOAT, [3])], weights)
    check(data, [{"n": 1}], lambda n: {"x": floats(n, 1, 2)})
    with pytest.raises(ValueError, match="n"):
        tvm.compile(data)(np.zeros((3, 1, 2), "float32"))


def test_a_size_chosen_by_an_open_condition():
    """Where of extents is an extent: 5 for an x of one row, 6 for others; likewise by the number of elements."""
    nodes = [
        ("Shape", ["x"], ["s"], {"end": 1}),
        ("Equal", ["s", "one"], ["is_one"]),
        ("Where", ["is_one", "five", "six"], ["rows"]),
        ("Size", ["x"], ["count"]),
        ("Reshape", ["count", "one"], ["columns"]),
        ("Concat", ["rows", "columns"], ["shape"], {"axis": 0}),
        ("ConstantOfShape", ["shape"], ["y"]),
    ]
    weights = {"one": np.array([1]), "five": np.array([5]), "six": np.array([6])}
    data = model(nodes, [("x", FLOAT, ["n", 3])], [("y", FLOAT)], weights)
    check(data, [{"n": 1}, {"n": 4}], lambda n: {"x": floats(n, 3)})


def test_a_slice_that_ends_before_the_last_of_an_unknown_length():
    """The length after Pad by values is known only when the model runs: -1 as end is not that length."""
    nodes = [
        ("Pad", ["x", "k"], ["p"]),
        ("Slice", ["p", "zero", "minus", "one"], ["y"]),
    ]
    weights = {"zero": np.array([0]), "one": np.array([1]), "minus": np.array([-1])}
    made = tvm.compile(model(nodes, [("x", FLOAT, ["n", "m"]), ("k", INT64, [4])], [("y", FLOAT)], weights))
    x = floats(2, 3)
    for pads in ([0, 0, 0, 0], [1, 0, 0, 2]):
        want = np.pad(x, [(pads[0], pads[2]), (pads[1], pads[3])])[:, :-1]
        np.testing.assert_array_equal(made(x, np.array(pads)).numpy(), want)


@pytest.mark.parametrize("equation", ["i,k->ik", "ik,kj->ij", "bik,bjk->bij", "abik,abkj->bija", "ijk->kj", "ij,i->j", "aik,ika->ik"])
def test_einsum_over_lengths_that_come_with_the_call(equation):
    """Rows are picked by a mask, so their number follows from values."""
    terms = equation.split("->")[0].split(",")
    nodes, feeds = [], {}
    for k, term in enumerate(terms):
        nodes.append(("Compress", [f"x{k}", "mask"], [f"p{k}"], {"axis": term.index("i")}) if "i" in term else ("Identity", [f"x{k}"], [f"p{k}"]))
        feeds[f"x{k}"] = floats(*(5 if letter == "i" else 3 for letter in term))
    nodes.append(("Einsum", [f"p{k}" for k in range(len(terms))], ["y"], {"equation": equation}))
    inputs = [(name, FLOAT, list(x.shape)) for name, x in feeds.items()] + [("mask", TensorProto.BOOL, [5])]
    exe = tvm.compile(model(nodes, inputs, [("y", FLOAT)]))
    for mask in ([1, 0, 1, 1, 0], [0, 0, 0, 1, 0]):
        mask = np.array(mask, bool)
        picked = [np.compress(mask, x, axis=t.index("i")) if "i" in t else x for t, x in zip(terms, feeds.values(), strict=True)]
        np.testing.assert_allclose(exe(**feeds, mask=mask).numpy(), np.einsum(equation, *picked), rtol=1e-5, atol=1e-5)


def test_topk_of_all():
    """A batch is sorted by its lengths for a recurrent layer, which needs its number of rows, and put back after it."""
    nodes = [
        ("Shape", ["lengths"], ["n"]), ("TopK", ["lengths", "n"], ["sorted", "order"]), ("Gather", ["x", "order"], ["g"], {"axis": 0}),
        ("Transpose", ["g"], ["t"], {"perm": [1, 0, 2]}), ("Cast", ["sorted"], ["l"], {"to": TensorProto.INT32}),
        ("GRU", ["t", "w", "r", "", "l"], ["y"], {"hidden_size": 3}),
    ]  # fmt: skip
    weights = {"w": floats(1, 9, 4), "r": floats(1, 9, 3)}
    data = model(nodes, [("lengths", TensorProto.INT64, ["batch"]), ("x", FLOAT, ["batch", "time", 4])], [("y", FLOAT)], weights)
    check(
        data,
        [{"time": 5, "batch": 1}, {"time": 7, "batch": 3}],
        lambda time, batch: {"lengths": np.arange(time, time - batch, -1), "x": floats(batch, time, 4)},
    )
