# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a program, where, and how to mend it."""

import enum

from .._core import Object
from .._ffi import get_global_func


class DiagnosticLevel(enum.IntEnum):
    """How bad it is."""

    BUG = 10
    ERROR = 20
    WARNING = 30
    NOTE = 40
    HELP = 50


class Diagnostic(Object, key="Diagnostic"):
    """One finding: level, span, message, label, help."""

    __slots__ = ()

    def __init__(self, level, span, message, label="", help=""):  # noqa: A002
        super().__init__(level=int(level), span=span, message=message, label=label, help=help)

    def render(self):
        """The text that a user sees."""
        return get_global_func("diagnostics.Render")(self)


class DiagnosticContext(Object, key="DiagnosticContext"):
    """Collects findings over several passes."""

    __slots__ = ()

    def __init__(self):
        super().__init__()
