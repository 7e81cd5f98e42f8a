# SPDX-License-Identifier: Apache-2.0
"""Comparison of a computation with NumPy, under the name of `topi.testing`."""

import numpy as np

from .. import nd, te
from ..driver.build_module import build
from ..target import Target


def compare_numpy_tvm(inputs, output, target, device, compute, schedule):
    """Builds `compute` of tensors like the NumPy arrays `inputs`, by `schedule`, and compares what it gives with the array `output`. Raises
    AssertionError where they differ by more than 1e-4."""
    tensors = [te.placeholder(x.shape, dtype=str(x.dtype)) for x in inputs]
    with Target(target):
        made = compute(*tensors)
        function = build(schedule([made]), [*tensors, made])
    result = nd.array(np.zeros_like(output), device)
    function(*(nd.array(x, device) for x in inputs), result)
    np.testing.assert_allclose(result.numpy(), output, rtol=1e-4, atol=1e-4)


__all__ = ["compare_numpy_tvm"]
