# SPDX-License-Identifier: Apache-2.0
"""Modules that are linked into a program in C with gcc: `export_library("m.tar")`, unpacked, and `system_lib` of the runtime alone."""

import os
import platform
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

import baton
from baton import relay, te
from baton.config import include_dir
from baton.contrib.tar import untar
from baton.driver.plugin import partition_for_plugin

LIB = Path(baton.__file__).resolve().parent / "lib"
CC = os.environ.get("CC", "cc")
PLUGIN = Path(__file__).parents[3] / "examples" / "accelerator" / "plugin.c"
pytestmark = pytest.mark.skipif(not shutil.which(CC), reason="no C compiler: apt-get install gcc")

MAIN = r"""
#include <baton/runtime/c_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int Check(int rc, const char* what) {
  if (rc == 0) return rc;
  printf("%s: %s: %s\n", what, BatonErrorKind(), BatonErrorMessage());
  exit(1);
}
static BatonObject* Function(BatonObject* module, const char* name) {
  BatonObject* f = NULL;
  Check(BatonModuleGetFunction(module, name, 0, &f), name);
  if (f) return f;
  printf("the module has no function `%s`\n", name);
  exit(1);
}
static BatonValue Text(const char* s) {
  BatonValue v = {kBatonStr, 0, {0}};
  v.v_str = s;
  return v;
}
static BatonValue Call(const char* name, const BatonValue* args, int n) {
  BatonObject* f = NULL;
  BatonValue ret;
  Check(BatonFuncGetGlobal(name, &f), name);
  Check(f == NULL, name);
  Check(BatonFuncCall(f, args, n, &ret), name);
  BatonObjectRelease(f);
  return ret;
}

/* ROWS x COLUMNS floats of the standard input, through the model or the function NAME; the first result's bytes. */
int main(int argc, char** argv) {
  BatonValue arg = Text(""), module, executor, tensors[2], outputs;
  const BatonValue* items;
  BatonObject *make = NULL, *run = NULL;
  int64_t shape[2], i;
  size_t n;
  DLTensor t, *out = &t;
  float data[256], result[256];
  memset(&t, 0, sizeof t);
  shape[0] = atoi(argv[1]);
  shape[1] = atoi(argv[2]);
  if (fread(data, 4, (size_t)(shape[0] * shape[1]), stdin) == 0) return 2;
  t.device.device_type = kDLCPU;
  t.data = data;
  t.ndim = 2;
  t.dtype.code = kDLFloat;
  t.dtype.bits = 32;
  t.dtype.lanes = 1;
  t.shape = shape;
  tensors[0].type_code = kBatonTensor;
  tensors[0].zero = 0;
  tensors[0].v_tensor = &t;
  if (argc > 4) {
    arg = Text(argv[4]);
    Call("vm.LoadJsonPlugin", &arg, 1);
    arg = Text("");
  }
  module = Call("vm.SystemLib", &arg, 1);
  if (strcmp(argv[3], "default") == 0) {
    make = Function(module.v_obj, "default");
    Check(BatonFuncCall(make, NULL, 0, &executor), "executor");
    run = Function(executor.v_obj, "run_with");
    Check(BatonFuncCall(run, tensors, 1, &outputs), "run");
    Check(BatonArrayView(outputs.v_obj, &items, &n), "outputs");
    Check(BatonTensorView(items[0].v_obj, &out), "output");
  } else {
    DLTensor made = t;
    made.data = result;
    tensors[1] = tensors[0];
    tensors[1].v_tensor = &made;
    run = Function(module.v_obj, argv[3]);
    Check(BatonFuncCall(run, tensors, 2, &outputs), argv[3]);
    t.data = result;
  }
  for (n = 4, i = 0; i < out->ndim; ++i) n *= (size_t)out->shape[i];
  for (i = 0; i < (int64_t)n; ++i) printf("%02x", ((unsigned char*)out->data)[i]);
  printf("\n");
  return 0;
}
"""
X = np.linspace(-2, 2, 6, dtype="float32").reshape(2, 3)


def linked(module, folder):
    """The program that the archive of a module is linked into; it needs the runtime alone."""
    module.export_library(folder / "m.tar")
    with tarfile.open(folder / "m.tar") as tar:
        code = next(n for n in tar.getnames() if n.startswith("code."))
    untar(folder / "m.tar", folder)
    (folder / "main.c").write_text(MAIN)
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-rdynamic", f"-I{include_dir()}"]
    libraries = [f"-L{LIB}", "-Wl,--no-as-needed", "-lbaton_vm", "-lbaton_runtime", f"-Wl,-rpath,{LIB}", "-lm"]
    subprocess.run([CC, *flags, "main.c", code, "data.s", *libraries, "-o", "program"], cwd=folder, check=True)
    needed = re.findall(r"NEEDED.*\[(.*)\]", subprocess.run(["readelf", "-d", "program"], cwd=folder, capture_output=True, text=True, check=True).stdout)
    assert [n for n in needed if "baton" in n] == ["libbaton_vm.so", "libbaton_runtime.so"]
    for name in ("m.tar", code, "data.s", "constants.bin", "manifest.json", "imports.bin"):
        (folder / name).unlink(missing_ok=True)  # all is in the program
    return folder / "program"


