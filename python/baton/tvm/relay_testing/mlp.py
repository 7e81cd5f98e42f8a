# SPDX-License-Identifier: Apache-2.0
"""A multilayer perceptron."""

from ... import relay
from .init import create_workload
from .layers import dense_add_bias


def get_net(batch_size, num_classes=10, image_shape=(1, 28, 28), dtype="float32"):
    """The network as a function."""
    data = relay.var("data", shape=(batch_size, *image_shape), dtype=dtype)
    net = relay.nn.batch_flatten(data)
    for name, units in (("fc1", 128), ("fc2", 64)):
        net = relay.nn.relu(dense_add_bias(net, units=units, name=name))
    net = relay.nn.softmax(dense_add_bias(net, units=num_classes, name="fc3"))
    return relay.Function(relay.analysis.free_vars(net), net)


def get_workload(batch_size, num_classes=10, image_shape=(1, 28, 28), dtype="float32"):
    """(module, parameters)."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
