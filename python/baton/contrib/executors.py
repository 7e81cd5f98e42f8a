# SPDX-License-Identifier: Apache-2.0
"""Executors of Dask and Ray, for whatever takes a `concurrent.futures.Executor`: `FarmExecutor`'s place, and trials of a journal."""

from concurrent.futures import Executor, Future
from threading import Thread


def _missing(name, package):
    return ModuleNotFoundError(f"{name} is not installed; `pip install {package}`, or use concurrent.futures.ThreadPoolExecutor", name=name)


def dask_executor(address=None, **options):
    """An executor on a Dask cluster; `address` of its scheduler, or None for one on this machine."""
    try:
        from distributed import Client
    except ImportError:
        raise _missing("distributed", '"dask[distributed]"') from None
    return Client(address, **options).get_executor()


class RayExecutor(Executor):
    """An executor on a Ray cluster; `options` are those of a Ray task, as num_cpus=1."""

    def __init__(self, address=None, **options):
        try:
            import ray
        except ImportError:
            raise _missing("ray", "ray") from None
        self._ray, self._options, self._waiting = ray, options, []
        if not ray.is_initialized():
            ray.init(address)

    def submit(self, fn, /, *args, **kwargs):
        future, task = Future(), self._ray.remote(lambda: fn(*args, **kwargs))
        reference = (task.options(**self._options) if self._options else task).remote()
        future.set_running_or_notify_cancel()
        thread = Thread(target=self._wait, args=(future, reference), daemon=True)
        self._waiting = [other for other in self._waiting if other.is_alive()] + [thread]
        thread.start()
        return future

    def _wait(self, future, reference):
        try:
            future.set_result(self._ray.get(reference))
        except BaseException as error:
            future.set_exception(error)

    def shutdown(self, wait=True, *, cancel_futures=False):
        for thread in self._waiting if wait else ():
            thread.join()


__all__ = ["RayExecutor", "dask_executor"]
