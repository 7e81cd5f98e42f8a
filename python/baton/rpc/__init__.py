# SPDX-License-Identifier: Apache-2.0
"""Code goes to another machine, runs there, and results, errors and times come back."""

from .errors import Denied, DeviceLost, OutOfMemory, ProtocolError, RPCError, SessionLost, Timeout, VersionError, WrongResult

__all__ = ["Denied", "DeviceLost", "OutOfMemory", "ProtocolError", "RPCError", "SessionLost", "Timeout", "VersionError", "WrongResult"]
