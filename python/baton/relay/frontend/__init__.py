# SPDX-License-Identifier: Apache-2.0
"""From models of other frameworks to Relay modules."""

from .onnx import from_onnx
from .pytorch import from_pytorch

__all__ = ["from_onnx", "from_pytorch"]
