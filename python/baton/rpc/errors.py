# SPDX-License-Identifier: Apache-2.0
"""What remote sessions raise; all of it is an `RPCError`."""

from .. import error
from ..error import RPCError, register_error


@register_error("rpc.Timeout")
class Timeout(RPCError, TimeoutError):
    """A deadline passed: of a handshake, a call, or a connection."""


@register_error("rpc.SessionLost")
class SessionLost(RPCError):
    """The connection ended, or could not be made. What was on the remote is gone."""


@register_error("rpc.Denied")
class Denied(RPCError, PermissionError):
    """The key is wrong, or the server's policy does not allow it."""


@register_error("rpc.ProtocolError")
class ProtocolError(RPCError):
    """The peer sent what is no message of this protocol; the session is over."""


@register_error("rpc.VersionError")
class VersionError(RPCError):
    """The peers have versions that do not know each other; the message names both."""


@register_error("rpc.OutOfMemory")
class OutOfMemory(RPCError, MemoryError):
    """Memory of the remote, or a quota of the session, is used up."""


@register_error("rpc.DeviceLost")
class DeviceLost(RPCError):
    """A device of the remote failed."""


@register_error("rpc.WrongResult")
class WrongResult(RPCError):
    """A device gave a result that is known to be wrong."""


__all__ = ["Denied", "DeviceLost", "OutOfMemory", "ProtocolError", "RPCError", "SessionLost", "Timeout", "VersionError", "WrongResult"]
