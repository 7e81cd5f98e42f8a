# SPDX-License-Identifier: Apache-2.0
"""Errors of remote sessions; each is an `RPCError`."""

from .. import error
from ..error import RPCError, register_error


@register_error("rpc.Timeout")
class Timeout(RPCError, TimeoutError):
    """A deadline passed: of a handshake, a call, or a connection."""


@register_error("rpc.SessionLost")
class SessionLost(RPCError):
    """The connection ended, or could not be made. Objects on the remote are gone."""


@register_error("rpc.Denied")
class Denied(RPCError, PermissionError):
    """The key is wrong, or the server's policy does not allow it."""


@register_error("rpc.ProtocolError")
class ProtocolError(RPCError):
    """The peer sent other bytes than messages of this protocol; the session is over."""


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


class _RemoteKind:
    """The kind that the remote gave the error, as "ValueError"; C++ sees another, which it may not set here."""

    def __get__(self, instance, owner):
        return getattr(owner, "remote_kind", "RemoteError")

    def __set__(self, instance, value):
        pass


@register_error("rpc.RemoteError")
class RemoteError(RPCError):
    """A function of the remote failed. It is caught as the class that it had there, too: a ValueError of the remote is a
    RemoteError and a ValueError here. `trace` says where it passed on the remote."""

    remote_kind = "RemoteError"
    kind = _RemoteKind()


def _of_kind(name, base):
    def __str__(self):
        return str(self.args[0]) if len(self.args) == 1 else base.__str__(self)

    own = {
        "__doc__": f"A {name} of the remote.",
        "__module__": __name__,
        "remote_kind": name,
        "kind": RemoteError.__dict__["kind"],
        "__str__": __str__,
        "__init__": base.__init__,
    }
    try:
        cls = type("Remote" + name, (RemoteError, base), own)
    except TypeError:  # Python lets no class be an OSError and, as AttributeError is, of another layout
        cls = type("Remote" + name, (RemoteError,), {k: own[k] for k in ("__doc__", "__module__", "remote_kind", "kind")})
    return register_error("rpc.RemoteError/" + name, cls)


# The kinds that C++ knows (src/rpc/objects.cpp); another arrives as RemoteError, its kind before the message.
for _name in (
    "CompileError TypeInferenceError ShapeError CodegenError RuntimeError DeviceError InternalError UnsupportedError TypeError "
    "ValueError KeyError IndexError AttributeError OSError FileNotFoundError OverflowError"
).split():
    _of_kind(_name, getattr(error, _name))
for _cls in (ZeroDivisionError, NotImplementedError, AssertionError, ArithmeticError, LookupError, PermissionError):
    _of_kind(_cls.__name__, _cls)

__all__ = ["Denied", "DeviceLost", "OutOfMemory", "ProtocolError", "RPCError", "RemoteError", "SessionLost", "Timeout", "VersionError", "WrongResult"]
