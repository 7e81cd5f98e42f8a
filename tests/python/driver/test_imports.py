# SPDX-License-Identifier: Apache-2.0
"""Modules that compiled code imports: code generators of others, saved with the model and loaded by the runtime alone."""

import hashlib
import json
import random
import struct
import subprocess
import sys

import numpy as np
import pytest

import baton
from baton import relay
from baton.contrib import graph_executor
from baton.runtime import create_module
from baton.runtime.vm import VirtualMachine

LOADER = '''
import json, numpy as np, baton

@baton.register_func("runtime.module.loadbinary_scaler", override=True)
def load(data):
    said = json.loads(bytes(data))
    def run(*arrays):
        arrays[-1].copyfrom(arrays[0].numpy() * np.float32(said["factor"]))
    return baton.runtime.create_module("scaler", {said["symbol"]: run}, binary=bytes(data), source=json.dumps(said))
'''
exec(LOADER)  # noqa: S102 - the very text that another process runs
load = globals()["load"]


@pytest.fixture(autouse=True)
def generator():
    def scaler(func):
        return load(json.dumps({"symbol": str(func.attrs["global_symbol"]), "factor": 7.0}).encode())

    baton.register_func("relay.ext.scaler", scaler, override=True)
    yield
    baton._ffi.registry.remove_global_func("relay.ext.scaler")


def program():
    """relu(x), which is for `scaler` (it multiplies by 7), and 1 more; twice."""
    x = relay.var("x", shape=(4,))

    def region(value):
        return relay.annotation.compiler_end(relay.nn.relu(relay.annotation.compiler_begin(value, "scaler")), "scaler")

    mod = baton.IRModule.from_expr(relay.Function([x], relay.add(region(relay.exp(region(x))), relay.const(1.0))))
    return relay.transform.PartitionGraph()(relay.transform.InferType()(mod))


X = np.linspace(-1, 1, 4, dtype="float32")
WANT = np.exp(X * 7) * 7 + 1


def elsewhere(path, code, loader=LOADER):
    """The output of code in a process without the compiler, where `path` is the model."""
    text = f"{loader}\nimport numpy as np\nx = np.linspace(-1, 1, 4, dtype='float32')\npath = {str(path)!r}\n{code}"
    text += "\nfrom baton._ffi import compiler_loaded\nassert not compiler_loaded()"
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)


RUNS = {
    "load": "print(baton.load(path)(x).numpy().tolist())",
    "graph": "m = baton.contrib.graph_executor.GraphModule(baton.runtime.load_module(path)['default'](baton.cpu()))\n"
    "m.run(x=x)\nprint(m.get_output(0).numpy().tolist())",
    "vm": "from baton.runtime.vm import VirtualMachine\nprint(VirtualMachine(baton.runtime.load_module(path), baton.cpu()).invoke('main', x).numpy().tolist())",
}


@pytest.mark.parametrize("how", ["build", "vm", "compile", "two functions"])
def test_code_of_another_generator_is_saved_and_loaded_by_the_runtime_alone(tmp_path, how):
    path = tmp_path / "m.so"
    if how == "build":
        lib = relay.build(program(), "llvm")
        here = graph_executor.GraphModule(lib["default"](baton.cpu()))
        here.run(x=X)
        got = here.get_output(0)
        assert [m.type_key for m in lib.imported_modules] == ["scaler", "scaler"]
        lib.export_library(path)
    elif how == "compile":
        model = baton.compile(program())
        got = model(X)
        model.save(path)
    else:
        mod = program()
        if how == "two functions":
            y = relay.var("y", shape=(4,))
            mod["other"] = relay.Function([y], relay.negative(y))
        exe = relay.vm.compile(mod, "llvm")
        got = VirtualMachine(exe, baton.cpu()).invoke("main", X)
        exe.export_library(path)
    np.testing.assert_allclose(got.numpy(), WANT, rtol=1e-6)
    for kind, code in RUNS.items():
        if (kind == "vm") == (how == "two functions") or kind == "load":
            done = elsewhere(path, code)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout) == got.numpy().tolist()


def test_saved_again_after_loading(tmp_path):
    relay.build(program(), "llvm").export_library(tmp_path / "a.so")
    baton.runtime.load_module(tmp_path / "a.so").export_library(tmp_path / "b.so")
    assert (tmp_path / "a.so").read_bytes() == (tmp_path / "b.so").read_bytes()
    np.testing.assert_allclose(baton.load(tmp_path / "b.so")(X).numpy(), WANT, rtol=1e-6)


