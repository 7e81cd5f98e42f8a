# SPDX-License-Identifier: Apache-2.0
"""Kernels of threads (the mark "thread_extent"): how they are interpreted, and that passes keep what they compute.

Written without barriers, threads go together; after ThreadSync each may run as far as it can before the others do.
"""

import random
import sys
from pathlib import Path

import golden
import numpy as np
import pytest
import tir_text

import baton
from baton import tir
from baton.error import CompileError
from baton.guard.checker import Checker

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from random_prim_funcs import interpret  # noqa: E402

APART = ("apart", "apart backwards")
T = 8


def parse(text):
    return tir_text.parse(text)["f"]


def after(func, *passes):
    mod = baton.IRModule({"f": func})
    for p in passes:
        mod = p(mod)
    return mod["f"]


class Kernels:
    """Random kernels of 2 blocks of threads, which exchange values in shared and in global memory. A statement writes an element a thread,
    and of the buffer that it writes reads that element alone: what one statement races with itself about, no barrier can order."""

    def __init__(self, seed, scope):
        self.random = random.Random(seed)
        self.rows = self.random.choice((1, 2))
        self.shape = [self.rows, T] if self.random.random() < 0.5 else [self.rows * T]
        # Each thread waits for its own block alone.
        self.out = tir.Buffer([2, self.rows * T], "int64", "B")
        self.input = tir.Buffer([self.rows * T], "int64", "A")
        self.shared = [tir.Buffer(self.shape, "int64", f"S{i}", scope) for i in range(2)]
        self.block, self.y, self.x = tir.Var("blockIdx.x", "int64"), tir.Var("threadIdx.y", "int64"), tir.Var("threadIdx.x", "int64")
        self.count = 0

    def at(self, own=False):
        """The place of a thread: its own, or in some order another's."""
        x, y = self.x, self.y
        if not own:
            k = self.random.randint(1, T - 1)
            x = self.random.choice((x, tir.Sub(tir.const(T - 1, "int64"), x), tir.FloorMod(tir.Add(x, tir.const(k, "int64")), tir.const(T, "int64"))))
            y = self.random.choice((y, tir.Sub(tir.const(self.rows - 1, "int64"), y)))
        return [y, x] if len(self.shape) == 2 else [tir.Add(tir.Mul(y, tir.const(T, "int64")), x)]

    def store(self, loops):
        own = self.random.choice(self.shared)
        at = self.at(own=self.random.random() < 0.5)
        other = next(s for s in self.shared if not s.same_as(own))
        flat = [tir.Add(tir.Mul(self.y, tir.const(T, "int64")), self.x)]
        value = self.random.choice((tir.BufferLoad(other, self.at()), tir.BufferLoad(self.input, flat), tir.BufferLoad(own, at)))
        value = tir.Add(value, self.random.choice([tir.const(self.random.randint(1, 5), "int64"), *loops]))
        if self.random.random() < 0.3:
            place = [self.block, *flat]
            return tir.BufferStore(self.out, tir.Add(tir.BufferLoad(self.out, place), tir.BufferLoad(own, self.at())), place)
        return tir.BufferStore(own, value, at)

    def statement(self, loops, depth):
        pick = self.random.random()
        if depth == 0 or pick < 0.6:
            store = self.store(loops)
            if self.random.random() < 0.2:  # some threads
                return tir.IfThenElse(tir.LT(self.x, tir.const(self.random.randint(1, T), "int64")), store, None)
            return store
        if pick < 0.8:
            self.count += 1
            var = tir.Var(f"i{self.count}", "int64")
            return tir.For(var, tir.const(0, "int64"), tir.const(self.random.randint(0, 3), "int64"), 0, self.sequence([*loops, var], depth - 1))
        if pick < 0.9:
            self.count += 1
            var = tir.Var(f"l{self.count}", "int64")
            return tir.LetStmt(var, tir.Add(self.block, tir.const(1, "int64")), self.sequence([*loops, var], depth - 1))
        condition = tir.LT(self.random.choice([self.block, *loops]), tir.const(1, "int64"))
        return tir.IfThenElse(condition, self.sequence(loops, depth - 1), self.sequence(loops, depth - 1) if self.random.random() < 0.5 else None)

    def sequence(self, loops, depth):
        return tir.SeqStmt([self.statement(loops, depth) for _ in range(self.random.randint(2, 4))])

    def func(self, allocate=True):
        place = [self.y, self.x] if len(self.shape) == 2 else [tir.Add(tir.Mul(self.y, tir.const(T, "int64")), self.x)]
        fill = [tir.BufferStore(s, tir.BufferLoad(self.input, [tir.Add(tir.Mul(self.y, tir.const(T, "int64")), self.x)]), place) for s in self.shared]
        body = tir.SeqStmt([*fill, *self.sequence([], 3).seq])
        params = [self.input, self.out]
        if allocate:
            for s in self.shared:
                body = tir.Allocate(s, body)
        else:
            params += self.shared
        blocks = 2 if allocate else 1  # blocks do not wait for each other
        for var, extent in ((self.x, T), (self.y, self.rows), (self.block, blocks)):
            body = tir.AttrStmt(var, "thread_extent", tir.const(extent, "int64"), body)
        return tir.PrimFunc(params, body).with_attr("global_symbol", "f")

    def arguments(self, func):
        rng = np.random.default_rng(1)
        return [rng.integers(0, 100, [int(d) for d in func.buffer_map[p].shape]) for p in func.params]


