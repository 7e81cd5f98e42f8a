# SPDX-License-Identifier: Apache-2.0
"""MobileNet, version 1 (Howard et al., 2017)."""

from ... import relay
from .init import create_workload
from .layers import batch_norm_infer, conv2d, conv_kernel_layout, dense_add_bias


def _conv(data, name, layout, channels, kernel_size=3, strides=1, padding=1, groups=1):
    out = conv2d(
        data,
        channels=channels,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        groups=groups,
        data_layout=layout,
        kernel_layout=conv_kernel_layout(layout, groups > 1),
        name=name + "_conv",
    )
    return relay.nn.relu(batch_norm_infer(out, epsilon=1e-5, axis=layout.index("C"), name=name + "_bn"))


def mobile_net(num_classes=1000, data_shape=(1, 3, 224, 224), dtype="float32", alpha=1.0, is_shallow=False, layout="NCHW"):
    """The network as a function; `alpha` scales the number of channels. A shallow one lacks the five equal blocks in the middle."""

    def width(n):
        return int(n * alpha)

    body = _conv(relay.var("data", shape=data_shape, dtype=dtype), "conv1", layout, width(32), strides=2)
    rows = [
        (32, 64, 1),
        (64, 128, 2),
        (128, 128, 1),
        (128, 256, 2),
        (256, 256, 1),
        (256, 512, 2),
        *[(512, 512, 1)] * (0 if is_shallow else 5),
        (512, 1024, 2),
        (1024, 1024, 1),
    ]
    for i, (inner, outer, stride) in enumerate(rows):
        body = _conv(body, f"block{i}_depthwise", layout, width(inner), strides=stride, groups=width(inner))
        body = _conv(body, f"block{i}_pointwise", layout, width(outer), kernel_size=1, padding=0)
    body = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(body, layout=layout))
    net = relay.nn.softmax(dense_add_bias(body, units=num_classes, name="fc"))
    return relay.Function(relay.analysis.free_vars(net), net)


def get_workload(batch_size=1, num_classes=1000, image_shape=(3, 224, 224), dtype="float32", layout="NCHW", alpha=1.0):
    """(module, parameters). `image_shape` is (channels, height, width), whatever the layout."""
    shape = image_shape if layout == "NCHW" else (*image_shape[1:], image_shape[0])
    return create_workload(mobile_net(num_classes, (batch_size, *shape), dtype, alpha, layout=layout))