def test_the_manifest_lists_imports(tmp_path):
    relay.build(program(), "llvm").export_library(tmp_path / "m.so")
    rows = json.loads(baton.runtime.load_module(tmp_path / "m.so").get_source("json"))["imports"]
    data = [load_data for load_data in (m.get_source() for m in baton.runtime.load_module(tmp_path / "m.so").imported_modules)]
    assert [(r["key"], r["imports"]) for r in rows] == [("scaler", [])] * 2
    assert [r["sha256"] for r in rows] == [hashlib.sha256(d.encode()).hexdigest() for d in data]


def test_code_of_this_compiler_is_an_import_too(tmp_path):
    from baton import te

    a = te.placeholder((4,), name="A")
    b = te.compute(a.shape, lambda i: a[i] + 2.0, name="B")
    baton.register_func("relay.ext.scaler", lambda f: baton.build(te.create_schedule(b.op), [a, b], "llvm", name=str(f.attrs["global_symbol"])), override=True)
    lib = relay.build(program(), "llvm")
    lib.export_library(tmp_path / "m.so")
    done = elsewhere(tmp_path / "m.so", RUNS["load"], "import baton")
    np.testing.assert_allclose(json.loads(done.stdout), np.exp(X + 2) + 3, rtol=1e-6)


def test_imports_are_a_graph_and_shared_ones_are_saved_once(tmp_path):
    """Two modules that import one: it is one after loading, too."""
    below = create_module("scaler", {}, binary=b'{"symbol": "below", "factor": 2}')
    sides = [create_module("scaler", {}, binary=json.dumps({"symbol": s, "factor": 3}).encode()) for s in ("left", "right")]
    for side in sides:
        side.import_module(below)
    lib = relay.build(baton.IRModule.from_expr(relay.Function([x := relay.var("x", shape=(4,))], relay.exp(x))), "llvm")
    for side in sides:
        lib.import_module(side)
    lib.export_library(tmp_path / "m.so")
    loaded = baton.runtime.load_module(tmp_path / "m.so")
    left, right = loaded.imported_modules
    assert left.implements_function("left") and right.implements_function("right")
    assert left.imported_modules[0].same_as(right.imported_modules[0])
    assert len(json.loads(loaded.get_source("json"))["imports"]) == 3
    with pytest.raises(ValueError, match="cannot import itself"):
        below.import_module(sides[0])


# ---- Generators that fail
def boom(func):
    raise ZeroDivisionError("no such convolution")


@pytest.mark.parametrize(
    ("made", "error", "said"),
    [
        (lambda f: 3, TypeError, r"relay\.ext\.scaler gave int for `\S+`, where a runtime\.Module is wanted"),
        (lambda f: None, TypeError, r"relay\.ext\.scaler gave NoneType"),
        (lambda f: create_module("scaler", {"another": print}), baton.CompileError, r"gave a module of kind `scaler` without a function"),
        (boom, baton.CompileError, r"relay\.ext\.scaler failed on `\S+`: ZeroDivisionError: no such convolution"),
    ],
)
@pytest.mark.parametrize("build", [lambda m: relay.build(m, "llvm"), lambda m: relay.vm.compile(m, "llvm"), baton.compile])
def test_a_generator_that_fails_is_one_error(made, error, said, build):
    baton.register_func("relay.ext.scaler", made, override=True)
    with pytest.raises(error, match=said):
        build(program())


def test_a_missing_generator_is_said():
    mod = program()
    baton._ffi.registry.remove_global_func("relay.ext.scaler")
    with pytest.warns(UserWarning, match=r"no `relay\.ext\.scaler` is registered: Baton's own kernels compute 2 function"):
        model = baton.compile(mod)
    baton.register_func("relay.ext.scaler", boom)
    np.testing.assert_allclose(model(X).numpy(), np.maximum(np.exp(np.maximum(X, 0)), 0) + 1, rtol=1e-6)


def test_what_cannot_be_saved_is_said(tmp_path):
    symbol = []

    def unsaved(func):
        symbol.append(str(func.attrs["global_symbol"]))
        return create_module("scaler", {symbol[-1]: lambda a, out: out.copyfrom(a)})

    baton.register_func("relay.ext.scaler", unsaved, override=True)
    lib = relay.build(program(), "llvm")
    with pytest.raises(baton.UnsupportedError, match="imports one of kind `scaler`, which cannot be saved"):
        lib.export_library(tmp_path / "m.so")
    assert not list(tmp_path.iterdir())


# ---- Loaders that fail
@pytest.mark.parametrize(
    ("loader", "said"),
    [
        ("import baton", "no function `runtime.module.loadbinary_scaler` is registered"),
        ("import baton\nbaton.register_func('runtime.module.loadbinary_scaler', lambda data: 3)", "gave int, where a runtime.Module is wanted"),
        ("import baton\nbaton.register_func('runtime.module.loadbinary_scaler', lambda data: {}[0])", "cannot load import `scaler`"),
    ],
)
def test_a_loader_that_fails_is_one_error_and_the_process_goes_on(tmp_path, loader, said):
    relay.build(program(), "llvm").export_library(tmp_path / "m.so")
    code = "try:\n    baton.load(path)\nexcept RuntimeError as e:\n    print(e)\n"
    done = elsewhere(tmp_path / "m.so", code + code, loader)
    assert done.returncode == 0 and done.stdout.count(said) == 2, (done.stdout, done.stderr)


