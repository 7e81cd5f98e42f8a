# SPDX-License-Identifier: Apache-2.0
"""Layers that make their own parameters."""

from ... import relay


def dense_add_bias(data, weight=None, bias=None, units=None, **kwargs):
    """A fully connected layer with a bias; `name` names its parameters."""
    name = kwargs.pop("name", "")
    weight = weight if weight is not None else relay.var(name + "_weight")
    bias = bias if bias is not None else relay.var(name + "_bias")
    return relay.nn.bias_add(relay.nn.dense(data, weight, units, **kwargs), bias, axis=-1)


def conv1d(data, weight=None, **kwargs):
    """A convolution along a length; `name` names its weight."""
    name = kwargs.pop("name", "")
    return relay.nn.conv1d(data, weight if weight is not None else relay.var(name + "_weight"), **kwargs)


def conv3d(data, weight=None, **kwargs):
    """A convolution of a volume; `name` names its weight."""
    name = kwargs.pop("name", "")
    return relay.nn.conv3d(data, weight if weight is not None else relay.var(name + "_weight"), **kwargs)


def conv2d(data, weight=None, **kwargs):
    """A convolution; `name` names its weight."""
    name = kwargs.pop("name", "")
    return relay.nn.conv2d(data, weight if weight is not None else relay.var(name + "_weight"), **kwargs)


def conv2d_transpose(data, weight=None, **kwargs):
    """A transposed convolution; `name` names its weight."""
    name = kwargs.pop("name", "")
    return relay.nn.conv2d_transpose(data, weight if weight is not None else relay.var(name + "_weight"), **kwargs)


def batch_norm_infer(data, gamma=None, beta=None, moving_mean=None, moving_var=None, **kwargs):
    """Batch normalisation as in inference; `name` names its parameters."""
    name = kwargs.pop("name", "")
    parts = [
        p if p is not None else relay.var(f"{name}_{n}")
        for p, n in ((gamma, "gamma"), (beta, "beta"), (moving_mean, "moving_mean"), (moving_var, "moving_var"))
    ]
    return relay.nn.batch_norm(data, *parts, **kwargs)[0]


def conv_kernel_layout(data_layout, is_depthwise=False):
    """The layout of weights that goes with one of data."""
    known = {"NCHW": ("OIHW", "OIHW"), "NHWC": ("HWIO", "HWOI"), "NCDHW": ("OIDHW", "OIDHW"), "NDHWC": ("DHWIO", "DHWOI")}
    if data_layout not in known:
        raise ValueError(f"data_layout is {data_layout!r}; there are {', '.join(known)}")
    return known[data_layout][is_depthwise]
