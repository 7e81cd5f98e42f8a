# SPDX-License-Identifier: Apache-2.0
"""A model is compiled once: saving and printing take what compilation left."""

import subprocess
import sys

import numpy as np
import pytest

import baton as tvm
from baton import relay, te
from baton._ffi import get_global_func

HEAD = '#[version = "0.0.5"]\n'
DENSE = "def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(16, 8), float32]) { nn.relu(nn.dense(%x, %w)) }"
MANY = "def @main(%x: Tensor[(4, 8), float32]) { nn.softmax(nn.batch_flatten(cumsum(nn.softmax(transpose(nn.softmax(%x))), axis=1))) }"
OPEN = "def @main(%x: Tensor[(n, 8), float32], %w: Tensor[(16, 8), float32]) { nn.relu(nn.dense(%x, %w)) }"
LOOP = "def @main(%x: Tensor[(4, 8), float32], %b: bool) { if (%b) { nn.relu(%x) } else { tanh(%x) } }"
PROGRAMS = {"static": DENSE, "many kernels": MANY, "open": OPEN, "control flow": LOOP}
ARM = "llvm -mtriple=aarch64-linux-gnu"


def compilations():
    return get_global_func("codegen.NumCompilations")()


def built(name, target="llvm"):
    return relay.build(relay.fromtext(HEAD + PROGRAMS[name]), target=target)


def functions():
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], name="plus")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_model_is_compiled_once(name, tmp_path):
    begin = compilations()
    made = built(name)
    once = compilations()
    assert once - begin >= 1
    made.export_library(tmp_path / "m.so")
    made.export_library(tmp_path / "again.so")
    if name != "control flow":
        made.save(tmp_path / "m.o")
    assert compilations() == once
    assert (tmp_path / "m.so").read_bytes() == (tmp_path / "again.so").read_bytes()


@pytest.mark.parametrize("target", ["llvm", ARM])
@pytest.mark.parametrize("name", PROGRAMS)
def test_code_is_made_by_one_compilation(name, target, tmp_path):
    """Constants are folded by code of their own: none is, here."""
    mod = relay.fromtext(HEAD + PROGRAMS[name])
    mod = get_global_func("driver.Optimize")(mod, tvm.target.Target(target))
    begin = compilations()
    made = get_global_func("driver.Generate")(mod, tvm.target.Target(target))
    assert compilations() == begin + 1
    made.export_library(tmp_path / "m.so")
    if name != "control flow":
        made.save(tmp_path / "m.o")
    assert compilations() == begin + 1, "for another kind of machine, too"


def test_an_executable_is_compiled_once(tmp_path):
    for target in ("llvm", ARM):
        model = tvm.compile(HEAD + MANY, target=target)
        begin = compilations()
        model.save(tmp_path / "m.so")
        model.save(tmp_path / "m.o", kind="obj")
        assert compilations() == begin


def test_functions_are_compiled_once(tmp_path):
    module = functions()
    begin = compilations()
    module.save(tmp_path / "f.o")
    module.export_library(tmp_path / "f.so")
    assert compilations() == begin
    x, y = tvm.nd.array(np.arange(8, dtype="float32")), tvm.nd.array(np.zeros(8, "float32"))
    tvm.runtime.load_module(tmp_path / "f.so")["plus"](x, y)
    np.testing.assert_array_equal(y.numpy(), np.arange(1, 9, dtype="float32"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_stages_are_kept(name):
    """LLVM writes its own text; it is handed the PrimFuncs that are there."""
    made = built(name)
    begin = compilations()
    assert "def @main" in made.get_source("relay") and "def @fused_" in made.get_source("tir")
    assert compilations() == begin
    assert "define i32 @fused_" in made.get_source("llvm") and "retq" in made.get_source("asm")
    assert compilations() == begin + 2
    assert made.get_source() == made.get_source("llvm")


def test_one_object_holds_all_kernels(tmp_path):
    """Code is made in two parts, which a user's linker gets as one object."""
    made = built("many kernels")
    made.save(tmp_path / "m.o")
    names = subprocess.run(["nm", "--defined-only", tmp_path / "m.o"], capture_output=True, text=True, timeout=60, check=True).stdout
    kernels = [line for line in made.get_source("tir").splitlines() if line.startswith("def @")]
    assert len(kernels) >= 4
    for line in kernels:
        assert " " + line.split("@")[1].split("(")[0] in names


def test_one_class_of_modules():
    """What it holds is its kind; all are saved and printed in one way."""
    made = {name: built(name).type_key for name in PROGRAMS} | {"functions": functions().type_key}
    assert made == {"static": "aot", "many kernels": "aot", "open": "aot", "control flow": "vm", "functions": "llvm"}


def test_text_is_saved_as_what_it_is(tmp_path):
    for name in PROGRAMS:
        made = built(name)
        for ending, word in ((".ll", "define i32"), (".s", "retq")):
            made.save(tmp_path / f"m{ending}")
            assert word in (tmp_path / f"m{ending}").read_text()
        made.save(tmp_path / "m.tir", "tir")
        assert (tmp_path / "m.tir").read_text() == made.get_source("tir")
        with pytest.raises(tvm.UnsupportedError, match="no file format \"junk\"; there are lib"):
            made.save(tmp_path / "m.junk", "junk")
        assert not (tmp_path / "m.junk").exists()


CHILD = """
import sys
import baton
model = baton.load(sys.argv[1])
assert "libbaton.so" not in open("/proc/self/maps").read()
print([model(*[__import__("numpy").ones(i.shape, i.dtype) for i in model.inputs]).numpy().sum().item()])
"""


def test_what_was_saved_runs_without_the_compiler(tmp_path):
    made = built("many kernels")
    made.export_library(tmp_path / "m.so")
    run = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "m.so")], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    want = made["default"](tvm.cpu())["call"](np.ones((4, 8), "float32")).numpy().sum().item()
    assert eval(run.stdout) == [want]
