# SPDX-License-Identifier: Apache-2.0
"""Code goes to another machine, runs there, and results, errors and times come back.

    server = baton.rpc.Server()                                   # there
    remote = baton.rpc.connect("127.0.0.1", server.port)          # here
    remote.upload("model.so")
    model = baton.contrib.graph_executor.GraphModule(remote.load_module("model.so")["default"](remote.cpu()))

Each server asks its clients to prove who they are, on loopback too: programs of the same user find the key by themselves.
"""

import importlib

from .address import connect
from .errors import Denied, DeviceLost, OutOfMemory, ProtocolError, RemoteError, RPCError, SessionLost, Timeout, VersionError, WrongResult
from .server import Server
from .session import LocalSession, PopenSession, RPCSession, with_minrpc

# Name -> module that has it, loaded when first used.
_LATER = {"deploy": "deployment", "connect_tracker": "tracker", "TrackerSession": "tracker", "FarmExecutor": "farm", "Pool": "pool"}


def __getattr__(name):
    if name in _LATER:
        value = getattr(importlib.import_module("." + _LATER[name], __name__), name)
        globals()[name] = value  # in place of a module of that name
        return value
    if name in ("tracker", "proxy", "farm", "wire", "micro"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Denied",
    "DeviceLost",
    "LocalSession",
    "OutOfMemory",
    "Pool",
    "PopenSession",
    "ProtocolError",
    "RPCError",
    "RPCSession",
    "RemoteError",
    "Server",
    "SessionLost",
    "Timeout",
    "VersionError",
    "WrongResult",
    "connect",
    "deploy",
    "with_minrpc",
]
