# SPDX-License-Identifier: Apache-2.0
"""Networks and layers for tests, their parameters and initializers."""

import numpy as np
import pytest

from baton import relay
from baton.relay import testing
from baton.relay.testing import run_infer_type


@pytest.mark.parametrize("make", ["mobilenet", "resnet"])
def test_networks_in_both_layouts(make):
    network = getattr(relay.testing, make)
    shape = (32, 32, 3) if make == "resnet" else (3, 32, 32)  # mobilenet turns it itself
    mod, params = network.get_workload(batch_size=2, num_classes=7, image_shape=shape, layout="NHWC")
    assert mod["main"].params[0].type_annotation == relay.TensorType((2, 32, 32, 3)) and mod["main"].ret_type == relay.TensorType((2, 7))
    other, _ = network.get_workload(batch_size=2, num_classes=7, image_shape=(3, 32, 32))
    assert other["main"].params[0].type_annotation == relay.TensorType((2, 3, 32, 32)) and "data" not in params
    macs = [relay.analysis.get_total_mac_number(m["main"]) for m in (mod, other)]
    assert macs[0] == macs[1]


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: relay.testing.vgg.get_workload(1, num_classes=7, image_shape=(3, 32, 32)), (1, 7)),
        (lambda: relay.testing.vgg.get_workload(1, num_classes=7, image_shape=(3, 32, 32), num_layers=16, batch_norm=True), (1, 7)),
        (lambda: relay.testing.resnet_3d.get_workload(1, num_classes=5, image_shape=(3, 4, 40, 40)), (1, 5)),
    ],
    ids=["vgg11", "vgg16", "resnet_3d"],
)
def test_more_networks(make, shape):
    mod, params = make()
    assert mod["main"].ret_type.concrete_shape == shape and {p.name_hint for p in mod["main"].params} == {"data", *params}


def test_layers_without_a_name():
    data = relay.var("data", shape=(1, 3, 8, 8))
    assert run_infer_type(relay.testing.layers.conv2d(data, relay.var("ww"), kernel_size=(1, 1), channels=2)).checked_type == relay.TensorType((1, 2, 8, 8))


def test_a_shallow_mobilenet():
    shape = (1, 3, 64, 64)
    plain = relay.testing.mobilenet.mobile_net(10, shape)
    shallow = relay.testing.mobilenet.mobile_net(num_classes=10, data_shape=shape, alpha=1.0, is_shallow=True)
    assert relay.analysis.count_layers(shallow, ["nn.conv2d"]) == relay.analysis.count_layers(plain, ["nn.conv2d"]) - 10


def test_a_layer_that_is_transposed():
    call = relay.testing.layers.conv2d_transpose(relay.var("x", shape=(1, 2, 4, 4)), name="c", channels=3, kernel_size=(2, 2))
    assert call.op.name == "nn.conv2d_transpose" and call.args[1].name_hint == "c_weight"


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
