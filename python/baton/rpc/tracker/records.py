# SPDX-License-Identifier: Apache-2.0
"""The tracker's records of peers, devices, leases and requests."""

from __future__ import annotations

from dataclasses import dataclass, field

# States of a device.
AWAY = "away"  # its server is not connected
IDLE = "idle"  # to be leased
PREPARING = "preparing"  # its server was asked the known answer, for a request or for a check
LEASED = "leased"
ENDING = "ending"  # its server was told that the epoch is over, and has not said that the session is gone
RESTING = "resting"  # after a failure, before it is tried again
QUARANTINED = "quarantined"


@dataclass(frozen=True)
class Peer:
    """The transport's proof of the other side. `user` is its user id or the id of its key, `host` what it connects from
    ("" where it came through a Unix socket)."""

    user: str
    host: str = ""


@dataclass(frozen=True)
class Limits:
    """Times in seconds."""

    renew: float = 5.0  # a lease that is not renewed for so long ends
    answer: float = 5.0  # for the known answer
    ending: float = 5.0  # for the end of a session
    rest: float = 1.0  # after a failure; doubled with each
    failures: int = 3  # in a row, until a device is quarantined
    quarantine: float = 60.0  # until it is tried again; doubled each time, at most an hour
    longest: float = 0.0  # a lease may last; 0: any
    forget: float = 86400.0  # a server that stays away is forgotten
    devices: int = 20_000
    devices_of_user: int = 20_000
    requests: int = 100_000
    requests_of_user: int = 10_000
    requests_of_peer: int = 1_024
    bad_messages: int = 16  # of a connection, until it is closed


@dataclass(eq=False, slots=True)
class Request:
    """The request of a waiting client."""

    conn: object
    id: int
    user: str
    key: str
    priority: int
    seconds: float
    seq: int
    arrived: float
    cancelled: bool = False
    queued: bool = False


@dataclass(eq=False, slots=True)
class Lease:
    """A device that a client holds for a time."""

    token: str  # SHA-256 of what the client shows
    device: Device
    user: str
    key: str
    epoch: int
    seconds: float
    expires: float
    ends: float = 0.0  # 0: any time
    granted: float = 0.0
    conn: object = None


@dataclass(eq=False, slots=True)
class Device:
    """A device that a server registered, and its state."""

    id: str
    key: str
    user: str
    resume: str  # SHA-256 of what its server shows when it comes back
    address: str = ""
    epoch: int = 0
    conn: object = None
    state: str = AWAY
    lease: Lease | None = None
    request: Request | None = None  # for which it is prepared
    ticket: tuple = ()  # (token, ticket, answer) while it is prepared
    failures: int = 0
    quarantines: int = 0
    suspect: bool = False  # quarantined, whatever the state says meanwhile
    timer: int = 0  # the number of the timer that counts
    since: float = 0.0


@dataclass(eq=False, slots=True)
class Link:
    """A connection."""

    conn: object
    peer: Peer
    device: Device | None = None
    requests: dict = field(default_factory=dict)  # id -> Request, queued or prepared
    bad: int = 0


__all__ = ["AWAY", "ENDING", "IDLE", "LEASED", "PREPARING", "QUARANTINED", "RESTING", "Device", "Lease", "Limits", "Link", "Peer", "Request"]
