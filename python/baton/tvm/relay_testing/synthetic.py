# SPDX-License-Identifier: Apache-2.0
"""A small network of several kinds of layers: dense layers and convolutions side by side, softmax, biases, batch normalisation."""

from ... import relay
from .init import create_workload
from .layers import batch_norm_infer


def _both(data, shape, name, wtype):
    """A dense layer over the last dimension and a convolution, added."""
    width, channels = shape[3], shape[1]
    weight = relay.var(f"{name}_dense_weight", shape=(width, width), dtype=wtype)
    dense = relay.reshape_like(relay.nn.relu(relay.nn.dense(relay.reshape(data, (-1, width)), weight)), data)
    kernel = relay.var(f"{name}_conv_weight", shape=(channels, channels, 3, 3), dtype=wtype)
    conv = relay.nn.softmax(relay.nn.conv2d(data, kernel, kernel_size=3, padding=1))
    return relay.add(dense, conv)


def get_net(input_shape=(1, 3, 24, 12), dtype="float32", wtype=None):
    """The network as a function; `wtype` is the type of the weights."""
    wtype = wtype or dtype
    data = relay.var("data", shape=input_shape, dtype=dtype)
    body = relay.nn.bias_add(_both(data, input_shape, "first", wtype), relay.var("bias", dtype=wtype))
    body = batch_norm_infer(body, name="batch_norm")
    net = _both(body, input_shape, "second", wtype)
    return relay.Function(relay.analysis.free_vars(net), net)


def get_workload(input_shape=(1, 3, 24, 12), dtype="float32", wtype=None):
    """(module, parameters)."""
    return create_workload(get_net(input_shape, dtype, wtype))
