# SPDX-License-Identifier: Apache-2.0
"""Errors through many borders, and what the names and the runtime promise as a whole."""

import gc
import os
import subprocess
import sys
import traceback
import types
import weakref
from pathlib import Path

import pytest

import baton

ROOT = Path(__file__).resolve().parents[3]
call = baton.get_global_func("testing.call")
rethrow = baton.get_global_func("testing.rethrow")


@pytest.mark.parametrize("k", [1, 2, 7, 50])
@pytest.mark.parametrize("kind", [LookupError, KeyboardInterrupt, SystemExit, GeneratorExit, baton.error.CompileError])
def test_exception_through_k_crossings(k, kind):
    """PF-014: the same object, arguments, cause and every frame, through k borders; nothing is left behind."""
    cause = ValueError("first")
    raised = kind("deep", 7) if kind is not baton.error.CompileError else kind("deep")

    def level(n):
        if n == 0:
            raise raised from cause
        return (call if n % 2 else rethrow)(lambda *a: level(n - 1))

    with pytest.raises(kind) as caught:
        level(k)
    assert caught.value is raised
    assert raised.__cause__ is cause
    assert raised.args[0] == "deep"
    names = [f.name for f in traceback.extract_tb(raised.__traceback__)]
    assert names.count("level") == k + 1
    assert names.count("<lambda>") == k


def test_exceptions_are_freed():
    """PF-015: an exception that crossed, its frames and what they hold, is freed with its last reference."""

    class Big:
        pass

    def fails():
        big = Big()
        alive.append(weakref.ref(big))
        raise ValueError("x")

    alive = []
    for _ in range(20):
        with pytest.raises(ValueError):
            rethrow(fails)
    gc.collect()
    baton._core.flush_dropped()
    assert [a() for a in alive] == [None] * 20


def test_cpp_sees_pythons_frames():
    """PF-014: the trace that C++ reads names the Python functions, innermost first."""

    def inner():
        raise ValueError("x")

    def outer():
        inner()

    with pytest.raises(ValueError):
        call(outer)
    error = baton.get_global_func("testing.error_trace")(outer)
    lines = error.splitlines()
    assert [line.rsplit(" ", 1)[1] for line in lines] == ["inner", "outer"]
    assert all(__file__ + ":" in line for line in lines)


def test_compiler_functions_are_packed_functions():
    """PF-008 PF-019: passes and compiled code alike are PackedFuncs, with no glue of their own."""
    from baton import relay

    fold = baton.get_global_func("relay._transform.FoldConstant")
    assert isinstance(fold, baton.PackedFunc)
    x = relay.var("x", shape=(2,), dtype="float32")
    mod = baton.IRModule.from_expr(relay.Function([x], x + x))
    names = baton.list_global_func_names()
    assert sum(name.startswith(("relay._transform.", "transform.")) for name in names) > 10
    lib = relay.build(mod, target="llvm")
    assert isinstance(lib["default"], baton.PackedFunc)


def test_the_runtime_is_small_and_alone():
    """PF-020 PF-021: the deployment runtime links no compiler, no Python, and stays under 320,000 bytes."""
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("of the library without sanitizers")
    done = subprocess.run([sys.executable, str(ROOT / "bench" / "size.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    library = Path(baton.__path__[0]) / "lib" / "libbaton_runtime.so"
    needed = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True).stdout
    assert not [line for line in needed.splitlines() if "NEEDED" in line and ("LLVM" in line or "python" in line or "libbaton.so" in line)]


def test_names():
    """NM-001 NM-002 NM-010: TVM's names under Baton's, the strings unchanged, one object under its several places."""
    from baton import relay, tir, transform

    for name in ("relay._transform.FoldConstant", "relay._ir_pass.FoldConstant"):
        assert baton.get_global_func(name) is not None
    for key in ("transform.PassContext", "relay.attrs.OnDeviceAttrs", "runtime.Object", "Attrs"):
        assert baton._core.type_known(key), key
    assert "tir.UnrollLoop" in transform.PassContext.list_configs() if hasattr(transform.PassContext, "list_configs") else True
    for name in ("Pass", "PassInfo", "PassContext", "ModulePass", "Sequential", "module_pass"):
        assert getattr(relay.transform, name) is getattr(transform, name) is getattr(baton.ir.transform, name), name
    for name in ("FunctionPass", "function_pass"):
        assert hasattr(relay.transform, name)
    assert callable(tir.transform.prim_func_pass)
    for name in ("on_device", "device_copy"):
        assert relay.op.get(name).name == name


def test_early_folding_endpoint_takes_an_expression():
    """NM-007: `relay._ir_pass.FoldConstant` maps Expr to Expr; `relay._transform.FoldConstant` gives the pass."""
    import numpy as np

    from baton import relay

    folded = baton.get_global_func("relay._ir_pass.FoldConstant")(relay.const(np.float32(1)) + relay.const(np.float32(2)))
    assert float(folded.data.numpy()) == 3
    assert baton.get_global_func("relay._transform.FoldConstant")().info.opt_level == 2


@pytest.mark.parametrize(
    "header",
    [
        "ir/transform.h",
        "relay/transform.h",
        "relay/attrs/annotation.h",
        "support/with.h",
        "runtime/packed_func.h",
        "runtime/module.h",
        "runtime/c_runtime_api.h",
    ],
)
def test_header_places(header):
    """NM-011: headers stand where the founding documents cite them."""
    assert (ROOT / "include" / "baton" / header).is_file()


@pytest.mark.parametrize("module", ["baton.ir.transform", "baton.ir.instrument", "baton.relay.transform.transform"])
def test_python_places(module):
    """NM-011: so do Python's modules."""
    import importlib

    assert isinstance(importlib.import_module(module), types.ModuleType)
