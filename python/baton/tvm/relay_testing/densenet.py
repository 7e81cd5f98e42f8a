# SPDX-License-Identifier: Apache-2.0
"""DenseNet (Huang et al., 2016): each layer reads the outputs of all before it in its block."""

from ... import relay
from .init import create_workload
from .layers import batch_norm_infer, conv2d, dense_add_bias

# Size -> (channels at first, growth, layers of each block).
SIZES = {121: (64, 32, (6, 12, 24, 16)), 161: (96, 48, (6, 12, 36, 24)), 169: (64, 32, (6, 12, 32, 32)), 201: (64, 32, (6, 12, 48, 32))}


def _bn_relu(data, name):
    return relay.nn.relu(batch_norm_infer(data, epsilon=1e-5, name=name))


def _layer(data, growth, bottleneck, name):
    """The channels that a layer adds to its input."""
    out = conv2d(_bn_relu(data, f"{name}_bn1"), channels=bottleneck * growth, kernel_size=1, name=f"{name}_conv1")
    out = conv2d(_bn_relu(out, f"{name}_bn2"), channels=growth, kernel_size=3, padding=1, name=f"{name}_conv2")
    return relay.concatenate([data, out], axis=1)


def _net(channels, growth, blocks, data_shape, dtype, classes, bottleneck=4):
    body = relay.var("data", shape=data_shape, dtype=dtype)
    body = conv2d(body, channels=channels, kernel_size=7, strides=2, padding=3, name="conv1")
    body = relay.nn.max_pool2d(_bn_relu(body, "bn1"), pool_size=3, strides=2, padding=1)
    for i, layers in enumerate(blocks):
        for j in range(layers):
            body = _layer(body, growth, bottleneck, f"block{i + 1}_layer{j + 1}")
        channels += layers * growth
        if i + 1 < len(blocks):
            channels //= 2
            body = conv2d(_bn_relu(body, f"transition{i + 1}_bn"), channels=channels, kernel_size=1, name=f"transition{i + 1}_conv")
            body = relay.nn.avg_pool2d(body, pool_size=2, strides=2)
    body = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(_bn_relu(body, "bn_last")))
    net = dense_add_bias(body, units=classes, name="fc")
    return relay.Function(relay.analysis.free_vars(net), net)


def get_net(densenet_size=121, classes=1000, batch_size=4, image_shape=(3, 224, 224), dtype="float32"):
    """The network as a function."""
    if densenet_size not in SIZES:
        raise ValueError(f"there is no DenseNet-{densenet_size}; there are {', '.join(map(str, SIZES))}")
    return _net(*SIZES[densenet_size], (batch_size, *image_shape), dtype, classes)


def get_workload(densenet_size=121, classes=1000, batch_size=4, image_shape=(3, 224, 224), dtype="float32"):
    """(module, parameters)."""
    return create_workload(get_net(densenet_size, classes, batch_size, image_shape, dtype))
