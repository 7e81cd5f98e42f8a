# SPDX-License-Identifier: Apache-2.0
"""Random numbers of keys: Threefry as its paper has it, in Python's numbers. Operators without keys stand in test_nn_signal.py."""

import numpy as np
import pytest
from cases import Case, Reject, Value, each, evaluate, rejects, table

from baton import relay

WORD = 2**64 - 1
ROTATIONS = [(14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32)]


def threefry(key, counter):
    """Threefry-4x64 with 20 rounds."""
    ks = [*key, 0x1BD11BDAA9FC1A22 ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = [(c + k) & WORD for c, k in zip(counter, ks, strict=False)]
    for i in range(20):
        left, right = ROTATIONS[i % 8]
        p, q = (3, 1) if i % 2 else (1, 3)
        for a, b, by in ((0, p, left), (2, q, right)):
            x[a] = (x[a] + x[b]) & WORD
            x[b] = ((x[b] << by | x[b] >> (64 - by)) & WORD) ^ x[a]
        if i % 4 == 3:
            s = i // 4 + 1
            x = [(v + ks[(s + j) % 5]) & WORD for j, v in enumerate(x)]
            x[3] = (x[3] + s) & WORD
    return x


def generate(key, out_shape):
    words = [int(w) for w in key]
    count = int(np.prod(out_shape))
    blocks, at = [], words[4] | words[5] << 64 | words[6] << 128
    for _ in range(-(-count // 4)):
        blocks += threefry(words[:4], [at & WORD, at >> 64 & WORD, at >> 128 & WORD, 0])
        at += 1
    after = [*words[:4], at & WORD, at >> 64 & WORD, at >> 128 & WORD, 0 if count else words[7], 0, 0]
    return np.array(after, "uint64"), np.array(blocks[:count], "uint64").reshape(out_shape)


def split(key):
    words = [int(w) for w in key]
    return tuple(np.array([*threefry(words[:4], [*words[4:7], use]), *[0] * 6], "uint64") for use in (1, 2))


KEYS = [
    Value(np.array([*w, *[0] * (10 - len(w))], "uint64")) for w in ([0] * 10, [1, 2, 3, 4], [WORD, 0, 7, 1 << 63, WORD, WORD, 5], [9, 9, 9, 9, WORD, WORD - 1])
]
test_keys = table(
    *[Case("random.threefry_generate", generate, key, out_shape=each([], [1], [3, 5], [0, 2], [64])) for key in KEYS],
    *[Case("random.threefry_split", split, key) for key in KEYS],
)
test_rejects = rejects(
    *[
        Reject(op, "R1", arg, **attrs)
        for op, attrs in (("random.threefry_generate", {"out_shape": [2]}), ("random.threefry_split", {}))
        for arg in (((10,), "int64"), ((9,), "uint64"), ((2, 5), "uint64"))
    ]
)


def test_known_answers():
    """Of the Random123 library: zeros, and all bits set."""
    assert [hex(w) for w in threefry([0] * 4, [0] * 4)] == ["0x9218ebde6c85537", "0x55941f5266d86105", "0x4bd25e16282434dc", "0xee29ec846bd2e40b"]
    key, bits = relay.random.threefry_generate(relay.random.threefry_key(0), (4,))
    got = evaluate(relay.Function([], relay.Tuple([key, bits])), [])
    assert [hex(w) for w in got[1]] == ["0x9218ebde6c85537", "0x55941f5266d86105", "0x4bd25e16282434dc", "0xee29ec846bd2e40b"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_uniform_of_a_key(dtype, kind):
    count = 4096
    after, values = relay.random.uniform(relay.random.threefry_key(2**200 + 5), (count,), dtype=dtype, low=-1.0, high=3.0)
    _, more = relay.random.uniform(after, (count,), dtype=dtype, low=-1.0, high=3.0)
    first, second = evaluate(relay.Function([], relay.Tuple([values, more])), [], kind)
    again, _ = evaluate(relay.Function([], relay.Tuple([values, more])), [], kind)
    assert first.dtype == dtype and (first == again).all() and (first != second).any()
    wide = first.astype("float64")
    assert wide.min() >= -1 and wide.max() < 3 + (dtype == "float16") * 1e-3 and abs(wide.mean() - 1) < 0.08 and abs(wide.std() - 4 / np.sqrt(12)) < 0.05
    assert len({*first.tolist()}) > (1000 if dtype == "float16" else 4000)


def test_two_parts_draw_other_numbers():
    left, right = relay.random.threefry_split(relay.random.threefry_key(3))
    drawn = [relay.random.threefry_generate(k, (8,))[1] for k in (left, right, relay.random.threefry_key(3))]
    got = evaluate(relay.Function([], relay.Tuple(drawn)), [])
    assert len({int(x) for part in got for x in part}) == 24


def test_seeds():
    words = relay.random.threefry_key(2**64 + 7).data.numpy()
    assert words.dtype == "uint64" and words.tolist() == [7, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    for seed in (-1, 2**256):
        with pytest.raises(ValueError, match="seed"):
            relay.random.threefry_key(seed)
    with pytest.raises(TypeError, match="float64"):
        relay.random.uniform(relay.random.threefry_key(1), (2,), dtype="int32")
