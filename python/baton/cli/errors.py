# SPDX-License-Identifier: Apache-2.0
"""Turns exceptions into messages of at most six lines (lists of what is not supported are whole), and into exit codes."""

from __future__ import annotations

import os
import sys

MOST_LINES = 6
UNSUPPORTED = 3  # the exit code where operators of a program of PyTorch, or of what an X-ray looks at, are not supported


class Failure(Exception):
    """The request cannot be met; `help` says how to mend it. Exit code 1."""

    def __init__(self, message: str, help: str = ""):
        super().__init__(message)
        self.help = help


class UsageError(Exception):
    """The command line itself is wrong, seen only after the model was read. Exit code 2."""

    def __init__(self, message: str, help: str = ""):
        super().__init__(message)
        self.help = help


def file_error(error: OSError, path: object = None) -> Failure:
    """An operating system's error as `what: path: why`, without errno and class."""
    where = path if path is not None else error.filename
    why = error.strerror or str(error)
    why = why[:1].lower() + why[1:]
    return Failure(why if where is None else f"`{where}`: {why}")


def _lines(error: BaseException) -> list[str]:
    text = str(error).strip() or type(error).__name__
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    # Missing support is said in full: a list cut short would have to be asked for once more.
    if len(lines) > MOST_LINES and type(error).__name__ != "UnsupportedError":
        left = len(lines) - MOST_LINES + 1
        lines = [*lines[: MOST_LINES - 1], f"  ... {left} more lines; BATON_DEBUG=1 shows all"]
    return lines


def _is_ours(error: BaseException) -> bool:
    """An error that Baton raised for its user: its message is meant to be read."""
    from ..error import own_class

    return any(cls.__module__.split(".")[0] == "baton" for cls in own_class(error).__mro__)


def _own_code(error: BaseException) -> str:
    """The place of the user's own code when it failed, itself or in what it called, as `passes.py:12, in MyPass.visit_call`: a pass in
    Python, say. "" where none was running.
    """
    import sysconfig

    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    library = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    found, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        path = os.path.abspath(code.co_filename)
        if os.path.isfile(path) and not any(path.startswith(folder + os.sep) for folder in (ours, *library)):
            found = f"{os.path.relpath(path)}:{trace.tb_lineno}, in {code.co_qualname if hasattr(code, 'co_qualname') else code.co_name}"
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename and not os.path.abspath(error.filename).startswith(ours + os.sep):
        found = f"{os.path.relpath(error.filename)}:{error.lineno}"
    return found


def exit_code(error: BaseException) -> int:
    if isinstance(error, UsageError):
        return 2
    return UNSUPPORTED if getattr(error, "missing", None) else 1  # PyTorch's door names the nodes without a rule so


def report(error: Exception) -> int:
    """Prints the error on standard error and gives the exit code."""
    if isinstance(error, OSError) and not _is_ours(error):
        error = file_error(error)
    if isinstance(error, MemoryError) and not _is_ours(error):
        error = Failure("out of memory", "use smaller shapes, or a machine with more memory")
    ours = _is_ours(error) and type(error).__name__ != "InternalError"
    if isinstance(error, TypeError) and _own_code(error):
        ours = False  # Baton was called wrongly by code of the user's own
    lines = _lines(error)
    if ours:
        # Located diagnostics bring their own `file:line: error:`.
        head = lines[0] if "error:" in lines[0] else f"error: {lines[0]}"
        lines = [head, *lines[1:]]
        if getattr(error, "help", ""):
            lines = [*lines[: MOST_LINES - 1], f"  help: {error.help}"]
    elif type(error).__name__ != "InternalError" and (where := _own_code(error)):
        said = error.msg if isinstance(error, SyntaxError) else lines[0]
        lines = [f"error: {type(error).__name__}: {said}", *lines[1 : MOST_LINES - 2], f"  at {where}"]
        lines.append("  help: this is code of yours, or was called by it; BATON_DEBUG=1 shows the traceback")
    else:
        kind = "" if type(error).__name__ == "InternalError" else f"{type(error).__name__}: "
        lines = [f"internal error: {kind}{lines[0]}", *lines[1 : MOST_LINES - 1]]
        lines.append("  help: this is a bug in Baton; BATON_DEBUG=1 shows where, please report it with the model")
    print("\n".join(lines), file=sys.stderr)
    return exit_code(error)
