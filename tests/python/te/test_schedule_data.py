# SPDX-License-Identifier: Apache-2.0
"""Schedules as data: objects with fields, that print, that are saved and loaded."""

import numpy as np

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
