# SPDX-License-Identifier: Apache-2.0
"""Passes over PrimFuncs keep what programs compute: golden programs and random ones, interpreted and compiled."""

import sys
from pathlib import Path

import golden
import numpy as np
import pytest

import baton
from baton import tir
from baton._ffi import get_global_func
from baton.transform import PassContext

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from random_prim_funcs import Maker, arguments, interpret  # noqa: E402

PASSES = sorted(str(n).removeprefix("tir.") for n in get_global_func("transform.PassNames")() if str(n).startswith("tir."))
# These change what is computed, or the parameters, on purpose.
OTHER = {"BF16CastElimination", "BF16Legalize", "MakePackedAPI", "MakeUnpackedAPI", "LowerPipeline", "LowerIntrin"}
# The pass wants storage that is flat.
FLAT = {"VectorizeLoop", "UnrollLoop", "StorageRewrite", "LowerIntrin", "LowerPipeline"}
CONFIGS = {
    "LoopPartition": [{}, {"tir.LoopPartition": {"partition_const_loop": True}}],
    "UnrollLoop": [{}, {"tir.UnrollLoop": {"auto_max_step": 16}}],
    "HoistIfThenElse": [{}, {"tir.HoistIfThenElse": {"support_block_scope_hosting": True}}],
    "InjectDoubleBuffer": [{}, {"tir.InjectDoubleBuffer": {"split_loop": 2}}, {"tir.InjectDoubleBuffer": {"split_loop": 3}}],
}
# What has no subject in these programs, or in no program that there is.
IDLE = {"BF16Promote", "ConvertForLoopsToSerial", "InjectVirtualThread", "Filter", "VerifyMemory", "VerifyTIR", "VerifyGPUCode", "CoProcSync",
        "CombineContextCall", "ConvertBlocksToOpaque", "DecorateDeviceScope", "InferFragment", "LegalizePackedCalls",
        "LowerDeviceStorageAccessInfo", "LowerInitBlock", "LowerMatchBuffer", "LowerTVMBuiltin", "LowerThreadAllreduce", "LowerWarpMemory",
        "MergeDynamicSharedMemoryAllocations", "PlanAndUpdateBufferAllocationLocation", "SplitHostDevice", "ThreadSync",
        "UnifyThreadBinding", "InjectPrefetch", "InjectRollingBuffer", "LowerCrossThreadReduction", "LowerCustomDatatypes",
        "TextureFlatten"}  # fmt: skip
PROGRAMS = 60


def after(func, name, config):
    mod = baton.IRModule({"f": func})
    with PassContext(config=config):
        return getattr(tir.transform, name)()(mod)["f"]


def equal(got, want):
    if isinstance(want, str) or isinstance(got, str):
        return got == want
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(got, want, strict=True))


def test_most_passes_are_tried():
    assert len(PASSES) > 35
    assert OTHER | FLAT | IDLE | set(CONFIGS) <= set(PASSES)


def test_programs_are_of_all_kinds_and_run():
    """Programs that do nothing, or fail, would show nothing."""
    seen, done = set(), 0
    for seed in range(PROGRAMS):
        func = Maker(seed).func()
        tir.stmt_functor.post_order_visit(func.body, lambda node: seen.add(type(node).__name__))
        args = arguments(func, 3)
        out = interpret(func, args)
        done += not isinstance(out, str) and not equal(out, args)
    assert {"For", "IfThenElse", "LetStmt", "AttrStmt", "AssertStmt", "Allocate", "Let", "Select", "Call", "SeqStmt"} <= seen
    assert done > PROGRAMS * 0.8


@pytest.mark.parametrize("name", [n for n in PASSES if n not in OTHER])
def test_passes_keep_what_programs_compute(name):
    changed = 0
    for seed in range(PROGRAMS):
        func = Maker(seed, loose=name == "CompactBufferAllocation").func()
        if name in FLAT:
            func = after(func, "StorageFlatten", {})
        for config in CONFIGS.get(name, [{}]):
            out = after(func, name, config)
            assert tir.analysis.verify_well_formed(out), f"seed {seed}, {config}\n{func.script()}\n{out.script()}"
            changed += not out.same_as(func)
            for n in (0, 1, 3):
                args = arguments(func, n)
                assert equal(interpret(out, args), interpret(func, args)), f"seed {seed}, n = {n}, {config}\n{func.script()}\n{out.script()}"
            again = after(out, name, config)
            assert equal(interpret(again, arguments(func, 3)), interpret(func, arguments(func, 3))), f"seed {seed}: a second time, {config}"
    if name not in IDLE:
        assert changed > 0, "the pass never changed anything"


