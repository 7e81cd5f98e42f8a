# SPDX-License-Identifier: Apache-2.0
"""The library of remote sessions, loaded when first asked for."""

import os

from .. import _core
from .._ffi import base
from . import errors  # noqa: F401 - the classes of what the library raises


def path(name):
    """Where a file of the library's folder is."""
    return os.path.join(base._LIB, name)


def function(name):
    """A function of the library. It runs without Python's lock."""
    found = _core.get_global("rpc." + name)
    if found is None:
        _core.load_library(path("libbaton_rpc.so"))
        found = _core.get_global("rpc." + name)
    found.release_gil = True
    return found
