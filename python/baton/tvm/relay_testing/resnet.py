# SPDX-License-Identifier: Apache-2.0
"""Residual networks, version 2 (He et al., "Identity Mappings in Deep Residual Networks", 2016)."""

from ... import relay
from .init import create_workload
from .layers import batch_norm_infer, conv_kernel_layout, dense_add_bias
from .layers import conv2d as plain_conv2d

# Layers -> (units of the four stages, whether they have bottlenecks).
_STAGES = {
    18: ([2, 2, 2, 2], False),
    34: ([3, 4, 6, 3], False),
    50: ([3, 4, 6, 3], True),
    101: ([3, 4, 23, 3], True),
    152: ([3, 8, 36, 3], True),
    200: ([3, 24, 36, 3], True),
    269: ([3, 30, 48, 8], True),
}


def _stages(num_layers, height):
    """(units of the stages, channels of the first layer and of each stage, whether the units have bottlenecks)."""
    if height > 28:
        if num_layers not in _STAGES:
            raise ValueError(f"there are networks of {', '.join(map(str, _STAGES))} layers, not {num_layers}")
        units, bottleneck = _STAGES[num_layers]
        return units, [64, 256, 512, 1024, 2048] if bottleneck else [64, 64, 128, 256, 512], bottleneck
    # Three stages for small images.
    if num_layers >= 164 and (num_layers - 2) % 9 == 0:
        return [(num_layers - 2) // 9] * 3, [16, 64, 128, 256], True
    if 8 <= num_layers < 164 and (num_layers - 2) % 6 == 0:
        return [(num_layers - 2) // 6] * 3, [16, 16, 32, 64], False
    raise ValueError(f"networks for images of up to 28 rows have 8, 14, 20, ... 158, 164, 173, ... layers, not {num_layers}")


class _Net:
    """Layers in one layout."""

    def __init__(self, layout):
        self.layout = layout

    def conv(self, data, **kwargs):
        return plain_conv2d(data, data_layout=self.layout, kernel_layout=conv_kernel_layout(self.layout), **kwargs)

    def norm(self, data, **kwargs):
        return batch_norm_infer(data, epsilon=2e-5, axis=self.layout.index("C"), **kwargs)

    def act(self, data, name):
        return relay.nn.relu(self.norm(data, name=name))

    def unit(self, data, filters, stride, same, name, bottleneck):
        act = self.act(data, name + "_bn1")
        if bottleneck:
            out = self.conv(act, channels=filters // 4, kernel_size=1, name=name + "_conv1")
            out = self.conv(self.act(out, name + "_bn2"), channels=filters // 4, kernel_size=3, strides=stride, padding=1, name=name + "_conv2")
            out = self.conv(self.act(out, name + "_bn3"), channels=filters, kernel_size=1, name=name + "_conv3")
        else:
            out = self.conv(act, channels=filters, kernel_size=3, strides=stride, padding=1, name=name + "_conv1")
            out = self.conv(self.act(out, name + "_bn2"), channels=filters, kernel_size=3, padding=1, name=name + "_conv2")
        shortcut = data if same else self.conv(act, channels=filters, kernel_size=1, strides=stride, name=name + "_sc")
        return relay.add(out, shortcut)


def get_net(batch_size, num_classes, num_layers=50, image_shape=(3, 224, 224), layout="NCHW", dtype="float32", **_):
    """The network as a function. `image_shape` is as the layout has it."""
    height = image_shape[layout.index("H") - 1]
    units, (first, *filters), bottleneck = _stages(num_layers, height)
    net = _Net(layout)
    data = relay.var("data", shape=(batch_size, *image_shape), dtype=dtype)
    body = net.norm(data, scale=False, name="bn_data")
    if height <= 32:
        body = net.conv(body, channels=first, kernel_size=3, padding=1, name="conv0")
    else:
        body = net.conv(body, channels=first, kernel_size=7, strides=2, padding=3, name="conv0")
        body = relay.nn.max_pool2d(net.act(body, "bn0"), pool_size=3, strides=2, padding=1, layout=layout)
    for stage, (count, width) in enumerate(zip(units, filters, strict=True)):
        for i in range(count):
            body = net.unit(body, width, 2 if i == 0 and stage else 1, i > 0, f"stage{stage + 1}_unit{i + 1}", bottleneck)
    body = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(net.act(body, "bn1"), layout=layout))
    out = relay.nn.softmax(dense_add_bias(body, units=num_classes, name="fc1"))
    return relay.Function(relay.analysis.free_vars(out), out)


def get_workload(batch_size=1, num_classes=1000, num_layers=18, image_shape=(3, 224, 224), layout="NCHW", dtype="float32", **kwargs):
    """(module, parameters)."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, **kwargs))