def test_allocations_become_as_large_as_what_is_used_of_them():
    sizes = []
    for seed in range(PROGRAMS):
        maker = Maker(seed, loose=True)
        out = after(maker.func(), "CompactBufferAllocation", {})

        def compare(node, used=maker.used):
            if isinstance(node, tir.Allocate):
                sizes.append([int(d) for d in node.buffer.shape] == [int(d) for d in used[node.buffer.name][0]])

        tir.stmt_functor.post_order_visit(out.body, compare)
    # In the others two places that are not the same sum are used.
    assert len(sizes) > 50 and sum(sizes) > 0.9 * len(sizes)


@pytest.mark.parametrize("name", ["LowerPipeline", "LowerIntrin"])
def test_lowering_keeps_what_programs_compute(name):
    """What is lowered has other functions for exp and its like: programs without them are equal to the last bit."""
    for seed in range(PROGRAMS):
        func = Maker(seed).func()
        out = after(func, "LowerPipeline", {})
        args = arguments(func, 3)
        assert equal(interpret(out, args), interpret(func, args)), f"seed {seed}\n{func.script()}\n{out.script()}"


@pytest.mark.parametrize("seed", range(0, PROGRAMS, 12))
def test_compiled_code_agrees_with_the_interpreter(seed):
    func = Maker(seed).func()
    args = arguments(func, 3)
    arrays = [baton.nd.array(a.copy()) for a in args[:-1]]
    baton.build(baton.IRModule({"f": func}), target="llvm")["f"](*arrays, 3)
    want = interpret(func, args)
    assert not isinstance(want, str) and equal([a.numpy() for a in arrays], want[:-1])


def test_unpacked_functions_compute_the_same():
    for seed in range(0, PROGRAMS, 5):
        func = Maker(seed).func()
        out = after(func.with_attr("global_symbol", "f").with_attr("target", baton.target.Target("llvm")), "MakeUnpackedAPI", {})
        assert len(out.buffer_map) == 0 and len(out.params) == len(func.params)
        args = arguments(func, 3)
        assert equal(interpret(out, args), interpret(func, args))


def _golden_cases():
    for path in sorted(HERE.glob("*.tir")):
        read = golden.read(path)
        for case in read.cases:
            if case.kind != "error" and not {n for n, _ in read.passes} & (OTHER | {"SkipAssert"}):
                yield pytest.param(read, case, id=f"{path.stem}-{case.title}")


GOLDEN = list(_golden_cases())


def _golden_value(mod):
    """(arguments, what the program computes of them); the interpreter's message in place of a value where it cannot run the program."""
    args, rng = [], np.random.default_rng(0)
    for p in mod["f"].params:
        if p not in mod["f"].buffer_map:
            args.append(np.asarray([5], p.dtype))
            continue
        buffer = mod["f"].buffer_map[p]
        if buffer.dtype == "bfloat16":
            return args, "NumPy has no bfloat16"
        args.append(rng.integers(-4, 5, [int(d) if isinstance(d, tir.IntImm) else 5 for d in buffer.shape]).astype(buffer.dtype))
    return args, interpret(mod["f"], args)


# What the interpreter cannot run, and what it says: calls of other code, bfloat16, and errors that the program is about.
UNABLE = {
    ("bf16_promote", "each operation in float32, and rounded"): "NumPy has no bfloat16",
    (
        "compact_buffer_allocation",
        "all of it is used; the place is not known; its address goes elsewhere; it is as large as a condition lets it be",
    ): "the interpreter does not know the intrinsic tir.call_extern",
    ("inject_virtual_thread", "threads become rounds"): "variable `vx` has no value",
    ("instrument_bound_checkers", "vectors at both ends"): "index 5 leaves buffer `A` of 5 elements",
    ("narrow_data_type", "as far as it is known"): "index 8 leaves buffer `A` of 5 elements",
    ("narrow_data_type", "too large, and unknown"): "index 5 leaves buffer `A` of 5 elements",
    ("remove_no_op", "calls of functions stay"): "the interpreter does not know the intrinsic tir.call_extern",
}


@pytest.mark.parametrize("file, case", GOLDEN)
def test_golden_programs_compute_the_same(file, case):
    mod = golden.parse(file.path, case.first)
    args, want = _golden_value(mod)
    key = file.path.stem, case.title
    assert (want if isinstance(want, str) else None) == UNABLE.get(key)
    if key in UNABLE:
        pytest.skip(f"the program itself does not run: {want}")
    out = golden.run(file, mod)[1]
    assert equal(interpret(out["f"], args, mod=out), want)


def test_the_list_names_what_there_is():
    assert set(UNABLE) <= {(p.values[0].path.stem, p.values[1].title) for p in GOLDEN} and len(UNABLE) < 0.1 * len(GOLDEN)
