# SPDX-License-Identifier: Apache-2.0
"""Farms: an executor whose workers are leased devices."""

import concurrent.futures
import gc
import threading
import time

import pytest
from fakes import FakeSession, connected, register, running_tracker

from baton.contrib import executors
from baton.rpc import FarmExecutor
from baton.rpc.errors import DeviceLost, SessionLost
from baton.rpc.journal import TrialJournal
from baton.rpc.tracker.records import Limits


@pytest.fixture
def farm(tmp_path):
    """(a session with a tracker that has three boards, the opened remotes)"""
    opened = []

    def connect(lease):
        opened.append(FakeSession(lease))
        return opened[-1]

    with running_tracker(tmp_path / "t", limits=Limits(renew=1.0, rest=0.05)) as url:
        servers = [register(url, port=9000 + n) for n in range(3)]
        with connected(url, connect) as session:
            yield session, opened
        for server in servers:
            server.close()


def measure(trial, remote=None):
    time.sleep(0.002)
    return [trial, remote is not None]


def test_a_farm_is_an_executor(farm):
    session, opened = farm
    with FarmExecutor(session, "board") as executor:
        assert isinstance(executor, concurrent.futures.Executor)
        submitted = threading.Event()  # no device runs out of jobs before

        def measure_then(trial, remote=None):
            submitted.wait()
            return measure(trial, remote)

        results = executor.map(measure_then, range(50))
        submitted.set()
        assert list(results) == [[n, True] for n in range(50)]
        assert executor.submit(pow, 2, exp=5).result() == 32  # without `remote` it is a function like any other
    assert 1 <= len(opened) <= 10 and all(remote.closed for remote in opened)
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(pow, 2, 3)


def test_devices_are_used_side_by_side_and_no_more_than_there_are(farm):
    session, _ = farm
    busy, most, lock, together = set(), [], threading.Lock(), threading.Barrier(3)

    def work(remote):
        with lock:
            assert remote.address not in busy
            busy.add(remote.address)
            most.append(len(busy))
        together.wait(60)  # of 30 jobs, each goes on beside two others
        with lock:
            busy.remove(remote.address)

    with FarmExecutor(session, "board", max_workers=8) as executor:
        concurrent.futures.wait([executor.submit(work) for _ in range(30)])
        assert len(most) == 30 and max(most) == 3


def test_a_job_whose_device_is_lost_runs_on_another(farm):
    session, opened = farm
    seen = []

    def fragile(remote):
        seen.append(remote)
        if len(seen) < 3:
            remote.lost = True
            raise SessionLost("the board is gone")
        return "done"

    with FarmExecutor(session, "board", max_workers=1) as executor:
        assert executor.submit(fragile).result(20) == "done"
        assert len({id(remote) for remote in seen}) == 3
    with FarmExecutor(session, "board", max_retry=2) as executor, pytest.raises(DeviceLost):
        executor.submit(_lose).result(20)


def _lose(remote):
    raise DeviceLost("again")


def test_an_error_of_the_job_is_its_own(farm):
    session, opened = farm
    with FarmExecutor(session, "board", max_workers=1) as executor:
        with pytest.raises(ZeroDivisionError):
            executor.submit(lambda remote: 1 / 0).result(20)
        assert executor.submit(measure, 1).result(20) == [1, True]
    assert len(opened) <= 2


def test_a_device_is_given_back_in_between(farm):
    session, opened = farm
    with FarmExecutor(session, "board", max_workers=1, hold=0.05) as executor:
        concurrent.futures.wait([executor.submit(time.sleep, 0.02) for _ in range(12)])
    assert len(opened) >= 3


def test_shutdown_cancels_what_waits(farm):
    session, _ = farm
    executor = FarmExecutor(session, "board", max_workers=1)
    futures = [executor.submit(time.sleep, 0.1) for _ in range(20)]
    time.sleep(0.15)
    executor.shutdown(cancel_futures=True)
    assert all(future.done() for future in futures) and sum(future.cancelled() for future in futures) > 10


def test_a_cancelled_job_does_not_run(farm):
    session, _ = farm
    ran = []
    with FarmExecutor(session, "board", max_workers=1) as executor:
        first = executor.submit(time.sleep, 0.3)
        second = executor.submit(ran.append, 1)
        assert second.cancel()
        first.result(20)
    assert not ran


def test_a_forgotten_executor_ends_its_threads(farm):
    session, opened = farm
    executor = FarmExecutor(session, "board")
    executor.submit(measure, 1).result(20)
    threads = list(executor._threads)
    del executor
    gc.collect()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_the_farm_of_an_address_is_closed_with_the_executor(farm, tmp_path):
    executor = FarmExecutor(f"unix:{tmp_path / 't'}", "board")
    executor.shutdown()
    assert executor._work.session._desk.closed


def test_trials_on_a_farm_are_those_on_threads(farm, tmp_path):
    session, _ = farm
    trials = [{"n": n} for n in range(40)]
    results = []
    for name, executor in (("farm", FarmExecutor(session, "board")), ("threads", concurrent.futures.ThreadPoolExecutor(3))):
        with executor, TrialJournal(tmp_path / name) as journal:
            results.append([result[0] for result in journal.run(executor, measure, trials)])
    assert results[0] == results[1] == trials


def test_wrong_arguments():
    with pytest.raises(ValueError, match="at least 1"):
        FarmExecutor("unix:none", "board", max_workers=0)


@pytest.mark.parametrize(("make", "module"), [(executors.dask_executor, "distributed"), (executors.RayExecutor, "ray")])
def test_dask_and_ray_say_what_is_missing(make, module, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=f"{module} is not installed; `pip install"):
        make()


class FakeRay:
    """What `RayExecutor` asks of Ray, in this process."""

    is_initialized = staticmethod(lambda: True)
    get = staticmethod(lambda task: task())

    @staticmethod
    def remote(function):
        class Task:
            @staticmethod
            def options(**_):
                return Task

            @staticmethod
            def remote():
                return function

        return Task


def test_an_executor_of_ray_runs_functions(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", FakeRay)
    with executors.RayExecutor(num_cpus=1) as executor:
        assert list(executor.map(pow, [1, 2, 3], [2, 2, 2])) == [1, 4, 9]
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 1, 0).result(10)
