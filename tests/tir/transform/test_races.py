# SPDX-License-Identifier: Apache-2.0
"""`tir.find_races` and the instrument `tir.RaceCheck`: planted races are each found, with buffer, index and both places; correct programs
have no report."""

import sys
from pathlib import Path

import numpy as np
import pytest
import tir_text

import baton
from baton import tir
from baton.tir import find_races

sys.path.insert(0, str(Path(__file__).parent))
from test_threads import Kernels, after  # noqa: E402

ORDERS = ("together", "apart", "apart backwards")
SYNC = 'tvm_storage_sync("shared")'


def kernel(body, threads=8, blocks=1, shared="S: Buffer[(8), float32, shared]", out="(8)"):
    """A kernel from A to B."""
    return f"""def @f(A: Buffer[(8), float32], B: Buffer[{out}, float32]) {{
  attr "thread_extent" of blockIdx.x = {blocks} {{
    attr "thread_extent" of threadIdx.x = {threads} {{
      {f"allocate {shared}" if shared else ""}
      {body}
    }}
  }}
}}"""


LOOP = "for i in [0, 4) {{ {} }}"
TREE = "".join(f"if (threadIdx.x < {n}) {{{{ S[threadIdx.x] = S[threadIdx.x] + S[threadIdx.x + {n}] }}}}\n {{0}}\n" for n in (4, 2, 1))

