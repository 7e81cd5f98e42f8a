# SPDX-License-Identifier: Apache-2.0
"""What evaluates and builds Relay."""

from .options import Executor, Runtime

__all__ = ["Executor", "Runtime"]