def packed(rows, own, magic=b"BATONIMP", version=1):
    """The bytes of imports as the compiler writes them."""
    out = magic + struct.pack("<IQ", version, len(rows))
    for key, imports, data in rows:
        out += struct.pack("<Q", len(key)) + key + struct.pack(f"<Q{len(imports)}I", len(imports), *imports) + struct.pack("<Q", len(data)) + data
    out += struct.pack(f"<Q{len(own)}I", len(own), *own)
    return out + hashlib.sha256(out).digest()


GOOD = [(b"scaler", [1], b'{"symbol": "a", "factor": 2}'), (b"scaler", [], b'{"symbol": "b", "factor": 2}')]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (packed([(b"scaler", [0], GOOD[0][2])], [0]), "an import of module 0, where one of 1 to 1"),
        (packed([GOOD[0], (b"scaler", [0], GOOD[1][2])], [0]), "an import of module 0"),
        (packed([GOOD[0]], [0]), "an import of module 1"),
        (packed(GOOD, [7]), "an import of module 7"),
        (packed(GOOD, [0], version=9), "version 9, this runtime reads version 1"),
        (packed(GOOD, [0], magic=b"BATONXXX"), "does not begin"),
        (packed([(b"absent", [], b"")], [0]), "no function `runtime.module.loadbinary_absent`"),
        (packed([(b"library", [], b"no code")], [0]), "cannot load import `library`"),
        (b"", "does not begin"),
    ],
)
def test_forged_imports_are_refused(data, said):
    parse = baton.get_global_func("vm.LoadImports")
    assert len(parse(packed(GOOD, [0, 1]))) == 2
    with pytest.raises(RuntimeError, match=said):
        parse(data)


def test_cut_and_flipped_imports_are_refused():
    parse, good = baton.get_global_func("vm.LoadImports"), packed(GOOD, [0, 1])
    for n in range(len(good)):
        with pytest.raises(RuntimeError):
            parse(good[:n])
    rng = random.Random(1)
    for _ in range(2000):  # with the digest made anew, so that each field is read
        body = bytearray(good[:-32])
        body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
        try:
            parse(bytes(body) + hashlib.sha256(body).digest())
        except RuntimeError as error:
            assert "import" in str(error)


def test_a_file_that_is_cut_or_flipped_is_refused(tmp_path):
    path, bad = tmp_path / "m.so", tmp_path / "bad.so"
    relay.build(program(), "llvm").export_library(path)
    good, rng = path.read_bytes(), random.Random(2)
    cases = [good[:n] for n in range(0, len(good), 1024)]
    for _ in range(2000):
        data = bytearray(good)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        cases.append(bytes(data))
    for data in cases:
        bad.write_bytes(data)
        with pytest.raises(RuntimeError, match="cannot load"):
            baton.runtime.load_module(bad)
    assert baton.load(path)(X).shape == (4,)


# ---- The command line
def test_explain_placement_says_which_region_went_to_whom(tmp_path, capsys):
    from baton.cli import main

    text, lib = tmp_path / "m.relay", tmp_path / "m.so"
    text.write_text(program().astext())
    baton.compile(program()).save(lib)
    assert main(["explain-placement", str(text)]) == 0
    assert "for scaler: `relay.ext.scaler` makes its code" in capsys.readouterr().out
    assert main(["explain-placement", str(lib)]) == 0
    assert capsys.readouterr().out.count("for scaler: its code is ") == 2
    baton._ffi.registry.remove_global_func("relay.ext.scaler")
    assert main(["explain-placement", str(text)]) == 0
    assert "no `relay.ext.scaler` is registered: Baton's own kernels compute it" in capsys.readouterr().out
    baton.register_func("relay.ext.scaler", boom)


def test_compile_and_run_at_the_command_line(tmp_path, capsys):
    """`baton compile` asks the generator, and `baton run` takes what it wrote."""
    from baton.cli import main

    text, lib, x, y = (tmp_path / n for n in ("m.relay", "m.so", "x.npy", "y.npy"))
    text.write_text(program().astext())
    np.save(x, X)
    assert main(["compile", str(text), "-o", str(lib)]) == 0
    assert main(["run", str(lib), "-i", f"x={x}", "--save", str(tmp_path / "y.npz")]) == 0, capsys.readouterr().err
    np.testing.assert_allclose(next(iter(np.load(tmp_path / "y.npz").values())), WANT, rtol=1e-6)
