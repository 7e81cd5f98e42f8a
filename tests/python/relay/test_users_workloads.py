# SPDX-License-Identifier: Apache-2.0
"""Small things that tutorials and tests of Relay's time lean on."""

import numpy as np

import baton as tvm
from baton import relay, te
from baton.relay import testing


def layer():
    data, weight, bias = relay.var("data", shape=(2, 3)), relay.var("fc_weight", shape=(4, 3)), relay.var("fc_bias", shape=(4,))
    return relay.Function([data, weight, bias], relay.nn.bias_add(relay.nn.dense(data, weight), bias))


def test_create_workload_seeds_numpy():
    _, first = testing.create_workload(layer(), seed=3)
    after = np.random.rand()
    _, again = testing.create_workload(layer(), seed=3)
    assert np.random.rand() == after
    assert (first["fc_weight"].numpy() == again["fc_weight"].numpy()).all()
    _, other = testing.create_workload(layer(), seed=4)
    assert (first["fc_weight"].numpy() != other["fc_weight"].numpy()).any()
    assert (first["fc_bias"].numpy() == 0).all()
    assert "data" not in first


def test_initializers_take_a_name_and_an_array():
    def ones(name, array):
        array[:] = 1

    class Twos(testing.init.Initializer):
        def _init_weight(self, name, array):
            array[:] = 2

    assert (testing.create_workload(layer(), ones)[1]["fc_bias"].numpy() == 1).all()
    params = testing.create_workload(layer(), Twos())[1]
    assert (params["fc_weight"].numpy() == 2).all()
    assert (params["fc_bias"].numpy() == 0).all()
    spread = testing.create_workload(layer(), testing.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2))[1]
    assert spread["fc_weight"].numpy().std() > 0


def test_count_layers_of_a_module():
    mod, _ = testing.mlp.get_workload(batch_size=1)
    assert relay.analysis.count_layers(mod, valid_ops=["nn.dense"]) == 3
    assert relay.analysis.count_layers(mod["main"], valid_ops=["nn.dense"]) == 3


def test_quotient_as_a_size():
    n, block = 64, 32
    a = te.placeholder((n / 2, n), name="A")
    packed = te.compute((n / block, n / 2, block), lambda x, y, z: a[y, x * block + z], name="packed")
    assert [int(d) for d in packed.shape] == [2, 32, 32]
    data = np.random.default_rng(0).standard_normal((32, 64), "float32")
    out = tvm.nd.empty((2, 32, 32))
    tvm.build(te.create_schedule(packed.op), [a, packed], "llvm")(tvm.nd.array(data), out)
    np.testing.assert_array_equal(out.numpy(), data.reshape(32, 2, 32).transpose(1, 0, 2))


def test_pure_extern_call():
    a = te.placeholder((8,), name="A")
    b = te.compute(a.shape, lambda i: tvm.tir.call_pure_extern("float32", "expf", a[i]), name="B")
    data, out = np.linspace(-1, 1, 8, dtype="float32"), tvm.nd.empty((8,))
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(tvm.nd.array(data), out)
    np.testing.assert_allclose(out.numpy(), np.exp(data), rtol=1e-6)
