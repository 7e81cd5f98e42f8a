# SPDX-License-Identifier: Apache-2.0
"""`te.extern` in compiled code by the name of a PackedFunc or of a C function: saved, and loaded by the runtime alone."""

import ctypes
import itertools
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import baton
from baton import relay, te, tir

CC = os.environ.get("CC", "cc")
pytestmark = pytest.mark.skipif(not shutil.which(CC), reason="no C compiler: apt-get install gcc")
X = np.array([3, 1, 2, 0], "float32")
SOURCE = """
int NAME(const float* x, float* y, int n, float by) {
  int i;
  for (i = 0; i < n; ++i) y[i] = x[i] * by;
  return 0;
}
"""
PACKED = "baton.register_func('by_name.scale', lambda x, y, by: y.copyfrom(x.numpy() * np.float32(by)), override=True)"
_numbers = itertools.count()


@pytest.fixture
def library(tmp_path):
    """(name of a C function that no library of this process has, the library that has it)."""
    name = f"by_name_scale_{os.getpid()}_{next(_numbers)}"
    (tmp_path / "scale.c").write_text(SOURCE.replace("NAME", name))
    subprocess.run([CC, "-O2", "-shared", "-fPIC", "scale.c", "-o", "libscale.so"], cwd=tmp_path, check=True)
    return name, tmp_path / "libscale.so"


def packed(x, y):
    return tir.call_packed("by_name.scale", x, y, 3.0)


def of_c(name):
    return lambda x, y: tir.call_extern("int32", name, x.access_ptr("r"), y.access_ptr("w"), 4, tir.const(3.0, "float32"))


def model(call, open_length=False):
    """exp of three times -x, and the three times come from outside."""
    name = f"by_name.op{next(_numbers)}"
    relay.op.op.register(name, "3 x").add_type_rel("Identity")
    relay.op.register_compute(name, lambda attrs, ins, out: [te.extern(ins[0].shape, [ins[0]], lambda i, o: call(i[0], o[0]), name="e", dtype="float32")])
    x = relay.var("x", shape=(relay.Any() if open_length else 4,))
    return baton.IRModule.from_expr(relay.Function([x], relay.exp(relay.Call(relay.op.get(name), [relay.negative(x)]))))


def function(call, target="llvm"):
    a = te.placeholder((4,), name="a")
    c = te.extern((4,), [a], lambda i, o: call(i[0], o[0]), name="c", dtype="float32")
    d = te.compute((4,), lambda i: c[i] + 1.0, name="d")
    return baton.build(te.create_schedule(d.op), [a, d], target, name="f")


def elsewhere(path, before, run):
    """What code prints in a process without the compiler, where `m` is the module of a file."""
    text = f"import baton, ctypes, numpy as np\n{before}\nm = baton.runtime.load_module({str(path)!r})\nx = np.array({X.tolist()}, 'float32')\n{run}"
    text += "\nfrom baton._ffi import compiler_loaded\nassert not compiler_loaded()"
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)


RUN_MODEL = "print(m['default'](baton.cpu())['run_with'](baton.nd.array(x))[0].numpy().tolist())"
RUN_FUNCTION = "out = baton.nd.array(np.zeros(4, 'float32'))\nm['f'](baton.nd.array(x), out)\nprint(out.numpy().tolist())"


def check(done, want):
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout), want, rtol=1e-6)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_packed_function(tmp_path, target):
    relay.build(model(packed), target).export_library(tmp_path / "m.so")
    function(packed, target).export_library(tmp_path / "f.so")
    check(elsewhere(tmp_path / "m.so", PACKED, RUN_MODEL), np.exp(-3 * X))
    check(elsewhere(tmp_path / "f.so", PACKED, RUN_FUNCTION), 3 * X + 1)
    missing = elsewhere(
        tmp_path / "m.so", "", f"for i in range(2):\n    try:\n        {RUN_MODEL}\n    except RuntimeError as e:\n        print(e)\n{PACKED}\n{RUN_MODEL}"
    )
    assert missing.returncode == 0, missing.stderr
    *errors, last = missing.stdout.splitlines()
    assert len(errors) == 2 and all("calls `by_name.scale`, which no imported module has and which is not registered" in e for e in errors)
    np.testing.assert_allclose(json.loads(last), np.exp(-3 * X), rtol=1e-6)


