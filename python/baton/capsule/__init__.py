# SPDX-License-Identifier: Apache-2.0
"""Capsules: a failed compilation as one text file, and the way back. See `Capsule` and `replay`."""

from .file import CapsuleError, CapsuleFile, load, parse
from .isolate import CompilerDied, isolated
from .record import Capsule, from_environment
from .replay import Replay, replay
from .signature import normalise

__all__ = ["Capsule", "CapsuleError", "CapsuleFile", "CompilerDied", "Replay", "from_environment", "isolated", "load", "normalise", "parse", "replay"]
