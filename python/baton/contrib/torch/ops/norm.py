# SPDX-License-Identifier: Apache-2.0
"""Normalisations, their gradients, and dropout without training."""

from __future__ import annotations

from ..registry import aten
from ..sizes import known, product


def _wide(x):
    return "float32" if x.dtype in ("float16", "bfloat16") else x.dtype


def _channels(x, n):
    """The shape of a number a channel beside data."""
    return [1, n, *[1] * (x.ndim - 2)]


def _statistics(c, x, value, axes, eps, wide):
    """(the mean, the reciprocal of the standard deviation) over axes, which stay."""
    mean = c("mean", value, axis=axes, keepdims=True)
    away = c.sub(value, mean)
    variance = c("mean", c.mul(away, away), axis=axes, keepdims=True)
    return mean, c("rsqrt", c.add(variance, c.const(eps, wide))), variance


@aten("native_layer_norm.default")
def native_layer_norm(c, x, normalized_shape, weight, bias, eps):
    n, wide = len(normalized_shape), _wide(x)
    axes = list(range(x.ndim - n, x.ndim))
    if not c.used(1) and not c.used(2):
        return [_layer_norm(c, x, n, weight, bias, eps), None, None]
    value = c.cast(x, wide)
    mean, rstd, _ = _statistics(c, x, value, axes, eps, wide)
    out = c.mul(c.sub(value, mean), rstd)
    if weight is not None:
        out = c.mul(out, c.cast(weight, wide))
    if bias is not None:
        out = c.add(out, c.cast(bias, wide))
    return [c.convert(out, wide, x.dtype), c.convert(mean, wide, wide), c.convert(rstd, wide, wide)]


def _layer_norm(c, x, n, weight, bias, eps):
    shape = x.shape[x.ndim - n :]
    gamma = c.full(1, shape, x.dtype) if weight is None else c.cast(weight, x.dtype)
    beta = c.full(0, shape, x.dtype) if bias is None else c.cast(bias, x.dtype)
    return c("nn.layer_norm", x, gamma, beta, axis=x.ndim - n, num_axes=n, epsilon=float(eps))


