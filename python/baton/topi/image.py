# SPDX-License-Identifier: Apache-2.0
"""Operators of `baton.relay.image` on tensors of tensor expressions."""

from .functions import operators

__getattr__, __dir__ = operators("image.", __name__, globals())
