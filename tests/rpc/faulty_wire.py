# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy with faults: bytes that come late or one at a time, connections that are cut after so many bytes or fall silent."""

import contextlib
import socket
import threading
import time


class FaultyWire:
    """Listens on 127.0.0.1 at `port` and passes bytes on to `target`, a port of this machine.

    `cut_after(n)`: the next connection is cut when n more bytes have passed, either way; `cut()`: all are, now; `silent`: nothing passes,
    and nothing is closed; `pieces`: bytes a write; `delay`: seconds before each.
    """

    def __init__(self, target):
        self.target, self.silent, self.pieces, self.delay, self.refuse = target, False, 1 << 16, 0.0, False
        self.passed = self.connections = 0
        self._budget, self._lock, self._pairs = None, threading.Lock(), []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, count):
        with self._lock:
            self._budget = count

    def cut(self):
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            self._end(pair)

    @staticmethod
    def _end(pair):
        for one in pair:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self.refuse:
                    near.close()
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    near.close()
                    continue
                for one in (near, far):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._pairs.append((near, far))
                self.connections += 1
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(self.pieces):
                while self.silent:
                    time.sleep(0.01)
                if self.delay:
                    time.sleep(self.delay)
                last = False
                with self._lock:
                    if self._budget is not None:
                        last = len(data) >= self._budget
                        data = data[: self._budget]
                        self._budget = None if last else self._budget - len(data)
                sink.sendall(data)
                self.passed += len(data)
                if last:
                    break
        self._end((source, sink))
        source.close()

    def close(self):
        self._listener.close()
        self.cut()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
