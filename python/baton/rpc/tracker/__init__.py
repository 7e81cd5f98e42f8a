# SPDX-License-Identifier: Apache-2.0
"""Trackers: many clients share many devices by leases.

    tracker = baton.rpc.tracker.Tracker("127.0.0.1", 9190)
    server = baton.rpc.Server(tracker_addr=("127.0.0.1", tracker.port), key="rasp4b")
    remote = baton.rpc.connect_tracker("127.0.0.1", tracker.port).request("rasp4b")

`docs/guides/farm.md` says how a farm is built.
"""

from .errors import Busy
from .launch import Tracker
from .registration import Device, Registration, register_server
from .session import Lease, TrackerSession, connect_tracker

__all__ = ["Busy", "Device", "Lease", "Registration", "Tracker", "TrackerSession", "connect_tracker", "register_server"]
