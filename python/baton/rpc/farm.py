# SPDX-License-Identifier: Apache-2.0
"""A farm of devices as a `concurrent.futures.Executor`.

    def measure(trial, remote=None):                # `remote`: a session on a device, None on this machine
        ...

    with baton.rpc.FarmExecutor(("lab.example", 9190), "rasp4b") as farm:
        results = list(farm.map(measure, trials))

A function that has a parameter `remote` is given a session there, so that the same function runs on threads and processes. Dask and Ray
come by `baton.contrib.executors`; `baton.rpc.journal.TrialJournal` keeps results of any of them through kills.
"""

from __future__ import annotations

import collections
import concurrent.futures
import inspect
import threading
import time
import weakref

from .errors import DeviceLost, RPCError, SessionLost, Timeout

LOST = (DeviceLost, SessionLost, Timeout, ConnectionResetError, BrokenPipeError)


class _Job:
    __slots__ = ("args", "attempts", "function", "future", "kwargs")

    def __init__(self, future, function, args, kwargs):
        self.future, self.function, self.args, self.kwargs, self.attempts = future, function, args, kwargs, 0


class _Work:
    """The state that threads share with the executor; they do not keep the executor itself."""

    def __init__(self, session, owned, key, priority, session_timeout, max_retry, hold):
        self.session, self.owned, self.key, self.priority = session, owned, key, priority
        self.session_timeout, self.max_retry, self.hold = session_timeout, max_retry, hold
        self.jobs: collections.deque = collections.deque()
        self.changed = threading.Condition()
        self.idle = self.threads = 0
        self.closed = False

    def next(self, wait: bool):
        """The next job that was not cancelled; None where there is none, with `wait` when there never will be."""
        with self.changed:
            while True:
                while self.jobs:
                    job = self.jobs.popleft()
                    if job.attempts or job.future.set_running_or_notify_cancel():
                        return job
                if self.closed or not wait:
                    return None
                self.idle += 1
                self.changed.wait()
                self.idle -= 1

    def run(self) -> None:
        """A thread: takes a device while there are jobs, and gives it back when there are none or others had to wait long enough."""
        try:
            while (job := self.next(True)) is not None:
                self._turn(job)
        finally:
            with self.changed:
                self.threads -= 1
                last = self.closed and not self.threads
            if last and self.owned:
                self.session.close()

    def _turn(self, job) -> None:
        try:
            remote = self.session.request(self.key, self.priority, self.session_timeout, self.max_retry)
        except BaseException as error:  # the farm does not answer: this job fails, the next asks again
            job.future.set_exception(error)
            return
        end = time.monotonic() + self.hold
        try:
            while job is not None and self._do(job, remote):
                job = self.next(False) if time.monotonic() < end else None
        finally:
            try:
                remote.close()
            except (RPCError, OSError):
                pass

    def _do(self, job, remote) -> bool:
        """Runs a job; whether the device is good for another one."""
        job.attempts += 1
        lease = getattr(remote, "lease", None)
        try:
            result = job.function(*job.args, **({**job.kwargs, "remote": remote} if takes_remote(job.function) else job.kwargs))
        except BaseException as error:
            lost = isinstance(error, LOST) and not (lease is not None and not _gone(remote, lease) and isinstance(error, Timeout))
            if lost and job.attempts < self.max_retry:
                with self.changed:  # also after `shutdown`: it was accepted
                    self.jobs.appendleft(job)
                    self.changed.notify()
            else:
                job.future.set_exception(error)
            return not lost
        job.future.set_result(result)
        return not _gone(remote, lease)


def _gone(remote, lease) -> bool:
    return bool(getattr(remote, "lost", False)) or lease is not None and lease.lost.is_set()


def takes_remote(function) -> bool:
    """Whether a function has a parameter `remote`."""
    try:
        return "remote" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


class FarmExecutor(concurrent.futures.Executor):
    """Runs functions with the devices of a tracker: each in a thread here, with a session on a device that is leased for it.

    tracker: a `TrackerSession`, a (host, port), or a URL. key: the kind of device. max_workers: devices at a time. A job whose device is
    lost runs again on another one, `max_retry` times in all: it should have no effect that must not happen twice. A device is given back
    after `hold` seconds with jobs, so that other users have a turn, and when no job waits.
    """

    def __init__(self, tracker, key: str, max_workers: int = 8, priority: int = 1, session_timeout: float = 0, max_retry: int = 3, hold: float = 60.0):
        if max_workers < 1 or max_retry < 1:
            raise ValueError("`max_workers` and `max_retry` are at least 1")
        owned = not hasattr(tracker, "request")
        if owned:
            from .tracker import connect_tracker

            tracker = connect_tracker(tracker) if isinstance(tracker, str) else connect_tracker(*tracker)
        self._work = _Work(tracker, owned, key, priority, session_timeout, max_retry, hold)
        self._threads: list[threading.Thread] = []
        self._most = max_workers
        weakref.finalize(self, _close, self._work)

    def submit(self, fn, /, *args, **kwargs):
        future: concurrent.futures.Future = concurrent.futures.Future()
        work = self._work
        with work.changed:
            if work.closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            work.jobs.append(_Job(future, fn, args, kwargs))
            if work.idle < len(work.jobs) and work.threads < self._most:
                work.threads += 1
                thread = threading.Thread(target=work.run, name="baton farm", daemon=True)
                self._threads.append(thread)
                thread.start()
            work.changed.notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        work = self._work
        with work.changed:
            if cancel_futures:
                left, work.jobs = work.jobs, collections.deque()
                for job in left:
                    job.future.cancel()
        _close(work)
        if wait:
            for thread in self._threads:
                thread.join()


def _close(work: _Work) -> None:
    with work.changed:
        first, work.closed = not work.closed, True
        work.changed.notify_all()
        unused = first and work.owned and not work.threads
    if unused:
        work.session.close()


__all__ = ["FarmExecutor", "takes_remote"]
