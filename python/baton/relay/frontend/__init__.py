# SPDX-License-Identifier: Apache-2.0
"""From models of other frameworks to Relay modules."""

from .onnx import from_onnx

__all__ = ["from_onnx"]
