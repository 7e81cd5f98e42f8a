# SPDX-License-Identifier: Apache-2.0
"""Where StorageRewrite puts buffers: no two that live at one time share memory, however many there are."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest

import baton
from baton import tir

sys.path.insert(0, str(Path(__file__).parent))
from random_prim_funcs import interpret  # noqa: E402

ALIGN = 64


def program(lives, sizes):
    """Each buffer is written at its first step and read into A at its last one; returns (function, step of each write and read)."""
    out = tir.Buffer([len(lives)], "int64", "A")
    buffers = [tir.Buffer([n], "int64", f"t{i}") for i, n in enumerate(sizes)]
    steps = {}
    for i, (first, last) in enumerate(lives):
        at = tir.const(i % sizes[i], "int64")
        steps.setdefault(first, []).append(tir.BufferStore(buffers[i], tir.const(i + 1, "int64"), [at]))
        steps.setdefault(last + 0.5, []).append(tir.BufferStore(out, tir.BufferLoad(buffers[i], [at]), [tir.const(i, "int64")]))
    body = tir.SeqStmt([tir.SeqStmt(s) if len(s) > 1 else s[0] for _, s in sorted(steps.items())])
    number = {t: k for k, t in enumerate(sorted(steps))}
    for b in reversed(buffers):
        body = tir.Allocate(b, body)
    return tir.PrimFunc([out], body), [(number[a], number[b + 0.5]) for a, b in lives]


def places(func):
    """(bytes of the arena, offset of each buffer) after the pass."""
    done = tir.transform.StorageRewrite()(baton.IRModule({"f": func}))["f"]
    arena, body, offsets = done.body.buffer, done.body.body, []
    while isinstance(body, tir.LetStmt):
        offsets.append(int(body.value.args[1]))
        body = body.body
    return done, int(arena.shape[0]), offsets


def random_lives(n, longest, seed):
    rng = random.Random(seed)
    lives = []
    for _ in range(n):
        first = rng.randrange(n)
        lives.append((first, first + rng.randrange(longest)))
    return lives, [rng.choice((1, 3, 8, 20, 100, 1000)) for _ in range(n)]


# With 2,500 at one time there are more pairs than are looked at: then places are taken in order of time.
CASES = {
    "few": random_lives(40, 10, 0),
    "many and short": random_lives(1500, 20, 1),
    "many and long": random_lives(2500, 2500, 2),
    "all at one time": ([(0, 1)] * 2500, [1 + i % 50 for i in range(2500)]),
    "one by one": ([(i, i) for i in range(2500)], [1 + i % 50 for i in range(2500)]),
}


@pytest.mark.parametrize("name", CASES)
def test_no_two_that_live_at_one_time_share_memory(name):
    lives, sizes = CASES[name]
    func, when = program(lives, sizes)
    done, total, offsets = places(func)
    assert len(offsets) == len(lives)
    blocks = [(-(-n * 8 // ALIGN) * ALIGN) for n in sizes]
    assert total == max(o + b for o, b in zip(offsets, blocks, strict=True))
    order = sorted(range(len(lives)), key=lambda i: when[i])
    alive = []
    peak = 0
    for i in order:
        alive = [a for a in alive if when[a][1] >= when[i][0]]
        peak = max(peak, blocks[i] + sum(blocks[a] for a in alive))
        for a in alive:
            assert offsets[a] + blocks[a] <= offsets[i] or offsets[i] + blocks[i] <= offsets[a], (a, i)
        alive.append(i)
    assert peak <= total <= 1.25 * peak
    args = [np.zeros(len(lives), "int64")]
    assert interpret(done, args)[0].tolist() == list(range(1, len(lives) + 1))


def test_all_at_one_time_take_no_more_than_their_sum():
    lives, sizes = CASES["all at one time"]
    _, total, _ = places(program(lives, sizes)[0])
    assert total == sum(-(-n * 8 // ALIGN) * ALIGN for n in sizes)
