# SPDX-License-Identifier: Apache-2.0
"""What inadmissible shapes and values of open models are answered with: input, dimension and bound. After each the next call works."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import baton


def beside(path):
    """A file of Python as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


models = beside(Path(__file__).with_name("models.py"))
f32 = models.f32
_made = {}


def model(name):
    if name not in _made:
        _made[name] = models.compiled(name)
    return _made[name]


def of(*values):
    return np.array(values, "int64")


# Model, arguments, class, message.
MESSAGES = [
    ("mlp", lambda: (f32(65, 6), f32(4, 6),), ValueError, "input `x` has shape (65, 6): n is 0 to 64"),
    ("mlp", lambda: (f32(3, 5), f32(4, 6),), ValueError, "input `x` has shape (n, 6), (3, 5) was given: dimension 1 is 6, not 5"),
    ("mlp", lambda: (f32(6), f32(4, 6),), ValueError, "input `x` has shape (n, 6), (6,) was given: 2 dimensions are wanted, not 1"),
    ("mlp", lambda: (f32(3, 6).astype("float64"), f32(4, 6),), TypeError, "input `x` is float32, float64 was given"),
    ("mlp", lambda: (f32(3, 6),), TypeError, "input `w` is missing; the inputs are x float32[n, 6], w float32[4, 6]"),
    ("mlp", lambda: (f32(3, 6), f32(4, 7),), ValueError, "input `w` has shape (4, 6), (4, 7) was given: dimension 1 is 6, not 7"),
    ("mlp", lambda: (f32(3, 6), f32(4, 6), f32(4, 6),), TypeError, "the model takes 2 inputs (x, w), 3 were given"),
    ("halves", lambda: (f32(3, 4),), ValueError, "input `x` has shape (3, 4): n is a multiple of 2"),
    ("halves", lambda: (f32(0, 4),), ValueError, "input `x` has shape (0, 4): n is 2 to 40"),
    ("halves", lambda: (f32(42, 4),), ValueError, "input `x` has shape (42, 4): n is 2 to 40"),
    ("masked", lambda: (f32(2, 3, 5), f32(2, 4),), ValueError, "input `mask` has shape (2, 4): n is 4, input `x` has n = 3"),
    ("masked", lambda: (f32(2, 3, 5), f32(3, 3),), ValueError, "input `mask` has shape (3, 3): b is 3, input `x` has b = 2"),
    ("masked", lambda: (f32(9, 3, 5), f32(9, 3),), ValueError, "input `x` has shape (9, 3, 5): b is 1 to 8"),
    ("masked", lambda: (f32(2, 33, 5), f32(2, 33),), ValueError, "input `x` has shape (2, 33, 5): n is 1 to 32"),
    ("masked", lambda: (f32(0, 3, 5), f32(0, 3),), ValueError, "input `x` has shape (0, 3, 5): b is 1 to 8"),
    ("masked", lambda: (f32(2, 3, 6), f32(2, 3),), ValueError, "input `x` has shape (b, n, 5), (2, 3, 6) was given: dimension 2 is 5, not 6"),
    ("scores", lambda: (f32(2, 3, 8), f32(3, 4, 8), f32(2, 1, 4),), ValueError, "input `k` has shape (3, 4, 8): b is 3, input `q` has b = 2"),
    ("scores", lambda: (f32(3, 3, 8), f32(3, 4, 8), f32(2, 1, 4),), ValueError, "<text>:3: add: extents m and b do not broadcast (b = 3, s = 3, t = 4, m = 2)"),
    ("scores", lambda: (f32(3, 3, 8), f32(3, 4, 8), f32(1, 1, 5),), ValueError, "input `m` has shape (1, 1, 5): t is 5, input `k` has t = 4"),
    ("cache", lambda: (f32(1, 4, 4), f32(1, 2, 4), f32(1, 5, 1),), ValueError, "input `bias` has shape (1, 5, 1), where the other inputs ask for n + p = 6 in dimension 1"),
    ("cache", lambda: (f32(1, 49, 4), f32(1, 2, 4), f32(1, 51, 1),), ValueError, "input `past` has shape (1, 49, 4): p is 0 to 48"),
    ("cache", lambda: (f32(1, 4, 4), f32(1, 0, 4), f32(1, 4, 1),), ValueError, "input `x` has shape (1, 0, 4): n is 1 to 16"),
    ("cache", lambda: (f32(2, 4, 4), f32(1, 2, 4), f32(1, 6, 1),), ValueError, "input `past` has shape (1, p, 4), (2, 4, 4) was given: dimension 0 is 1, not 2"),
    ("reshaped", lambda: (f32(4, 6), of(5, 5),), ValueError, "reshape: extents that follow from n, s[0], s[1] must be equal (n = 4)"),
    ("reshaped", lambda: (f32(4, 6), of(-1, -1),), ValueError, "reshape: extents that follow from n, s[0], s[1] must be equal (n = 4)"),
    ("reshaped", lambda: (f32(4, 6), of(-2, 6),), ValueError, "reshape: extents that follow from n, s[0], s[1] must be equal (n = 4)"),
    ("reshaped", lambda: (f32(4, 6), of(7, -1),), ValueError, "reshape: extents that follow from n, s[0], s[1] must be equal (n = 4)"),
    ("reshaped", lambda: (f32(4, 6), of(1 << 62, 4),), ValueError, "reshape: extents that follow from n, s[0], s[1] must be equal (n = 4)"),
    ("reshaped", lambda: (f32(4, 6), of(24),), ValueError, "input `s` has shape (2,), (1,) was given: dimension 0 is 2, not 1"),
    ("reshaped", lambda: (f32(4, 6), np.array([24, 1], "int32"),), TypeError, "input `s` is int64, int32 was given"),
    ("window", lambda: (f32(4, 3), of(0, 1), of(2),), ValueError, "input `from` has shape (1,), (2,) was given: dimension 0 is 1, not 2"),
    ("window", lambda: (f32(4, 4), of(0), of(2),), ValueError, "input `x` has shape (n, 3), (4, 4) was given: dimension 1 is 3, not 4"),
    ("best", lambda: (f32(4, 7), np.array(8),), baton.Error, "dyn.topk: k is 8 and the axis has 7 elements"),
    ("best", lambda: (f32(4, 7), np.array(1 << 40),), baton.Error, "dyn.topk: k is 1099511627776 and the axis has 7 elements"),
    ("best", lambda: (f32(4, 7), of(1),), ValueError, "input `k` has shape (), (1,) was given: 0 dimensions are wanted, not 1"),
    ("best", lambda: (f32(4, 7), np.array(2.0),), TypeError, "input `k` is int64, float64 was given"),
    ("filled", lambda: (f32(), of(-1, 3),), ValueError, "`s[0]` must be 0 to 2^40"),
    ("filled", lambda: (f32(), of(3, -(1 << 63)),), ValueError, "`s[1]` must be 0 to 2^40"),
    ("filled", lambda: (f32(), of(1 << 40, 1 << 40),), ValueError, "the shapes ask for more memory than there is by `s[0]`"),
    ("filled", lambda: (f32(), of(1 << 62, 4),), ValueError, "`s[0]` must be 0 to 2^40"),
    ("filled", lambda: (f32(), of(3),), ValueError, "input `s` has shape (2,), (1,) was given: dimension 0 is 2, not 1"),
    ("filled", lambda: (f32(1), of(3, 3),), ValueError, "input `v` has shape (), (1,) was given: 0 dimensions are wanted, not 1"),
    ("places", lambda: (f32(2, 4),), ValueError, "input `x` has shape (n, 3), (2, 4) was given: dimension 1 is 3, not 4"),
    ("places", lambda: (f32(2, 3).astype("int32"),), TypeError, "input `x` is float32, int32 was given"),
    ("image", lambda: (f32(1, 3, 1, 4), f32(4, 3, 3, 3),), ValueError, "input `x` has shape (1, 3, 1, 4): h is 2 to 40"),
    ("image", lambda: (f32(1, 3, 8, 41), f32(4, 3, 3, 3),), ValueError, "input `x` has shape (1, 3, 8, 41): w is 2 to 40"),
    ("image", lambda: (f32(1, 4, 8, 8), f32(4, 3, 3, 3),), ValueError, "input `x` has shape (n, 3, h, w), (1, 4, 8, 8) was given: dimension 1 is 3, not 4"),
    ("image", lambda: (f32(5, 3, 8, 8), f32(4, 3, 3, 3),), ValueError, "input `x` has shape (5, 3, 8, 8): n is 1 to 4"),
    ("tiled", lambda: (f32(2, 2), of(-1, 2),), ValueError, "`s[0]` must be 0 to 2^40 (n = 2)"),
    ("tiled", lambda: (f32(2, 2), of(1 << 40, 1 << 30),), ValueError, "the shapes ask for more memory than there is by `s[0]`, `s[1]` (n = 2)"),
    ("tiled", lambda: (f32(2, 2), of(1 << 62, 8),), ValueError, "`s[0]` must be 0 to 2^40 (n = 2)"),
    ("tiled", lambda: (f32(2, 3), of(1, 8),), ValueError, "input `x` has shape (n, 2), (2, 3) was given: dimension 1 is 2, not 3"),
]  # fmt: skip


