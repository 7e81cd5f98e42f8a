# SPDX-License-Identifier: Apache-2.0
"""Operators of `baton.relay.vision` on tensors of tensor expressions."""

from .functions import operators

__getattr__, __dir__ = operators("vision.", __name__, globals())
