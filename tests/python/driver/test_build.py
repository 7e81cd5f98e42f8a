# SPDX-License-Identifier: Apache-2.0
"""`baton.build`: PrimFuncs as functions of a module, saved and loaded by the runtime alone."""

import subprocess
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("baton._core", reason="the extension is not built")

import baton  # noqa: E402
from baton import te, tir  # noqa: E402


def add_one(n=8, dtype="float32"):
    a = te.placeholder((n,), name="A", dtype=dtype)
    return [a, te.compute((n,), lambda i: a[i] + tir.const(1, dtype), name="B")]


def array(values, dtype="float32"):
    return baton.nd.array(np.asarray(values, dtype))


@pytest.fixture(scope="module")
def module():
    return baton.build(add_one(), target="llvm")


def test_function_of_tensors(module):
    """MO-001 a module's functions are PackedFuncs, by name or as the module's main."""
    a, b = array(range(8)), array(np.zeros(8))
    module(a, b)
    np.testing.assert_array_equal(b.numpy(), np.arange(8) + 1)
    module.get_function("main")(b, a)
    np.testing.assert_array_equal(a.numpy(), np.arange(8) + 2)
    assert isinstance(module["main"], baton.PackedFunc)


@pytest.mark.parametrize("n", [0, 1, 7, 16, 100])
def test_sizes_are_read_from_the_arrays(n):
    size = te.var("n")
    a = te.placeholder((size, 3), name="A")
    b = te.compute((3, size), lambda i, j: a[j, i] * 2.0, name="B")
    f = baton.build([a, b])["main"]
    x = np.random.default_rng(n).standard_normal((n, 3), dtype=np.float32)
    out = array(np.zeros((3, n)))
    f(array(x), out)
    np.testing.assert_array_equal(out.numpy(), x.T * 2)
    f(array(x), out, n)  # given all the same
    with pytest.raises(baton.BatonError, match="dimension 1 of argument `T_B`|does not fit"):
        f(array(x), array(np.zeros((3, n + 1))))
    with pytest.raises(baton.BatonError, match="is not the size"):
        f(array(x), out, n + 1)


def test_scalars_and_loops_of_ones_own():
    a, b = tir.Buffer((16,), "float32", "A"), tir.Buffer((16,), "float32", "B")
    scale, shift, i = tir.Var("scale", "float32"), tir.Var("shift", "int32"), tir.Var("i", "int64")
    value = a[i] * scale + tir.cast("float32", shift)
    for kind in ("serial", "parallel", "vectorized", "unrolled"):
        loop = tir.For(i, 0, 16, getattr(tir.ForKind, kind.upper()), tir.BufferStore(b, value, [i]))
        f = baton.build(tir.PrimFunc([a, b, scale, shift], loop), name="axpb")["axpb"]
        out = array(np.zeros(16))
        f(array(range(16)), out, 0.5, -3)
        np.testing.assert_array_equal(out.numpy(), np.arange(16) * 0.5 - 3)
    with pytest.raises(TypeError, match="argument 3 .`shift`. must be an int"):
        f(array(range(16)), out, 0.5, 1.5)


def test_several_functions_and_lower():
    one = te.create_prim_func(add_one(4), name="one")
    many = te.create_prim_func(add_one(4, "int64"), name="many")
    both = baton.ir.IRModule({"one": one, "many": many})
    module = baton.build(both)
    out = array(np.zeros(4), "int64")
    module["many"](array(range(4), "int64"), out)
    np.testing.assert_array_equal(out.numpy(), [1, 2, 3, 4])
    assert module.implements_function("one") and not module.implements_function("two")
    lowered = baton.lower(both)
    assert {v.name_hint for v in lowered.get_global_vars()} == {"one", "many"} and lowered["one"].attrs is not None


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda a, b: (a,), TypeError, "2 arguments.*1|1 arguments? .*2"),
        (lambda a, b: (a, b, b), TypeError, "2 arguments.*3"),
        (lambda a, b: (a, 3), TypeError, r"argument 1 .`T_B`. must be a tensor, got int"),
        (lambda a, b: (a, None), TypeError, "must be a tensor"),
        (lambda a, b: (a, array(np.zeros(8), "float64")), TypeError, "must have dtype float32, got float64"),
        (lambda a, b: (a, array(np.zeros(9))), ValueError, r"must have shape \(8,\), got \(9,\)"),
        (lambda a, b: (a, array(np.zeros((8, 1)))), ValueError, r"must have shape \(8,\), got \(8, 1\)"),
    ],
)
def test_wrong_arguments_are_errors(module, make, kind, words):
    with pytest.raises(kind, match=words):
        module(*make(array(range(8)), array(np.zeros(8))))