@pytest.mark.parametrize("row", range(len(MESSAGES)), ids=[f"{name}-{i}" for i, (name, *_) in enumerate(MESSAGES)])
def test_message(row):
    name, args, kind, text = MESSAGES[row]
    with pytest.raises(kind) as caught:
        model(name)(*args())
    assert str(caught.value) == text
    good = models.TAKES[name](np.random.default_rng(row))
    models.agree(name, model(name)(*good), good)


def test_there_are_forty():
    assert len({text for *_, text in MESSAGES}) >= 40


def test_saved_models_say_the_same(tmp_path):
    loaded = {}
    for name, args, kind, text in MESSAGES:
        if name not in loaded:
            model(name).save(tmp_path / f"{name}.so")
            loaded[name] = baton.load(tmp_path / f"{name}.so")
        with pytest.raises(kind) as caught:
            loaded[name](*args())
        assert str(caught.value) == text


def test_generated_calls():
    """Some hundred of the calls that tests/fuzz/calls.py makes."""
    script = Path(__file__).parents[2] / "fuzz" / "calls.py"
    done = subprocess.run([sys.executable, script, "-n", "900"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    right, refused = map(int, re.search(r"(\d+) right, (\d+) refused", done.stdout).groups())
    assert right > 450 and refused > 90


def test_loops_that_need_extents():
    source = """#[version = "0.0.5"]
    def @main(%x: Tensor[(1, 1, h, w), float32]) { nn.relu(image.resize(%x, axes=[2, 3], size=[4, 5], method="linear", antialias=True)) }"""
    message = "`image.resize` has no code for shapes that are open: a resize against aliasing needs known factors"
    with pytest.raises(baton.error.CompileError, match=message):
        baton.compile(source)
    baton.compile(source.replace("h, w", "9, 7"))
