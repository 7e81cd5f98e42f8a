# SPDX-License-Identifier: Apache-2.0
"""The function type that crosses every border."""

from .._core import PackedFunc

__all__ = ["PackedFunc"]
