# SPDX-License-Identifier: Apache-2.0
"""`Scan` and counted `Loop` of ONNX beside their definition in NumPy: one function for all rounds, weights held once."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import baton

RNG = np.random.default_rng(0)


def floats(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def compiled(nodes, inputs, outputs, **weights):
    init = [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, init)
    return baton.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString())


def loop_body(nodes, state, outputs):
    """of a Loop; its condition stays true."""
    ends = [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, [])]
    on = helper.make_tensor_value_info("on", TensorProto.BOOL, [])
    return helper.make_graph([*nodes, helper.make_node("Identity", ["go"], ["on"])], "body", [*ends, *state], [on, *outputs])


def recurrent_loop(rounds, hidden, w):
    nodes = [
        helper.make_node("Gather", ["xs", "i"], ["x"], axis=0),
        helper.make_node("MatMul", ["h", "w"], ["a"]),
        helper.make_node("Add", ["a", "x"], ["b"]),
        helper.make_node("Tanh", ["b"], ["h2"]),
        helper.make_node("Mul", ["h2", "h2"], ["y"]),
    ]
    body = loop_body(nodes, [floats("h", 2, hidden)], [floats("h2", 2, hidden), floats("y", 2, hidden)])
    return compiled(
        [helper.make_node("Loop", ["n", "t", "h0"], ["hT", "ys"], body=body)],
        [floats("h0", 2, hidden), floats("xs", rounds, 2, hidden)],
        [floats("hT", 2, hidden), floats("ys", rounds, 2, hidden)],
        n=np.int64(rounds),
        t=np.array(True),
        w=w,
    )


def test_a_counted_loop(tmp_path):
    rounds, hidden = 200, 128
    w = RNG.normal(0, hidden**-0.5, (hidden, hidden)).astype("float32")
    made = recurrent_loop(rounds, hidden, w)
    h, xs = RNG.standard_normal((2, hidden), "float32"), RNG.standard_normal((rounds, 2, hidden), "float32")
    first, want = h, []
    for x in xs:
        h = np.tanh(h @ w + x)
        want.append(h * h)
    for _ in range(2):  # what the first call gave stays as it is
        last, ys = made(first, xs)
        np.testing.assert_allclose(last.numpy(), h, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(ys.numpy(), want, rtol=1e-3, atol=1e-4)
    made.save(tmp_path / "loop.so")
    assert (tmp_path / "loop.so").stat().st_size < 1.05 * w.nbytes + (128 << 10)
    last, ys = baton.load(tmp_path / "loop.so")(first, xs)
    np.testing.assert_allclose(ys.numpy(), want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("rounds", [1, 3, 40, 5000])
def test_results_of_two_calls_are_apart(rounds):
    body = loop_body([helper.make_node("Add", ["a", "x"], ["b"]), helper.make_node("Neg", ["b"], ["y"])], [floats("a", 3)], [floats("b", 3), floats("y", 3)])
    made = compiled(
        [helper.make_node("Loop", ["n", "", "a0"], ["aT", "ys"], body=body)],
        [floats("a0", 3), floats("x", 3)],
        [floats("aT", 3), floats("ys", rounds, 3)],
        n=np.int64(rounds),
    )
    zero, one = np.zeros(3, "float32"), np.ones(3, "float32")
    first = made(zero, one)
    second = made(zero, 2 * one)
    for (last, ys), by in ((first, 1), (second, 2)):
        np.testing.assert_array_equal(last.numpy(), by * rounds * one)
        np.testing.assert_array_equal(ys.numpy()[:, 0], -by * np.arange(1, rounds + 1, dtype="float32"))


def scan(steps, in_axis=0, out_axis=0, in_back=0, out_back=0):
    nodes = [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Mul", ["t", "k"], ["s2"]), helper.make_node("Sub", ["s2", "x"], ["y"])]
    body = helper.make_graph(nodes, "body", [floats("s", 3, 5), floats("x", 3, 5)], [floats("s2", 3, 5), floats("y", 3, 5)])
    shape = [3, 5]
    node = helper.make_node("Scan", ["s0", "xs"], ["sT", "ys"], body=body, num_scan_inputs=1, scan_input_axes=[in_axis], scan_output_axes=[out_axis],
                            scan_input_directions=[in_back], scan_output_directions=[out_back])  # fmt: skip
    put = lambda axis: [*shape[: axis % 3], steps, *shape[axis % 3 :]]  # noqa: E731
    return compiled([node], [floats("s0", 3, 5), floats("xs", *put(in_axis))], [floats("sT", 3, 5), floats("ys", *put(out_axis))], k=np.float32(0.5))


@pytest.mark.parametrize("steps", [2, 30])
@pytest.mark.parametrize(("in_axis", "out_axis", "in_back", "out_back"), [(0, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (1, 2, 1, 1), (-1, 1, 0, 0), (2, -3, 0, 1)])
def test_scan(steps, in_axis, out_axis, in_back, out_back):
    s, xs = RNG.standard_normal((3, 5), "float32"), RNG.standard_normal((steps, 3, 5), "float32")
    last, ys = scan(steps, in_axis, out_axis, in_back, out_back)(s, np.ascontiguousarray(np.moveaxis(xs, 0, in_axis)))
    want = []
    for x in xs[::-1] if in_back else xs:
        s = (s + x) * np.float32(0.5)
        want.append(s - x)
    np.testing.assert_allclose(last.numpy(), s, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ys.numpy(), np.moveaxis(want[::-1] if out_back else want, 0, out_axis), rtol=1e-6, atol=1e-6)


def test_loops_within_loops():
    inner = loop_body([helper.make_node("Add", ["c", "x"], ["d"])], [floats("c", 4)], [floats("d", 4)])
    inner.input[0].name, inner.input[1].name, inner.node[-1].input[0] = "j", "go2", "go2"
    nodes = [helper.make_node("Loop", ["n", "", "a"], ["b"], body=inner), helper.make_node("Identity", ["b"], ["y"])]
    body = loop_body(nodes, [floats("a", 4)], [floats("b", 4), floats("y", 4)])
    made = compiled(
        [helper.make_node("Loop", ["n", "", "x"], ["aT", "ys"], body=body)], [floats("x", 4)], [floats("aT", 4), floats("ys", 50, 4)], n=np.int64(50)
    )
    last, ys = made(np.ones(4, "float32"))
    np.testing.assert_array_equal(last.numpy(), np.full(4, 2501))
    np.testing.assert_array_equal(ys.numpy()[:, 1], np.arange(1, 51) * 50 + 1)


def test_a_state_that_grows_is_unrolled():
    body = loop_body([helper.make_node("Concat", ["a", "x"], ["b"], axis=0)], [floats("a", "k")], [floats("b", "m")])
    made = compiled([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], [floats("x", 2)], [floats("y", 82)], n=np.int64(40))
    assert made.outputs[0].shape == (82,)
    np.testing.assert_array_equal(made(np.array([1, 2], "float32")).numpy(), np.tile([1, 2], 41))


def test_a_loop_that_stops_early():
    ends = [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, [])]
    nodes = [
        helper.make_node("Add", ["a", "x"], ["b"]),
        helper.make_node("ReduceMax", ["b"], ["top"], keepdims=0),
        helper.make_node("Less", ["top", "end"], ["on"]),
    ]
    body = helper.make_graph(nodes, "body", [*ends, floats("a", 3)], [helper.make_tensor_value_info("on", TensorProto.BOOL, []), floats("b", 3)])
    made = compiled([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], [floats("x", 3)], [floats("y", 3)], n=np.int64(100), end=np.float32(10))
    np.testing.assert_array_equal(made(np.array([1, 2, 3], "float32")).numpy(), [4, 8, 12])


@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize("shape", [("steps", 3, 5), (30, "batch", 5), ("steps", "batch", 5)])
def test_open_dimensions(shape, back, tmp_path):
    """One artifact for all numbers of steps and rows, without the compiler."""
    steps, batch, _ = shape
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["s", "a"], ["t"]), helper.make_node("Tanh", ["t"], ["s2"])]
    nodes.append(helper.make_node("Sub", ["s2", "x"], ["y"]))
    body = helper.make_graph(nodes, "body", [floats("s", batch, 5), floats("x", batch, 5)], [floats("s2", batch, 5), floats("y", batch, 5)])
    node = helper.make_node("Scan", ["s0", "xs"], ["sT", "ys"], body=body, num_scan_inputs=1, scan_input_directions=[back], scan_output_directions=[back])
    w = RNG.standard_normal((5, 5), "float32")
    made = compiled([node], [floats("s0", batch, 5), floats("xs", *shape)], [floats("sT", batch, 5), floats("ys", *shape)], w=w)
    assert not made.called_back
    made.save(tmp_path / "scan.so")
    for m in (made, baton.load(tmp_path / "scan.so")):
        for count, rows in ((30, 3), (7, 1), (200, 4), (1, 2), (0, 3)):
            count, rows = count if steps == "steps" else 30, rows if batch == "batch" else 3
            s, xs = RNG.standard_normal((rows, 5), "float32"), RNG.standard_normal((count, rows, 5), "float32")
            last, ys = m(s, xs)
            want = np.zeros_like(xs)
            for t in range(count)[::-1] if back else range(count):
                s = np.tanh(s + xs[t] @ w)
                want[t] = s - xs[t]
            np.testing.assert_allclose(last.numpy(), s, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(ys.numpy(), want, rtol=1e-4, atol=1e-5)


def open_loop(nodes, carried, outputs, feeds, dims, weights, trip):
    """A Loop whose number of rounds is the value `trip`, of a model with open lengths."""
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), dims[name]) for name, a in feeds.items()]
    unknown = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, None)  # noqa: E731
    body = loop_body(nodes, [unknown(name) for name in carried], [unknown(name) for name in outputs])
    around = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["n"], axis=0),
        helper.make_node("Sub", ["n", "one"], ["less"]),
        helper.make_node("Gather", ["x", "zero"], ["first"], axis=0),
        helper.make_node("Loop", [trip, "", *(["first"] * len(carried))], [*(f"last_{c}" for c in carried), "y"], body=body),
    ]
    held = [numpy_helper.from_array(a, name) for name, a in {"zero": np.array(0), "one": np.array(1), **weights}.items()]
    graph = helper.make_graph(around, "g", infos, [unknown("y")], held)
    return baton.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))


ROW = helper.make_node("Gather", ["x", "i"], ["r"], axis=0)


def test_rows_of_open_lengths_are_collected():
    """Of a row nothing is declared; its length is a name."""
    x = RNG.standard_normal((5, 4), "float32")
    made = open_loop([ROW, helper.make_node("Tanh", ["r"], ["out"])], [], ["out"], {"x": x}, {"x": ["n", "m"]}, {}, "n")
    for value in (x, x[:1, :3], x[:0]):
        np.testing.assert_allclose(made(value).numpy(), np.tanh(value), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_rounds_that_are_an_expression(rows):
    """One less than there are rows: of one row none."""
    x = RNG.standard_normal((rows, 4), "float32")
    nodes = [ROW, helper.make_node("Add", ["s", "r"], ["next"]), helper.make_node("Identity", ["next"], ["out"])]
    made = open_loop(nodes, ["s"], ["next", "out"], {"x": x}, {"x": ["n", 4]}, {}, "less")
    want = x[0] + np.cumsum(x[: rows - 1], axis=0)
    np.testing.assert_allclose(made(x).numpy(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rounds", [0, 3])
def test_rounds_that_are_an_input(rounds, tmp_path):
    x = RNG.standard_normal((5, 4), "float32")
    made = open_loop([ROW, helper.make_node("Neg", ["r"], ["out"])], [], ["out"], {"x": x, "k": np.array(rounds)}, {"x": ["n", 4], "k": []}, {}, "k")
    made.save(tmp_path / "loop.so")
    for model in (made, baton.load(tmp_path / "loop.so")):
        np.testing.assert_array_equal(model(x, np.array(rounds)).numpy(), -x[:rounds])
        with pytest.raises(ValueError, match=r"`k\[0\]` must be 0"):
            model(x, np.array(-2))


def test_what_a_round_collects_has_the_shape_that_its_values_say():
    """Rows that a number picks: their lengths are known only when the model runs, and are those of the first."""
    nodes = [ROW, helper.make_node("Slice", ["r", "from", "k", "from"], ["out"])]
    x = RNG.standard_normal((5, 4), "float32")
    feeds = {"x": x, "k": np.array([3])}
    made = open_loop(nodes, [], ["out"], feeds, {"x": ["n", "m"], "k": [1]}, {"from": np.array([0])}, "n")
    for k in (3, 1, 9):
        np.testing.assert_array_equal(made(x, np.array([k])).numpy(), x[:, :k])


def loop_until(state, nodes, outputs, initial, most, result):
    """`result` after a Loop that goes on while its state `left` is positive."""
    infos = [helper.make_tensor_value_info(name, kind, None) for name, kind in state.items()]
    kinds = {"go_on": TensorProto.BOOL}
    ends = [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, [])]
    outs = [helper.make_tensor_value_info(name, kinds.get(name, kind), None) for name, kind in zip(outputs, [TensorProto.BOOL, *state.values()], strict=True)]
    body = helper.make_graph(nodes, "body", [*ends, *infos], outs)
    loop = helper.make_node("Loop", ["most", "t", *[f"{name}0" for name in state]], [f"{name}_end" for name in state], body=body)
    weights = {f"{name}0": value for name, value in initial.items()}
    inputs = [floats("x", "n", 3), floats("left0")]
    outputs = [helper.make_tensor_value_info(f"{result}_end", state[result], None)]
    return lambda: compiled(
        [loop], inputs, outputs, most=np.int64(most), t=np.array(True), one=np.float32(1), minus=np.float32(-1), zero=np.float32(0), **weights
    )


WRITES = [
    helper.make_node("Add", ["left", "minus"], ["left2"]),
    helper.make_node("Mul", ["x", "left"], ["kept2"]),
    helper.make_node("Greater", ["left2", "zero"], ["go_on"]),
]
FLOATS = {"left": TensorProto.FLOAT, "kept": TensorProto.FLOAT}


def test_a_state_that_is_only_written_may_begin_as_another_type():
    """Exporters begin such a state with a number in the place of a tensor."""
    made = loop_until(FLOATS, WRITES, ["go_on", "left2", "kept2"], {"kept": np.float32(0)}, 1024, "kept")()
    for n in (1, 4):
        x = RNG.standard_normal((n, 3), "float32")
        np.testing.assert_array_equal(made(x, np.float32(3)).numpy(), x)


def test_a_number_that_becomes_a_tensor_of_one_element():
    nodes = [helper.make_node("Add", ["left", "step"], ["left2"]), *WRITES[1:]]
    nodes.insert(0, helper.make_node("Unsqueeze", ["minus", "axes"], ["step"]))
    nodes.insert(0, helper.make_node("Constant", [], ["axes"], value_ints=[0]))
    made = loop_until(FLOATS, nodes, ["go_on", "left2", "kept2"], {"kept": np.float32(0)}, 1024, "left")()
    np.testing.assert_array_equal(made(np.zeros((2, 3), "float32"), np.float32(3)).numpy(), [0])


def test_a_state_that_is_read_and_changes_its_type_is_an_error():
    nodes = [*WRITES[:1], helper.make_node("Mul", ["x", "kept"], ["kept2"]), *WRITES[2:]]
    make = loop_until(FLOATS, nodes, ["go_on", "left2", "kept2"], {"kept": np.float32(1)}, 1024, "kept")
    with pytest.raises(baton.UnsupportedError, match="state `kept` changes its type, from float32 of rank 0 to float32 of rank 2"):
        make()


def test_a_scan_over_a_length_that_is_known_when_the_model_runs():
    """Frames whose number follows from a length less a remainder, over an open batch."""
    body = helper.make_graph(
        [helper.make_node("Concat", ["before", "now"], ["frame"], axis=-1), helper.make_node("Slice", ["frame", "four", "far", "one"], ["next"])],
        "body", [floats("before", "n", 4), floats("now", "n", 4)], [floats("next", "n", 4), floats("frame", "n", 8)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=1, end=2),
        helper.make_node("Sub", ["s", "six"], ["less"]),
        helper.make_node("Mod", ["less", "four"], ["rest"]),
        helper.make_node("Sub", ["s", "rest"], ["end"]),
        helper.make_node("Slice", ["x", "zero", "four", "one"], ["first"]),
        helper.make_node("Slice", ["x", "two", "end", "one"], ["cut"]),
        helper.make_node("Reshape", ["cut", "shape"], ["rows"]),
        helper.make_node("Scan", ["first", "rows"], ["last", "y"], body=body, num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1]),
    ]
    numbers = {name: np.array([v]) for name, v in {"six": 6, "four": 4, "zero": 0, "one": 1, "two": 2, "far": 2**62}.items()}
    made = compiled(nodes, [floats("x", "n", "t")], [floats("y", "n", "k", 8)], shape=np.array([0, -1, 4]), **numbers)
    for n, t in ((1, 6), (2, 16), (3, 11)):
        x = RNG.standard_normal((n, t), "float32")
        rows = x[:, 2 : t - (t - 6) % 4].reshape(n, -1, 4)
        before = np.concatenate([x[:, None, :4], rows[:, :-1]], 1)
        np.testing.assert_array_equal(made(x).numpy(), np.concatenate([before, rows], -1))


def test_weights_that_a_loop_keeps_as_states_are_constants_of_its_body():
    """Converters pass weights so; they are folded and packed once, not in each round."""
    state = {"left": TensorProto.FLOAT, "kept": TensorProto.FLOAT, "w": TensorProto.FLOAT}
    nodes = [
        helper.make_node("Add", ["left", "minus"], ["left2"]),
        helper.make_node("Transpose", ["w"], ["wt"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "wt"], ["xw"]),
        helper.make_node("Add", ["kept", "xw"], ["kept2"]),
        helper.make_node("Identity", ["w"], ["w2"]),
        helper.make_node("Greater", ["left2", "zero"], ["go_on"]),
    ]
    w = RNG.standard_normal((3, 3), "float32")
    outputs = ["go_on", "left2", "kept2", "w2"]
    for result, want in (("kept", lambda x: 4 * (x @ w.T)), ("w", lambda x: w)):
        made = loop_until(state, nodes, outputs, {"kept": np.zeros((2, 3), "float32"), "w": w}, 1024, result)()
        x = RNG.standard_normal((2, 3), "float32")
        np.testing.assert_allclose(made(x, np.float32(4)).numpy(), want(x), rtol=1e-5, atol=1e-5)
        assert "transpose" not in str(made.profile(x, np.float32(4), rounds=1))


def test_a_value_from_outside_is_computed_once():
    nodes = [
        helper.make_node("Add", ["left", "minus"], ["left2"]),
        helper.make_node("Add", ["kept", "far"], ["kept2"]),
        helper.make_node("Greater", ["left2", "zero"], ["go_on"]),
    ]
    body = helper.make_graph(
        nodes, "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []), floats("left"), floats("kept", 2, 3)],
        [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []), floats("left2"), floats("kept2", 2, 3)],
    )  # fmt: skip
    loop = helper.make_node("Loop", ["most", "t", "left0", "kept0"], ["left_end", "y"], body=body)
    made = compiled(
        [helper.make_node("Softmax", ["x"], ["far"]), loop], [floats("x", 2, 3), floats("left0")], [floats("y", 2, 3)],
        most=np.int64(99), t=np.array(True), minus=np.float32(-1), zero=np.float32(0), kept0=np.zeros((2, 3), "float32"),
    )  # fmt: skip
    x = RNG.standard_normal((2, 3), "float32")
    got = made(x, np.float32(5))
    want = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(got.numpy(), 5 * want, rtol=1e-5, atol=1e-5)
    steps = made.profile(x, np.float32(5), rounds=1)["steps"]
    assert [step["count"] for step in steps if "nn.softmax" in step["operators"]] == [1]


def test_a_long_loop_whose_counter_is_known_stays_a_loop(tmp_path):
    """A decoder of PaddlePaddle: a counter is compared in each round, and all 400 rounds are known to run. Its weights are stored once."""
    ends = [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, [])]
    nodes = [helper.make_node("MatMul", ["h", "w"], ["h0"])]
    nodes += [helper.make_node(("Tanh", "Neg")[k % 2], [f"h{k}"], [f"h{k + 1}"]) for k in range(60)]
    nodes += [helper.make_node("Add", ["count", "one"], ["count2"]), helper.make_node("Less", ["count2", "end"], ["on"])]
    counter = helper.make_tensor_value_info("count", TensorProto.INT64, [])
    outs = [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("count2", TensorProto.INT64, []), floats("h60", 4)]
    body = helper.make_graph(nodes, "body", [*ends, counter, floats("h", 4)], outs)
    w = RNG.standard_normal((4, 4), "float32")
    made = compiled(
        [helper.make_node("Loop", ["n", "t", "zero", "x"], ["rounds", "y"], body=body)],
        [floats("x", 4)],
        [helper.make_tensor_value_info("rounds", TensorProto.INT64, []), floats("y", 4)],
        n=np.int64(1024), t=np.array(True), zero=np.int64(0), one=np.int64(1), end=np.int64(400), w=w,
    )  # fmt: skip
    x = RNG.standard_normal(4, "float32")
    rounds, y = made(x)
    want = x
    for _ in range(400):
        want = want @ w
        for k in range(60):
            want = (np.tanh, np.negative)[k % 2](want)
    assert rounds.numpy() == 400
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-3, atol=1e-4)
    made.save(tmp_path / "loop.so")
    assert (tmp_path / "loop.so").stat().st_size < 200_000