@aten("layer_norm.default")
def layer_norm(c, x, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return _layer_norm(c, x, len(normalized_shape), weight, bias, eps)


@aten("rms_norm.default", "_fused_rms_norm.default")
def rms_norm(c, x, normalized_shape, weight=None, eps=None):
    import torch

    n = len(normalized_shape)
    eps = torch.finfo(x.fake.dtype).eps if eps is None else eps
    gamma = c.full(1, x.shape[x.ndim - n :], x.dtype) if weight is None else c.cast(weight, x.dtype)
    out = c("nn.rms_norm", x, gamma, axis=x.ndim - n, num_axes=n, epsilon=float(eps))
    if not isinstance(c.fake, (list, tuple)):
        return out
    c.need(not c.used(1), "the statistics of rms_norm")
    return [out, None]


@aten("native_layer_norm_backward.default")
def native_layer_norm_backward(c, grad, x, normalized_shape, mean, rstd, weight, bias, output_mask):
    n, wide = len(normalized_shape), _wide(x)
    axes, outer = list(range(x.ndim - n, x.ndim)), list(range(x.ndim - n))
    g, value = c.cast(grad, wide), c.cast(x, wide)
    m, r = c.cast(mean, wide), c.cast(rstd, wide)
    normal = c.mul(c.sub(value, m), r)
    out = [None, None, None]
    if output_mask[0]:
        inner = g if weight is None else c.mul(g, c.cast(weight, wide))
        first = c("mean", inner, axis=axes, keepdims=True)
        second = c("mean", c.mul(inner, normal), axis=axes, keepdims=True)
        out[0] = c.convert(c.mul(r, c.sub(c.sub(inner, first), c.mul(normal, second))), wide, x.dtype)
    if output_mask[1] and weight is not None:
        out[1] = c.convert(c("sum", c.mul(g, normal), axis=outer) if outer else c.mul(g, normal), wide, weight.dtype)
    if output_mask[2] and bias is not None:
        out[2] = c.convert(c("sum", g, axis=outer) if outer else g, wide, bias.dtype)
    return out


@aten("native_group_norm.default")
def native_group_norm(c, x, weight, bias, N, C, HxW, group, eps):  # noqa: N803 - the schema's names
    wide = _wide(x)
    grouped = c.reshape(x, [N, group, C // group * HxW])
    value = c.convert(grouped, x.dtype, wide)
    mean, rstd, _ = _statistics(c, x, value, [2], eps, wide)
    out = c.reshape(c.mul(c.sub(value, mean), rstd), x.shape)
    if weight is not None:
        out = c.mul(out, c.reshape(c.cast(weight, wide), _channels(x, C)))
    if bias is not None:
        out = c.add(out, c.reshape(c.cast(bias, wide), _channels(x, C)))
    rows = [N, group]
    kinds = [c.results[i].dtype for i in (1, 2)]
    from ..dtypes import relay_dtype

    return [
        c.convert(out, wide, x.dtype),
        c.convert(c.reshape(mean, rows), wide, relay_dtype(kinds[0])),
        c.convert(c.reshape(rstd, rows), wide, relay_dtype(kinds[1])),
    ]


@aten("group_norm.default")
def group_norm(c, x, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    channels = x.shape[1]
    gamma = c.full(1, [channels], x.dtype) if weight is None else c.cast(weight, x.dtype)
    beta = c.full(0, [channels], x.dtype) if bias is None else c.cast(bias, x.dtype)
    return c("nn.group_norm", x, gamma, beta, num_groups=int(num_groups), axis=1, epsilon=float(eps))


@aten("native_group_norm_backward.default")
def native_group_norm_backward(c, grad, x, mean, rstd, weight, N, C, HxW, group, output_mask):  # noqa: N803
    wide, per = _wide(x), C // group
    shape = [N, group, per, HxW]
    g, value = (c.reshape(c.cast(v, wide), shape) for v in (grad, x))
    m, r = (c.reshape(c.cast(v, wide), [N, group, 1, 1]) for v in (mean, rstd))
    normal = c.mul(c.sub(value, m), r)
    out = [None, None, None]
    if output_mask[0]:
        inner = g if weight is None else c.mul(g, c.reshape(c.cast(weight, wide), [1, group, per, 1]))
        first = c("mean", inner, axis=[2, 3], keepdims=True)
        second = c("mean", c.mul(inner, normal), axis=[2, 3], keepdims=True)
        out[0] = c.convert(c.reshape(c.mul(r, c.sub(c.sub(inner, first), c.mul(normal, second))), x.shape), wide, x.dtype)
    if output_mask[1]:
        out[1] = c.convert(c.reshape(c("sum", c.mul(g, normal), axis=[0, 3]), [C]), wide, x.dtype)
    if output_mask[2]:
        out[2] = c.convert(c.reshape(c("sum", g, axis=[0, 3]), [C]), wide, x.dtype)
    return out


def _affine(c, x, mean, scale, weight, bias, wide):
    """(x - mean) * scale, times weight, plus bias, a channel at a time."""
    n = x.shape[1]
    out = c.mul(c.sub(c.cast(x, wide), c.reshape(mean, _channels(x, n))), c.reshape(scale, _channels(x, n)))
    if weight is not None:
        out = c.mul(out, c.reshape(c.cast(weight, wide), _channels(x, n)))
    return out if bias is None else c.add(out, c.reshape(c.cast(bias, wide), _channels(x, n)))


def _inference(c, x, weight, bias, running_mean, running_var, eps):
    n = x.shape[1]
    kinds = {v.dtype for v in (weight, bias, running_mean, running_var) if v is not None}
    if kinds == {x.dtype}:
        gamma = c.full(1, [n], x.dtype) if weight is None else weight
        beta = c.full(0, [n], x.dtype) if bias is None else bias
        return c.item(c("nn.batch_norm", x, gamma, beta, running_mean, running_var, axis=1, epsilon=float(eps)), 0)
    wide = _wide(x)
    scale = c("rsqrt", c.add(c.cast(running_var, wide), c.const(eps, wide)))
    return c.convert(_affine(c, x, c.cast(running_mean, wide), scale, weight, bias, wide), wide, x.dtype)


@aten("_native_batch_norm_legit_no_training.default")
def batch_norm_inference(c, x, weight, bias, running_mean, running_var, momentum, eps):
    return [_inference(c, x, weight, bias, running_mean, running_var, eps), c.full(0, [0], "float32"), c.full(0, [0], "float32")]


@aten("batch_norm.default")
def batch_norm(c, x, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    c.need(not training and running_mean is not None, "batch_norm in training within one call")
    return _inference(c, x, weight, bias, running_mean, running_var, eps)


def _training(c, x, weight, bias, running_mean, running_var, training, momentum, eps):
    """(the result, mean, 1 / deviation, the running mean, the running variance)"""
    wide, n = _wide(x), x.shape[1]
    if not training:
        scale = c("rsqrt", c.add(c.cast(running_var, wide), c.const(eps, wide)))
        out = c.convert(_affine(c, x, c.cast(running_mean, wide), scale, weight, bias, wide), wide, x.dtype)
        none = c.full(0, [0], "float32")
        return out, none, none, running_mean.expr, running_var.expr
    axes = [0, *range(2, x.ndim)]
    mean, rstd, variance = (c.reshape(v, [n]) for v in _statistics(c, x, c.cast(x, wide), axes, eps, wide))
    out = c.convert(_affine(c, x, mean, rstd, weight, bias, wide), wide, x.dtype)
    new_mean = new_var = None
    if running_mean is not None:
        count = product(x.shape[a] for a in axes)
        if known(count):
            factor = c.const(int(count) / max(int(count) - 1, 1), wide)
        else:
            number = c.size_value(count, wide)
            factor = c.div(number, c("maximum", c.sub(number, c.const(1, wide)), c.const(1, wide)))
        unbiased = c.mul(variance, factor)
        new_mean, new_var = (
            c.convert(c.add(c.mul(c.cast(old, wide), c.const(1 - momentum, wide)), c.mul(new, c.const(momentum, wide))), wide, old.dtype)
            for old, new in ((running_mean, mean), (running_var, unbiased))
        )
    return out, mean, rstd, new_mean, new_var


@aten("_native_batch_norm_legit_functional.default")
def batch_norm_functional(c, x, weight, bias, running_mean, running_var, training, momentum, eps):
    return list(_training(c, x, weight, bias, running_mean, running_var, training, momentum, eps))


@aten("_batch_norm_with_update_functional.default")
def batch_norm_with_update(c, x, weight, bias, running_mean, running_var, momentum, eps):
    out, mean, rstd, new_mean, new_var = _training(c, x, weight, bias, running_mean, running_var, True, momentum, eps)
    return [out, mean, rstd, c.full(0, c.results[3].shape, "uint8"), new_mean, new_var]


@aten("_native_batch_norm_legit.no_stats")
def batch_norm_no_stats(c, x, weight, bias, training, momentum, eps):
    return list(_training(c, x, weight, bias, None, None, True, momentum, eps))[:3]


@aten("_native_batch_norm_legit.default", "native_batch_norm.default")
def batch_norm_legit(c, x, weight, bias, running_mean, running_var, training, momentum, eps):
    c.need(not training or running_mean is None, "batch_norm that changes its statistics in place: functionalise the graph first")
    return list(_training(c, x, weight, bias, running_mean, running_var, training, momentum, eps))[:3]


@aten("native_batch_norm_backward.default")
def batch_norm_backward(c, grad, x, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask):
    wide = _wide(x)
    axes, shape = [0, *range(2, x.ndim)], _channels(x, x.shape[1])
    g, value = c.cast(grad, wide), c.cast(x, wide)
    if train:
        mean, rstd = c.cast(save_mean, wide), c.cast(save_invstd, wide)
    else:
        mean, rstd = c.cast(running_mean, wide), c("rsqrt", c.add(c.cast(running_var, wide), c.const(eps, wide)))
    r = c.reshape(rstd, shape)
    normal = c.mul(c.sub(value, c.reshape(mean, shape)), r)
    out = [None, None, None]
    if output_mask[0]:
        inner = g if weight is None else c.mul(g, c.reshape(c.cast(weight, wide), shape))
        if train:
            first = c("mean", inner, axis=axes, keepdims=True)
            second = c("mean", c.mul(inner, normal), axis=axes, keepdims=True)
            inner = c.sub(c.sub(inner, first), c.mul(normal, second))
        out[0] = c.convert(c.mul(r, inner), wide, x.dtype)
    kind = x.dtype if weight is None else weight.dtype
    if output_mask[1]:
        out[1] = c.convert(c("sum", c.mul(g, normal), axis=axes), wide, kind)
    if output_mask[2]:
        out[2] = c.convert(c("sum", g, axis=axes), wide, kind)
    return out


@aten("native_dropout.default")
def native_dropout(c, x, p, train):
    c.need(not train or p == 0, "dropout in training draws random numbers")
    return [x.expr, c.full(True, x.shape, "bool")]


@aten("dropout.default")
def dropout(c, x, p, train):
    c.need(not train or p == 0, "dropout in training draws random numbers")
    return x.expr
