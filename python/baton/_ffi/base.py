# SPDX-License-Identifier: Apache-2.0
"""Loads the libraries."""

import atexit
import os
import threading

from .. import _core, error
from ..error import BatonError, Error, TVMError, register_error  # noqa: F401 - names of this module, too

_LIB = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib")
_lock = threading.RLock()
_loaded = False


def compiler_loaded():
    """Whether the compiler library is in this process; the runtime library always is."""
    return _loaded


def load_compiler():
    """Loads libbaton, the compiler, unless it is loaded. Raises RuntimeError where only the runtime is installed."""
    global _loaded
    if _loaded:
        return
    with _lock:
        if _loaded:
            return
        path = os.path.join(_LIB, "libbaton.so")
        if not os.path.exists(path):
            raise error.RuntimeError(
                f"the compiler library {path} is not there; mend with `./dev build` in a checkout, else pip install --force-reinstall baton-compiler"
            )
        _core.load_library(path)
        atexit.register(_core.get_global("codegen.FinishJobs"))
        _loaded = True


def load_vm():
    """Loads libbaton_vm, which runs programs with control flow; the runtime does so itself when it meets one."""
    _core.load_library(os.path.join(_LIB, "libbaton_vm.so"))


# Threads of C++ may outlive the interpreter; from here on they do not enter it.
atexit.register(_core._closing)
