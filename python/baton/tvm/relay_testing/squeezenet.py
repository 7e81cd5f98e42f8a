# SPDX-License-Identifier: Apache-2.0
"""SqueezeNet 1.0 and 1.1 (Iandola et al., 2016)."""

from ... import relay
from .init import create_workload
from .layers import conv2d


def _conv(data, name, channels, kernel_size, strides=1, padding=0):
    out = conv2d(data, channels=channels, kernel_size=kernel_size, strides=strides, padding=padding, name=name)
    return relay.nn.relu(relay.nn.bias_add(out, relay.var(name + "_bias")))


def _fire(data, name, squeeze, expand):
    data = _conv(data, name + "_squeeze", squeeze, 1)
    return relay.concatenate((_conv(data, name + "_left", expand, 1), _conv(data, name + "_right", expand, 3, padding=1)), axis=1)


def get_net(batch_size, image_shape, num_classes, version, dtype):
    """The network as a function; version is "1.0" or "1.1"."""
    if version not in ("1.0", "1.1"):
        raise ValueError(f"there are versions 1.0 and 1.1, not {version}")
    old = version == "1.0"
    net = relay.var("data", shape=(batch_size, *image_shape), dtype=dtype)
    net = _conv(net, "conv1", 96, 7, 2, 3) if old else _conv(net, "conv1", 64, 3, 2, 1)
    pool_before = (0, 3, 7) if old else (0, 2, 4)
    for i, (squeeze, expand) in enumerate([(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)]):
        if i in pool_before:
            net = relay.nn.max_pool2d(net, pool_size=3, strides=2)
        net = _fire(net, f"fire{i + 2}", squeeze, expand)
    net = relay.nn.global_avg_pool2d(_conv(relay.nn.dropout(net), "conv10", num_classes, 1))
    net = relay.nn.softmax(relay.nn.batch_flatten(net))
    return relay.Function(relay.analysis.free_vars(net), net)


def get_workload(batch_size=1, num_classes=1000, version="1.0", image_shape=(3, 224, 224), dtype="float32"):
    """(module, parameters)."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))
