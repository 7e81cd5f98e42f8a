# SPDX-License-Identifier: Apache-2.0
"""examples/train_digits.py: training through Relay's gradient and a compiled step."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import baton
from baton import relay

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "train_digits.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("train_digits", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("optimizer, epochs", [("momentum", 6), ("adam", 10)])
def test_reaches_95_percent(example, optimizer, epochs):
    """AN-016 a network trained through the gradient and the compiled step reads at least 95 of 100 unseen digits."""
    losses, accuracies, _ = example.train(optimizer, epochs, seed=0)
    assert accuracies[-1] >= 0.95, accuracies
    assert np.mean(losses[-20:]) < 0.2 * np.mean(losses[:5])


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_a_compiled_step_is_the_interpreted_one(example, optimizer):
    """Loss, weights and state after a step, by the compiler and operator by operator."""
    (images, labels), _ = example.digits()
    weights = example.parameters()
    state = example.first_state(optimizer, weights)
    step = example.training_step(optimizer, weights, state)
    args = [images[: example.BATCH], labels[: example.BATCH], *weights.values(), *state.values()]
    got, want = baton.compile(step)(*args), relay.create_executor("debug").evaluate(step)(*args)
    assert len(got) == len(want) == 1 + len(weights) + len(state)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), w.numpy(), rtol=2e-3, atol=2e-5)


def test_runs_as_a_program_and_plots(tmp_path):
    out = tmp_path / "digits.png"
    done = subprocess.run(
        [sys.executable, SCRIPT, "--optimizer", "momentum", "--epochs", "1", "--plot", out],
        capture_output=True,
        text=True,
        timeout=300,
        env={"PYTHONPATH": str(Path(baton.__file__).parents[1]), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "momentum epoch  1" in done.stdout and "us a step of 64 images" in done.stdout
    assert out.read_bytes().startswith(b"\x89PNG")
