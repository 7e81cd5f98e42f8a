# SPDX-License-Identifier: Apache-2.0
"""Deep Q-network (Mnih et al., 2015): from four frames of a game to the value of each action."""

from ... import relay
from .init import create_workload
from .layers import conv2d, dense_add_bias


def get_net(batch_size, num_actions=18, image_shape=(4, 84, 84), dtype="float32", layout="NCHW"):
    """The network as a function."""
    kernel_layout = "OIHW" if layout == "NCHW" else "HWIO"
    body = relay.var("data", shape=(batch_size, *image_shape), dtype=dtype)
    for i, (channels, size, stride) in enumerate(((32, 8, 4), (64, 4, 2), (64, 3, 1)), 1):
        body = conv2d(body, kernel_size=size, strides=stride, channels=channels, data_layout=layout, kernel_layout=kernel_layout, name=f"conv{i}")
        bias = relay.var(f"conv{i}_bias")
        body = relay.nn.relu(relay.nn.bias_add(body, bias, axis=layout.index("C")))
    body = relay.nn.relu(dense_add_bias(relay.nn.batch_flatten(body), units=512, name="dense1"))
    net = dense_add_bias(body, units=num_actions, name="dense2")
    return relay.Function(relay.analysis.free_vars(net), net)


def get_workload(batch_size, num_actions=18, image_shape=(4, 84, 84), dtype="float32", layout="NCHW"):
    """(module, parameters)."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))
