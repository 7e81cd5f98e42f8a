# SPDX-License-Identifier: Apache-2.0
"""Archives (.tar), object files and C sources of modules: written, loaded, imported; code that is linked into the program."""

import ctypes
import hashlib
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

import baton
from baton import relay, te

TARGETS = ["llvm", pytest.param("c", marks=pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler: apt-get install gcc"))]


def add(n=1.0, target="llvm", name="add_n"):
    a = te.placeholder((4,), name="a")
    func = te.create_prim_func([a, te.compute((4,), lambda i: a[i] + n, name="b")], target=target).with_attr("global_symbol", name)
    return baton.build(baton.IRModule({name: func}), target=target)


def run(module, name="add_n"):
    out = baton.nd.array(np.zeros(4, "float32"))
    module[name](baton.nd.array(np.arange(4, dtype="float32")), out)
    return out.numpy()


def model():
    x = relay.var("x", shape=(2, 3))
    return baton.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(np.arange(12, dtype="float32").reshape(4, 3)))))


X = np.arange(6, dtype="float32").reshape(2, 3)


@pytest.mark.parametrize("target", TARGETS)
def test_functions_and_models_in_an_archive(target, tmp_path):
    add(2.0, target).export_library(tmp_path / "f.tar")
    np.testing.assert_array_equal(run(baton.runtime.load_module(tmp_path / "f.tar")), np.arange(4) + 2)
    lib = relay.build(model(), target)
    lib.export_library(tmp_path / "m.tar")
    lib.export_library(tmp_path / "again.tar")
    assert (tmp_path / "m.tar").read_bytes() == (tmp_path / "again.tar").read_bytes()
    loaded = baton.runtime.load_module(tmp_path / "m.tar")
    want = lib["default"](baton.cpu())["run_with"](baton.nd.array(X))[0].numpy()
    np.testing.assert_array_equal(loaded["default"](baton.cpu())["run_with"](baton.nd.array(X))[0].numpy(), want)
    loaded.export_library(tmp_path / "linked.so")
    np.testing.assert_array_equal(baton.load(tmp_path / "linked.so")(X).numpy(), want)


@pytest.mark.parametrize("target", TARGETS)
def test_an_object_file_and_a_source(target, tmp_path):
    ending = "o" if target == "llvm" else "c"
    add(3.0, target).save(tmp_path / f"f.{ending}")
    module = baton.runtime.load_module(tmp_path / f"f.{ending}")
    np.testing.assert_array_equal(run(module), np.arange(4) + 3)


def test_a_program_with_control_flow_in_an_archive(tmp_path):
    mod = relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { if (less(sum(%x), 0f)) { add(%x, 1f) } else { exp(%x) } }')
    exe = relay.vm.compile(mod, "llvm")
    exe.mod.export_library(tmp_path / "p.tar")
    x = np.array([-3, 1], "float32")
    np.testing.assert_array_equal(baton.runtime.load_module(tmp_path / "p.tar")["default"](baton.cpu())["run_with"](baton.nd.array(x))[0].numpy(), x + 1)


def test_what_was_loaded_of_an_archive_is_imported_and_saved(tmp_path):
    add(5.0).export_library(tmp_path / "f.tar")
    a = te.placeholder((4,), name="a")
    out = te.extern((4,), [a], lambda ins, outs: baton.tir.call_packed("add_n", ins[0], outs[0]), name="o", dtype="float32")
    caller = baton.build(baton.IRModule({"caller": te.create_prim_func([a, out]).with_attr("global_symbol", "caller")}))
    caller.import_module(baton.runtime.load_module(tmp_path / "f.tar"))
    np.testing.assert_array_equal(run(caller, "caller"), np.arange(4) + 5)
    for name in ("c.so", "c.tar"):
        caller.export_library(tmp_path / name)
        np.testing.assert_array_equal(run(baton.runtime.load_module(tmp_path / name), "caller"), np.arange(4) + 5)


def network():
    """Convolutions with weights, and relus, which are for `adder`."""
    x = relay.var("x", shape=(1, 3, 8, 8))
    value, rng = x, np.random.default_rng(1)
    for channels in (3, 4, 5):
        weight = relay.const(rng.standard_normal((channels + 1, channels, 3, 3)).astype("float32"))
        value = relay.nn.conv2d(value, weight, padding=(1, 1))
        value = relay.annotation.compiler_end(relay.nn.relu(relay.annotation.compiler_begin(value, "adder")), "adder")
    mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x], value)))
    return relay.transform.PartitionGraph()(mod)


