# SPDX-License-Identifier: Apache-2.0
"""Lowering from Relay to TIR is a pass like others: by text, under instruments, in capsules, and its module is a place to go on from."""

import io
import subprocess
import sys

import numpy as np
import pytest

import baton as tvm
from baton import relay, tir
from baton._ffi import get_global_func
from baton.ir.instrument import PassTimingInstrument, PrintIR
from baton.transform import PassContext, Sequential, parse_pipeline, pipeline_text

HEAD = '#[version = "0.0.5"]\n'
DENSE = "def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(16, 8), float32]) { nn.relu(nn.dense(%x, %w)) }"
OPEN = "def @main(%x: Tensor[(n, 8), float32], %w: Tensor[(16, 8), float32]) { nn.relu(nn.dense(%x, %w)) }"
WEIGHT = "def @main(%x: Tensor[(4, 3), float32]) { add(%x, meta[relay.Constant][0]) }"
LOOP = "def @main(%x: Tensor[(4, 8), float32], %b: bool) { if (%b) { nn.relu(%x) } else { tanh(%x) } }"


def baton(*args, stdin=None):
    run = subprocess.run([sys.executable, "-m", "baton", *map(str, args)], input=stdin, capture_output=True, text=True, timeout=300, check=False)
    return run.returncode, run.stdout, run.stderr


def optimized(text):
    return get_global_func("driver.Optimize")(relay.fromtext(HEAD + text), tvm.target.Target("llvm"))


def with_weight():
    x = relay.var("x", shape=(4, 3), dtype="float32")
    return tvm.IRModule.from_expr(relay.Function([x], relay.add(x, relay.const(np.arange(12, dtype="float32").reshape(4, 3)))))


def test_it_is_a_pass():
    mod = relay.transform.LowerToTIR()(optimized(DENSE))
    assert all(isinstance(func, tir.PrimFunc) for func in mod.functions.values())
    assert "baton_entry" in [var.name_hint for var in mod.get_global_vars()]
    assert relay.transform.LowerToTIR()(mod).same_as(mod), "PrimFuncs are there already"


def test_its_text_makes_it():
    text = 'InferType,FuseOps,LowerToTIR(target="llvm -mcpu=x86-64-v3")'
    made = parse_pipeline(text)
    assert pipeline_text(made) == text
    out = made(relay.fromtext(HEAD + DENSE))
    assert "x8(" in str(out) and "x16(" not in str(out), "vectors of the target that it names"


def test_the_copy_of_a_statement_is_a_stage():
    """scatter_nd is a statement: what it begins with runs in vectors, by threads."""
    text = "def @main(%x: Tensor[(2048, 768), float32], %i: Tensor[(1, 1), int64], %u: Tensor[(1, 768), float32]) { scatter_nd(%x, %i, %u) }"
    shown = str(relay.transform.LowerToTIR()(optimized(text)))
    copy = next(line for line in shown.splitlines() if "T_scatter_nd" in line and "p0" in line and " = " in line and "def" not in line)
    assert ":16]" in copy and "parallel" in shown, shown[:2000]


def test_instruments_see_it():
    seen = []

    @tvm.instrument.pass_instrument
    class Watch:
        def run_before_pass(self, mod, info):
            seen.append(info.name)

    with PassContext(opt_level=3, instruments=[Watch()]):
        relay.build(relay.fromtext(HEAD + DENSE), target="llvm")
    assert seen.index("FuseOps") < seen.index("LowerToTIR") == len(seen) - 1


def test_the_guard_goes_through_it():
    from baton.guard import SemanticGuard

    guard = SemanticGuard()
    with PassContext(opt_level=3, instruments=[guard]):
        relay.build(relay.fromtext(HEAD + DENSE), target="llvm")
    assert "0 changed results" in guard.summary()


def test_opt_starts_and_stops_there(tmp_path):
    (tmp_path / "m.relay").write_text(HEAD + DENSE)
    code, out, err = baton("opt", tmp_path / "m.relay", "--passes", 'default,LowerToTIR(target="llvm -mcpu=x86-64-v3")', "-o", tmp_path / "m.tir.relay")
    assert code == 0, err
    text = (tmp_path / "m.tir.relay").read_text()
    assert "// def @fused_nn_" in text and "// def @baton_entry(io: handle, constants: handle, arena: handle, s: handle)" in text
    code, again, err = baton("opt", tmp_path / "m.tir.relay", "--passes", "tir.Simplify")
    assert code == 0, err
    assert again == text
    assert baton("compile", tmp_path / "m.tir.relay", "-o", tmp_path / "m.so", "-q") == (0, "", "")
    x, w = np.ones((4, 8), "float32"), np.full((16, 8), 0.5, "float32")
    for model in (tvm.load(tmp_path / "m.so"), tvm.compile(str(tmp_path / "m.tir.relay"))):
        np.testing.assert_array_equal(model(x, w).numpy(), np.full((4, 16), 4, "float32"))
    assert "LowerToTIR" in baton("opt", "--list")[1].split()


