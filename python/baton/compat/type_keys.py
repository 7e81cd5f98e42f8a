# SPDX-License-Identifier: Apache-2.0
"""Type keys that older programs write without what stands before them here."""

_KEYS = {"Tensor": "te.Tensor", "PlaceholderOp": "te.PlaceholderOp", "ComputeOp": "te.ComputeOp", "TensorType": "relay.TensorType"}


def current_key(type_key):
    """The key that a type has here."""
    return _KEYS.get(type_key, type_key)