def run(program, *more, name="default"):
    env = {**os.environ, "PATH": "/nowhere"}  # no compiler is at hand
    done = subprocess.run([program, "2", "3", name, *map(str, more)], input=X.tobytes(), capture_output=True, check=False, env=env)
    return done.returncode, done.stdout.decode()


def expect(program, want, *more, name="default"):
    code, said = run(program, *more, name=name)
    assert code == 0, said
    assert said.strip() == np.ascontiguousarray(want).tobytes().hex()


def result(lib):
    return lib["default"](baton.cpu())["run_with"](baton.nd.array(X))[0].numpy()


def dense():
    x = relay.var("x", shape=(2, 3))
    weight = relay.const(np.random.default_rng(1).standard_normal((4, 3)).astype("float32"))
    return baton.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.dense(relay.exp(x), weight))))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_model(tmp_path, target):
    """MO-011: its weights are the program's data; nothing else is there when it runs."""
    lib = relay.build(dense(), target)
    expect(linked(lib, tmp_path), result(lib))


def test_a_program_with_control_flow(tmp_path):
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { if (less(sum(%x), 1f)) { add(%x, 1f) } else { exp(%x) } }'
    expect(linked(relay.vm.compile(relay.fromtext(text), "llvm").mod, tmp_path), X + 1)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_functions(tmp_path, target):
    a = te.placeholder((2, 3), name="a")
    func = te.create_prim_func([a, te.compute((2, 3), lambda i, j: a[i, j] * 2.0, name="b")], target=target)
    lib = baton.build(baton.IRModule({n: func.with_attr("global_symbol", n) for n in ("twice", "again")}), target=target)
    program = linked(lib, tmp_path)
    expect(program, X * 2, name="again")
    for absent in ("absent", "default"):
        assert run(program, name=absent) == (1, f"the module has no function `{absent}`\n")


def partitioned():
    x = relay.var("x", shape=(2, 3))
    region = relay.annotation.compiler_end(relay.nn.relu(relay.add(relay.annotation.compiler_begin(x, "ccompiler"), relay.const(1.0))), "ccompiler")
    return relay.transform.PartitionGraph()(relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x], relay.exp(region)))))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_code_of_another_generator(tmp_path, target):
    """Its module is a library of its own, in the program's data."""
    lib = relay.build(partitioned(), target)
    assert len(lib.imported_modules) == 1
    expect(linked(lib, tmp_path), result(lib))


def test_a_chip_in_c(tmp_path):
    """A plug-in's graph is in the program; the plug-in is loaded first."""
    subprocess.run([CC, "-std=c99", "-O2", "-fPIC", "-shared", f"-I{include_dir()}", PLUGIN, "-o", "libtiny.so"], cwd=tmp_path, check=True)
    baton.runtime.load_plugin(tmp_path / "libtiny.so")
    x = relay.var("x", shape=(2, 3))
    mod = partition_for_plugin(baton.IRModule.from_expr(relay.Function([x], relay.exp(relay.nn.relu(relay.multiply(x, x))))), "tiny")
    lib = relay.build(mod, "llvm")
    program = linked(lib, tmp_path)
    expect(program, result(lib), tmp_path / "libtiny.so")
    code, said = run(program)
    assert code == 1 and "no function `runtime.module.loadbinary_tiny` is registered" in said


def test_code_without_its_data_says_what_to_link(tmp_path):
    """The code's symbols alone: functions are found, a model is not."""
    lib = relay.build(dense(), "llvm")
    lib.export_library(tmp_path / "m.tar")
    untar(tmp_path / "m.tar", tmp_path)
    (tmp_path / "main.c").write_text(MAIN)
    text = (tmp_path / "data.s").read_text()
    (tmp_path / "half.s").write_text(text.replace("baton_constants", "other_constants"))
    manifest = (tmp_path / "manifest.json").read_text()
    (tmp_path / "manifest.json").write_text(manifest.replace(platform.machine(), "vax"))
    flags = ["-rdynamic", f"-I{include_dir()}", "code.o"]
    libraries = [f"-L{LIB}", "-Wl,--no-as-needed", "-lbaton_vm", "-lbaton_runtime", f"-Wl,-rpath,{LIB}", "-lm", "-o", "program"]
    for file, said in (
        ("main.c", "has no function `default`"),
        ("data.s", "the model that is linked into the program: compiled for vax, this machine is"),
        ("half.s", "the program has `baton_manifest` and no `baton_constants`: link all of data.s"),
    ):
        if file == "half.s":
            (tmp_path / "manifest.json").write_text(manifest)
        subprocess.run([CC, *flags, *{"main.c", file}, *libraries], cwd=tmp_path, check=True)
        code, out = run(tmp_path / "program")
        assert code == 1 and said in out