@pytest.fixture
def adder():
    """A generator whose code adds 1."""

    def load(data):
        return baton.runtime.create_module("adder", {bytes(data).decode(): lambda x, out: out.copyfrom(x.numpy() + 1)}, binary=bytes(data))

    baton.register_func("runtime.module.loadbinary_adder", load, override=True)
    baton.register_func("relay.ext.adder", lambda func: load(str(func.attrs["global_symbol"]).encode()), override=True)
    yield
    for name in ("runtime.module.loadbinary_adder", "relay.ext.adder"):
        baton._ffi.registry.remove_global_func(name)


def damaged(good, seed):
    """A file cut at each kilobyte and at 100 other places, and 2,000 flips of one bit."""
    rng = random.Random(seed)
    for n in [*range(0, len(good), 1024), *(rng.randrange(len(good)) for _ in range(100))]:
        yield good[:n]
    for _ in range(2000):
        data = bytearray(good)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        yield bytes(data)


@pytest.mark.parametrize("ending", ["tar", "so"])
def test_a_network_that_is_cut_or_changed_is_one_clear_error(adder, tmp_path, ending):
    """In an archive's code, constants, imports, manifest, digests and between them; and in a library."""
    lib = relay.build(network(), "llvm")
    path, bad = tmp_path / f"m.{ending}", tmp_path / f"bad.{ending}"
    lib.export_library(path)
    for data in damaged(path.read_bytes(), 5):
        bad.write_bytes(data)
        with pytest.raises(RuntimeError, match=r"bad\.(tar|so)`|archive is damaged|archive's|archive has no"):
            baton.runtime.load_module(bad)
    x = np.random.default_rng(2).standard_normal((1, 3, 8, 8)).astype("float32")
    loaded = baton.runtime.load_module(path)  # the process goes on
    assert [m.type_key for m in loaded.imported_modules] == ["adder"] * 3
    want = lib["default"](baton.cpu())["run_with"](baton.nd.array(x))[0].numpy()
    np.testing.assert_array_equal(loaded["default"](baton.cpu())["run_with"](baton.nd.array(x))[0].numpy(), want)


def test_digests_are_looked_at_before_code_is_linked(adder):
    """Code that is no code has a digest too: the one error is of the digest."""
    load = baton.get_global_func("driver.LoadArchive")
    files = {str(k): bytes(v) for k, v in relay.build(network(), "llvm")["archive"]().items()}
    assert sorted(files) == ["SHA256SUMS", "code.o", "constants.bin", "data.s", "imports.bin", "manifest.json"]
    want = "".join(f"{hashlib.sha256(files[n]).hexdigest()}  {n}\n" for n in sorted(files) if n != "SHA256SUMS")
    assert files["SHA256SUMS"].decode() == want
    for name in sorted(files):
        if name != "SHA256SUMS":
            with pytest.raises(RuntimeError, match=f"digest of `{name}` is not the one that `SHA256SUMS` says; copy or write it again"):
                load({**files, name: files[name] + b"\0"})
        with pytest.raises(RuntimeError, match="has no `SHA256SUMS`" if name == "SHA256SUMS" else "names files that are not there"):
            load({k: v for k, v in files.items() if k != name})
    with pytest.raises(RuntimeError, match="digest of `more` is not"):
        load({**files, "more": b""})


@pytest.mark.skipif(not shutil.which("tar") or not shutil.which("sha256sum"), reason="no tar or sha256sum: apt-get install tar coreutils")
def test_digests_as_other_programs_read_them(tmp_path):
    relay.build(model(), "llvm").export_library(tmp_path / "m.tar")
    subprocess.run(["tar", "-xf", "m.tar"], cwd=tmp_path, check=True)
    done = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == "code.o: OK\nconstants.bin: OK\ndata.s: OK\nmanifest.json: OK\n"
    subprocess.run(["tar", "-cf", "again.tar", "SHA256SUMS", "code.o", "constants.bin", "data.s", "manifest.json"], cwd=tmp_path, check=True)
    with pytest.raises(RuntimeError, match="packed by another program than `export_library`"):
        baton.runtime.load_module(tmp_path / "again.tar")


