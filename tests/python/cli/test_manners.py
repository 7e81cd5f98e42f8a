# SPDX-License-Identifier: Apache-2.0
"""What the command says to a slip: the nearest name, the mistake before the work."""

import os

import numpy as np
import pytest

import baton as tvm
from baton import relay


@pytest.mark.parametrize("args, near", [
    (["rum", "m.onnx"], "did you mean `run`?"), (["explain-pipelines", "m.onnx"], "did you mean `explain-pipeline`?"),
    (["run", "m.onnx", "--treads", "3"], "did you mean `--threads`?"), (["compile", "m.onnx", "--ouput=m.so"], "did you mean `--output`?"),
    (["--versoin"], "did you mean `--version`?"),
])  # fmt: skip
def test_the_nearest_verb_and_flag(baton, args, near):
    assert near in baton(*args, code=2).stderr


@pytest.mark.parametrize("find, near", [
    (lambda: relay.nn.con2d, "nn.conv2d"), (lambda: relay.softmx, "nn.softmax"), (lambda: relay.op.sigmiod, "sigmoid"), (lambda: tvm.compil, "compile"),
    (lambda: relay.transform.FoldConstnt, "FoldConstant"), (lambda: tvm.tir.transform.UnrolLoop, "UnrollLoop"), (lambda: relay.tranform, "transform"),
])  # fmt: skip
def test_the_nearest_name_in_python(find, near):
    with pytest.raises(AttributeError, match=f"did you mean `{near}`"):
        find()


def test_names_that_nothing_resembles():
    with pytest.raises(AttributeError) as error:
        relay.nn.quux_frobnicate  # noqa: B018
    assert "did you mean" not in str(error.value)
    assert not hasattr(relay, "_repr_mimebundle_")


def test_c_is_written(baton, compiler, good, tmp_path):
    baton("compile", good, "-o", str(tmp_path / "net.c"))
    assert "int net_run(" in (tmp_path / "net.h").read_text() and "net_run" in (tmp_path / "net.c").read_text()
    assert "int32_t" in baton("compile", good, "--emit", "c").stdout


def test_a_foreign_processor(baton, compiler, good):
    target = "llvm -mtriple=riscv64-unknown-linux-gnu"
    assert "does not run on this machine" in baton("run", good, "--target", target, code=1).stderr
    for name in ("m.so", "m.o", "m.s"):
        baton("compile", good, "--target", target, "-o", name)
    assert "compiled for riscv64, this machine is" in baton("run", "m.so", code=1).stderr
    model = tvm.compile(str(good), target=target)
    with pytest.raises(tvm.UnsupportedError, match="riscv64 does not run on this machine.*deploy"):
        model(*(np.zeros(info.shape, info.dtype) for info in model.inputs))


def open_model(tmp_path):
    """y = x + w for any number of rows, w in a file of its own."""
    onnx = pytest.importorskip("onnx")
    from onnx_files import node, value, write

    path = write(tmp_path / "m.onnx", [node("Add", ["x", "w"], ["y"])], [("w", np.ones(4096, "float32"))],
                 inputs=[value("x", ["n", 4096])], outputs=[value("y", ["n", 4096])])  # fmt: skip
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    return path


def test_what_is_wrong_is_said_when_a_model_of_open_shapes_is_compiled(compiler, tmp_path):
    path = str(open_model(tmp_path))
    assert tvm.compile(path)(np.zeros((2, 4096), "float32")).shape == (2, 4096)
    for target, error in [("vulkan", tvm.UnsupportedError), ("llvm -mcpu=nonsense", ValueError)]:
        with pytest.raises(error):
            tvm.compile(path, target=target)
    os.truncate(tmp_path / "w.bin", 100)
    with pytest.raises(tvm.error.CompileError, match="truncated"):
        tvm.compile(path)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(tvm.error.CompileError, match="no such file"):
        tvm.compile(path)


def test_a_model_is_saved_as_what_there_is(compiler, good, tmp_path):
    model = tvm.compile(str(good))
    for kind in ("junk", ""):
        with pytest.raises(tvm.UnsupportedError, match="`lib`, `obj` or `c`"):
            model.save(tmp_path / "m", kind=kind)
    with pytest.raises(tvm.UnsupportedError, match='no file format "c"'):
        model.save(tmp_path / "m", kind="c")
    with pytest.raises(tvm.UnsupportedError, match="no file format"):
        model.module.save(tmp_path / "m", "junk")
    assert not (tmp_path / "m").exists()
    model.save(tmp_path / "m.o", kind="obj")
    with pytest.raises(tvm.UnsupportedError, match="no file format"):
        relay.vm.compile(relay.fromtext("def @main(%x: Tensor[(?), float32]) { nn.relu(%x) }\n"), target="llvm").mod.save(tmp_path / "m", "junk")


def test_paths_of_bytes_and_of_several_lines(compiler, good, tmp_path):
    odd = tmp_path / "two\nlines.onnx"
    odd.write_bytes(good.read_bytes())
    x = np.zeros((1, 4), "float32")
    for path in (odd, str(odd), os.fsencode(odd), os.fsencode(good), good):
        assert tvm.compile(path)(x).shape == (1, 4)
    for name in ("a.so", "b\nb.so"):
        for path in (tmp_path / name, os.fsencode(tmp_path / name)):
            tvm.compile(good).save(path)
            assert tvm.load(path)(x).shape == (1, 4)
            tvm.compile(good).module.export_library(path)
            assert tvm.runtime.load_module(path) is not None


def test_opt_reads_onnx(baton, compiler, good):
    out = baton("opt", good, "--passes", "InferType,FoldConstant").stdout
    assert "def @main(%x: Tensor[(1, 4), float32]" in out and "nn.relu" in out
    assert "is compiled already" in baton("opt", compiled(baton, good), "--passes", "InferType", code=2).stderr


def compiled(baton, good):
    baton("compile", good, "-o", "good.so")
    return "good.so"
