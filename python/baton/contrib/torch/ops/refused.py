# SPDX-License-Identifier: Apache-2.0
"""Overloads of ATen without a rule, and why."""

from __future__ import annotations

from ..registry import refuse

refuse(
    "random numbers are PyTorch's, so that they are the ones of an eager run",
    "rand.default",
    "randn.default",
    "randperm.default",
    "rand_like.default",
    "randn_like.default",
    "randint.default",
    "randint.low",
    "randint_like.default",
    "randint_like.low_dtype",
    "bernoulli.p",
    "bernoulli.default",
    "multinomial.default",
    "uniform.default",
    "normal_functional.default",
    "normal.Tensor_Tensor",
    "normal.Tensor_float",
    "normal.float_float",
    "exponential.default",
    "cauchy.default",
    "geometric.default",
    "log_normal.default",
    "rrelu_with_noise.default",
)
refuse("its result is a number of Python that decides how the graph goes on", "_local_scalar_dense.default")
refuse("it writes into an argument: functionalised graphs have `atan2.default`", "atan2.out")
refuse("it changes the shape of an argument", "resize_.default")
refuse("sparse tensors are no values of Relay", "_to_sparse.default", "_to_sparse.sparse_dim", "sparse_sampled_addmm.default")
refuse("it raises where a matrix is singular, which compiled code cannot", "_linalg_check_errors.default")
