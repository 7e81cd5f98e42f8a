# SPDX-License-Identifier: Apache-2.0
"""Counts the floating-point operations of an ONNX graph: two for each multiply-add of a convolution or matrix product.

Everything else is left out, as is usual; so a share of the machine's peak is, if anything, too low.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path


def count_flops(path: Path, shape: Mapping[str, tuple[int, ...]]) -> int | None:
    """The operations of one run with inputs of the given shapes; None where a shape that matters is not known."""
    import onnx
    from onnx import shape_inference

    proto = onnx.load(path)
    for value in proto.graph.input:
        if value.name in shape:
            dims = value.type.tensor_type.shape.dim
            for dim, size in zip(dims, shape[value.name], strict=True):
                dim.Clear()
                dim.dim_value = size
    graph = shape_inference.infer_shapes(proto, data_prop=True).graph
    known: dict[str, list[int] | None] = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        dims = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape"):
            known[value.name] = [d.dim_value for d in dims] if all(d.HasField("dim_value") for d in dims) else None
    total = 0
    for node in graph.node:
        shapes = [known.get(name) for name in (*node.input[:2], *node.output[:1])]
        if node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
            continue
        if any(s is None for s in shapes):
            return None
        left, right, out = shapes
        if node.op_type == "Conv":  # weight: (out, in / groups, kernel...)
            total += 2 * math.prod(out) * math.prod(right[1:])
        elif node.op_type == "ConvTranspose":  # weight: (in, out / groups, kernel...)
            total += 2 * math.prod(left) * math.prod(right[1:])
        else:
            across = next((a.i for a in node.attribute if a.name == "transA"), 0)
            total += 2 * math.prod(out) * left[0 if across else -1]
    return total