def test_wrong_programs_are_errors():
    n = tir.Var("n", "int64")
    a = tir.Buffer((n + 1,), "float32", "A")
    # A size that stands in no shape alone cannot be read from the array.
    with pytest.raises(TypeError, match="takes 2 arguments, got 1"):
        baton.build(tir.PrimFunc([a], tir.BufferStore(a, 5.0, [0])))["main"](array(np.zeros(4)))
    told = baton.build(tir.PrimFunc([a, n], tir.BufferStore(a, 5.0, [n])))["main"]
    out = array(np.zeros(4))
    told(out, 3)
    assert list(out.numpy()) == [0, 0, 0, 5]
    with pytest.raises(baton.BatonError, match="dimension 0 of argument `A` does not fit"):
        told(out, 2)
    with pytest.raises(TypeError, match="PrimFunc, an IRModule"):
        baton.build(3)
    with pytest.raises(baton.BatonError, match="no PrimFunc"):
        baton.build(baton.relay.parse('#[version = "0.0.5"]\ndef @main(%x: float32) { %x }'))
    with pytest.raises(baton.error.UnsupportedError, match="schedule"):
        baton.build(te.create_prim_func(add_one()), [1])


def test_module_without_the_function(module):
    """MO-012 a module tells its kind and its source; a missing function is an error, or None if asked."""
    assert module.type_key == "llvm"
    assert "@baton_code_main" in module.get_source("ll") and "ret" in module.get_source("asm")
    assert "def @main" in module.get_source("tir")
    with pytest.raises(AttributeError, match="no function `other`"):
        module["other"]
    assert baton.get_global_func("runtime.ModuleGetFunction")(module, "other", False) is None
    with pytest.raises(baton.error.UnsupportedError, match="there are tir, llvm, asm"):
        module.get_source("cuda")


LOAD = """
import sys, numpy as np, baton
m = baton.runtime.load_module(sys.argv[1])
out = baton.nd.array(np.zeros(8, "float32"))
m["main"](baton.nd.array(np.arange(8, dtype="float32")), out)
assert m.type_key == "library", m.type_key
assert (out.numpy() == np.arange(8) + 1).all()
maps = open("/proc/self/maps").read()
assert "libbaton_runtime" in maps and "libbaton.so" not in maps and "libLLVM" not in maps
try:
    m["main"](out, 3)
except TypeError as error:
    assert "must be a tensor" in str(error)
else:
    raise SystemExit("no error")
print("ok")
"""


