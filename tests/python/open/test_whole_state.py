# SPDX-License-Identifier: Apache-2.0
"""States that keep their size, a cache that TensorScatter writes or what a recurrent layer hands on; and states of half floats."""

import numpy as np
import pytest

import baton

onnx = pytest.importorskip("onnx")
ml_dtypes = pytest.importorskip("ml_dtypes")
from onnx import TensorProto, helper  # noqa: E402

HEAD = '#[version = "0.0.5"]\n'
F, INT = TensorProto.FLOAT, TensorProto.INT64
info = helper.make_tensor_value_info


def f32(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


def scatter_decoder(mode="linear"):
    """Attention over a cache of a fixed size, whose rows from `at` on are written by each call."""
    nodes = [
        helper.make_node("TensorScatter", ["past_key", "x", "at"], ["present_key"], axis=1, mode=mode),
        helper.make_node("Transpose", ["present_key"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "turned"], ["weights"]),
        helper.make_node("Softmax", ["weights"], ["soft"], axis=-1),
        helper.make_node("MatMul", ["soft", "present_key"], ["y"]),
    ]
    inputs = [info("x", F, [2, 1, 8]), info("at", INT, [2]), info("past_key", F, [2, 16, 8])]
    graph = helper.make_graph(nodes, "g", inputs, [info("y", F, [2, 1, 8]), info("present_key", F, [2, 16, 8])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_a_cache_that_tensor_scatter_writes(mode, tmp_path):
    source = scatter_decoder(mode)
    plain, model = baton.compile(source), baton.compile(source, state={"past_*": "present_*"})
    assert model.states == ("past_key",)
    assert [i.name for i in model.inputs] == ["x", "at"] and [o.name for o in model.outputs] == ["y"]
    model.save(tmp_path / "m.so")
    for m in (model, baton.load(tmp_path / "m.so")):
        s, other, cache = m.session(), m.session(), np.zeros((2, 16, 8), "float32")
        for n in range(16 if mode == "linear" else 40):
            x, at = f32(2, 1, 8, seed=n), np.array([n, n])
            want, kept = plain(x, at, cache)
            cache = kept.numpy()
            np.testing.assert_array_equal(s(x, at).numpy(), want.numpy())
        assert s.memory()["state"] == cache.nbytes
        x, at = f32(2, 1, 8, seed=99), np.array([0, 0])
        np.testing.assert_array_equal(other(x, at).numpy(), plain(x, at, np.zeros_like(cache))[0].numpy())  # of its own
        with pytest.raises(IndexError if mode == "linear" else ValueError):
            s(x, np.array([0, 16])) if mode == "linear" else s(x[:, :, :4], at)
        np.testing.assert_array_equal(s(x, at).numpy(), plain(x, at, cache)[0].numpy())  # the call that failed left it
        s.reset()
        np.testing.assert_array_equal(s(x, at).numpy(), plain(x, at, np.zeros_like(cache))[0].numpy())


STEP = (
    HEAD
    + """def @main(%x: Tensor[(batch, 6), float32], %h: Tensor[(batch, 5), float32], %w: Tensor[(5, 6), float32], %r: Tensor[(5, 5), float32],
  output_names=["y", "h_next"]) {
  %0 = tanh(add(nn.dense(%x, %w), nn.dense(%h, %r)));
  (sum(%0, axis=[1]), %0)
}"""
)


def test_a_recurrent_step_of_any_batch():
    plain, model = baton.compile(STEP), baton.compile(STEP, state={"h": "h_next"})
    w, r = f32(5, 6), f32(5, 5, seed=1)
    s = model.session()
    assert "h" in repr(s) and s.length == 0
    with pytest.raises(ValueError):
        s(f32(4, 7), w, r)  # of another batch: nothing has begun
    for batch in (3, 1):
        h = np.zeros((batch, 5), "float32")
        for n in range(7):
            x = f32(batch, 6, seed=n)
            want, h = (a.numpy() for a in plain(x, h, w, r))
            np.testing.assert_array_equal(s(x, w, r).numpy(), want)
        with pytest.raises(ValueError, match="state `h` has batch = . input `x` has 9; reset the session first".replace(". input", "., input")):
            s(f32(9, 6), w, r)
        x = f32(batch, 6, seed=50)
        np.testing.assert_array_equal(s(x, w, r).numpy(), plain(x, h, w, r)[0].numpy())
        with pytest.raises(baton.error.UnsupportedError, match="state `h` keeps its size"):
            s.truncate(0)
        s.trim()
        s.reset()


def test_both_kinds_of_states():
    source = (
        HEAD
        + """def @main(%x: Tensor[(1, seq, 4), float32], %past: Tensor[(1, past, 4), float32], %sum: Tensor[(1, 4), float32],
  output_names=["present", "total", "y"]) {
  %0 = concatenate((%past, %x), axis=1);
  %1 = add(%sum, sum(%x, axis=[1]));
  (%0, %1, add(sum(%0, axis=[1]), %1))
}"""
    )
    plain, model = baton.compile(source), baton.compile(source, state={"past": "present", "sum": "total"})
    s, past, total = model.session(), np.zeros((1, 0, 4), "float32"), np.zeros((1, 4), "float32")
    for n, seq in enumerate((5, 1, 1, 3)):
        x = f32(1, seq, 4, seed=n)
        past, total, want = (a.numpy() for a in plain(x, past, total))
        np.testing.assert_array_equal(s(x).numpy(), want)
    assert s.length == 10 and model.states == ("past", "sum") and s.dim == "past"


ATTENTION = (
    HEAD
    + """def @main(%past: Tensor[(2, past, 8), TYPE], %x: Tensor[(2, seq, 8), TYPE], output_names=["y", "present"]) {
  %0 = concatenate((%past, nn.relu(%x)), axis=1);
  %1 = nn.softmax(nn.batch_matmul(%x, %0));
  (nn.batch_matmul(%1, transpose(%0, axes=[0, 2, 1])), %0)
}"""
)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_states_of_half_floats(dtype, tmp_path):
    source, kind = ATTENTION.replace("TYPE", dtype), getattr(ml_dtypes, dtype, np.float16)
    plain, model = baton.compile(source), baton.compile(source, state={"past": "present"})
    model.save(tmp_path / "m.so")
    for m in (model, baton.load(tmp_path / "m.so")):
        s, past, x = m.session(), np.zeros((2, 0, 8), kind), f32(2, 40, 8).astype(kind)
        for begin, end in [(0, 17), *((n, n + 1) for n in range(17, 40))]:
            want, present = plain(past, x[:, begin:end])
            past = present.numpy()
            np.testing.assert_array_equal(s(x[:, begin:end]).numpy().astype("float32"), want.numpy().astype("float32"))
        assert s.length == 40 and s.memory()["state"] == 2 * 40 * 8 * 2
        s.truncate(20)
        want = plain(past[:, :20], x[:, :3])[0].numpy().astype("float32")
        np.testing.assert_array_equal(s(x[:, :3]).numpy().astype("float32"), want)