def equal(got, want):
    assert not isinstance(want, str), want
    return not isinstance(got, str) and all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("scope", ["shared", "global"])
def test_after_sync_threads_may_run_apart(scope):
    racy = barriers = 0
    for seed in range(150):
        maker = Kernels(seed, scope if scope == "shared" else "")
        func = maker.func(allocate=scope == "shared")
        args = maker.arguments(func)
        want = interpret(func, args)
        assert not isinstance(want, str), want
        racy += any(not equal(interpret(func, args, threads), want) for threads in APART)
        out = after(func, tir.transform.ThreadSync(scope))
        assert tir.analysis.verify_well_formed(out)
        barriers += out.script().count("tvm_storage_sync")
        for threads in ("together", *APART):
            assert equal(interpret(out, args, threads), want), f"seed {seed}, {threads}\n{func.script()}\n{out.script()}"
        assert after(out, tir.transform.ThreadSync(scope)).same_as(out), f"seed {seed}: more barriers a second time"
    # Without barriers the order shows, and programs differ by it.
    assert racy > 50 and barriers > 150


@pytest.mark.parametrize(
    "name",
    [
        "Simplify",
        "RemoveNoOp",
        "StorageFlatten",
        "UnrollLoop",
        "LoopPartition",
        "HoistIfThenElse",
        "StorageRewrite",
        "CompactBufferAllocation",
        "NarrowDataType",
        "UnifyThreadBinding",
        "LiftAttrScope",
        "RewriteUnsafeSelect",
    ],
)
def test_other_passes_keep_kernels(name):
    """With their barriers: none is dropped, none moves to where not all threads come."""
    for seed in range(40):
        maker = Kernels(seed, "shared")
        func = after(maker.func(), tir.transform.ThreadSync("shared"))
        if name in ("UnrollLoop", "StorageRewrite"):
            func = after(func, tir.transform.StorageFlatten())
        out = after(func, getattr(tir.transform, name)())
        args = maker.arguments(func)
        want = interpret(func, args)
        for threads in ("together", *APART):
            assert equal(interpret(out, args, threads), want), f"seed {seed}, {threads}\n{func.script()}\n{out.script()}"


def test_kernels_as_functions_compute_the_same():
    for seed in range(40):
        maker = Kernels(seed, "shared")
        func = after(maker.func(), tir.transform.ThreadSync("shared"))
        mod = tir.transform.SplitHostDevice()(baton.IRModule({"f": func}))
        assert len(mod.functions) == 2 and all(tir.analysis.verify_well_formed(f) for f in mod.functions.values())
        args = maker.arguments(func)
        assert equal(interpret(mod["f"], args, "apart", mod), interpret(func, args)), f"seed {seed}\n{mod['f_kernel0'].script()}"
        assert tir.transform.SplitHostDevice()(mod).same_as(mod)


def test_the_guard_takes_functions_that_a_pass_made():
    """A pass that makes functions is no pass that broke one."""
    func = after(Kernels(3, "shared").func(), tir.transform.ThreadSync("shared"))
    before = baton.IRModule({"f": func})
    found, reasons = Checker().check(before, tir.transform.SplitHostDevice()(before), "tir.SplitHostDevice")
    assert found is None and "does not know the function @f_kernel0" in reasons[0][1]
    wrong = baton.IRModule({"f": tir.PrimFunc(func.params, tir.SeqStmt([]), buffer_map=func.buffer_map)})
    assert Checker().check(before, wrong, "Wrong")[0] is not None


def _golden(name):
    read = golden.read(HERE / f"{name}.tir")
    return [pytest.param(read, case, id=f"{name}-{case.title}") for case in read.cases if case.kind != "error"]


