# SPDX-License-Identifier: Apache-2.0
"""A profile has a row for each kernel: what it computes, where it comes from, how long it takes, how good that is."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("baton._core", reason="the extension is not built")

import baton  # noqa: E402

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8, 20, 20), float32], %w: Tensor[(16, 8, 3, 3), float32], %v: Tensor[(10, 16), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]);
  %1 = nn.relu(%0);
  %2 = nn.global_avg_pool2d(%1);
  %3 = nn.batch_flatten(%2);
  %4 = nn.dense(%3, %v);
  (nn.softmax(%4), %4)
}
"""
SHAPES = {"x": (1, 8, 20, 20), "w": (16, 8, 3, 3), "v": (10, 16)}


def arrays():
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in SHAPES.items()}


@pytest.fixture(scope="module")
def profile():
    return baton.compile(TEXT, disabled_pass=["AlterOpLayout", "PackDense"]).profile(**arrays(), rounds=3)


def test_rows_are_the_kernels_in_order(profile):
    operators = [step["operators"] for step in profile["steps"]]
    assert operators[0] == "nn.conv2d + nn.relu"
    assert operators[-1] in ("nn.softmax", "copy") and "nn.dense" in " ".join(operators)
    assert all(step["source"].endswith((":3", ":4", ":5", ":6", ":7", ":8")) for step in profile["steps"])


def test_counts_of_operations_and_bytes(profile):
    by_operator = {step["operators"].split(" + ")[0]: step for step in profile["steps"]}
    conv = by_operator["nn.conv2d"]
    # Two operations a multiply-add of 3x3x8, and one an element of the relu.
    assert conv["gflop"] * 1e9 == pytest.approx(2 * 16 * 400 * 72 + 16 * 400)
    assert conv["mb"] * 1e6 == pytest.approx(4 * (8 * 400 + 16 * 72 + 16 * 400))
    assert by_operator["nn.dense"]["gflop"] * 1e9 == pytest.approx(2 * 10 * 16)


def test_times_and_shares_fit_together(profile):
    assert all(0 < step["min_us"] <= step["median_us"] for step in profile["steps"])
    assert sum(step["share"] for step in profile["steps"]) == pytest.approx(1)
    assert profile["steps_us"] == pytest.approx(sum(step["min_us"] for step in profile["steps"]))
    assert profile["peak_gflops"] > 0.5 and profile["bandwidth_gb"] > 0.1 and profile["total_us"] > 0
    for step in profile["steps"]:
        seconds = max(step["gflop"] / profile["peak_gflops"], step["mb"] / 1e3 / profile["bandwidth_gb"])
        assert step["roofline"] == pytest.approx(seconds * 1e6 / step["min_us"])


def test_profiling_does_not_change_the_model():
    model, values = baton.compile(TEXT), arrays()
    before = [out.numpy().copy() for out in model(**values)]
    model.profile(values, rounds=1)
    assert all((a == b.numpy()).all() for a, b in zip(before, model(**values), strict=True))


def test_wrong_use_is_an_error(tmp_path):
    model = baton.compile(TEXT)
    with pytest.raises(TypeError, match="is missing"):
        model.profile(x=arrays()["x"])
    with pytest.raises(ValueError, match="shape or dtype"):
        model.profile(**{**arrays(), "x": np.zeros((1, 8, 20, 21), np.float32)})
    with pytest.raises(ValueError, match="one round"):
        model.profile(**arrays(), rounds=0)
    model.save(tmp_path / "m.so")
    with pytest.raises(baton.error.UnsupportedError, match="compile it from its source"):
        baton.load(tmp_path / "m.so").profile(**arrays())


def test_command_prints_a_table_or_json(tmp_path):
    (tmp_path / "m.relay").write_text(TEXT)
    run = [sys.executable, "-m", "baton", "bench", "m.relay", "--profile", "--rounds", "1"]
    shown = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "roofline  operators (source)" in shown and "m.relay:4" in shown and "% " in shown
    shown = subprocess.run([*run, "--top", "1"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert shown.rstrip().endswith("more")
    answer = json.loads(subprocess.run([*run, "--json"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout)
    assert answer["profile"]["steps"][0]["kernel"].startswith("fused_")
