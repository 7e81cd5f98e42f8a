# SPDX-License-Identifier: Apache-2.0
"""Bad model files, inputs and places to write: one clear error each, exit code 1 (2 for usage), nothing left behind."""

import os
import subprocess
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
import limits  # noqa: E402
from onnx import helper  # noqa: E402
from onnx_files import node, value, write  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler")
VERBS = (["run"], ["compile", "-o", "out.so"], ["bench"])


BAD = {
    "cycle": dict(nodes=[node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]),
    "missing_initializer": dict(nodes=[node("Add", ["x", "w"], ["y"])]),
    "undefined_output": dict(nodes=[node("Relu", ["x"], ["z"])]),
    "wrong_shapes": dict(nodes=[node("MatMul", ["x", "w"], ["y"])], weights=[("w", np.zeros((3, 4), np.float32))]),
    "wrong_types": dict(nodes=[node("Add", ["x", "w"], ["y"])], weights=[("w", np.zeros(4, np.int64))]),
    "unknown_operator": dict(nodes=[node("Frobnicate", ["x"], ["y"])]),
    "unknown_opset": dict(nodes=[node("Relu", ["x"], ["y"])], opset=999),
    "unknown_domain": dict(nodes=[helper.make_node("Relu", ["x"], ["y"], domain="com.nobody")]),
    "unknown_attribute": dict(nodes=[node("Relu", ["x"], ["y"], slope=0.5)]),
    "defined_twice": dict(nodes=[node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])]),
}  # fmt: skip
WORDS = {
    "missing_initializer": "w",
    "unknown_operator": "Frobnicate",
    "unknown_opset": "999",
    "unknown_domain": "com.nobody",
    "unknown_attribute": "slope",
}


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize("name", BAD)
def test_bad_models(baton, tmp_path, name, verb):
    write(tmp_path / "m.onnx", **BAD[name])
    done = baton(verb[0], "m.onnx", *verb[1:], code=1)
    assert WORDS.get(name, "") in done.stderr and done.stdout == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx"]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_files_that_are_no_model(baton, tmp_path, verb):
    rng = np.random.default_rng(0)
    contents = {
        "random": rng.bytes(5000),
        "png": b"\x89PNG\r\n\x1a\n" + bytes(50),
        "zip": b"PK\x03\x04" + bytes(40),
        "nul": bytes(99),
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
        baton(verb[0], name, *verb[1:], code=1)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(contents)


def test_every_cut_of_a_model(baton, good, tmp_path):
    # The reader itself is tried with every cut elsewhere; here a few go through the whole command.
    whole = good.read_bytes()
    for size in (1, 7, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.onnx").write_bytes(whole[:size])
        done = baton("run", "cut.onnx", code=1)
        assert done.stdout == "" and done.stderr.startswith("error:") and "cut.onnx" in done.stderr, size


def test_several_unsupported_operators_are_one_error(tmp_path):
    # All of them, by name and with what is at fault: this list is not cut.
    nodes = [node("Frob", ["x"], ["n0"])] + [node("Nicate", [f"n{i}"], [f"n{i + 1}"]) for i in range(8)]
    write(tmp_path / "m.onnx", [*nodes, node("Relu", ["x"], ["y"], slope=1.0)])
    done = subprocess.run([sys.executable, "-m", "baton", "run", tmp_path / "m.onnx"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.startswith("error:")
    assert "10 parts" in done.stderr and "node `node_n0` (Frob)" in done.stderr and "attribute `slope`" in done.stderr
    assert all(f"node `node_n{i}` (Nicate)" in done.stderr for i in range(1, 9))


def test_wrong_inputs(baton, good, tmp_path):
    np.save(tmp_path / "f64.npy", np.zeros((1, 4)))
    np.save(tmp_path / "long.npy", np.zeros((1, 5), np.float32))
    (tmp_path / "none.npy").write_bytes(b"")
    assert "`z`" in baton("run", good, "-i", "z=ones", code=2).stderr
    assert "float64" in baton("run", good, "-i", "x=f64.npy", code=1).stderr
    assert "(1, 5)" in baton("run", good, "-i", "x=long.npy", code=1).stderr
    assert "none.npy" in baton("run", good, "-i", "x=none.npy", code=1).stderr
    assert "gone.npy" in baton("run", good, "-i", "x=gone.npy", code=1).stderr
    assert "`z`" in baton("run", good, "--shape", "z=1,4", code=2).stderr
    assert "output `z`" in baton("run", good, "--expect", "z=long.npy", code=2).stderr
    assert "(1, 5)" in baton("run", good, "--shape", "x=1,5", code=2).stderr


def test_wrong_target(baton, good):
    assert "zilog80" in baton("run", good, "--target", "zilog80", code=1).stderr
    assert "pentium99" in baton("run", good, "--target", "llvm -mcpu=pentium99", code=1).stderr


@pytest.mark.parametrize("option", [["--disable-pass", "FoldConstantt"], ["--pass-config", "relay.nonsense=1"]])
def test_unknown_pass_option(baton, good, option):
    done = subprocess.run([sys.executable, "-m", "baton", "run", good, *option], capture_output=True, text=True)
    assert option[1].split("=")[0] in done.stderr  # an error or a warning, but not silence


COMMAND = "import sys\nfrom baton.cli import main\nsys.exit(main({!r}))"


def test_read_only_directory(good, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    for emit in ("lib", "obj", "llvm", "relay"):
        command = COMMAND.format(["compile", str(good), "-o", "locked/m.out", "--emit", emit])
        done = limits.run(command, tmp_path, modes_hold=True)
        assert done.returncode == 1 and "locked" in done.stderr and "Traceback" not in done.stderr, done.stderr
        assert "read-only" in done.stderr or "ermission denied" in done.stderr
        assert not list((tmp_path / "locked").iterdir())


def test_disk_full_on_export(tmp_path):
    # The code is below the first limit, the artifact with its weights is not; and even the code exceeds the second.
    weights = [("w", np.arange(100_000, dtype=np.float32))]
    shape = [value("x", [1, 100_000])], [value("y", [1, 100_000])]
    write(tmp_path / "wide.onnx", [node("Add", ["x", "w"], ["y"])], weights, *shape)
    (tmp_path / "scratch").mkdir()
    for limit, words in ((200_000, "m.so"), (500, "cannot write")):
        command = COMMAND.format(["compile", "wide.onnx", "-o", "m.so"])
        done = limits.run(command, tmp_path, disk=limit, env={"TMPDIR": str(tmp_path / "scratch")})
        assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr, done.stderr
        assert sorted(p.name for p in tmp_path.rglob("*")) == ["scratch", "wide.onnx"]


def test_existing_file_survives_a_failed_export(baton, good, tmp_path):
    (tmp_path / "m.so").write_bytes(b"precious")
    write(tmp_path / "bad.onnx", **BAD["unknown_operator"])
    baton("compile", "bad.onnx", "-o", "m.so", code=1)
    assert (tmp_path / "m.so").read_bytes() == b"precious"


def test_damaged_artifacts(baton, good, tmp_path):
    baton("compile", good, "-o", "m.so")
    whole = (tmp_path / "m.so").read_bytes()
    baton("run", "m.so")
    for share in (0.001, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999):
        (tmp_path / "cut.so").write_bytes(whole[: int(len(whole) * share)])
        assert "cut.so" in baton("run", "cut.so", code=1).stderr
    (tmp_path / "foreign.so").write_bytes(b"\x7fELF" + os.urandom(5000))
    assert "foreign.so" in baton("run", "foreign.so", code=1).stderr


def test_foreign_shared_library(baton, tmp_path):
    # A sound shared object that Baton did not write must not be run, not even its initialisers.
    import _ctypes

    assert "error:" in baton("run", _ctypes.__file__, code=1).stderr
    assert "error:" in baton("inspect", _ctypes.__file__, code=1).stderr


@pytest.mark.parametrize(
    "text",
    ["", "def", "def @main(", "def @main(%x: Tensor[(2), float32]) { frobnicate(%x) }", "def @main() { %y }", "}" * 50, "(" * 20000],
)  # fmt: skip
def test_bad_relay(baton, tmp_path, text):
    (tmp_path / "in.relay").write_text(text)
    done = baton("opt", "in.relay", "--passes", "InferType", code=1)
    assert "in.relay:" in done.stderr or not text  # where


def test_unknown_pass(baton, tmp_path):
    (tmp_path / "in.relay").write_text("def @main() { () }")
    assert "FoldConstant" in baton("opt", "in.relay", "--passes", "FoldConstnat", code=2).stderr