def test_code_is_made_from_there(tmp_path):
    """A module of PrimFuncs, read from its text, becomes the model that its Relay is."""
    x = np.ones((4, 3), "float32")
    for mod, args in ((with_weight(), [x]), (relay.fromtext(HEAD + OPEN), [np.ones((5, 8), "float32"), np.ones((16, 8), "float32")])):
        mod = get_global_func("driver.Optimize")(mod, tvm.target.Target("llvm"))
        lowered = relay.transform.LowerToTIR()(mod)
        read = relay.fromtext(lowered.astext())
        tvm.ir.assert_structural_equal(read, lowered)
        want = get_global_func("driver.Generate")(mod, None)["default"](tvm.cpu())["call"](*args).numpy()
        for start in (lowered, read):
            made = get_global_func("driver.Generate")(start, None)
            made.export_library(tmp_path / "m.so")
            for module in (made, tvm.runtime.load_module(tmp_path / "m.so")):
                np.testing.assert_array_equal(module["default"](tvm.cpu())["call"](*args).numpy(), want)
            with pytest.raises(tvm.UnsupportedError, match="no source in format"):
                made.get_source("relay")


def test_a_changed_kernel_is_what_runs():
    """Code is made of the module's PrimFuncs, not of something beside them."""
    x = relay.var("x", shape=(4, 16), dtype="float32")
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.add(x, relay.const(np.arange(64, dtype="float32").reshape(4, 16)))))
    mod = relay.transform.LowerToTIR()(get_global_func("driver.Optimize")(mod, tvm.target.Target("llvm")))

    @tir.transform.prim_func_pass(opt_level=0)
    def negate(func, mod, ctx):
        def store(node):
            return tir.BufferStore(node.buffer, 0.0 - node.value, node.indices) if isinstance(node, tir.BufferStore) else None

        return func if "model_entry" in func.attrs.keys() else func.with_body(tir.stmt_functor.ir_transform(func.body, None, store, ["tir.BufferStore"]))

    changed = Sequential([negate])(mod)
    x = np.ones((4, 16), "float32")
    got = get_global_func("driver.Generate")(changed, None)["default"](tvm.cpu())["call"](x).numpy()
    np.testing.assert_array_equal(got, -(x + np.arange(64, dtype="float32").reshape(4, 16)))


def test_programs_become_kernels_and_bytecode():
    mod = relay.transform.LowerToTIR()(optimized(LOOP))
    names = [var.name_hint for var in mod.get_global_vars()]
    assert {"baton_region_0", "baton_region_1"} <= set(names)
    got = get_global_func("driver.Generate")(mod, None)["default"](tvm.cpu())["call"](np.full((4, 8), -1, "float32"), np.array(True)).numpy()
    assert (got == 0).all()
    read = relay.fromtext(mod.astext())
    with pytest.raises(tvm.UnsupportedError, match="bytecode of a lowered program is not kept in files"):
        get_global_func("driver.Generate")(read, None)


def test_operators_without_a_group_become_kernels(tmp_path):
    made = get_global_func("driver.Generate")(relay.transform.InferType()(relay.fromtext(HEAD + DENSE)), None)
    x, w = np.ones((4, 8), "float32"), np.full((16, 8), 0.5, "float32")
    np.testing.assert_array_equal(made["default"](tvm.cpu())["call"](x, w).numpy(), np.full((4, 16), 4, "float32"))
    made.export_library(tmp_path / "m.so")
    loaded = tvm.runtime.load_module(tmp_path / "m.so")
    np.testing.assert_array_equal(loaded["default"](tvm.cpu())["call"](x, w).numpy(), np.full((4, 16), 4, "float32"))


def test_a_module_without_lowering_is_no_model():
    a = tvm.te.placeholder((8,), name="a")
    plus = tvm.lower(tvm.te.create_schedule(tvm.te.compute((8,), lambda i: a[i] + 1.0).op), [a])
    with pytest.raises(tvm.error.CompileError, match="the module is not lowered"):
        get_global_func("driver.Generate")(plus, None)


def test_planned_programs():
    mod = relay.fromtext(HEAD + "def @main(%x: Tensor[(4, 8), float32]) { nn.relu(on_device(tanh(%x), device_type=12)) }")
    lib = relay.build(mod, target={"cpu": "llvm", "ext_dev": "llvm"})
    assert "def @fused_tanh" in lib.get_source("tir") and lib.type_key == "vm"


def test_timing_and_printing():
    timing, printed = PassTimingInstrument(), io.StringIO()
    with PassContext(opt_level=3, instruments=[timing, PrintIR(passes=["LowerToTIR"], file=printed)]):
        relay.build(relay.fromtext(HEAD + DENSE), target="llvm")
        behind = timing.render().partition("LowerToTIR")[2]
    assert behind.count("StorageRewrite") == 1, "the passes over PrimFuncs are part of it, and run once"
    assert "@baton_entry" in printed.getvalue()