# Name: the program, and the buffer and one of the accesses that must be named.
RACES = {
    "no barrier": (kernel("S[threadIdx.x] = A[threadIdx.x]\n B[threadIdx.x] = S[7 - threadIdx.x]"), "S", "S[7 - threadIdx.x]"),
    "a neighbour": (kernel("S[threadIdx.x] = A[threadIdx.x]\n B[threadIdx.x] = S[(threadIdx.x + 1) %8]"), "S", "%8]"),
    "two write one element": (kernel("S[truncdiv(threadIdx.x, 2)] = A[threadIdx.x]", shared="S: Buffer[(8), float32, shared]"), "S", "S[truncdiv(threadIdx.x, 2)]"),
    "all write one element": (kernel("B[0] = A[threadIdx.x]", shared=""), "B", "B[0]"),
    "one value by all": (kernel("B[0] = 1f", shared=""), "B", "B[0] = 1f"),
    "a sum in global memory": (kernel("B[0] = B[0] + A[threadIdx.x]", shared=""), "B", "B[0] = B[0]"),
    "the barrier of another memory": (kernel('S[threadIdx.x] = A[threadIdx.x]\n tvm_storage_sync("global")\n B[threadIdx.x] = S[7 - threadIdx.x]'), "S", "S[7 - threadIdx.x]"),
    "global memory by the barrier of shared": (kernel(f"B[threadIdx.x] = A[threadIdx.x]\n {SYNC}\n B[7 - threadIdx.x] = 2f", shared=""), "B", "B[7 - threadIdx.x]"),
    "the second half of a loop": (kernel(LOOP.format(f"S[threadIdx.x] = A[i]\n {SYNC}\n B[threadIdx.x] = S[7 - threadIdx.x]")), "S", "S[threadIdx.x] = A"),
    "the first half of a loop": (kernel(LOOP.format(f"S[threadIdx.x] = A[i]\n B[threadIdx.x] = S[7 - threadIdx.x]\n {SYNC}")), "S", "S[7 - threadIdx.x]"),
    "a tree without barriers": (kernel(f"S[threadIdx.x] = A[threadIdx.x]\n {SYNC}\n {TREE.format('')}"), "S", "S[threadIdx.x + "),
    "a tree that begins early": (kernel(f"S[threadIdx.x] = A[threadIdx.x]\n {TREE.format(SYNC)}"), "S", "S[threadIdx.x + "),
    "a stencil in place": (kernel("if (0 < threadIdx.x) { B[threadIdx.x] = B[threadIdx.x - 1] }", shared=""), "B", "B[threadIdx.x - 1]"),
    "a shift in one statement": (kernel(f"S[threadIdx.x] = A[threadIdx.x]\n {SYNC}\n S[threadIdx.x] = S[(threadIdx.x + 1) %8]"), "S", "%8]"),
    "blocks of one element": (kernel("if (threadIdx.x == 0) { B[0] = A[blockIdx.x] }", blocks=2, shared=""), "B", "B[0]"),
    "blocks that overlap": (kernel("B[blockIdx.x*7 + threadIdx.x] = A[threadIdx.x]", blocks=2, shared="", out="(15)"), "B", "B[blockIdx.x*7 + threadIdx.x]"),
    "a block that reads another's": (kernel('B[blockIdx.x*8 + threadIdx.x] = A[threadIdx.x]\n tvm_storage_sync("global")\n S[threadIdx.x] = B[threadIdx.x]', blocks=2, out="(16)"), "B", "S[threadIdx.x] = B"),
    "a condition": (kernel("S[threadIdx.x] = A[threadIdx.x]\n if (S[0] < 1f) { B[threadIdx.x] = 1f }"), "S", "if "),
    "a bound of a loop": (kernel("S[threadIdx.x] = A[threadIdx.x]\n let n: float32 = S[0]\n B[threadIdx.x] = n"), "S", "let n"),
    "warps by a barrier of warps": (kernel('S[threadIdx.x] = 1f\n tvm_storage_sync("warp")\n B[threadIdx.x] = S[63 - threadIdx.x]', threads=64, shared="S: Buffer[(64), float32, shared]", out="(64)"), "S", "S[63 - threadIdx.x]"),
    "a parallel loop": ("def @f(A: Buffer[(8), float32], B: Buffer[(8), float32]) { for i in parallel [0, 8) { B[0] = B[0] + A[i] } }", "B", "B[0] = B[0]"),
    "rounds that read the next": ("def @f(A: Buffer[(8), float32], B: Buffer[(8), float32]) { for i in parallel [0, 7) { B[i] = B[i + 1] } }", "B", "B[i + 1]"),
}  # fmt: skip
CORRECT = {
    "a barrier": kernel(f"S[threadIdx.x] = A[threadIdx.x]\n {SYNC}\n B[threadIdx.x] = S[7 - threadIdx.x]"),
    "its own element": kernel("S[threadIdx.x] = A[threadIdx.x]\n B[threadIdx.x] = S[threadIdx.x]"),
    "all read one element": kernel("B[threadIdx.x] = A[0]", shared=""),
    "one writes, all read behind a barrier": kernel(f"if (threadIdx.x == 0) {{ S[0] = A[0] }}\n {SYNC}\n B[threadIdx.x] = S[0]"),
    "one writes what it reads": kernel("if (threadIdx.x == 3) { B[0] = B[0] + A[1] }", shared=""),
    "two barriers of a loop": kernel(LOOP.format(f"S[threadIdx.x] = A[i]\n {SYNC}\n B[threadIdx.x] = S[7 - threadIdx.x]\n {SYNC}")),
    "a tree": kernel(f"S[threadIdx.x] = A[threadIdx.x]\n {SYNC}\n {TREE.format(SYNC)}\n if (threadIdx.x == 0) {{ B[0] = S[0] }}"),
    "memory of a thread": kernel("L[0] = A[threadIdx.x]\n B[threadIdx.x] = L[0]", shared="L: Buffer[(1), float32, local]"),
    "two buffers in turn": kernel(
        f"allocate T: Buffer[(8), float32, shared]\n S[threadIdx.x] = A[threadIdx.x]\n {SYNC}\n T[threadIdx.x] = S[(threadIdx.x + 1) % 8]\n {SYNC}\n B[threadIdx.x] = T[(threadIdx.x + 1) %8]"
    ),
    "even and odd": kernel("S[threadIdx.x % 2 * 8 + truncdiv(threadIdx.x, 2)] = 1f", shared="S: Buffer[(16), float32, shared]"),
    "blocks of their own": kernel("B[blockIdx.x*8 + threadIdx.x] = A[threadIdx.x]", blocks=2, shared="", out="(16)"),
    "shared memory of each block": kernel(
        f"S[threadIdx.x] = A[threadIdx.x]\n {SYNC}\n B[blockIdx.x*8 + threadIdx.x] = S[7 - threadIdx.x]", blocks=2, out="(16)"
    ),
    "global memory and its barrier": kernel('B[threadIdx.x] = A[threadIdx.x]\n tvm_storage_sync("global")\n B[7 - threadIdx.x] = 2f', shared=""),
    "a warp by its barrier": kernel(
        'S[threadIdx.x] = 1f\n tvm_storage_sync("warp")\n B[threadIdx.x] = S[31 - threadIdx.x]',
        threads=32,
        shared="S: Buffer[(32), float32, shared]",
        out="(32)",
    ),
    "halves of a buffer": kernel("if (threadIdx.x < 4) { S[threadIdx.x] = 1f } else { S[threadIdx.x] = 2f }"),
    "one thread": kernel("S[0] = A[0]\n S[0] = S[0] + A[1]\n B[0] = S[0]", threads=1),
    "no threads": kernel("B[0] = A[0]", threads=0, shared=""),
    "kernels one after the other": """def @f(A: Buffer[(8), float32], B: Buffer[(8), float32]) {
  attr "thread_extent" of threadIdx.x = 8 { B[threadIdx.x] = A[threadIdx.x] }
  attr "thread_extent" of threadIdx.x_1 = 8 { B[7 - threadIdx.x_1] = A[threadIdx.x_1] }
}""",
    "a parallel loop": "def @f(A: Buffer[(8), float32], B: Buffer[(8), float32]) { for i in parallel [0, 8) { B[i] = B[i] + A[0] } }",
    "memory of a round": "def @f(A: Buffer[(8), float32], B: Buffer[(8), float32]) { for i in parallel [0, 8) { allocate T: Buffer[(1), float32]\n T[0] = A[i]\n B[i] = T[0] } }",
    "a serial loop": "def @f(A: Buffer[(8), float32], B: Buffer[(8), float32]) { for i in [0, 8) { B[0] = B[0] + A[i] } }",
}


