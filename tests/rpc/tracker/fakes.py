# SPDX-License-Identifier: Apache-2.0
"""Trackers, servers and sessions of the tests, in this process where that is enough."""

import threading
from contextlib import contextmanager

from baton.rpc import transport
from baton.rpc.tracker import Registration, TrackerSession
from baton.rpc.tracker import registration as registrations
from baton.rpc.tracker.process import Process


@contextmanager
def running_tracker(path, **options):
    """A tracker at a Unix socket, in a thread."""
    process = Process([transport.listen(f"unix:{path}")], **options)
    thread = threading.Thread(target=process.run)
    thread.start()
    try:
        yield f"unix:{path}"
    finally:
        process.stop()
        thread.join(10)
        assert not thread.is_alive()


class FakeDevice(registrations.Device):
    """Counts what happens to it."""

    def __init__(self, wrong=False):
        self.begun, self.ended, self.open, self.wrong, self.there = [], [], 0, wrong, True

    def alive(self):
        return self.there

    def compute(self, values):
        found = registrations.probe.compute(values)
        return found[::-1] if self.wrong else found

    def begin(self, epoch, ticket, seconds):
        self.begun.append((epoch, ticket, seconds))

    def sessions(self):
        return self.open

    def end(self, epoch):
        self.open = 0
        self.ended.append(epoch)


def register(url, key="board", port=9000, device=None):
    found = Registration(url, key, {"port": port}, device or FakeDevice())
    assert found.registered.wait(10)
    return found


class FakeSession:
    """A session that runs nothing."""

    def __init__(self, lease):
        self.address, self.closed = lease.address, False
        self.lost = False

    def close(self):
        self.closed = True


def connected(url, connect=FakeSession):
    return TrackerSession(url, connect)
