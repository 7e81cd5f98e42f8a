# SPDX-License-Identifier: Apache-2.0
"""Work in a child process, which may crash, abort, run out of memory or hang without taking this one along.

The child keeps a journal of the passes that it begins and ends, a line each; no IR is written while all goes well. When it dies,
a second child does the same work up to the pass that is open, where it stops and writes the capsule: compilation is
deterministic, so it comes to the same place with the same IR.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import tempfile
import time

from .._ffi import get_global_func
from .._ffi.base import load_compiler
from ..error import RuntimeError

DEATHS = ("timeout", "MemoryError")  # and names of signals
_OUT_OF_MEMORY = 87  # exit code of a child that ran out of memory


class CompilerDied(RuntimeError):
    """The compiler process died. `kind`: the signal's name, "timeout" or "MemoryError"; `pass_name`; `capsule`: a path or None."""

    kind, pass_name, capsule = "", "", None


class Outcome:
    """How a child ended: `value` where the work returned, else `raised` (an exception) or `kind` of its death and `place`,
    ("pass NAME" or "entry FUNCTION", which time it began)."""

    def __init__(self, value=None, raised=None, kind="", place=None):
        self.value, self.raised, self.kind, self.place = value, raised, kind, place

    @property
    def pass_name(self) -> str:
        """The place of the crash: a pass, or a function of the compiler; "" if it is not known."""
        return self.place[0].partition(" ")[2] if self.place else ""


def _limit(memory):
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + int(memory), now + int(memory)))


def _child(function, write, journal, memory, stop, died):
    from . import record

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    load_compiler()
    get_global_func("failure.Journal")(journal)
    if stop is not None:
        get_global_func("failure.StopBefore")(*stop)
        record.died = died
    else:
        _limit(memory)
    code = 0
    try:
        answer = ("value", function())
    except MemoryError:
        os._exit(_OUT_OF_MEMORY)
    except BaseException as error:  # noqa: BLE001 - it belongs to the parent
        if getattr(error, "kind", "") == "MemoryError":
            os._exit(_OUT_OF_MEMORY)
        answer, code = ("raised", error), 1
    try:
        data = pickle.dumps(answer)
    except Exception:  # noqa: BLE001 - an exception of a class that cannot travel
        data = pickle.dumps((answer[0], RuntimeError(f"{type(answer[1]).__name__}: {answer[1]}")))
    with os.fdopen(write, "wb") as pipe:
        pipe.write(data)
    os._exit(code)


def run(function, *, timeout=None, memory=None, stop=None, died=None) -> Outcome:
    """Calls a function in a forked child. timeout: seconds, then it is killed; memory: bytes that it may take beyond what it
    has when it starts. Fork early: a process whose thread pool runs already gives a child without these threads."""
    handle, journal = tempfile.mkstemp(prefix="baton-", suffix=".journal")
    os.close(handle)
    read, write = os.pipe()
    try:
        child = os.fork()
        if child == 0:
            try:
                os.close(read)
                _child(function, write, journal, memory, stop, died)
            finally:
                os._exit(70)
        os.close(write)
        write = -1
        return _wait(child, read, journal, timeout)
    finally:
        os.close(read)
        if write >= 0:
            os.close(write)
        os.unlink(journal)


def _wait(child, read, journal, timeout) -> Outcome:
    end = None if timeout is None else time.monotonic() + timeout
    data, late, part = b"", False, b"?"
    try:
        while part and not late:
            left = None if end is None else max(end - time.monotonic(), 0)
            late = not select.select([read], [], [], left)[0]
            part = b"" if late else os.read(read, 1 << 16)
            data += part
    except BaseException:
        late = True
        raise
    finally:
        if late:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    if data and not late:
        kind, value = pickle.loads(data)
        return Outcome(value=value) if kind == "value" else Outcome(raised=value)
    if late:
        kind = "timeout"
    elif os.WIFSIGNALED(status):
        kind = signal.Signals(os.WTERMSIG(status)).name
    elif os.WEXITSTATUS(status) == _OUT_OF_MEMORY:
        kind = "MemoryError"
    else:
        kind = f"exit code {os.WEXITSTATUS(status)}"
    with open(journal, encoding="utf-8", errors="replace") as file:
        return Outcome(kind=kind, place=open_at_end(file.read()))


def open_at_end(journal: str):
    """The innermost that a journal says had begun and not ended: (what, which time), or None."""
    threads: dict[str, list] = {}
    last = None
    for line in journal.splitlines():
        parts = line.split(" ", 4)
        if len(parts) < 3 or not parts[2].isdecimal():
            continue
        stack = threads.setdefault(parts[1], [])
        del stack[int(parts[2]) :]
        if parts[0] == "+" and len(parts) == 5 and parts[3].isdecimal():
            while len(stack) < int(parts[2]):
                stack.append(None)
            stack.append((parts[4], int(parts[3])))
        if stack:
            last = parts[1]
        elif last == parts[1]:
            last = next((thread for thread, open_ in threads.items() if open_), None)
    return threads[last][-1] if last is not None and threads[last] else None


def isolated(function, *, capsule=None, timeout=None, memory=None, **options):
    """Calls a function in a child process and gives what it returns. Its exceptions are raised here; if the child dies, that is
    a CompilerDied that names the pass. capsule: file or directory for a capsule of whatever goes wrong (see `Capsule`, which
    takes the other options). Call it before anything was compiled in this process, so that no thread is missing in the child.
    """
    from .record import Capsule

    def guarded():
        if capsule is None:
            return function(), None
        keeper = Capsule(capsule, **options)
        try:
            with keeper:
                return function(), None
        except Exception as error:  # noqa: BLE001 - raised again in the parent
            if isinstance(error, MemoryError) or getattr(error, "kind", "") == "MemoryError":
                raise
            return error, keeper.path

    outcome = run(guarded, timeout=timeout, memory=memory)
    if outcome.raised is not None:
        raise outcome.raised
    if not outcome.kind:
        value, path = outcome.value
        if not isinstance(value, BaseException):
            return value
        value.capsule = path
        raise value
    path = None
    if capsule is not None:
        died = {"kind": outcome.kind, "timeout": timeout, "memory": memory}
        if outcome.place:
            again = run(guarded, stop=outcome.place, died=died)
        else:
            again = run(lambda: (None, Capsule(capsule, **options).write_death(died)))
        path = again.value[1] if again.value is not None else None
    where = f" in `{outcome.pass_name}`" if outcome.place else ""
    what = {"timeout": f"took more than {timeout} s", "MemoryError": "ran out of memory"}.get(outcome.kind, f"died ({outcome.kind})")
    error = CompilerDied(f"the compiler {what}{where}" + (f"; capsule: {path}" if path else ""))
    error.kind, error.pass_name, error.capsule = outcome.kind, outcome.pass_name, path
    raise error
