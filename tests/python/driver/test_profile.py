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


def adds_up(profile):
    """The rows and the stated rest are the call."""
    steps, total = profile["steps"], profile["total_us"]
    assert all(0 < step["us"] <= step["median_us"] and step["count"] > 0 for step in steps)
    assert profile["steps_us"] == pytest.approx(sum(step["us"] for step in steps))
    assert profile["rest_us"] >= 0 and profile["steps_us"] + profile["rest_us"] == pytest.approx(total)
    assert sum(step["share"] for step in steps) + profile["rest_us"] / total == pytest.approx(1)
    assert profile["call_us"] > 0 and 0 <= profile["between_us"] <= profile["rest_us"] and "between the steps" in str(profile)
    return profile


def test_times_and_shares_fit_together(profile):
    adds_up(profile)
    assert profile["peak_gflops"] > 0.5 and profile["bandwidth_gb"] > 0.1
    for step in profile["steps"]:
        seconds = max(step["gflop"] / profile["peak_gflops"], step["mb"] / 1e3 / profile["bandwidth_gb"])
        assert step["roofline"] == pytest.approx(seconds * 1e6 / step["us"])


def test_profiling_does_not_change_the_model():
    model, values = baton.compile(TEXT), arrays()
    before = [out.numpy().copy() for out in model(**values)]
    model.profile(values, rounds=1)
    assert all((a == b.numpy()).all() for a, b in zip(before, model(**values), strict=True))


def test_wrong_use_is_an_error(tmp_path):
    model = baton.compile(TEXT)
    with pytest.raises(TypeError, match="is missing"):
        model.profile(x=arrays()["x"])
    with pytest.raises(ValueError, match="dimension 3 is 20, not 21"):
        model.profile(**{**arrays(), "x": np.zeros((1, 8, 20, 21), np.float32)})
    with pytest.raises(ValueError, match="one round"):
        model.profile(**arrays(), rounds=0)


LOOP = """#[version = "0.0.5"]
def @loop(%n: int64, %x: Tensor[(4, 64), float32], %w: Tensor[(64, 64), float32]) -> Tensor[(4, 64), float32] {
  if (equal(%n, 0i64)) { %x } else { @loop(subtract(%n, 1i64), nn.relu(nn.dense(%x, %w)), %w) }
}
def @main(%x: Tensor[(4, 64), float32], %w: Tensor[(64, 64), float32]) { @loop(10i64, %x, %w) }
"""
OPEN = """#[version = "0.0.5"]
def @main(%x: Tensor[(n, 64), float32], %w: Tensor[(64, 64), float32]) {
  %0 = nn.dense(%x, %w);
  %1 = nn.softmax(%0);
  nn.dense(%1, %w)
}
"""
# The number of rows is a matter of values: two regions, with a function of the host between them.
REGIONS = """#[version = "0.0.5"]
def @main(%x: Tensor[(8, 64), float32], %w: Tensor[(64, 64), float32]) {
  %0 = nn.dense(%x, %w);
  %1 = argwhere(greater(%0, 0f));
  %2 = cast(%1, dtype="float32");
  sum(exp(%2), axis=[1])
}
"""


def filled(*shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, dtype=np.float32) * np.float32(0.05) for shape in shapes]


def same(a, b):
    """Equal to the bit."""
    a, b = (x if isinstance(x, tuple) else (x,) for x in (a, b))
    return len(a) == len(b) and all(x.numpy().tobytes() == y.numpy().tobytes() for x, y in zip(a, b, strict=True))


def kernels_of(model):
    """Names of all functions of a model's code."""
    import re

    return set(re.findall(r"@(\w+)", model.source("tir"))) | set(re.findall(r"^(fused_\w+):", model.source("asm"), re.MULTILINE))


CASES = {
    "static": (TEXT, [*SHAPES.values()], {"nn.conv2d": 1, "nn.dense": 1, "nn.softmax": 1}),
    "open": (OPEN, [(5, 64), (64, 64)], {"nn.dense": 2, "nn.softmax": 1}),
    "bytecode": (LOOP, [(4, 64), (64, 64)], {"nn.dense": 10, "equal": 11, "subtract": 10}),
    "regions": (REGIONS, [(8, 64), (64, 64)], {"nn.dense": 1, "argwhere": 1, "sum": 1}),
}