@pytest.mark.parametrize(
    "file, case", [p for name in ("thread_sync", "thread_sync_global", "lower_thread_allreduce", "unify_thread_binding") for p in _golden(name)]
)
def test_golden_kernels_run_apart(file, case):
    mod = golden.parse(file.path, case.first)
    args = [
        np.asarray(5, "int64")
        if p not in mod["f"].buffer_map
        else np.random.default_rng(0).integers(-4, 5, [int(d) for d in mod["f"].buffer_map[p].shape]).astype(mod["f"].buffer_map[p].dtype)
        for p in mod["f"].params
    ]
    want = interpret(mod["f"], args)
    out = golden.run(file, mod)[1]["f"]
    apart = APART if case.kind != "unchanged" or "other memory" not in case.title and "shared memory is not" not in case.title else ()
    for threads in ("together", *apart):
        assert equal(interpret(out, args, threads), want), threads


def test_all_threads_run_all_of_a_kernel():
    func = parse("""def @f(A: Buffer[(2, 3), int64], B: Buffer[(2), int64]) {
      attr "thread_extent" of blockIdx.x = 2 {
        B[blockIdx.x] = B[blockIdx.x] + 1
        attr "thread_extent" of threadIdx.x = 3 {
          A[blockIdx.x, threadIdx.x] = blockIdx.x*10 + threadIdx.x
        }
      }
    }""")
    a, b = interpret(func, [np.zeros((2, 3), "int64"), np.zeros(2, "int64")], "apart")
    assert a.tolist() == [[0, 1, 2], [10, 11, 12]] and b.tolist() == [3, 3]


@pytest.mark.parametrize("threads", ["together", *APART])
def test_a_barrier_that_some_do_not_reach(threads):
    func = parse("""def @f(A: Buffer[(4), int64]) {
      attr "thread_extent" of threadIdx.x = 4 {
        if (threadIdx.x < 3) {
          tvm_storage_sync("shared")
          A[threadIdx.x] = 1
        }
      }
    }""")
    assert "a barrier stands in a branch or loop that not all threads of the block take: 3 of 4" in interpret(func, [np.zeros(4, "int64")], threads)


def test_ways_to_run_threads():
    func = parse("def @f(A: Buffer[(1), int64]) { A[0] = 1 }")
    assert 'threads run together, apart or apart backwards, not "quickly"' in interpret(func, [np.zeros(1, "int64")], "quickly")


def _argmax(rows, threads):
    """Each thread gets the largest of its row, and where that is: a reduction of two values."""
    a, at = tir.Buffer([rows, threads], "float32", "A"), tir.Buffer([rows, threads], "int64", "I")
    best = tir.Buffer([rows, threads], "float32", "B")
    x, y = tir.Var("threadIdx.x", "int64"), tir.Var("threadIdx.y", "int64")
    lhs, rhs = [tir.Var("a", "float32"), tir.Var("i", "int64")], [tir.Var("b", "float32"), tir.Var("j", "int64")]
    first = tir.Or(tir.GT(lhs[0], rhs[0]), tir.And(tir.EQ(lhs[0], rhs[0]), tir.LT(lhs[1], rhs[1])))
    reducer = tir.CommReducer(
        lhs, rhs, [tir.Select(first, lhs[0], rhs[0]), tir.Select(first, lhs[1], rhs[1])], [tir.FloatImm("float32", float("-inf")), tir.const(1 << 40, "int64")]
    )
    call = tir.Call(
        "int32",
        "tir.tvm_thread_allreduce",
        [tir.const(2, "int64"), tir.BufferLoad(a, [y, x]), x, tir.const(True), tir.BufferLoad(best, [y, x]), tir.BufferLoad(at, [y, x]), x],
    )
    body = tir.AttrStmt(reducer, "reduce_scope", tir.const(0, "int64"), tir.Evaluate(call))
    for var, extent in ((x, threads), (y, rows)):
        body = tir.AttrStmt(var, "thread_extent", tir.const(extent, "int64"), body)
    return tir.PrimFunc([a, best, at], body).with_attr("global_symbol", "f")


@pytest.mark.parametrize("rows, threads", [(1, 8), (3, 7), (2, 1), (1, 13)])
def test_reductions_of_several_values(rows, threads):
    func = _argmax(rows, threads)
    a = np.random.default_rng(2).integers(0, 6, (rows, threads)).astype("float32")
    args = [a, np.zeros_like(a), np.zeros((rows, threads), "int64")]
    out = after(func, tir.transform.LowerThreadAllreduce())
    assert "allreduce" not in out.script() and tir.analysis.verify_well_formed(out)
    for f, threads_ in ((func, "together"), *((out, t) for t in ("together", *APART))):
        _, best, at = interpret(f, args, threads_)
        np.testing.assert_array_equal(best, np.broadcast_to(a.max(1, keepdims=True), a.shape))
        np.testing.assert_array_equal(at, np.broadcast_to(a.argmax(1)[:, None], a.shape))


