# SPDX-License-Identifier: Apache-2.0
"""VGG networks (Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", 2015)."""

from ... import relay
from .init import create_workload
from .layers import conv2d, dense_add_bias

# Layers -> convolutions of the five stages.
_STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_FILTERS = (64, 128, 256, 512, 512)


def get_net(batch_size, image_shape, num_classes, dtype, num_layers=11, batch_norm=False):
    """The network as a function."""
    if num_layers not in _STAGES:
        raise ValueError(f"there are networks of {', '.join(map(str, _STAGES))} layers, not {num_layers}")
    net = relay.var("data", shape=(batch_size, *image_shape), dtype=dtype)
    for stage, (count, filters) in enumerate(zip(_STAGES[num_layers], _FILTERS, strict=True), 1):
        for i in range(1, count + 1):
            net = conv2d(net, kernel_size=(3, 3), padding=(1, 1), channels=filters, name=f"conv{stage}_{i}")
            net = relay.nn.bias_add(net, relay.var(f"conv{stage}_{i}_bias"))
            if batch_norm:
                parts = [relay.var(f"bn{stage}_{i}_{part}") for part in ("gamma", "beta", "moving_mean", "moving_var")]
                net = relay.nn.batch_norm(net, *parts)[0]
            net = relay.nn.relu(net)
        net = relay.nn.max_pool2d(net, pool_size=(2, 2), strides=(2, 2))
    net = relay.nn.batch_flatten(net)
    for name in ("fc6", "fc7"):
        net = relay.nn.dropout(relay.nn.relu(dense_add_bias(net, units=4096, name=name)), rate=0.5)
    out = relay.nn.softmax(dense_add_bias(net, units=num_classes, name="fc8"))
    return relay.Function(relay.analysis.free_vars(out), out)


def get_workload(batch_size, num_classes=1000, image_shape=(3, 224, 224), dtype="float32", num_layers=11, batch_norm=False):
    """(module, parameters)."""
    return create_workload(get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm))
