# SPDX-License-Identifier: Apache-2.0
"""The road from import to code as a list: what `baton opt --print-pipeline` says is what runs."""

import subprocess
import sys

import pytest

import baton as tvm
from baton import relay
from baton._ffi import get_global_func
from baton.driver.passes import pipeline_lines
from baton.ir.instrument import PassTimingInstrument
from baton.transform import PassContext, parse_pipeline

HEAD = '#[version = "0.0.5"]\n'
DENSE = "def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(16, 8), float32]) { nn.relu(nn.dense(%x, %w)) }"


def split(text):
    """(lines of the model's passes, {heading: lines below it}, closing lines)"""
    road, parts, codes = [], {}, []
    for line in text.splitlines():
        if line.startswith("  # "):
            below = parts.setdefault(line[4:], [])
        elif line.startswith("  "):
            below.append(line[2:])
        elif line.startswith("# "):
            codes.append(line[2:])
        else:
            road.append(line)
    return road, parts, codes


def test_a_line_a_pass():
    road, parts, codes = split(pipeline_lines())
    assert road[0] == "InlineCompilerFunctions" and road[-2].startswith("FuseOps(") and road[-1] == "LowerToTIR"
    assert list(parts) == ["each kernel of cpu"] and parts["each kernel of cpu"][0] == "tir.StorageFlatten"
    assert len(codes) == 1 and codes[0].startswith("code of cpu: llvm")
    for line in road + parts["each kernel of cpu"]:
        parse_pipeline(line)


def test_its_lines_make_the_code():
    """The list as a text of passes gives the PrimFuncs that a build gives."""
    mod = relay.fromtext(HEAD + DENSE)
    road, _, _ = split(pipeline_lines())
    with PassContext(opt_level=3):
        lowered = parse_pipeline(f'Scheduled({",".join(road[:-1])},ends_with=["Typed"]),{road[-1]}')(mod)
        built = relay.build(mod, target="llvm")
    got = get_global_func("driver.Generate")(lowered, tvm.target.Target("llvm"))
    assert got.get_source("tir") == built.get_lib().get_source("tir")


def test_devices_are_planned_by_a_line():
    road, parts, codes = split(pipeline_lines({"cpu": "llvm", "opencl": "opencl"}))
    assert "PlanDevices(default_device=1)" in road and road[-1].startswith("LowerToTIR(devices={")
    assert list(parts) == ["each region of tensor work, for its device", "each kernel of cpu", "each kernel of opencl"]
    assert parts["each region of tensor work, for its device"] == split(pipeline_lines())[0][:-1]
    assert "tir.LowerIntrin" in parts["each kernel of opencl"] and "tir.StorageRewrite" not in parts["each kernel of opencl"]
    assert [line.split(":")[0] for line in codes] == ["code of cpu", "code of opencl"]


def test_passes_of_a_device_are_seen():
    timing = PassTimingInstrument()
    with PassContext(opt_level=3, instruments=[timing]):
        lib = relay.build(relay.fromtext(HEAD + DENSE), target="opencl")
        said = timing.render()
    assert "opencl.LowerPipeline" in said and "PlanDevices" in said
    assert "__kernel" in lib.get_lib().get_source("opencl")


def test_passes_that_joined_are_in_it():
    tvm.transform.join_pipeline("FoldConstant", after="FuseOps")
    try:
        road, _, _ = split(pipeline_lines())
        assert road[-2] == "FoldConstant" and road[-3].startswith("FuseOps(")
    finally:
        tvm.transform.leave_pipeline("FoldConstant")


@pytest.mark.parametrize("target, words", [("", ["LowerToTIR", "tir.VectorizeLoop\n"]), ("opencl", ["PlanDevices", "VectorizeLoop(enable_vectorize=false)"])])
def test_the_command_prints_it(target, words):
    flags = ["--target", target] if target else []
    run = subprocess.run([sys.executable, "-m", "baton", "opt", "--print-pipeline", *flags], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0 and run.stdout == pipeline_lines(target or None), run.stderr
    for word in words:
        assert word in run.stdout


def test_opt_chooses_for_a_target(tmp_path):
    (tmp_path / "m.relay").write_text(HEAD + DENSE)
    run = subprocess.run(
        [sys.executable, "-m", "baton", "opt", "m.relay", "--passes", "default,LowerToTIR", "--target", "llvm -mcpu=x86-64-v3"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "x8(" in run.stdout and "x16(" not in run.stdout
