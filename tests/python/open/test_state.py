# SPDX-License-Identifier: Apache-2.0
"""States that stay from call to call: sessions give the bits of the stateless program, and move new rows alone."""

import gc
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import baton

onnx = pytest.importorskip("onnx")
BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))

import decode  # noqa: E402

LAYERS, HEADS, WIDTH, VOCABULARY = decode.SIZES["tiny"]
DEPTH = WIDTH // HEADS
ROW = 4 * WIDTH * 2 * LAYERS  # bytes of all states, a token
STATE = {"past_key_values.*": "present.*"}


@pytest.fixture(scope="module")
def source():
    return decode.decoder(*decode.SIZES["tiny"])


@pytest.fixture(scope="module")
def stateless(source):
    return baton.compile(source)


@pytest.fixture(scope="module")
def model(source):
    return baton.compile(source, state=STATE)


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("state") / "decoder.so"
    model.save(path)
    return path


def tokens(n, batch=1, seed=0):
    return np.random.default_rng(seed).integers(0, VOCABULARY, (batch, n))


class Fed:
    """The stateless program, fed with what it gave."""

    def __init__(self, stateless, batch=1):
        self.model, self.past = stateless, [np.zeros((batch, HEADS, 0, DEPTH), "float32")] * (2 * LAYERS)

    def __call__(self, ids):
        logits, *present = self.model(ids, *self.past)
        self.past = [p.numpy().copy() for p in present]
        return logits.numpy()


def test_signature(model):
    assert [str(i) for i in model.inputs] == ["input_ids int64[batch, seq]"]
    assert [o.name for o in model.outputs] == ["logits"]
    assert model.states == tuple(f"past_key_values.{n}.{part}" for n in range(LAYERS) for part in ("key", "value"))
    assert {d.name for d in model.dims} == {"batch", "seq", "past"}
    assert "past=0 of past_key_values.0.key" in repr(model.session())


@pytest.mark.parametrize("batch", [1, 3])
def test_prefill_and_steps_have_the_bits_of_the_stateless_program(stateless, model, batch):
    fed, s = Fed(stateless, batch), model.session()
    ids = tokens(57, batch)
    for begin, end in [(0, 17), *((n, n + 1) for n in range(17, 57))]:
        got = s(ids[:, begin:end])
        np.testing.assert_array_equal(got.numpy(), fed(ids[:, begin:end]))
        assert s.length == end


@pytest.mark.parametrize("lengths", [[1] * 150, [2, 1, 1, 13, 1, 47, 64, 1, 3, 1]], ids=["one by one", "in pieces"])
def test_steps_have_the_bits_of_one_call(model, stateless, lengths):
    """Weights of what is masked are 0, and a row's sum takes them where they change nothing, however long the row is."""
    ids = tokens(sum(lengths))
    steps, fed = model.session(), Fed(stateless)
    want = model.session()(ids).numpy()
    ends = np.cumsum(lengths)
    for run in (lambda x: steps(x).numpy(), fed):
        got = np.concatenate([run(ids[:, end - n : end]) for n, end in zip(lengths, ends, strict=True)], axis=1)
        np.testing.assert_array_equal(got, want)


def test_new_rows_alone_are_moved_and_few_steps_plan(model):
    s = model.session()
    s(tokens(16))
    planned, moved = s.memory()["planned"], s.memory()["state_copied"]
    for n in range(16, 2048):
        s(tokens(1, seed=n))
    after = s.memory()
    assert s.length == 2048 and after["state"] == 2048 * ROW
    assert after["state_copied"] - moved <= (2048 - 16) * ROW
    assert after["planned"] - planned <= 0.05 * (2048 - 16)
    s = model.session()
    s.reserve(past=512, seq=16, batch=1)
    before = s.memory()["planned"]
    s(tokens(16))
    for n in range(16, 512):
        s(tokens(1, seed=n))
    assert s.memory()["planned"] == before


def test_no_kernel_reads_a_state_to_copy_it(source):
    m = baton.compile(
        source,
        state=True,
        shape={"input_ids": (1, None)} | {f"past_key_values.{n}.{p}": (1, None, None, None) for n in range(LAYERS) for p in ("key", "value")},
    )
    text = m.source("relay")
    assert "concatenate" not in text and text.count("memory.append") == 2 * LAYERS
    assert text.count("nn.attention(") == text.count('key_layout="SBHD", value_layout="SBHD"') == LAYERS
    s = m.session()
    s(tokens(5))
    s(tokens(1))
    assert s.memory()["state_copied"] == 0  # rows are made where they stay
    assert s.memory()["state"] == 6 * ROW


