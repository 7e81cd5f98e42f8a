# SPDX-License-Identifier: Apache-2.0
"""Random schedules of one computation: those that are possible compute the same, the others are a ValueError."""

import random

import numpy as np
import pytest

import baton as tvm
from baton import te


def computation(r):
    n, m, depth = (r.choice([1, 3, 5, 8, 12]) for _ in range(3))
    A, W = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="W")
    P = te.compute((n, depth), lambda i, j: A[i, j] + 1.0, name="P")
    k = te.reduce_axis((0, depth), "k")
    C = te.compute((n, m), lambda i, j: te.sum(P[i, k] * W[k, j], axis=k), name="C")
    D = te.compute((n + 1, m), lambda i, j: te.if_then_else(i < n, C[te.min(i, n - 1), j], 0.0), name="D")
    E = te.compute((n, m), lambda i, j: D[i, j] + D[i + 1, j] * 2.0, name="E")
    return A, W, P, C, D, E


def reference(a, w):
    c = (a + 1) @ w
    d = np.vstack([c, np.zeros((1, c.shape[1]))])
    return d[:-1] + 2 * d[1:]


def change(r, stage):
    """One change of the loops of a stage; some are not possible."""
    iv = r.choice(list(stage.leaf_iter_vars))
    at = stage._place(iv)
    what = r.randrange(5)
    if what == 0:
        stage.split(iv, factor=r.choice([1, 2, 3, 4, 7]))
    elif what == 1:
        stage.split(iv, nparts=r.choice([1, 2, 3]))
    elif what == 2 and at + 1 < len(stage.leaf_iter_vars):
        stage.fuse(iv, stage.leaf_iter_vars[at + 1])
    elif what == 3:
        loops = list(stage.leaf_iter_vars)
        r.shuffle(loops)
        stage.reorder(*loops)
    elif what == 4:
        getattr(stage, r.choice(["vectorize", "unroll", "parallel"]))(iv)


def scheduled(r):
    A, W, P, C, D, E = computation(r)
    s = te.create_schedule(E.op)
    chain = [P, C, D]
    if r.random() < 0.3:
        chain.insert(1, s.cache_write(C, "local"))
    for t in [*chain, E]:
        for _ in range(r.randrange(4)):
            try:
                change(r, s[t])
            except ValueError:
                continue
    for t, reader in zip(chain, [*chain[1:], E], strict=True):
        choice = r.random()
        try:
            if choice < 0.55:
                parent = s[r.choice([reader, D, E])]
                s[t].compute_at(parent, r.choice(list(parent.leaf_iter_vars)))
            elif choice < 0.7:
                s[t].compute_inline()
        except ValueError:
            continue
    return s, [A, W, E]


@pytest.mark.parametrize("block", range(4))
def test_random_schedules(block):
    rng, possible = np.random.default_rng(block), 0
    for seed in range(60 * block, 60 * (block + 1)):
        s, tensors = scheduled(random.Random(seed))
        try:
            made = tvm.build(s, tensors, "llvm")
        except ValueError:
            continue
        possible += 1
        a, w = (rng.integers(-3, 4, [int(d) for d in t.shape]).astype("float32") for t in tensors[:2])
        out = tvm.nd.empty([int(d) for d in tensors[2].shape])
        made(tvm.nd.array(a), tvm.nd.array(w), out)
        assert (out.numpy() == reference(a, w)).all(), f"seed {seed}"
    assert possible >= 20
