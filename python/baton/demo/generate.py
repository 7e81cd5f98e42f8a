# SPDX-License-Identifier: Apache-2.0
"""From logits to tokens: the loop around a session of a decoder. It knows no model: what takes tokens and gives logits will do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np


def choose(logits, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0, rng: np.random.Generator | None = None) -> int:
    """A token for the logits of one place, (vocabulary,). `temperature` 0 takes the largest; above, one is drawn with the weights of softmax, of the
    `top_k` largest (0: all), and of the fewest that weigh `top_p` together."""
    logits = np.asarray(logits, np.float64)
    if temperature <= 0:
        return int(logits.argmax())
    order = np.argsort(-logits)[: top_k or None]
    weights = np.exp((logits[order] - logits[order[0]]) / temperature)
    weights /= weights.sum()
    kept = int(np.searchsorted(np.cumsum(weights), top_p) + 1)
    order, weights = order[:kept], weights[:kept]
    return int((rng or np.random.default_rng()).choice(order, p=weights / weights.sum()))


def generate(session: Callable, ids: Iterable[int], most: int = 100, stop: Iterable[int] = (), seed: int | None = None, **sampling) -> Iterator[int]:
    """Tokens behind `ids`, one by one, `most` at most; ends before one of `stop`. `session`: of a model whose first input is tokens (1, n) and whose
    first output is logits (1, n, vocabulary); it has read what comes out when the loop ends. `sampling`: as `choose` takes it.

        for token in generate(session, tokenizer.encode("Once upon a time"), most=20):
            print(tokenizer.decode([token]), end="")
    """
    stop, rng, told = set(stop), np.random.default_rng(seed), list(ids)
    for _ in range(most):
        out = session(np.asarray([told], np.int64))
        logits = out[0] if isinstance(out, tuple) else out
        token = choose(logits.numpy()[0, -1], rng=rng, **sampling)
        if token in stop:
            return
        yield token
        told = [token]