def races(text, threads="apart"):
    func = tir_text.parse(text)["f"]
    arrays = [np.zeros([int(d) for d in func.buffer_map[p].shape], "float32") for p in func.params]
    return list(find_races(func, arrays, threads))


@pytest.mark.parametrize("threads", ORDERS)
@pytest.mark.parametrize("name", RACES)
def test_planted(name, threads):
    text, buffer, place = RACES[name]
    found = races(text, threads)
    assert {str(r.buffer) for r in found} == {buffer}
    assert any(place in str(r.first_place) + str(r.second_place) for r in found), [str(r) for r in found]
    for r in found:
        assert r.first_writes or r.second_writes
        assert str(r.first_thread) != str(r.second_thread)


@pytest.mark.parametrize("threads", ORDERS)
@pytest.mark.parametrize("name", CORRECT)
def test_correct(name, threads):
    assert [str(r) for r in races(CORRECT[name], threads)] == []


def test_a_report_names_buffer_index_threads_and_places():
    text = kernel("S[1, threadIdx.x] = A[threadIdx.x]\n B[threadIdx.x] = S[1, 7]", shared="S: Buffer[(2, 8), float32, shared]")
    (found,) = races(text)
    assert list(found.index) == [1, 7]
    assert str(found) == (
        "race on `S`[1, 7]: blockIdx.x 0, threadIdx.x 0 reads in `B[threadIdx.x] = S[1, 7]`, and blockIdx.x 0, threadIdx.x 7 writes in "
        "`S[1, threadIdx.x] = A[threadIdx.x]`, with no barrier between them"
    )


@pytest.mark.parametrize("scope", ["shared", "global"])
def test_random_kernels_race_without_barriers_alone(scope):
    racy = 0
    for seed in range(60):
        maker = Kernels(seed, scope if scope == "shared" else "")
        func = maker.func(allocate=scope == "shared")
        args = maker.arguments(func)
        racy += len(find_races(func, args)) > 0
        synced = after(func, tir.transform.ThreadSync(scope))
        for threads in ORDERS:
            assert [str(r) for r in find_races(synced, args, threads)] == [], f"seed {seed}, {threads}\n{synced.script()}"
    assert racy > 40


def test_arguments_stay_as_they_are():
    x, y = np.ones(8, "float32"), np.zeros(8, "float32")
    assert len(find_races(tir_text.parse(RACES["no barrier"][0])["f"], [x, y])) == 1
    assert not y.any()


def test_bad_arguments():
    f = tir_text.parse(CORRECT["a barrier"])["f"]
    with pytest.raises(ValueError, match='threads run together, apart or apart backwards, not "sideways"'):
        find_races(f, [np.zeros(8, "float32")] * 2, "sideways")
    with pytest.raises(baton.error.BatonError, match="takes 2 arrays, got 1"):
        find_races(f, [np.zeros(8, "float32")])


@tir.transform.prim_func_pass(opt_level=0, name="DropBarriers")
def drop_barriers(func, mod, ctx):
    def drop(stmt):
        call = getattr(stmt, "value", None)
        return (
            tir.Evaluate(tir.const(0, "int32"))
            if isinstance(stmt, tir.Evaluate) and getattr(call, "op", None) == baton.ir.Op.get("tir.tvm_storage_sync")
            else None
        )

    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, drop, ["tir.Evaluate"]))


def test_an_instrument_names_the_pass_that_makes_a_race():
    mod = tir_text.parse(RACES["no barrier"][0])
    check = tir.RaceCheck()
    with baton.transform.PassContext(instruments=[check]):
        mod = tir.transform.Simplify()(mod)  # threads go together: it is not looked at yet
        mod = tir.transform.ThreadSync("shared")(mod)
        mod = tir.transform.Simplify()(mod)
        with pytest.raises(baton.error.BatonError, match="after DropBarriers: @f: race on `S`"):
            drop_barriers(mod)
    assert check.checked == 3


def test_the_instrument_passes_over_what_it_cannot_run():
    n, x = tir.Var("n", "int64"), tir.Var("threadIdx.x", "int64")
    buffer = tir.Buffer([n], "float32", "A")
    store = tir.BufferStore(buffer, tir.call_extern("float32", "g", tir.BufferLoad(buffer, [x])), [x])
    mod = baton.IRModule({"f": tir.PrimFunc([buffer], tir.AttrStmt(x, "thread_extent", tir.const(8, "int64"), store)).with_attr("global_symbol", "f")})
    check = tir.RaceCheck(after=None)
    with baton.transform.PassContext(instruments=[check]):
        tir.transform.Simplify()(mod)
    assert check.checked == 0
