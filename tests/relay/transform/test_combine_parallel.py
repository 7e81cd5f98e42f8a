# SPDX-License-Identifier: Apache-2.0
"""CombineParallelConv2D, CombineParallelDense, CombineParallelBatchMatmul: options, and programs too large to read."""

import pytest

import baton as tvm
from baton import relay
from baton.relay import transform


def count(mod, name):
    return mod.astext(show_meta_data=False).count(f" {name}(")


def branches(n):
    x = relay.var("x", shape=(2, 4))
    weights = [relay.var(f"w{i}", shape=(3, 4)) for i in range(n)]
    return tvm.IRModule.from_expr(relay.Function([x, *weights], relay.Tuple([relay.nn.dense(x, w) for w in weights])))


@pytest.mark.parametrize("make", [transform.CombineParallelConv2D, transform.CombineParallelDense, transform.CombineParallelBatchMatmul])
def test_at_least_three_branches_unless_told_otherwise(make):
    name = make.__name__.removeprefix("CombineParallel")
    assert make().info.name == f"CombineParallel{name}" and make().info.opt_level == 4
    assert [str(r) for r in make().info.required] == ["InferType"]
    with pytest.raises(tvm.TVMError, match="min_num_branches is 1, must be at least 2"):
        make(1)


def test_the_number_of_branches_counts():
    flat = transform.CombineParallelDense(min_num_branches=4, to_batch_matmul=False)
    three, four = (transform.InferType()(branches(n)) for n in (3, 4))
    assert flat(three)["main"].same_as(three["main"])
    assert count(flat(four), "nn.dense") == 1
    assert count(transform.CombineParallelDense(4)(four), "nn.batch_matmul") == 1


def test_branches_of_a_deep_program():
    """Each layer's branches become one; layers stay apart."""
    layers = 3000
    x = y = relay.var("x", shape=(2, 4))
    w = [relay.var(f"w{i}", shape=(4, 4)) for i in range(3)]
    for _ in range(layers):
        a, b, c = (relay.nn.relu(relay.nn.dense(y, v)) for v in w)
        y = a + b + c
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, *w], y)))
    out = transform.InferType()(transform.CombineParallelDense(3, False)(mod))
    assert count(out, "nn.dense") == layers and count(out, "nn.relu") == layers


def test_many_branches():
    mod = transform.InferType()(branches(5000))
    out = transform.InferType()(transform.CombineParallelDense(3, False)(mod))
    assert count(out, "nn.dense") == 1 and count(out, "strided_slice") == 5000