def test_export_and_load_by_the_runtime_alone(module, tmp_path):
    """MO-011 what export_library writes is loaded by the runtime alone."""
    path = tmp_path / "add_one.so"
    module.export_library(path)
    done = subprocess.run([sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True)
    assert done.stdout.strip() == "ok", done.stderr
    loaded = baton.runtime.load_module(path)
    assert not loaded.implements_function("default")
    with pytest.raises(AttributeError):
        loaded["other"]
    module.save(tmp_path / "add_one.ll", "ll")
    assert "define" in (tmp_path / "add_one.ll").read_text()


def caller(name, n=4):
    """for i in [0, n): B[i] = name(i, A), and then name(-1, B)."""
    a, b, i = tir.Buffer((n,), "float32", "A"), tir.Buffer((n,), "float32", "B"), tir.Var("i", "int64")
    value = tir.call_packed(name, i, a, dtype="float32")
    loop = tir.For(i, 0, n, tir.ForKind.SERIAL, tir.BufferStore(b, value, [i]))
    last = tir.Evaluate(tir.call_packed(name, -1, b, dtype="float32"))
    return tir.PrimFunc([a, b], tir.SeqStmt([loop, last]))


def test_code_calls_a_python_function():
    """MO-004 generated code calls any PackedFunc back, one of Python too, with tensors and numbers."""
    seen = []

    def callback(i, tensor):
        seen.append((i, tensor.numpy().copy()))
        return float(i) / 2

    baton.register_func("test_build.callback", callback, override=True)
    a, b = array([3, 1, 4, 1]), array(np.zeros(4))
    baton.build(caller("test_build.callback"))["main"](a, b)
    np.testing.assert_array_equal(b.numpy(), [0, 0.5, 1, 1.5])
    assert [i for i, _ in seen] == [0, 1, 2, 3, -1]
    np.testing.assert_array_equal(seen[0][1], [3, 1, 4, 1])
    np.testing.assert_array_equal(seen[-1][1], [0, 0.5, 1, 1.5])

    def fails(i, tensor):
        raise KeyError("not today")

    baton.register_func("test_build.fails", fails, override=True)
    with pytest.raises(Exception, match="not today"):
        baton.build(caller("test_build.fails"))["main"](a, b)
    with pytest.raises(baton.BatonError, match="`test_build.nowhere`.*register"):
        baton.build(caller("test_build.nowhere"))["main"](a, b)


def test_look_ups_are_kept(tmp_path):
    """MO-002 code gets a function by name at the first call and keeps it: many calls, one look-up a place."""
    baton.register_func("test_build.kept", lambda i, tensor: 1.0, override=True)
    built = baton.build(caller("test_build.kept"))
    built.export_library(tmp_path / "kept.so")
    a, b = array(range(4)), array(np.zeros(4))
    for module in (built, baton.runtime.load_module(tmp_path / "kept.so")):
        assert module.num_lookups == 0
        for _ in range(50):
            module["main"](a, b)
        assert module.num_lookups == 1
    # Kept: another function of that name is for modules that come later.
    baton.register_func("test_build.kept", lambda i, tensor: 2.0, override=True)
    built["main"](a, b)
    assert (b.numpy() == 1).all()


def test_imported_module_comes_first(tmp_path):
    """MO-003, MO-010 code finds functions of the modules it imports, before registered ones; so does a search."""
    baton.register_func("helper", lambda i, tensor: 7.0, override=True)
    x = tir.Buffer((4,), "float32", "X")
    i = tir.Var("i", "int64")
    mark = tir.PrimFunc([tir.Var("k", "int64"), x], tir.BufferStore(x, 42.0, [0]))
    host = baton.build(caller("helper"))
    host.import_module(baton.build(mark, name="helper"))
    a, b = array(range(4)), array(np.zeros(4))
    host["main"](a, b)
    assert a.numpy()[0] == 42 and b.numpy()[0] == 42, "the registered function was called"
    assert host.get_function("helper", query_imports=True) is not None
    assert len(host.imported_modules) == 1
    with pytest.raises(AttributeError):
        host.get_function("helper")
    host.export_library(tmp_path / "host.so")  # with its import
    saved, c, d = baton.runtime.load_module(tmp_path / "host.so"), array(range(4)), array(np.zeros(4))
    saved["main"](c, d)
    assert c.numpy()[0] == 42 and d.numpy()[0] == 42 and len(saved.imported_modules) == 1
    assert i is not None


def test_many_threads_call_one_module(module):
    """MO-015 many threads call one module at once."""
    wrong = []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal(8, dtype=np.float32)
        a, b = array(x), array(np.zeros(8))
        for _ in range(200):
            module["main"](a, b)
            if not (b.numpy() == x + 1).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_time_evaluator(module):
    result = module.time_evaluator("main", baton.cpu(), number=3, repeat=4)(array(range(8)), array(np.zeros(8)))
    assert len(result.results) == 4 and 0 < result.min <= result.mean <= result.max


def test_targets_that_are_not_here(tmp_path):
    """MO-013 code for another machine is made, shown and saved; running it is a clear error; enabled() tells."""
    other = baton.build(add_one(), target="llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
    assert "fadd" in other.get_source("asm")
    with pytest.raises(AttributeError):
        other["main"]
    assert baton.runtime.enabled("llvm") and baton.runtime.enabled("cpu")
    assert not baton.runtime.enabled("metal") and not baton.runtime.enabled("nonsense")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_dtypes(dtype):
    x = np.arange(13).astype(dtype)
    out = baton.nd.array(np.zeros(13, dtype))
    baton.build(add_one(13, dtype))["main"](baton.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), x + np.ones(1, dtype))