@pytest.mark.parametrize("kind, want", [("add", np.sum), ("mul", np.prod), ("min", np.min), ("max", np.max)])
@pytest.mark.parametrize("threads", [1, 2, 5, 16])
def test_reductions_in_a_loop(kind, want, threads):
    """Over both axes of a block, round after round in the same memory."""
    func = parse(f"""def @f(A: Buffer[(3, 2, {threads}), int64], B: Buffer[(3), int64]) {{
      attr "thread_extent" of threadIdx.y = 2 {{
        attr "thread_extent" of threadIdx.x = {threads} {{
          allocate R: Buffer[(1), int64, local]
          for i in [0, 3) {{
            attr "reduce_scope" = "{kind}" {{
              tvm_thread_allreduce(uint32(1), A[i, threadIdx.y, threadIdx.x], True, R[0], threadIdx.x, threadIdx.y)
            }}
            B[i] = R[0]
          }}
        }}
      }}
    }}""")
    a = np.random.default_rng(3).integers(-3, 4, (3, 2, threads))
    args = [a, np.zeros(3, "int64")]
    out = after(func, tir.transform.LowerThreadAllreduce())
    for f, way in ((func, "together"), *((out, t) for t in ("together", *APART))):
        np.testing.assert_array_equal(interpret(f, args, way)[1], want(a, axis=(1, 2)))


def test_limits_of_devices():
    func = parse("""def @f(A: Buffer[(64), float32]) {
      attr "thread_extent" of blockIdx.x = 2 {
        attr "thread_extent" of threadIdx.x = 32 {
          allocate S: Buffer[(32), float32, shared]
          allocate L: Buffer[(4), float32, local]
          S[threadIdx.x] = A[blockIdx.x*32 + threadIdx.x]
          A[blockIdx.x*32 + threadIdx.x] = S[threadIdx.x]
        }
      }
    }""")
    fits = {
        "max_threads_per_block": 32,
        "max_thread_x": 32,
        "max_thread_y": 1,
        "max_shared_memory_per_block": 128,
        "max_local_memory_per_block": 16,
        "max_vthread": 1,
        "max_vector_bytes": 16,
        "max_kernels": 1,
    }
    assert tir.analysis.verify_gpu_code(func, fits) and tir.analysis.verify_gpu_code(func, {})
    for name in ("max_threads_per_block", "max_thread_x", "max_shared_memory_per_block", "max_local_memory_per_block", "max_kernels"):
        assert not tir.analysis.verify_gpu_code(func, {**fits, name: fits[name] - 1}), name
    with pytest.raises(ValueError, match="no limit `max_thread`.*did you mean"):
        tir.analysis.verify_gpu_code(func, {"max_thread": 1})
    with pytest.raises(CompileError, match="`f`: a block has 32 threads, max_threads_per_block is 16"):
        after(func, tir.transform.VerifyGPUCode({"max_threads_per_block": 16}))
    assert after(func, tir.transform.VerifyGPUCode()).same_as(func)
    wide = parse("def @f(A: Buffer[(8), float32]) { A[0:4] = x4(1f) }")
    assert tir.analysis.verify_gpu_code(wide, {"max_vector_bytes": 16}) and not tir.analysis.verify_gpu_code(wide, {"max_vector_bytes": 8})


def test_devices_may_touch_memory_within_kernels():
    with baton.target.Target("opencl"):
        assert tir.analysis.verify_memory(parse('def @f(A: Buffer[(8), float32]) { attr "thread_extent" of threadIdx.x = 8 { A[threadIdx.x] = 1f } }'))
        assert not tir.analysis.verify_memory(parse("def @f(A: Buffer[(8), float32]) { A[0] = 1f }"))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_processors_have_no_code_of_axes(target):
    mod = tir_text.parse('def @f(A: Buffer[(8), float32]) { attr "thread_extent" of threadIdx.x = 8 { A[threadIdx.x] = 1f } }')
    with pytest.raises(
        baton.error.UnsupportedError, match='code for processors is made of parallel loops, not of thread axes.*"thread_extent" of `threadIdx.x`'
    ):
        baton.build(mod, target=target)


def test_other_memory_is_refused():
    with pytest.raises(ValueError, match='ThreadSync: memory of scope "warp" is not exchanged'):
        tir.transform.ThreadSync("warp")