@pytest.mark.parametrize(("name", "data"), [("x.tar", b"no archive"), ("y.o", b"no object"), ("z.tar", b"")])
def test_files_that_are_no_archives(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(RuntimeError, match="damaged|no object|cut"):
        baton.runtime.load_module(tmp_path / name)


def test_code_that_is_linked_into_the_program(tmp_path):
    """A library that the system's loader has loaded; the runtime finds the functions by their symbols."""
    add(7.0, name="linked_add").export_library(tmp_path / "f.so")
    ctypes.CDLL(str(tmp_path / "f.so"), mode=ctypes.RTLD_GLOBAL)
    np.testing.assert_array_equal(run(baton.runtime.system_lib(), "linked_add"), np.arange(4) + 7)
    # Its symbols, which all see, are not those of libraries that are loaded later.
    add(8.0, name="linked_add").export_library(tmp_path / "g.so")
    np.testing.assert_array_equal(run(baton.runtime.load_module(tmp_path / "g.so"), "linked_add"), np.arange(4) + 8)
    np.testing.assert_array_equal(run(baton.runtime.system_lib("linked_"), "add"), np.arange(4) + 7)
    assert not baton.runtime.system_lib().implements_function("nothing")


def test_a_module_that_is_no_code_has_no_archive(tmp_path):
    module = baton.runtime.create_module("scaler", {}, binary=b"")
    with pytest.raises(baton.error.UnsupportedError, match="`scaler` is not written as a .tar"):
        module.export_library(tmp_path / "m.tar")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler: apt-get install gcc")
def test_ccompiler_is_a_generator(tmp_path):
    x = relay.var("x", shape=(4,))
    begun = relay.annotation.compiler_begin(x, "ccompiler")
    region = relay.annotation.compiler_end(relay.nn.relu(relay.add(begun, relay.const(1.0))), "ccompiler")
    mod = relay.transform.PartitionGraph()(relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x], relay.exp(region)))))
    lib = baton.compile(mod)
    (code,) = lib.module.imported_modules
    assert "for (int64_t" in code.get_source("c")
    a = np.array([-3, 0, 1, 2], "float32")
    np.testing.assert_allclose(lib(a).numpy(), np.exp(np.maximum(a + 1, 0)), rtol=1e-6)
    lib.save(tmp_path / "m.so")
    text = f"import baton, numpy as np\nprint(baton.load({str(tmp_path / 'm.so')!r})(np.array([-3, 0, 1, 2], 'float32')).numpy().tobytes().hex())"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == lib(a).numpy().tobytes().hex(), done.stderr


TAKER = '''
import baton, numpy as np

@baton.register_func("runtime.module.loadbinary_taker", override=True)
def load(data):
    held, symbol = [], bytes(data).decode()
    def init(arrays):
        held.append([np.array(a.numpy()) for a in arrays])
        return 0
    def run(x, out):
        out.copyfrom(x.numpy() * held[0][0])
    functions = {symbol: run, "__init_" + symbol: init, "get_const_vars": lambda: ["scale"]}
    return baton.runtime.create_module("taker", functions, binary=bytes(data))
'''


def test_constant_updaters_and_attributes(tmp_path):
    """The module gets the constants that the updater gives, before its first call; so it does where it is loaded."""
    exec(TAKER)  # noqa: S102 - the very text that another process runs
    seen = []

    def generate(func):
        seen.append(str(func.attrs["level"]))
        return baton.get_global_func("runtime.module.loadbinary_taker")(str(func.attrs["global_symbol"]).encode())

    scale = np.array([2, 3, 4, 5], "float32")
    names = {"": generate, ".constant_updater": lambda f, symbol: {"scale": baton.nd.array(scale)}, ".get_compiler_attrs": lambda: {"level": "three"}}
    for ending, f in names.items():
        baton.register_func("relay.ext.taker" + ending, f, override=True)
    try:
        x = relay.var("x", shape=(4,))
        region = relay.annotation.compiler_end(relay.nn.relu(relay.annotation.compiler_begin(x, "taker")), "taker")
        mod = relay.transform.PartitionGraph()(relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x], relay.exp(region)))))
        lib = baton.compile(mod)
        a = np.array([0, 0.5, 1, -1], "float32")
        np.testing.assert_allclose(lib(a).numpy(), np.exp(a * scale), rtol=1e-6)
        assert seen == ["three"] and [m.type_key for m in lib.module.imported_modules] == ["const_loader"]
        lib.save(tmp_path / "m.so")
        text = f"{TAKER}\nprint(baton.load({str(tmp_path / 'm.so')!r})(np.array([0, 0.5, 1, -1], 'float32')).numpy().tobytes().hex())"
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
        assert done.stdout.strip() == lib(a).numpy().tobytes().hex(), done.stderr
        baton.register_func("relay.ext.taker.constant_updater", lambda f, symbol: {"other": baton.nd.array(scale)}, override=True)
        with pytest.raises(baton.CompileError, match="constant_updater gave no `scale`"):
            baton.compile(mod)
    finally:
        for ending in names:
            baton._ffi.registry.remove_global_func("relay.ext.taker" + ending)
