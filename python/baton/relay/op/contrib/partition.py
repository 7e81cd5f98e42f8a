# SPDX-License-Identifier: Apache-2.0
"""Dividing a program for another compiler: passes do, and passes know operators."""

from ...._ffi.hook import Hook

partitioned = Hook("relay.partitioned")

__all__ = ["partitioned"]
