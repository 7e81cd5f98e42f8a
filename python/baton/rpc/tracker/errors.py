# SPDX-License-Identifier: Apache-2.0
"""Errors of the tracker, all under `RPCError`. A message carries the name; `of_kind` makes the error of it again."""

from __future__ import annotations

from ...error import RPCError, register_error
from ..errors import Denied, DeviceLost, ProtocolError, SessionLost, Timeout


@register_error("rpc.Busy")
class Busy(RPCError):
    """A bound is reached: of requests, servers, or bytes under way."""


KINDS = {cls.__name__: cls for cls in (RPCError, ProtocolError, Denied, Busy, SessionLost, Timeout, DeviceLost)}


def of_kind(kind: str, text: str) -> RPCError:
    """The error of this kind, with what was said."""
    return KINDS.get(kind, RPCError)(text)


__all__ = ["Busy", "Denied", "DeviceLost", "ProtocolError", "RPCError", "SessionLost", "Timeout", "of_kind"]
