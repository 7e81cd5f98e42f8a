# SPDX-License-Identifier: Apache-2.0
"""Schedules as data: objects with fields, that print, that are saved and loaded."""

import numpy as np
import pytest

import baton as tvm
from baton import te


def tiled():
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((64, 64), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 16, 8)
    s[C].parallel(xo)
    s[C].vectorize(yi)
    s[C].pragma(xo, "hint", 3)
    s[B].compute_at(s[C], yo)
    return s, A, B, C, xo


def test_stages_have_fields():
    s, A, B, C, xo = tiled()
    assert [stage.op.name for stage in s.stages] == ["A", "B", "C"] and s.outputs[0].same_as(C.op)
    stage = s[C]
    assert stage.is_output and not s[B].is_output and s[A].is_input
    split = stage.relations[0]
    assert isinstance(split, te.schedule.Split) and split.factor.value == 16 and split.nparts is None and split.outer.same_as(xo)
    assert s[B].attach_type == 4 and s[B].attach_stage.same_as(stage) and s[B].attach_ivar.var.name == "j.outer"
    assert stage.iter_var_attrs[xo].iter_type == tvm.tir.IterVar.Parallelized
    assert s.stage_map[C.op].same_as(stage)


def test_a_schedule_prints():
    s = tiled()[0]
    assert str(s).split("\n") == [
        "stage A: an input",
        "stage B, at j.outer of C: loops i, j",
        "stage C: loops i.outer, j.outer, i.inner, j.inner",
        "  split i into i.outer, i.inner, factor=16",
        "  split j into j.outer, j.inner, factor=8",
        "  parallel i.outer",
        '  pragma i.outer "hint"=3',
        "  vectorize j.inner",
    ]


def test_a_schedule_is_saved_and_loaded():
    s, A, _, C, _ = tiled()
    again = tvm.ir.load_json(tvm.ir.save_json(s))
    assert isinstance(again, te.schedule.Schedule) and str(again) == str(s)
    result = again.outputs[0].output(0)
    given = again.stages[0].op.output(0)
    assert str(tvm.lower(again, [given, result])) == str(tvm.lower(s, [A, C]))
    a, c = np.arange(64 * 64, dtype="float32").reshape(64, 64), tvm.nd.empty((64, 64))
    tvm.build(again, [given, result], "llvm")(tvm.nd.array(a), c)
    np.testing.assert_array_equal(c.numpy(), (a + 1) * 2)


def test_a_group_is_data():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
    D = te.compute((8,), lambda i: C[i] + 1.0, name="D")
    s = te.create_schedule(D.op)
    group = s.create_group(outputs=C, inputs=A)
    assert [o.name for o in group.operations] == ["B", "C"] and [o.name for o in s[B].group.operations] == ["B", "C"]
    assert len(s.groups) == 1 and s[D].group is None
    group.compute_at(s[D], D.op.axis[0])
    assert s[B].attach_stage.same_as(s[D])


def matmul(n=64):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    P = te.compute((n, n), lambda i, j: B[i, j] + 1.0, name="P")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * P[k, j], axis=k), name="C")
    return te.create_schedule(C.op), A, B, P, C


def test_a_schedule_as_text_is_done_again():
    s, A, B, P, C = matmul()
    s[P].compute_inline()
    AA = s.cache_read(A, "local", [C])
    CC = s.cache_write(C, "local")
    xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 16, 8)
    s[C].parallel(s[C].fuse(xo, yo))
    s[C].unroll(xi)
    s[CC].compute_at(s[C], xi)
    ko, ki = s[CC].split(s[CC].op.reduce_axis[0], nparts=4)
    s[CC].reorder(ko, s[CC].op.axis[0], ki, s[CC].op.axis[1])
    s[CC].vectorize(s[CC].op.axis[1])
    s[CC].pragma(ko, "hint", "x y")
    s[AA].compute_at(s[CC], ko)
    text = s.as_text()
    assert text.split("\n")[:5] == ["compute_inline P", 'cache_read A 0 "local" C', 'cache_write C "local"', "split C i factor 16", "split C j factor 8"]
    assert "compute_at C.local C i.inner" in text and 'pragma C.local k.outer "hint" "x y"' in text
    again, *tensors = matmul()
    again.replay("// as before\n\n" + text)
    assert again.as_text() == text and str(again) == str(s)
    assert str(tvm.lower(again, [*tensors[:2], tensors[3]])) == str(tvm.lower(s, [A, B, C]))
    # An edit is another schedule.
    edited = matmul()[0].replay(text.replace("split C j factor 8", "split C j factor 16"))
    assert str(edited) != str(s)


def test_a_part_of_a_reduction_and_threads_as_text():
    def made():
        A = te.placeholder((4, 64), name="A")
        k = te.reduce_axis((0, 64), "k")
        B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
        return te.create_schedule(B.op), A, B

    s, A, B = made()
    _, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    s[B].bind(s[B].op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].bind(s[B].op.reduce_axis[0], te.thread_axis((0, 16), "threadIdx.x"))
    s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
    text = s.as_text()
    assert text.split("\n")[:-1] == [
        "split B k factor 16",
        "rfactor B k.inner 0",
        "bind B i blockIdx.x",
        "bind B k.inner threadIdx.x 16",
        "compute_at B.rf B k.inner",
    ]
    again, C, D = made()
    assert str(tvm.lower(again.replay(text), [C, D])) == str(tvm.lower(s, [A, B]))


def test_text_that_is_no_schedule_says_so():
    for text, says in (
        ("split C i factor 16\nspilt C j factor 8", r"line 2 of the schedule, `spilt C j factor 8`: `spilt` is not a step of a schedule; there are .*split"),
        ("split D i factor 16", "there is no stage `D`; there are A, B, P, C"),
        ("split C q factor 16", "`C` has no loop `q`; its loops are i j k"),
        ("split C i factor x", "`x` is factor, which is a number"),
        ("split C i factor 0", "factor is 0, it is 1 or more"),
        ("split C i by 4", "split by factor or nparts, not by `by`"),
        ("split C i factor", "factor is missing"),
        ("parallel C i j", "`j` is more than the step takes"),
        ("parallel C k", "see Schedule.rfactor"),
        ("cache_write C local", "a scope is in quotation marks"),
        ("tensorize C j gemv", "the intrinsic `gemv` is not given"),
    ):
        with pytest.raises(ValueError, match=says):
            matmul()[0].replay(text)
