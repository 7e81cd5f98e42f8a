# SPDX-License-Identifier: Apache-2.0
"""Attention, its gradient, and layers of it that PyTorch has as one operator."""

from __future__ import annotations

import math

from ..context import Value
from ..registry import aten
from ..sizes import same


class _Attention:
    """softmax(query @ key^T * scale + mask) @ value over (..., heads, length, width), in float32 where inputs are narrower."""

    def __init__(self, c, query, key, value, mask, is_causal, scale):
        self.c, self.query, self.key, self.value = c, query, key, value
        self.wide = "float32" if query.dtype in ("float16", "bfloat16") else query.dtype
        self.axis = query.ndim - 1
        self.groups = 1
        if query.ndim > 2 and not same(query.shape[-3], key.shape[-3]):
            heads, own = c.known(query.shape[-3], key.shape[-3])
            self.groups = heads // own
        (width,) = c.known(query.shape[-1])
        self.scale = c.const(1 / math.sqrt(width) if scale is None else scale, self.wide)
        self.q, self.k, self.v = (c.cast(x, self.wide) for x in (query, key, value))
        if self.groups > 1:
            self.k, self.v = (c("repeat", x, repeats=self.groups, axis=query.ndim - 3) for x in (self.k, self.v))
        self.low = c.const(-math.inf, self.wide)
        self.masked = is_causal or mask is not None
        self.scores = self._scores(mask, is_causal)

    def _scores(self, mask, is_causal):
        c = self.c
        scores = self.product(c.mul(self.q, self.scale), self.k, turned=True)
        if is_causal:
            rows, columns = (c.arange(n) for n in (self.query.shape[-2], self.key.shape[-2]))
            scores = c.where(c("less_equal", c.expand_dims(columns, 0), c.expand_dims(rows, 1)), scores, self.low)
        if mask is not None:
            scores = c.where(mask, scores, self.low) if mask.is_bool else c.add(scores, c.cast(mask, self.wide))
        return scores

    def product(self, a, b, turned=False):
        """a @ b, or a @ b^T."""
        if self.query.ndim == 3:
            return self.c("nn.batch_matmul", a, b, transpose_b=turned)
        return self.c("nn.matmul", a, b, transpose_b=turned)

    def weights(self):
        """softmax of the scores; a row without a key has zeros."""
        c = self.c
        out = c("nn.softmax", self.scores, axis=self.axis)
        if self.masked:
            none = c("equal", c("max", self.scores, axis=[self.axis], keepdims=True), self.low)
            out = c.where(none, c.const(0, self.wide), out)
        return out

    def result(self):
        """The result in the dtype of the query."""
        return self.c.convert(self.product(self.weights(), self.v), self.wide, self.query.dtype)

    def gathered(self, grad):
        """The gradient of keys or values, summed over the heads that share them."""
        c = self.c
        if self.groups > 1:
            *batch, heads, length, width = self.query.shape[:-2] + (self.key.shape[-2], self.query.shape[-1])
            grad = c.reshape(grad, [*batch, heads // self.groups, self.groups, length, width])
            grad = c("sum", grad, axis=[len(batch) + 1])
        return c.convert(grad, self.wide, self.query.dtype)


@aten("scaled_dot_product_attention.default")
def scaled_dot_product_attention(c, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    c.need(not dropout_p, "attention with dropout draws random numbers")
    return _Attention(c, query, key, value, attn_mask, is_causal, scale).result()


@aten("_scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention(c, query, key, value, dropout_p=0.0, is_causal=False, attn_mask=None, scale=None):
    c.need(not dropout_p, "attention with dropout draws random numbers")
    made = _Attention(c, query, key, value, attn_mask, is_causal, scale)
    return [made.result(), c("logsumexp", made.scores, axis=[made.axis]) if c.used(1) else None]


@aten("_scaled_dot_product_flash_attention_for_cpu_backward.default")
def flash_attention_backward(c, grad, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask=None, scale=None):
    c.need(not dropout_p, "attention with dropout draws random numbers")
    made = _Attention(c, query, key, value, attn_mask, is_causal, scale)
    g, axis, wide = c.cast(grad, made.wide), made.axis, made.wide
    weights = made.weights()
    back = list(range(query.ndim - 2)) + [query.ndim - 1, query.ndim - 2]
    own = c("sum", c.mul(g, c.cast(out, wide)), axis=[axis], keepdims=True)
    inner = c.mul(weights, c.sub(made.product(g, made.v, turned=True), own))
    turned = c.mul(c.transpose(inner, back), made.scale)
    of_query = c.mul(made.product(inner, made.k), made.scale)
    of_key, of_value = made.product(turned, made.q), made.product(c.transpose(weights, back), g)
    return [c.convert(of_query, wide, query.dtype), made.gathered(of_key), made.gathered(of_value)]


def _heads(c, x, shape, heads):
    """(batch, length, width) as (batch, heads, length, width / heads)."""
    batch, length, width = shape
    return c.transpose(c.reshape(x, [batch, length, heads, width // heads]), [0, 2, 1, 3])


def _linear(c, x, weight, bias):
    out = c("nn.dense", x, weight)
    return out if bias is None else c.add(out, bias)


def _self_attention(c, x, value, heads, qkv_weight, qkv_bias, weight, bias, mask, mask_type):
    """Self attention of `value` with the shape of `x`: projections of queries, keys and values in one product."""
    batch, length, width = x.shape
    both = _linear(c, value, qkv_weight, qkv_bias)
    parts = [_heads(c, c.slice(both, 2, i * width, (i + 1) * width), x.shape, heads) for i in range(3)]
    fake = x.fake.new_empty([batch, heads, length, width // heads])
    q, k, v = (Value(p, fake) for p in parts)
    made = _Attention(c, q, k, v, None, False, None)
    if mask is not None:
        out = mask.expr
        if mask_type == 1:  # keys that do not count, of each sequence
            out = c.reshape(mask, [batch, 1, 1, length])
        made.masked = True
        made.scores = c.where(out, made.low, made.scores) if mask.is_bool else c.add(made.scores, out)
    out = c.reshape(c.transpose(made.result(), [0, 2, 1, 3]), x.shape)
    return _linear(c, out, weight, bias)


@aten("_native_multi_head_attention.default")
def native_multi_head_attention(
    c,
    query,
    key,
    value,
    embed_dim,
    num_head,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    mask=None,
    need_weights=True,
    average_attn_weights=True,
    mask_type=None,
):
    c.need(query.node is key.node and key.node is value.node and not c.used(1), "attention between different tensors, or with its weights, as one operator")
    return [_self_attention(c, query, query.expr, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, mask_type), None]


@aten("_transformer_encoder_layer_fwd.default")
def transformer_encoder_layer(
    c, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps,
    norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask=None, mask_type=None,
):  # fmt: skip
    """A layer of an encoder at inference: attention and two linear layers, each added to what goes in, with a norm before or behind."""

    def norm(value, weight, bias):
        return c("nn.layer_norm", value, weight, bias, axis=2, epsilon=float(eps))

    def attend(value):
        return _self_attention(c, x, value, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, mask_type)

    def feed(value):
        inner = _linear(c, value, ffn_weight_1, ffn_bias_1)
        return _linear(c, c("nn.gelu", inner) if use_gelu else c("nn.relu", inner), ffn_weight_2, ffn_bias_2)

    if norm_first:
        first = c.add(x, attend(norm(x, norm_weight_1, norm_bias_1)))
        return c.add(first, feed(norm(first, norm_weight_2, norm_bias_2)))
    first = norm(c.add(x, attend(x.expr)), norm_weight_1, norm_bias_1)
    return norm(c.add(first, feed(first)), norm_weight_2, norm_bias_2)
