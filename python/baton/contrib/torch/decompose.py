# SPDX-License-Identifier: Apache-2.0
"""Which operators PyTorch takes apart before the converter sees them: the core decompositions, but for what Relay says better."""

from __future__ import annotations

import contextlib
import importlib
import sys

import torch

# Names of ATen's operators that stay whole, all overloads that have a rule.
KEPT = (
    *("linear", "matmul", "baddbmm", "addmv", "scaled_dot_product_attention"),
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    *("layer_norm", "group_norm", "rms_norm", "native_layer_norm", "native_group_norm"),
    *("gelu", "silu", "hardswish", "hardsigmoid", "mish", "softplus", "elu", "leaky_relu", "hardtanh", "relu"),
    *("softmax", "log_softmax", "logsumexp", "std", "var_mean", "linalg_vector_norm"),
    *(
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d",
        "upsample_linear1d",
        "upsample_bilinear2d",
        "upsample_trilinear3d",
        "upsample_bicubic2d",
    ),
    *("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"),
    *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d", "max_pool1d", "max_pool2d", "max_pool3d"),
    *("pixel_shuffle", "pixel_unshuffle", "grid_sampler_2d", "im2col", "one_hot"),
    *("stack", "unbind", "split", "chunk", "triu", "tril", "roll", "masked_fill", "index_add", "index_copy", "repeat_interleave", "take"),
    *("t", "transpose", "reshape", "narrow", "zeros", "ones", "zeros_like", "ones_like", "eye", "floor_divide", "rsub", "clamp_min", "clamp_max"),
    *("all", "floor_divide", "isneginf", "sgn", "linspace"),
)


def kept_overloads() -> list:
    """The overloads that stay whole: those of KEPT that have a rule."""
    from . import ops  # noqa: F401 - fills the table
    from .registry import RULES

    out = []
    for name in KEPT:
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            found = getattr(packet, overload)
            if str(found) in RULES:
                out.append(found)
    return out


# Names of PT2E's operators that are taken apart by PyTorch's own functions of these names: scales of each token, and of groups.
_PER_TOKEN = (
    *("quantize_per_token", "dequantize_per_token", "choose_qparams_per_token", "choose_qparams_per_token_asymmetric"),
    *("quantize_per_channel_group", "dequantize_per_channel_group", "convert_element_type"),
)


def _quantized_rows() -> dict:
    """Decompositions of quantised operators; none where the program's process has not loaded them."""
    library = sys.modules.get("torch.ao.quantization.fx._decomposed")
    rows = {}
    for name in _PER_TOKEN if library is not None else ():
        packet = getattr(torch.ops.quantized_decomposed, name, None)
        for overload in packet.overloads() if packet is not None else ():
            rows[getattr(packet, overload)] = getattr(library, name)
    return rows


def _linear_cross_entropy(x, matrix, target, bias, weight, reduction, ignored, smoothing, chunk, policy, dtype, again, *grads):
    """(the loss of a last layer, its derivatives by the layer's input, weight and bias: those that `grads` asks for, else empty)"""
    own, kind = x.dtype, dtype or x.dtype
    x, matrix = x.to(kind), matrix.to(kind)
    bias, weight = (None if v is None else v.to(kind) for v in (bias, weight))
    logits = torch.nn.functional.linear(x, matrix, bias)
    loss = torch.nn.functional.cross_entropy(logits, target, weight, reduction=reduction, ignore_index=ignored, label_smoothing=smoothing)
    given = [x.new_empty((0, 0), dtype=own), x.new_empty((0, 0), dtype=own), x.new_empty((0,), dtype=own)]
    if any(grads):
        if smoothing:
            return NotImplemented  # of smoothed labels: the operator stays whole, and has no rule
        counts = target != ignored
        place = torch.where(counts, target, 0)
        share = counts.to(kind) if weight is None else torch.where(counts, weight[place], 0)
        share = share / share.sum() if reduction == "mean" else share
        step = torch.softmax(logits, 1) - (place.unsqueeze(1) == torch.arange(logits.shape[1]))
        step = torch.where(counts.unsqueeze(1), step * share.unsqueeze(1), 0)
        made = (lambda: step @ matrix, lambda: step.T @ x, lambda: step.sum(0))
        given = [make().to(own) if wanted else none for make, wanted, none in zip(made, grads, given, strict=True)]
    return loss.to(own), *given


def _linear_cross_entropies(x, matrix, target, bias, weight, ignored, chunk, policy, dtype):
    """The same of each row, without derivatives."""
    return _linear_cross_entropy(x, matrix, target, bias, weight, "none", ignored, 0.0, chunk, policy, dtype, True)[0]


def _loss_rows() -> dict:
    """Decompositions of losses that PyTorch computes in pieces of Python."""
    with contextlib.suppress(ImportError):  # releases before 2.13 lack them
        importlib.import_module("torch.nn.modules.linear_cross_entropy")  # registers them
    library, rows = torch.ops.torch_nn, {}
    rows["_linear_cross_entropy_batch_chunked"] = _linear_cross_entropy
    rows["_linear_cross_entropy_batch_chunked_no_reduction"] = _linear_cross_entropies
    return {getattr(library, name).default: rule for name, rule in rows.items() if hasattr(library, name)}


def house_table():
    """The decompositions of `ExportedProgram.run_decompositions`."""
    table = torch.export.default_decompositions()
    for overload, rule in {**_quantized_rows(), **_loss_rows()}.items():
        table[overload] = rule
    for overload in kept_overloads():
        table.pop(overload, None)
    return table


def house_rows() -> dict:
    """The same as a dict, for AOTAutograd and `make_fx`, which take operators apart that have no composite form of their own."""
    kept = set(kept_overloads())
    rows = {**torch.export.default_decompositions(), **_quantized_rows(), **_loss_rows()}
    return {overload: rule for overload, rule in rows.items() if overload not in kept}
