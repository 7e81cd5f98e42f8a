# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices for tests of sparse operators."""

from .data_dep_optimization import *  # noqa: F403 - what makes the dense layers of a model sparse


def random_bsr_matrix(m, n, bs_r, bs_c, density, dtype):
    """A SciPy `bsr_matrix` (m, n) of random normal numbers, with blocks (bs_r, bs_c) at random places, so many that about `density` of the elements
    are in one; at least one. Raises ValueError where the blocks do not fill the matrix."""
    import numpy as np
    import scipy.sparse as sp

    if m % bs_r or n % bs_c:
        raise ValueError(f"blocks of {bs_r} x {bs_c} do not fill a matrix of {m} x {n}")
    rows, columns = m // bs_r, n // bs_c
    count = min(int(density * m * n) // (bs_r * bs_c) + 1, rows * columns)
    chosen = np.sort(np.random.choice(rows * columns, count, replace=False))
    starts = np.searchsorted(chosen, np.arange(rows + 1) * columns).astype("int32")
    blocks = np.random.standard_normal((count, bs_r, bs_c)).astype(dtype)
    return sp.bsr_matrix((blocks, (chosen % columns).astype("int32"), starts), shape=(m, n))