@pytest.mark.parametrize("saved", [False, True], ids=["compiled", "saved"])
@pytest.mark.parametrize("kind", CASES)
def test_the_rows_are_those_of_the_model_that_runs(kind, saved, tmp_path):
    """Kernels and host functions by name and count; the result is that of a call, to the bit."""
    text, shapes, counts = CASES[kind]
    model, values = baton.compile(text, disabled_pass=["AlterOpLayout", "PackDense"]), filled(*shapes)
    known = kernels_of(model)
    if saved:
        model.save(tmp_path / "m.so")
        model = baton.load(tmp_path / "m.so")
    want = model(*values)
    profile = adds_up(model.profile(*values, rounds=2))
    for operator, count in counts.items():
        ran = sum(step["count"] for step in profile["steps"] if operator in step["operators"].split(" + "))
        assert ran == count, (operator, profile["steps"])
    assert all(step["kernel"] in known or step["kernel"] in ("copy", "argwhere") for step in profile["steps"])
    assert all(step["source"].rpartition(":")[2].isdigit() for step in profile["steps"] if step["operators"] != "copy")
    assert same(profile.result, want) and same(model(*values), want)


def test_a_long_model_is_profiled_step_by_step():
    """Its entry is several functions."""
    from baton import relay

    x = relay.var("x", shape=(4, 8))
    y = x
    for _ in range(600):
        y = relay.annotation.stop_fusion(relay.nn.relu(y) - relay.const(np.float32(0.001)))
    model, a = baton.compile(relay.Function([x], y)), np.full((4, 8), 10, "float32")
    profile = adds_up(model.profile(a, rounds=1))
    assert len(profile["steps"]) == 600 and same(profile.result, model(a))


def test_a_model_without_names_is_one_row(tmp_path):
    model = baton.compile(OPEN, config={"llvm.debug_info": "none"})
    values = filled((5, 64), (64, 64))
    (row,) = adds_up(model.profile(*values, rounds=1))["steps"]
    assert row["operators"] == "all steps" and row["gflops"] is None


def test_a_session_stays_as_it_is():
    """Its states are those of the calls before."""
    from baton import relay

    n, past = baton.tir.Var("n", "int64"), baton.tir.Var("past", "int64")
    x, kept = relay.var("x", shape=(n, 4)), relay.var("past_x", shape=(past, 4))
    both = relay.concatenate([kept, x], axis=0)
    program = relay.Function([x, kept], relay.Tuple([relay.sum(both, axis=[0]), both]))
    mod = baton.IRModule.from_expr(program.with_attr("output_names", ["y", "present_x"]))
    model = baton.compile(mod, state={"past_x": "present_x"})
    session, a = model.session(), np.ones((3, 4), "float32")
    session(a)
    profile = adds_up(session.profile(a, rounds=2))
    assert session.length == 3 and (profile.result.numpy() == 6).all()
    assert (session(a).numpy() == 6).all() and session.length == 6
    assert (model.profile(a, rounds=1).result.numpy() == 3).all()


@pytest.mark.parametrize("rows", [5, 37])
def test_work_of_open_shapes_is_that_of_the_call(rows):
    """Operations and bytes are formulas of the extents."""
    values = filled((rows, 64), (64, 64))
    fixed = baton.compile(OPEN, shape={"x": (rows, 64)}).profile(*values, rounds=1)["steps"]
    steps = baton.compile(OPEN).profile(*values, rounds=2)["steps"]
    for key in ("gflop", "mb"):
        assert sum(s[key] for s in steps) == pytest.approx(sum(s[key] for s in fixed))
    assert all(s["gflops"] >= 0 and s["roofline"] > 0 for s in steps)


def test_work_of_what_only_some_extents_ask_for():
    """Floors, minima and conditions of extents: a pool, a slice up to a length, rows that broadcast."""
    from baton import relay

    n = baton.tir.Var("n", "int64")
    x = relay.var("x", shape=(n, 8))
    y = relay.annotation.stop_fusion(relay.strided_slice(x, [0, 0], [7, 8], [2, 1]))
    model = baton.compile(relay.Function([x], relay.exp(y)))
    for rows in (3, 6, 20):
        (of_exp,) = [s for s in model.profile(np.ones((rows, 8), "float32"), rounds=1)["steps"] if "exp" in s["operators"]]
        assert of_exp["gflop"] * 1e9 == pytest.approx(8 * len(range(0, min(rows, 7), 2)))


@pytest.mark.skipif(not baton.opencl().exist, reason="no OpenCL device")
def test_steps_of_a_device_are_rows():
    model, values = baton.compile(TEXT, target="opencl"), arrays()
    profile = adds_up(model.profile(*values.values(), rounds=1))
    assert any("nn.conv2d" in step["operators"] for step in profile["steps"]) and same(profile.result, model(**values))


def test_command_prints_a_table_or_json(tmp_path):
    (tmp_path / "m.relay").write_text(TEXT)
    run = [sys.executable, "-m", "baton", "bench", "m.relay", "--profile", "--rounds", "1"]
    shown = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "roofline  operators (source)" in shown and "m.relay:4" in shown and "% " in shown
    shown = subprocess.run([*run, "--top", "1"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert " more\n" in shown and "between the steps" in shown.splitlines()[-1]
    answer = json.loads(subprocess.run([*run, "--json"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout)
    assert answer["profile"]["steps"][0]["kernel"].startswith("fused_")