def test_truncate_and_reset(model):
    ids = tokens(24)
    s = model.session()
    first = s(ids[:, :20]).numpy().copy()
    a = s(ids[:, 20:]).numpy().copy()
    s.truncate(20)
    assert s.length == 20
    np.testing.assert_array_equal(s(ids[:, 20:]).numpy(), a)
    s.truncate(7)
    np.testing.assert_allclose(s(ids[:, 7:20]).numpy(), first[:, 7:], rtol=1e-4, atol=1e-6)
    s.reset()
    assert s.length == 0
    np.testing.assert_array_equal(s(ids[:, :20]).numpy(), first)
    for wrong in (21, -1):
        with pytest.raises(ValueError, match=f"the session has past = 20, it cannot be cut to {wrong}"):
            s.truncate(wrong)
    assert s.length == 20


def bounded(source, most):
    shape = {f"past_key_values.{n}.{part}": (None, None, baton.Dim("past", 0, most), None) for n in range(LAYERS) for part in ("key", "value")}
    return baton.compile(source, state=STATE, shape=shape)


def test_a_state_beyond_its_maximum(source, stateless):
    s = bounded(source, 32).session()
    fed = Fed(stateless)
    ids = tokens(40)
    np.testing.assert_array_equal(s(ids[:, :30]).numpy(), fed(ids[:, :30]))
    why = "state `past_key_values.0.key` has past = 30 of at most 32, and this call adds 3: truncate or reset the session"
    with pytest.raises(ValueError, match=why):
        s(ids[:, 30:33])
    assert s.length == 30
    np.testing.assert_array_equal(s(ids[:, 30:32]).numpy(), fed(ids[:, 30:32]))
    with pytest.raises(ValueError, match="has past = 32 of at most 32, and this call adds 1"):
        s(ids[:, 32:33])
    s.reset()
    with pytest.raises(ValueError, match="has past = 0 of at most 32, and this call adds 33"):
        s(ids[:, :33])
    assert s(ids[:, :32]).shape == (1, 32, VOCABULARY)


def test_another_batch_needs_a_reset(model):
    s = model.session()
    s(tokens(3, batch=2))
    with pytest.raises(ValueError, match="state `past_key_values.0.key` has batch = 2, input `input_ids` has 3; reset the session first"):
        s(tokens(1, batch=3))
    assert s(tokens(1, batch=2)).shape == (2, 1, VOCABULARY)
    s.reset()
    assert s(tokens(1, batch=3)).shape == (3, 1, VOCABULARY)


def test_a_call_that_fails_leaves_the_session_usable(model, stateless):
    s, fed = model.session(), Fed(stateless)
    ids = tokens(9)
    s(ids[:, :4]), fed(ids[:, :4])
    for wrong in (ids[0], ids.astype("float32"), None):
        with pytest.raises((TypeError, ValueError)):
            s(wrong)
    with pytest.raises(TypeError, match="no input `past_key_values.0.key`"):
        s(input_ids=ids, **{"past_key_values.0.key": ids})
    assert s.length == 4
    np.testing.assert_array_equal(s(ids[:, 4:]).numpy(), fed(ids[:, 4:]))


def test_sessions_are_apart(model):
    ids = [tokens(12, seed=n) for n in range(4)]

    def parts(session, i):
        return [session(i[:, at : at + 3]).numpy().copy() for at in range(0, 12, 3)]

    alone = [parts(model.session(), i) for i in ids]
    sessions = [model.session() for _ in ids]
    for at in range(4):
        for s, i, want in zip(sessions, ids, alone, strict=True):
            np.testing.assert_array_equal(s(i[:, 3 * at : 3 * at + 3]).numpy(), want[at])


def test_a_hundred_sessions_hold_the_weights_once():
    source = decode.decoder(*decode.SIZES["small"])
    m = baton.compile(source, state=True)

    def resident():
        gc.collect()
        return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) << 10

    first = m.session()
    first(tokens(8))
    before, weights = resident(), first.memory()["constants"]
    sessions = [m.session() for _ in range(100)]
    for s in sessions:
        s(tokens(8))
    grown = resident() - before
    held = sum(sum(s.memory()[key] for key in ("workspace", "outputs", "state")) for s in sessions)
    assert weights > 8 << 20
    assert grown < 2 * held + (32 << 20) < 100 * weights / 4


