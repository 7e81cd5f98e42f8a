# SPDX-License-Identifier: Apache-2.0
"""Models with states on the command line: `baton compile --state`, and `baton run` in steps."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("compiler")

SOURCE = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, new, 4), float32], %past_x: Tensor[(1, past, 4), float32], output_names=["score", "present_x"]) {
  %0 = concatenate((%past_x, %x), axis=1);
  (nn.batch_matmul(%x, %0), %0)
}
"""


@pytest.fixture
def stream(tmp_path):
    (tmp_path / "stream.relay").write_text(SOURCE)
    return "stream.relay"


def test_compile_and_run_in_steps(baton, stream, tmp_path):
    baton("compile", stream, "--state", "past_*=present_*", "--shape", "past_x=1,past:0..64,4", "-o", "m.so")
    assert '"states"' in baton("inspect", "m.so", "--json").stdout
    assert "score  float32[1, 5, 5]" in baton("run", "m.so", "--dim", "new=5").stdout
    done = baton("run", "m.so", "--dim", "new=5", "--steps", "4", "--step-dim", "new=1", "--json", "-q")
    answer = json.loads(done.stdout)
    assert answer["outputs"]["score"]["shape"] == [1, 1, 8]
    assert [step["length"] for step in answer["steps"]] == [0, 5, 6, 7]
    assert ", 3 steps, the last in" in baton("run", "m.so", "--dim", "new=2", "--steps", "3").stderr


def test_steps_from_the_source_have_the_bits_of_the_artifact(baton, stream, tmp_path):
    np.save(tmp_path / "x.npy", np.linspace(-1, 1, 8, dtype="float32").reshape(1, 2, 4))
    steps = ["-i", "x=x.npy", "--steps", "3"]
    baton("compile", stream, "--state", "auto", "-o", "m.so")
    baton("run", "m.so", *steps, "--save", "a.npy")
    baton("run", stream, "--state", "auto", *steps, "--save", "b.npy", "--expect", "score=a.npy", "--rtol", "0", "--atol", "0")
    x = np.load(tmp_path / "x.npy")
    np.testing.assert_allclose(np.load(tmp_path / "b.npy"), x @ np.concatenate([x] * 3, axis=1).transpose(0, 2, 1), rtol=1e-6)


def test_text_of_a_model_with_states(baton, stream):
    assert "memory.append" in baton("compile", stream, "--state", "auto", "--emit=relay").stdout


def test_errors(baton, stream):
    def message(*args, code=2):
        return baton(*args, code=code).stderr

    assert "names no state; write it as INPUT=OUTPUT" in message("compile", stream, "--state", "past_x", "-o", "m.so")
    assert "--state names `past_x` twice" in message("compile", stream, "--state", "past_x=present_x", "--state", "past_x=score", "-o", "m.so")
    assert "--state auto finds all states" in message("compile", stream, "--state", "auto", "--state", "past_x=score", "-o", "m.so")
    assert "the model has no input `cache`; its inputs are x, past_x" in message("compile", stream, "--state", "cache=present_x", "-o", "m.so")
    assert "becomes `y`, which is not an output" in message("compile", stream, "--state", "past_x=y", "-o", "m.so")
    assert "states are kept on the CPU alone" in message("compile", stream, "--state", "auto", "--target", "opencl", "-o", "m.so", code=1)
    assert "--steps is for models with states" in message("run", stream, "--dim", "x[1]=1", "--dim", "past_x[1]=1", "--steps", "2")
    assert "--steps says how many there are" in message("run", stream, "--state", "auto", "--dim", "new=1", "--step-dim", "new=1")
    baton("compile", stream, "--state", "auto", "--shape", "past_x=1,past:0..4,4", "-o", "m.so")
    assert "past = 4 of at most 4, and this call adds 2" in message("run", "m.so", "--dim", "new=2", "--steps", "3", code=1)
    assert "is compiled already; --state comes with `baton compile`" in message("run", "m.so", "--state", "auto")
    assert "the model keeps states between calls" in message("bench", "m.so", "--dim", "new=2", code=1)
