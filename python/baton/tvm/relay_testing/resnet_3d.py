# SPDX-License-Identifier: Apache-2.0
"""Residual networks of videos: `resnet` with convolutions over depth, height and width."""

from ... import relay
from .init import create_workload
from .layers import batch_norm_infer, conv_kernel_layout, dense_add_bias
from .resnet import _STAGES, _Net


class _Net3D(_Net):
    def conv(self, data, **kwargs):
        name = kwargs.pop("name")
        size = kwargs.pop("kernel_size")
        for key in ("strides", "padding"):
            if isinstance(kwargs.get(key), int):
                kwargs[key] = (kwargs[key],) * 3
        return relay.nn.conv3d(
            data,
            relay.var(name + "_weight"),
            kernel_size=(size,) * 3 if isinstance(size, int) else size,
            data_layout=self.layout,
            kernel_layout=conv_kernel_layout(self.layout),
            **kwargs,
        )

    def norm(self, data, **kwargs):
        return batch_norm_infer(data, epsilon=2e-5, axis=self.layout.index("C"), **kwargs)


def get_net(batch_size, num_classes, num_layers=50, image_shape=(3, 16, 112, 112), layout="NCDHW", dtype="float32", **_):
    """The network as a function. `image_shape` is as the layout has it."""
    if num_layers not in _STAGES:
        raise ValueError(f"there are networks of {', '.join(map(str, _STAGES))} layers, not {num_layers}")
    units, bottleneck = _STAGES[num_layers]
    filters = [256, 512, 1024, 2048] if bottleneck else [64, 128, 256, 512]
    net = _Net3D(layout)
    body = net.norm(relay.var("data", shape=(batch_size, *image_shape), dtype=dtype), scale=False, name="bn_data")
    if image_shape[layout.index("H") - 1] <= 32:
        body = net.conv(body, channels=64, kernel_size=3, padding=1, name="conv0")
    else:
        body = net.conv(body, channels=64, kernel_size=(3, 7, 7), strides=(1, 2, 2), padding=(1, 3, 3), name="conv0")
        body = net.act(body, "bn0")
    for stage, (count, width) in enumerate(zip(units, filters, strict=True)):
        for i in range(count):
            body = net.unit(body, width, 2 if i == 0 and stage else 1, i > 0, f"stage{stage + 1}_unit{i + 1}", bottleneck)
    pooled = relay.nn.adaptive_avg_pool3d(net.act(body, "bn1"), output_size=(1, 1, 1), layout=layout)
    out = relay.nn.softmax(dense_add_bias(relay.nn.batch_flatten(pooled), units=num_classes, name="fc1"))
    return relay.Function(relay.analysis.free_vars(out), out)


def get_workload(batch_size=1, num_classes=1000, num_layers=18, image_shape=(3, 16, 112, 112), layout="NCDHW", dtype="float32", **kwargs):
    """(module, parameters)."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, **kwargs))
