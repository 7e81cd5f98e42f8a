# SPDX-License-Identifier: Apache-2.0
"""The generator of DCGAN (Radford et al., 2015): from noise to an image, by transposed convolutions."""

from ... import relay
from .init import create_workload
from .layers import batch_norm_infer, dense_add_bias


def _deconv(data, ishape, oshape, kshape, layout, name, dtype, stride=(2, 2)):
    """A transposed convolution from `ishape` to `oshape` (channels, height, width)."""
    places = range(2)
    # (i - 1) * stride - 2 * pad + kernel + extra = o, with as even a padding as can be.
    total = [(ishape[i + 1] - 1) * stride[i] + kshape[i] - oshape[i + 1] for i in places]
    pad = [(t + 1) // 2 for t in total]
    extra = [2 * p - t for p, t in zip(pad, total, strict=True)]
    wshape = (ishape[0], oshape[0], *kshape) if layout == "NCHW" else (*kshape, oshape[0], ishape[0])
    return relay.nn.conv2d_transpose(
        data,
        relay.var(name + "_weight", shape=wshape, dtype=dtype),
        strides=stride,
        padding=pad,
        channels=oshape[0],
        kernel_size=kshape,
        output_padding=extra,
        data_layout=layout,
        kernel_layout="IOHW" if layout == "NCHW" else "HWOI",
    )


def get_net(batch_size, random_len=100, oshape=(3, 64, 64), ngf=128, code=None, layout="NCHW", dtype="float32"):
    """The generator as a function of `random_len` numbers."""
    if oshape[-1] != 64 or oshape[-2] != 64:
        raise ValueError(f"the generator makes images of 64 by 64, not {oshape[-2]} by {oshape[-1]}")
    axis = layout.index("C")
    body = relay.var("data", dtype=dtype, shape=(batch_size, random_len)) if code is None else code
    body = relay.nn.relu(dense_add_bias(body, units=4 * 4 * ngf * 8, name="g1"))
    body = relay.reshape(body, (-1, ngf * 8, 4, 4) if layout == "NCHW" else (-1, 4, 4, ngf * 8))
    shape = (ngf * 8, 4, 4)
    for i, factor in enumerate((4, 2, 1), 2):
        wide = (ngf * factor, shape[1] * 2, shape[2] * 2)
        body = batch_norm_infer(_deconv(body, shape, wide, (4, 4), layout, f"g{i}_deconv", dtype), axis=axis, epsilon=1e-5 + 1e-12, name=f"g{i}_bn")
        body, shape = relay.nn.relu(body), wide
    net = relay.tanh(_deconv(body, shape, oshape[-3:], (4, 4), layout, "g5_deconv", dtype))
    return relay.Function(relay.analysis.free_vars(net), net)


def get_workload(batch_size, oshape=(3, 64, 64), ngf=128, random_len=100, layout="NCHW", dtype="float32"):
    """(module, parameters)."""
    return create_workload(get_net(batch_size, random_len, oshape=oshape, ngf=ngf, layout=layout, dtype=dtype))
