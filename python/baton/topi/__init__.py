# SPDX-License-Identifier: Apache-2.0
"""What programs look for beside the operators: NumPy's word for what they compute (`topi.testing`), and small helps.

The computations themselves are made in C++; `relay` and `te` reach them."""

from . import tag, testing, utils

__all__ = ["tag", "testing", "utils"]
