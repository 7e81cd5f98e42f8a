# SPDX-License-Identifier: Apache-2.0
"""Loads the libraries, and keeps the table from kinds of errors to Python classes."""

import atexit
import os
import threading

from .. import _core

_LIB = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib")
_lock = threading.RLock()
_loaded = False


class BatonError(Exception):
    """Base of all errors that Baton raises.

    kind: the word that C++ has for it, as "CompileError". trace: where it passed, for errors that are Baton's own fault.
    payload: what the raiser added for programs to read, or None.
    """

    kind = "Error"
    trace = ""
    payload = None


Error = TVMError = BatonError

string_types = (str,)
integer_types = (int,)
numeric_types = (int, float)


def py_str(x):
    """Text of bytes; text stays."""
    return x.decode("utf-8") if isinstance(x, (bytes, bytearray)) else x


def c_str(string):
    """Text as bytes that C reads; for programs that use ctypes."""
    import ctypes
    return ctypes.c_char_p(string.encode("utf-8"))


def register_error(name=None, cls=None):
    """Lets errors of C++ of one kind arrive as a class: `@register_error` (the class's name is the kind) or
    `@register_error("Kind")`."""
    if isinstance(name, type):
        name, cls = name.__name__, name

    def register(cls):
        kind = name or cls.__name__
        _core.register_error(kind, cls)
        if "kind" not in vars(cls) and issubclass(cls, BatonError):
            cls.kind = kind
        return cls

    return register(cls) if cls is not None else register


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
            from ..error import RuntimeError as Missing
            raise Missing(f"the compiler library {path} is not there; mend with `./dev build` in a checkout, else "
                          "pip install --force-reinstall baton-compiler")
        _core.load_library(path)
        atexit.register(_core.get_global("codegen.FinishJobs"))
        _loaded = True


def load_vm():
    """Loads libbaton_vm, which runs programs with control flow; the runtime does so itself when it meets one."""
    _core.load_library(os.path.join(_LIB, "libbaton_vm.so"))


# Threads of C++ may outlive the interpreter; from here on they do not enter it.
atexit.register(_core._closing)