def test_a_packed_function_over_an_open_length(tmp_path):
    baton.compile(model(packed, open_length=True)).save(tmp_path / "m.so")
    check(elsewhere(tmp_path / "m.so", PACKED, RUN_MODEL), np.exp(-3 * X))


def test_a_c_function_that_this_process_lacks(tmp_path, library):
    """It is compiled and saved here, and runs where the library is; here too, once it is loaded."""
    name, path = library
    made = function(of_c(name))
    made.export_library(tmp_path / "m.so")
    check(elsewhere(tmp_path / "m.so", f"ctypes.CDLL({str(path)!r}, mode=ctypes.RTLD_GLOBAL)", RUN_FUNCTION), 3 * X + 1)
    without = elsewhere(tmp_path / "m.so", "", RUN_FUNCTION)
    assert without.returncode == 1 and "cannot load" in without.stderr and f"undefined symbol: {name}" in without.stderr

    def here():
        out = baton.nd.array(np.zeros(4, "float32"))
        made["f"](baton.nd.array(X), out)
        return out.numpy()

    with pytest.raises(baton.CompileError, match=f"calls `{name}`, which no library of this process has"):
        here()
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    np.testing.assert_allclose(here(), 3 * X + 1, rtol=1e-6)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_model_that_calls_a_c_function(tmp_path, library, target):
    name, path = library
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    lib = relay.build(model(of_c(name)), target)
    lib.export_library(tmp_path / "m.so")
    check(elsewhere(tmp_path / "m.so", f"ctypes.CDLL({str(path)!r}, mode=ctypes.RTLD_GLOBAL)", RUN_MODEL), np.exp(-3 * X))


@pytest.mark.parametrize("open_length", [False, True])
@pytest.mark.parametrize("kind", ["model", "program"])
def test_a_model_that_calls_a_c_function_that_this_process_lacks(tmp_path, library, kind, open_length):
    """It is built and saved here, and runs where the library is; here too, once it is loaded."""
    name, path = library
    mod = model(of_c(name), open_length)
    if kind == "model":
        lib = relay.build(mod, "llvm")
        lib.export_library(tmp_path / "m.so")
    else:
        lib = relay.vm.compile(mod, "llvm")
        lib.export_library(str(tmp_path / "m.so"))
    check(elsewhere(tmp_path / "m.so", f"ctypes.CDLL({str(path)!r}, mode=ctypes.RTLD_GLOBAL)", RUN_MODEL), np.exp(-3 * X))

    def here():
        if kind == "program":
            return baton.runtime.vm.VirtualMachine(lib, baton.cpu()).invoke("main", X).numpy()
        return lib["default"](baton.cpu())["run_with"](baton.nd.array(X))[0].numpy()

    for _ in range(2):
        with pytest.raises(baton.error.RuntimeError, match=f"calls `{name}`, which no library of this process has; load one that has it"):
            here()
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    np.testing.assert_allclose(here(), np.exp(-3 * X), rtol=1e-6)


def test_code_of_c_and_of_llvm_is_linked_in_turns(tmp_path):
    """Objects of C compilers refer to a table of the linker, those of LLVM do not: a link must not write to the table of the link before it."""
    text = f"""
import baton
from baton import te, tir

def build(target):
    a = te.placeholder((4,), name="a")
    c = te.extern((4,), [a], lambda i, o: tir.call_packed("by_name.scale", i[0], o[0], 3.0), name="c", dtype="float32")
    return baton.build(te.create_schedule(c.op), [a, c], target, name="f")

for n in range(40):
    build("c" if n % 2 else "llvm").export_library({str(tmp_path / "m.so")!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", text], env={**os.environ, "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
