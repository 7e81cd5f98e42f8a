# SPDX-License-Identifier: Apache-2.0
"""Which operators PyTorch takes apart before the converter sees them: the core decompositions, but for what Relay says better."""

from __future__ import annotations

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


def house_table():
    """The decompositions of `ExportedProgram.run_decompositions`."""
    table = torch.export.default_decompositions()
    table.update(_quantized_rows())
    for overload in kept_overloads():
        table.pop(overload, None)
    return table


def house_rows() -> dict:
    """The same as a dict, for AOTAutograd and `make_fx`, which take operators apart that have no composite form of their own."""
    kept = set(kept_overloads())
    return {overload: rule for overload, rule in {**torch.export.default_decompositions(), **_quantized_rows()}.items() if overload not in kept}