def test_saved_and_run_by_the_runtime_alone(model, saved, tmp_path):
    loaded = baton.load(saved)
    assert loaded.states == model.states and loaded.inputs == model.inputs
    assert "libbaton_vm" in loaded.describe()["needs"]
    ids = tokens(20)
    s = model.session()
    want = np.concatenate([s(ids[:, :9]).numpy(), *(s(ids[:, n : n + 1]).numpy() for n in range(9, 20))], axis=1)
    np.save(tmp_path / "want.npy", want)
    code = textwrap.dedent(f"""
        import numpy as np, baton
        m = baton.load({str(saved)!r})
        s = m.session()
        ids, want = np.array({ids.tolist()}), np.load({str(tmp_path / "want.npy")!r})
        got = np.concatenate([s(ids[:, :9]).numpy(), *(s(ids[:, n : n + 1]).numpy() for n in range(9, 20))], axis=1)
        assert (got == want).all()
        s.truncate(3)
        assert s.length == 3
        maps = open("/proc/self/maps").read()
        assert "libbaton.so" not in maps and "libLLVM" not in maps
        print("alone")
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "alone", done.stderr


def test_the_executor_has_the_same_names(saved):
    """As C asks for them: functions of the executor's module."""
    session = baton.runtime.load_module(str(saved))["default"](baton.cpu())
    session["set_input"]("input_ids", baton.nd.array(tokens(4)))
    session["run"]()
    session["run"]()
    assert int(session["length"]()) == 8
    assert session["get_output"](0).shape == (1, 4, VOCABULARY)
    session["truncate"](4)
    assert int(session["length"]()) == 4
    session["reset"]()
    assert int(session["length"]()) == 0
    with pytest.raises(baton.error.RuntimeError, match="has not run|first"):
        baton.runtime.load_module(str(saved))["default"](baton.cpu())["get_output"](0)


def test_trim_and_reuse(model):
    s = model.session()
    want = s(tokens(40)).numpy().copy()
    s.trim()
    assert s.memory()["workspace"] == 0 and s.length == 40
    s.reset()
    s.trim()
    np.testing.assert_array_equal(s(tokens(40)).numpy(), want)


@pytest.mark.parametrize("state, why", [
    ({"nothing": "present"}, "the model has no input `nothing`"),
    ({"past_key_values.*": "nothing.*"}, "becomes `nothing.0.key`, which is not an output"),
    ({"past_key_values.0.key": "present.0.value"}, "state `past_key_values.0.key` -> `present.0.value`: the output is not the input with new elements"),
    ({"past_key_values.0.key": "logits"}, "the output is not the input with new elements"),
])  # fmt: skip
def test_states_that_are_none(source, state, why):
    with pytest.raises((ValueError, baton.error.CompileError), match=why):
        baton.compile(source, state=state)


def test_a_model_with_states_is_called_by_sessions(model, stateless):
    with pytest.raises(baton.error.RuntimeError, match="model.session"):
        model(tokens(3))
    with pytest.raises(baton.error.UnsupportedError, match="keeps no state"):
        stateless.session()
    with pytest.raises(ValueError, match="no input and output have names"):
        baton.compile('#[version = "0.0.5"]\ndef @main(%x: Tensor[(n, 3), float32]) { nn.relu(%x) }', state=True)


STREAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(new, 3), float32], %past: Tensor[(old, 3), float32], output_names=["sum", "rows", "present"]) {
  %0 = concatenate((%past, %x), axis=0);
  (sum(%0, axis=[0]), add(%x, %x), %0)
}
"""


def test_relay_and_rows_that_are_inputs():
    """What is appended is an input itself: it is copied once."""
    s = baton.compile(STREAM, state={"past": "present"}).session()
    rows = np.arange(30, dtype="float32").reshape(10, 3)
    for begin, end in [(0, 4), (4, 5), (5, 5), (5, 10)]:
        total, twice = s(rows[begin:end])
        np.testing.assert_array_equal(total.numpy(), rows[:end].sum(0))
        np.testing.assert_array_equal(twice.numpy(), 2 * rows[begin:end])
    assert s.memory()["state_copied"] == rows.nbytes


TWO = """#[version = "0.0.5"]
def @main(%x: Tensor[(new, 3), float32], %a: Tensor[(old, 3), float32], %b: Tensor[({b}, 3), float32], output_names=["sum", "next_a", "next_b"]) {{
  %0 = concatenate((%a, %x), axis=0);
  %1 = concatenate((%b, {rows}), axis=0);
  (add(sum(%0, axis=[0]), sum(%1, axis=[0])), %0, %1)
}}
"""


@pytest.mark.parametrize("b, rows, why", [
    ("old", "concatenate((%x, %x), axis=0)", "states `a` and `b` have one length before a call and different ones after it"),
    ("other", "%x", "states `a` and `b` have lengths `old` and `other`; give them one name"),
])  # fmt: skip
def test_states_of_different_lengths(b, rows, why):
    with pytest.raises(baton.error.UnsupportedError, match=why):
        baton.compile(TWO.format(b=b, rows=rows), state={"a": "next_a", "b": "next_b"})


def test_rows_that_two_states_take():
    """One of them copies what the other one has."""
    s = baton.compile(TWO.format(b="old", rows="add(%x, %x)").replace("(%a, %x)", "(%a, add(%x, %x))"), state={"a": "next_a", "b": "next_b"}).session()
    rows = np.arange(12, dtype="float32").reshape(4, 3)
    for end in (1, 2, 4):
        np.testing.assert_array_equal(s(rows[s.length : end]).numpy(), 4 * rows[:end].sum(0))
