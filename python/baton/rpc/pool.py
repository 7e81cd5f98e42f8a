# SPDX-License-Identifier: Apache-2.0
"""Sessions that are made anew when they are lost, with what was uploaded and loaded in them."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, suppress

from ..error import ValueError as BatonValueError
from .address import connect
from .errors import SessionLost


class Pool:
    """Up to `size` sessions with a server, lent to one thread at a time.

        with baton.rpc.Pool("board", 9090, key_file="lab.key") as pool:
            pool.upload("model.so")
            times = pool.run(lambda remote: measure(remote.load_module("model.so")))

    Uploads of the pool are there in each session, in those too that are made in place of lost ones. The arguments after `size` are those of
    `connect`.
    """

    def __init__(self, *where, size=1, **options):
        if size < 1:
            raise BatonValueError("a pool has at least 1 session")
        self._open = lambda: connect(*where, **options)
        self._free: list = []
        self._turn = threading.Semaphore(size)
        self._lock = threading.Lock()
        self._uploads: dict[str, bytes | str] = {}
        self._loads: list[str] = []
        self._closed = False

    def upload(self, data, target=None):
        """Puts a file (or bytes, with `target`) into each session, when it is used next."""
        if isinstance(data, (bytes, bytearray, memoryview)):
            if not target:
                raise BatonValueError("upload of bytes needs a `target`, the name of the file on the remote")
            data = bytes(data)
        else:
            data = os.path.abspath(os.fsdecode(data))
        with self._lock:
            self._uploads[target or os.path.basename(data)] = data

    def load(self, name):
        """Has each session load a module that was uploaded: `remote.modules[name]`."""
        with self._lock:
            self._loads.append(name)

    @contextmanager
    def session(self):
        """A session, for this thread until the end of the `with`."""
        with self._turn:
            with self._lock:
                if self._closed:
                    raise SessionLost("the pool was closed")
                remote = self._free.pop() if self._free else None
            if remote is None or remote.lost:
                remote = self._open()
                remote.modules, remote.uploaded = {}, {}
            try:
                self._replay(remote)
                yield remote
            finally:
                with self._lock:
                    keep = not (self._closed or remote.lost)
                    if keep:
                        self._free.append(remote)
                if not keep:
                    with suppress(Exception):
                        remote.close()

    def _replay(self, remote):
        with self._lock:
            uploads, loads = dict(self._uploads), list(self._loads)
        for name, data in uploads.items():
            if remote.uploaded.get(name) is not data:
                remote.upload(data, name)
                remote.uploaded[name] = data
        for name in loads:
            if name not in remote.modules:
                remote.modules[name] = remote.load_module(name)

    def run(self, function, max_retry=2):
        """`function(remote)`, on a session made anew when one is lost meanwhile, `max_retry` times in all."""
        for left in range(max(1, max_retry) - 1, -1, -1):
            try:
                with self.session() as remote:
                    return function(remote)
            except SessionLost:
                if not left:
                    raise

    def close(self):
        """Ends the sessions that are free now, and the others when they are given back."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for remote in free:
            remote.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


__all__ = ["Pool"]
