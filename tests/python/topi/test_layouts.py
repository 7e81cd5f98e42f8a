# SPDX-License-Identifier: Apache-2.0
"""Generic functions of operators that passes ask: what a program registers for its targets holds there."""

import pytest

import baton as tvm
from baton import relay, topi

NAMES = {
    "conv2d_alter_layout": 4,
    "conv3d_alter_layout": 4,
    "dense_alter_layout": 4,
    "conv2d_legalize": 3,
    "conv2d_transpose_legalize": 3,
    "dense_legalize": 3,
    "batch_matmul_legalize": 3,
}


@pytest.fixture
def restored():
    """The attributes of operators as they are; generic functions as they were made."""
    kept = [(getattr(topi.nn, name), relay.op.get(getattr(topi.nn, name).op_name).get_attr(getattr(topi.nn, name).attribute)) for name in NAMES]
    yield
    for f, before in kept:
        f.by_key.clear()
        f.asked = False
        operator = relay.op.get(f.op_name)
        operator.reset_attr(f.attribute)
        if before is not None:
            operator.set_attr(f.attribute, before)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_function_nothing_changes(name):
    assert getattr(topi.nn, name)(*[None] * NAMES[name]) is None


def test_a_registered_function_alters_layouts_for_its_target(restored):
    x, w = relay.var("x", shape=(1, 64, 8, 8)), relay.var("w", shape=(64, 64, 3, 3))
    mod = tvm.IRModule.from_expr(relay.nn.conv2d(x, w, channels=64, kernel_size=(3, 3), padding=(1, 1)))

    @topi.nn.conv2d_alter_layout.register("cpu")
    def alter(attrs, inputs, tinfos, out_type):
        assert tuple(tinfos[0].shape) == (1, 64, 8, 8) and tuple(out_type.shape) == (1, 64, 8, 8)
        return relay.nn.conv2d(*inputs, channels=64, kernel_size=(3, 3), padding=(1, 1), data_layout="NCHW16c")

    with tvm.transform.PassContext(opt_level=3):
        with tvm.target.Target("llvm"):
            assert 'data_layout="NCHW16c"' in relay.transform.AlterOpLayout()(relay.transform.InferType()(mod)).astext()
        with tvm.target.Target("opencl"):
            assert "NCHW16c" not in relay.transform.AlterOpLayout()(relay.transform.InferType()(mod)).astext()


def test_a_registered_function_legalizes_and_the_one_before_answers_otherwise(restored):
    x, w = relay.var("x", shape=(1, 4, 5, 5)), relay.var("w", shape=(4, 8, 3, 3))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.nn.conv2d_transpose(x, w, channels=8, kernel_size=(3, 3), strides=(2, 2))))
    before = relay.transform.Legalize()(mod).astext()

    seen = []
    topi.nn.conv2d_transpose_legalize.register("cpu", lambda attrs, inputs, types: seen.append(len(types)))
    with tvm.target.Target("llvm"):
        assert relay.transform.Legalize()(mod).astext() == before
    assert seen == [3]
