# SPDX-License-Identifier: Apache-2.0
"""Weights of `nn.dense` as sparse matrices."""

import typing

from .data_dep_optimization import sparse_weights


class SparseAnalysisResult(typing.NamedTuple):
    """Names of the weights, and the shapes of the parts of each: data, indices, indptr."""

    weight_name: list
    weight_shape: list


def process_params(expr, params, block_size, sparsity_threshold, layout=None):
    """Replaces, in `params`, weights whose share of zeros is at least the threshold by the parts of sparse matrices; says which."""
    made, names, shapes = sparse_weights(expr, params, block_size, sparsity_threshold)
    params.clear()
    params.update(made)
    return SparseAnalysisResult(names, shapes)


__all__ = ["SparseAnalysisResult", "process_params"]
