# SPDX-License-Identifier: Apache-2.0
"""The verbs on models that work, and what the runtime alone must be able to do."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("onnx")
from onnx_files import node, value, write  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.fixture
def dynamic(tmp_path):
    """y = x @ w with a named batch dimension."""
    weights = [("w", np.arange(12, dtype=np.float32).reshape(4, 3))]
    return write(tmp_path / "dyn.onnx", [node("MatMul", ["x", "w"], ["y"])], weights,
                 inputs=[value("x", ["batch", 4])], outputs=[value("y", ["batch", 3])])  # fmt: skip


def test_run(baton, good, tmp_path):
    x = np.float32([[-1, 0.5, 3, 2]])
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "want.npy", np.float32([[0, 1.5, 2, 2]]))
    done = baton("run", good, "-i", "x=x.npy", "--save", "out.npz", "--expect", "y=want.npy")
    assert done.stdout.startswith("y  float32[1, 4]") and "1.5" in done.stdout and "compiled in" in done.stderr
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_allclose(out["y"], [[0, 1.5, 2, 2]])
    np.save(tmp_path / "want.npy", np.float32([[0, 1.5, 2.5, 2]]))
    assert "1 of 4" in baton("run", good, "-i", "x=x.npy", "--expect", "y=want.npy", code=1).stderr
    answer = json.loads(baton("run", good, "-i", "x=x.npy", "--json", "-q").stdout)
    assert answer["outputs"]["y"]["values"] == [[0, 1.5, 2, 2]]
    assert baton("run", good, "-q").stderr == ""


def test_run_is_repeatable(baton, good):
    first = baton("run", good, "--seed", "3").stdout
    assert baton("run", good, "--seed", "3", "--threads", "1").stdout == first
    assert baton("run", good, "--seed", "4").stdout != first


def test_dynamic_dimension(baton, dynamic, tmp_path):
    assert "open dimensions: batch=1" in baton("run", dynamic).stderr
    for batch in (1, 5):
        assert f"float32[{batch}, 3]" in baton("run", dynamic, "--dim", f"batch={batch}").stdout
    np.save(tmp_path / "x.npy", np.ones((7, 4), np.float32))
    out = baton("run", dynamic, "-i", "x=x.npy", "--save", "y.npy")
    assert "float32[7, 3]" in out.stdout
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.ones((7, 4)) @ np.arange(12).reshape(4, 3))


def test_artifact_runs_without_the_compiler(baton, good, tmp_path):
    baton("compile", good, "-o", "m.so")
    assert (tmp_path / "m.so").read_bytes()[:4] == b"\x7fELF"
    assert "float32[1, 4]" in baton("run", "m.so").stdout
    code = (
        "import sys; from baton.cli import main; code = main(['run', 'm.so', '-q']);"
        "maps = open('/proc/self/maps').read(); assert 'libbaton_runtime' in maps, 'the check sees nothing';"
        "print([name for name in ('libbaton.so', 'libLLVM', 'libclang', 'liblld') if name in maps]); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


def test_artifact_gives_the_same_bits(baton, good, tmp_path):
    baton("compile", good, "-o", "m.so")
    baton("run", good, "--save", "a.npy")
    baton("run", "m.so", "--save", "b.npy")
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_compiling_twice_gives_the_same_bytes(baton, good, tmp_path):
    baton("compile", good, "-o", "a.so")
    baton("compile", good, "-o", "b.so", "--threads", "1")
    assert (tmp_path / "a.so").read_bytes() == (tmp_path / "b.so").read_bytes()


@pytest.mark.parametrize("emit, word", [("relay", "def @main"), ("tir", "def @fused"), ("llvm", "define"), ("asm", ".text")])
def test_emit_text(baton, good, tmp_path, emit, word):
    done = baton("compile", good, f"--emit={emit}")
    assert word in done.stdout
    baton("compile", good, f"--emit={emit}", "-o", "out.txt")
    assert (tmp_path / "out.txt").read_text() == done.stdout


def test_emit_object(baton, good, tmp_path):
    baton("compile", good, "-o", "m.o")
    head = (tmp_path / "m.o").read_bytes()[:18]
    assert head[:4] == b"\x7fELF" and head[16] == 1  # ET_REL


def test_emitted_relay_can_be_run_through_opt(baton, good, tmp_path):
    (tmp_path / "m.relay").write_text(baton("compile", good, "--emit=relay").stdout)
    assert "def @main" in baton("opt", "m.relay", "--passes", "InferType").stdout


def test_opt(baton, tmp_path):
    (tmp_path / "in.relay").write_text('#[version = "0.0.5"]\ndef @main(%x: float32) -> float32 {\n  add(%x, multiply(2f, 3f))\n}\n')
    done = baton("opt", "in.relay", "--passes", "InferType,FoldConstant", "--timing")
    assert "6f" in done.stdout and "multiply" not in done.stdout
    assert "FoldConstant" in done.stderr and "ms [" in done.stderr
    piped = baton("opt", "-", "--passes", "InferType,FoldConstant", stdin=(tmp_path / "in.relay").read_text())
    assert piped.stdout == done.stdout and piped.stderr == ""
    baton("opt", "in.relay", "--passes", "InferType,FoldConstant", "-o", "out.relay")
    assert (tmp_path / "out.relay").read_text() == done.stdout
    names = baton("opt", "--list").stdout.split()
    assert {"InferType", "FoldConstant", "FuseOps"} <= set(names) and names == sorted(names)


def test_opt_with_options_printing_and_trace(baton, tmp_path):
    (tmp_path / "in.relay").write_text(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] {\n  exp(tanh(add(%x, multiply(2f, 3f))))\n}\n'
    )
    one = baton("opt", "in.relay", "--passes", "InferType,FuseOps(max_depth=1)").stdout
    assert one.count("Primitive=1") == 4 and baton("opt", "in.relay", "--passes", "FuseOps").stdout.count("Primitive=1") == 1
    done = baton("opt", "in.relay", "--passes", "InferType,FoldConstant", "--print-diff", "--print-changed", "--verify")
    assert "// IR diff of FoldConstant" in done.stderr and "diff of InferType" not in done.stderr
    assert "after Fold" in baton("opt", "in.relay", "--passes", "FoldConstant", "--print-after", "Fold*").stderr
    baton("opt", "in.relay", "--passes", "InferType,FoldConstant", "--print-to", "steps", "--print-after-all", "--trace", "t.json")
    assert len(list((tmp_path / "steps").iterdir())) == 3
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [e["name"] for e in events] == ["pipeline", "InferType", "FoldConstant"]
    off = baton("opt", "in.relay", "--passes", "FoldConstant", "--disable-pass", "FoldConstant").stdout
    assert "multiply" in off
    wrong = baton("opt", "in.relay", "--passes", "FoldConstant,FuseOp", code=2).stderr
    assert "1:14: there is no pass `FuseOp`" in wrong and "did you mean `FuseOps`" in wrong and "^~~~~~" in wrong


def test_explain_pipeline(baton, good, tmp_path):
    rows = baton("explain-pipeline", good).stdout.splitlines()
    assert ["InferType", "ran"] in [r.split()[:2] for r in rows] and any(r.split()[0] == "FuseOps" for r in rows)
    (tmp_path / "in.relay").write_text('#[version = "0.0.5"]\ndef @main(%x: float32) { add(%x, multiply(2f, 3f)) }\n')
    text = (tmp_path / "in.relay").read_text()
    listed = baton("explain-pipeline", "-", "--passes", "FoldConstant,EliminateCommonSubexpr", "-O", "2", "--json", stdin=text)
    found = json.loads(listed.stdout)
    assert [(r["pass"], r["action"]) for r in found] == [("FoldConstant", "ran"), ("EliminateCommonSubexpr", "skipped")]
    assert found[1]["why"] == "needs opt_level 3, the context has 2"
    inserted = baton("explain-pipeline", "in.relay", "--passes", 'Scheduled(FoldConstant,ends_with=["Typed"])').stdout.split()
    assert "inserted" in inserted and "needs" in inserted


def test_bench(baton, good):
    answer = json.loads(baton("bench", good, "--rounds", "2", "--json", "--threads", "1").stdout)
    assert 0 < answer["baton"]["min_ms"] <= answer["baton"]["median_ms"] and answer["compile_seconds"] > 0
    assert answer["peak_mb"] > 1 and answer["threads"] == 1
    assert "min " in baton("bench", good, "--rounds", "1").stdout


def test_bench_beside_a_peer(baton, good):
    pytest.importorskip("onnxruntime")
    answer = json.loads(baton("bench", good, "--rounds", "2", "--json", "--vs", "onnxruntime").stdout)
    assert answer["peers"]["onnxruntime"]["ratio_median"] > 0 and answer["peers"]["onnxruntime"]["difference"] < 1e-4
    assert "times onnxruntime's median" in baton("bench", good, "--rounds", "1", "--vs", "onnxruntime").stdout


def test_inspect(baton, good, dynamic, tmp_path):
    facts = json.loads(baton("inspect", good, "--json").stdout)
    assert facts["kind"] == "onnx" and facts["opset"] == 17 and facts["operators"] == {"Mul": 1, "Add": 1, "Relu": 1}
    assert facts["inputs"] == [{"name": "x", "dtype": "float32", "shape": [1, 4]}] and facts["weights"] == 2
    assert "batch" in baton("inspect", dynamic).stdout
    baton("compile", good, "-o", "m.so")
    facts = json.loads(baton("inspect", "m.so", "--json").stdout)
    assert facts["kind"] == "artifact" and facts["outputs"][0]["name"] == "y"
    write(tmp_path / "odd.onnx", [node("Frob", ["x"], ["a"]), node("Relu", ["a"], ["y"])])
    facts = json.loads(baton("inspect", "odd.onnx", "--json").stdout)
    assert len(facts["unsupported"]) == 1 and "Frob" in facts["unsupported"][0]  # no failure to say it


def test_version(baton):
    assert baton("--version").stdout.startswith("baton ")
