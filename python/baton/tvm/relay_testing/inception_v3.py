# SPDX-License-Identifier: Apache-2.0
"""Inception, version 3 (Szegedy et al., 2015)."""

from ... import relay
from .init import create_workload
from .layers import batch_norm_infer, conv2d, dense_add_bias


def _conv(data, channels, size, name, strides=1, padding=0):
    out = conv2d(data, channels=channels, kernel_size=size, strides=strides, padding=padding, name=f"{name}_conv")
    return relay.nn.relu(batch_norm_infer(out, epsilon=2e-5, name=f"{name}_bn"))


def _chain(data, name, *rows):
    """Convolutions one after the other; rows of (channels, size, padding) and perhaps a stride."""
    for i, (channels, size, padding, *strides) in enumerate(rows):
        data = _conv(data, channels, size, f"{name}_{i}", *strides, padding=padding)
    return data


def _pooled(data, name, channels):
    """A mean over the neighbourhood, then channels by a 1x1 convolution."""
    return _conv(relay.nn.avg_pool2d(data, pool_size=3, strides=1, padding=1, count_include_pad=True), channels, (1, 1), name)


def _block_35(data, pool, name):
    return relay.concatenate(
        [
            _chain(data, f"{name}_a", (64, (1, 1), 0)),
            _chain(data, f"{name}_b", (48, (1, 1), 0), (64, (5, 5), 2)),
            _chain(data, f"{name}_c", (64, (1, 1), 0), (96, (3, 3), 1), (96, (3, 3), 1)),
            _pooled(data, f"{name}_pool", pool),
        ],
        axis=1,
    )


def _block_17(data, n, name):
    across, down = ((1, 7), (0, 3)), ((7, 1), (3, 0))
    return relay.concatenate(
        [
            _chain(data, f"{name}_a", (192, (1, 1), 0)),
            _chain(data, f"{name}_b", (n, (1, 1), 0), (n, *across), (192, *down)),
            _chain(data, f"{name}_c", (n, (1, 1), 0), (n, *down), (n, *across), (n, *down), (192, *across)),
            _pooled(data, f"{name}_pool", 192),
        ],
        axis=1,
    )


def _block_8(data, name):
    across, down = ((1, 3), (0, 1)), ((3, 1), (1, 0))
    b = _chain(data, f"{name}_b", (384, (1, 1), 0))
    c = _chain(data, f"{name}_c", (448, (1, 1), 0), (384, (3, 3), 1))
    return relay.concatenate(
        [
            _chain(data, f"{name}_a", (320, (1, 1), 0)),
            _chain(b, f"{name}_b1", (384, *across)),
            _chain(b, f"{name}_b2", (384, *down)),
            _chain(c, f"{name}_c1", (384, *across)),
            _chain(c, f"{name}_c2", (384, *down)),
            _pooled(data, f"{name}_pool", 192),
        ],
        axis=1,
    )


def get_net(batch_size, num_classes, image_shape, dtype):
    """The network as a function."""

    def pool(data):
        return relay.nn.max_pool2d(data, pool_size=3, strides=2)

    body = relay.var("data", shape=(batch_size, *image_shape), dtype=dtype)
    body = pool(_chain(body, "stem1", (32, (3, 3), 0, 2), (32, (3, 3), 0), (64, (3, 3), 1)))
    body = pool(_chain(body, "stem2", (80, (1, 1), 0), (192, (3, 3), 0)))
    for i, channels in enumerate((32, 64, 64)):
        body = _block_35(body, channels, f"a{i}")
    body = relay.concatenate(
        [_chain(body, "ab_a", (384, (3, 3), 0, 2)), _chain(body, "ab_b", (64, (1, 1), 0), (96, (3, 3), 1), (96, (3, 3), 0, 2)), pool(body)], axis=1
    )
    for i, channels in enumerate((128, 160, 160, 192)):
        body = _block_17(body, channels, f"b{i}")
    body = relay.concatenate(
        [
            _chain(body, "bc_a", (192, (1, 1), 0), (320, (3, 3), 0, 2)),
            _chain(body, "bc_b", (192, (1, 1), 0), (192, (1, 7), (0, 3)), (192, (7, 1), (3, 0)), (192, (3, 3), 0, 2)),
            pool(body),
        ],
        axis=1,
    )
    for i in range(2):
        body = _block_8(body, f"c{i}")
    body = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(body))
    net = relay.nn.softmax(dense_add_bias(body, units=num_classes, name="fc"))
    return relay.Function(relay.analysis.free_vars(net), net)


def get_workload(batch_size=1, num_classes=1000, image_shape=(3, 299, 299), dtype="float32"):
    """(module, parameters)."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
