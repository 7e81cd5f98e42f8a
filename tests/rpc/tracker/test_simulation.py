# SPDX-License-Identifier: Apache-2.0
"""The tracker under a simulated clock and network; `bench/rpc_tracker.py --simulate` runs a week with 10,000 devices."""

import pytest
from simulation import Plan, Simulation, Violation

from baton.rpc.tracker.records import IDLE
from baton.rpc.tracker.state import Tracker


def watched(plan, seed):
    simulation = Simulation(plan, seed)

    def watch():
        simulation.check_lost()
        simulation.after(1, watch)

    simulation.at(10, watch)
    return simulation.run()


@pytest.mark.parametrize("seed", range(2))
def test_an_hour_with_faults(seed):
    simulation = watched(Plan(), seed)
    assert simulation.jobs > 500 and min(simulation.faults[name] for name in ("server_crash", "client_crash", "partition", "tracker_crash", "reset")) > 0
    # A lease that is not renewed is over after 5 s, one that is being prepared after 5 s more; a look is taken each second.
    assert 0 < simulation.longest_gone <= 11


def test_waiting_times_are_fair_within_each_priority():
    """Users whose clients want the same wait equally long; a user's own urgent requests come first."""
    quiet = {name: 0.0 for name in ("server_crash", "client_crash", "partition", "tracker_crash", "clock_jump", "sick")}
    simulation = Simulation(Plan(seconds=10_000, devices=20, hold=10, think=5, **quiet), 1).run()
    fairness = simulation.fairness()
    assert set(fairness) == {1, 2} and min(fairness.values()) > 0.98
    assert simulation.mean_wait(2) < simulation.mean_wait(1)


def test_the_simulation_sees_a_device_that_is_given_on_too_early(monkeypatch):
    """A tracker that does not wait for the end of a session: servers notice."""

    def idle_at_once(self, device):
        self._set(device, IDLE)
        self._dispatch(device.key)

    monkeypatch.setattr(Tracker, "_await_end", idle_at_once)
    with pytest.raises(Violation, match="while a session of epoch"):
        watched(Plan(), 0)


def test_the_simulation_sees_leases_that_never_end(monkeypatch):
    monkeypatch.setattr(Tracker, "_expire", lambda self, lease, number: None)
    assert watched(Plan(), 0).longest_gone > 100


@pytest.mark.slow
def test_a_day_with_a_thousand_devices():
    simulation = watched(Plan(devices=1000, clients=200, users=20, seconds=86_400, hot_keys=4, think=600), 7)
    assert simulation.longest_gone <= 11 and simulation.jobs > 10_000
    assert min(simulation.fairness().values()) > 0.95
