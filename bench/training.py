# SPDX-License-Identifier: Apache-2.0
"""A training step of examples/train_digits.py, beside the same step in PyTorch (one thread each): ratio of times in one run.

    python bench/training.py [--rounds 5]

Needs scikit-learn and torch (pip install torch --index-url https://download.pytorch.org/whl/cpu).
"""

import argparse
import importlib.util
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("BATON_NUM_THREADS", "1")

import numpy as np

import baton

spec = importlib.util.spec_from_file_location("train_digits", Path(__file__).resolve().parents[1] / "examples" / "train_digits.py")
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)


def torch_step(weights, images, labels):
    """The same network, loss and Adam."""
    import torch
    from torch.nn import functional as f

    torch.set_num_threads(1)
    w = {k: torch.tensor(v, requires_grad=True) for k, v in weights.items()}
    adam = torch.optim.Adam(list(w.values()), lr=0.002)
    x, y = torch.from_numpy(images), torch.from_numpy(labels)

    def step():
        adam.zero_grad()
        h = f.max_pool2d(f.relu(f.conv2d(x, w["conv"], w["conv_bias"], padding=1)), 2)
        h = f.relu(f.linear(h.flatten(1), w["hidden"], w["hidden_bias"]))
        loss = f.nll_loss(f.log_softmax(f.linear(h, w["out"], w["out_bias"]), 1), y)
        loss.backward()
        adam.step()
        return float(loss.detach())

    return step


def main():
    """Prints the times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    (images, labels), _ = example.digits()
    images, labels = np.ascontiguousarray(images[: example.BATCH]), labels[: example.BATCH]
    weights = example.parameters()
    state = example.first_state("adam", weights)
    compiled = baton.compile(example.training_step("adam", weights, state))
    values = [*weights.values(), *state.values()]

    def ours():
        nonlocal values
        loss, *values = compiled(images, labels, *values)
        return float(np.asarray(loss))

    theirs = torch_step(weights, images, labels)
    first = ours(), theirs()
    for _ in range(20):
        last = ours(), theirs()
    np.testing.assert_allclose(*first, rtol=1e-4)
    np.testing.assert_allclose(*last, rtol=2e-2)
    times = {ours: [], theirs: []}
    for _ in range(args.rounds):
        for step, seen in times.items():
            begin = time.perf_counter()
            for _ in range(args.steps):
                step()
            seen.append((time.perf_counter() - begin) / args.steps * 1e6)
    a, b = (min(t) for t in times.values())
    ratio = statistics.median(x / y for x, y in zip(*times.values(), strict=True))
    print(f"step of {example.BATCH} images with Adam: {a:.0f} us, PyTorch {b:.0f} us; ratio {ratio:.2f} (median of {args.rounds} rounds)")


if __name__ == "__main__":
    main()
