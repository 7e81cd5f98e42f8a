# SPDX-License-Identifier: Apache-2.0
"""Pipes whose end tells a process that the one which started it is gone. No process that is forked later keeps one open."""

import os
import threading

_open: set[int] = set()
_lock = threading.RLock()


def open_lifeline() -> tuple[int, int]:
    """(what the started process reads, what this one keeps and `close_lifeline` closes)."""
    with _lock:
        alive, keep = os.pipe()
        _open.add(keep)
    return alive, keep


def close_lifeline(keep: int) -> None:
    """Closes what `open_lifeline` kept: the other process sees the end. A second call does nothing."""
    with _lock:
        if keep in _open:
            _open.remove(keep)
            os.close(keep)


def _in_child() -> None:
    for keep in _open:
        os.close(keep)
    _open.clear()
    _lock.release()


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_in_child)

__all__ = ["close_lifeline", "open_lifeline"]
