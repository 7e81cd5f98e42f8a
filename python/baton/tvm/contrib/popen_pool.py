# SPDX-License-Identifier: Apache-2.0
"""Functions called in separate processes: one that crashes, hangs or changes its process does no harm to this one."""

import collections
import concurrent.futures
import enum
import os
import subprocess
import sys
import threading

from .popen_worker import receive, send


class StatusKind(enum.IntEnum):
    """The state of a call."""

    RUNNING = 0
    COMPLETE = 1
    EXCEPTION = 2
    TIMEOUT = 3


MapResult = collections.namedtuple("MapResult", ["status", "value"])


class PopenWorker:
    """A process that calls functions, one after the other; started by the first call, and again after it died.

        worker = PopenWorker()
        worker.send(baton.testing.slow_summation, (10**6,), timeout=5)
        worker.recv()

    `initializer(*initargs)` is called in each process first. Functions, arguments and results are pickled.
    """

    def __init__(self, initializer=None, initargs=()):
        if initializer is not None and not callable(initializer):
            raise TypeError(f"initializer must be callable, got {type(initializer).__name__}")
        self._initializer, self._initargs = initializer, tuple(initargs)
        self._process = self._reader = self._writer = self._timer = None
        self._timed_out = False

    def __del__(self):
        try:
            self.kill()
        except (OSError, AttributeError, ImportError):
            pass

    def _start(self):
        to_child, from_parent = os.pipe()
        from_child, to_parent = os.pipe()
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "baton.tvm.contrib.popen_worker", str(to_child), str(to_parent)], pass_fds=(to_child, to_parent), env=env
        )
        os.close(to_child), os.close(to_parent)
        self._reader, self._writer = os.fdopen(from_child, "rb"), os.fdopen(from_parent, "wb")
        self._answer()  # it is there: no call pays for the time that it takes to start
        if self._initializer is not None:
            send(self._writer, (self._initializer, self._initargs, {}))
            self._answer()

    def is_alive(self):
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def kill(self):
        """Ends the process."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._process is None:
            return
        for stream in (self._writer, self._reader):
            try:
                stream.close()
            except OSError:
                pass
        self._process.kill()
        self._process.wait()
        self._process = None

    def join(self, timeout=None):
        """Waits until the process is over, at most `timeout` seconds."""
        if self._process is not None:
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                pass

    def send(self, fn, args=(), kwargs=None, timeout=None):
        """Starts a call; `recv` gives its result. After `timeout` seconds the process is ended."""
        if not self.is_alive():
            self.kill()
            self._start()
        self._timed_out = False
        if timeout is not None:
            self._timer = threading.Timer(timeout, self._expire, (self._process,))
            self._timer.daemon = True
            self._timer.start()
        send(self._writer, (fn, tuple(args), dict(kwargs or {})))

    def _expire(self, process):
        self._timed_out = True
        process.kill()

    def _answer(self):
        try:
            fine, value = receive(self._reader)
        except EOFError:
            self.kill()
            raise ChildProcessError("the process ended before it answered") from None
        if not fine:
            raise value
        return value

    def recv(self):
        """The result of the last call. Raises what the call raised, TimeoutError if it took too long, ChildProcessError if its process
        died."""
        if self._process is None:
            raise RuntimeError("nothing was sent")
        try:
            return self._answer()
        except ChildProcessError:
            if self._timed_out:
                raise TimeoutError("the call took too long") from None
            raise
        finally:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None


class PopenPoolExecutor:
    """Several such processes.

        pool = PopenPoolExecutor(max_workers=2, timeout=10)
        pool.submit(baton.testing.slow_summation, 1000).result()

    `timeout`: seconds for each call. max_workers: as many as there are CPUs, unless said.
    """

    def __init__(self, max_workers=None, timeout=None, initializer=None, initargs=()):
        if initializer is not None and not callable(initializer):
            raise TypeError(f"initializer must be callable, got {type(initializer).__name__}")
        self._threads = concurrent.futures.ThreadPoolExecutor(max_workers or os.cpu_count())
        self._timeout, self._initializer, self._initargs = timeout, initializer, initargs
        self._local, self._workers, self._lock = threading.local(), [], threading.Lock()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()

    def __del__(self):
        try:
            self.shutdown(wait=False)
        except (RuntimeError, AttributeError):
            pass

    def shutdown(self, wait=True):
        """Ends the processes, after what was submitted is done unless `wait` is false."""
        self._threads.shutdown(wait=wait, cancel_futures=not wait)
        with self._lock:
            workers, self._workers = self._workers, []
        for worker in workers:
            worker.kill()

    def _call(self, fn, args, kwargs):
        worker = getattr(self._local, "worker", None)
        if worker is None:
            worker = self._local.worker = PopenWorker(self._initializer, self._initargs)
            with self._lock:
                self._workers.append(worker)
        worker.send(fn, args, kwargs, self._timeout)
        return worker.recv()

    def submit(self, fn, *args, **kwargs):
        """Starts a call; a concurrent.futures.Future."""
        return self._threads.submit(self._call, fn, args, kwargs)

    def map_with_error_catching(self, fn, iterator):
        """MapResult(status, value) of a call for each element, in order; an error or a time-out is a result, too."""
        for future in [self.submit(fn, x) for x in iterator]:
            try:
                yield MapResult(StatusKind.COMPLETE, future.result())
            except TimeoutError as error:
                yield MapResult(StatusKind.TIMEOUT, error)
            except Exception as error:  # noqa: BLE001 - it is the result
                yield MapResult(StatusKind.EXCEPTION, error)


__all__ = ["MapResult", "PopenPoolExecutor", "PopenWorker", "StatusKind"]
