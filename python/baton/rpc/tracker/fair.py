# SPDX-License-Identifier: Apache-2.0
"""The queue of requests for one kind of device.

The next request is that of the user that holds the fewest devices of this kind, of those the one with the fewest seconds held so far;
among one user's requests the highest priority, then the oldest. A priority is a client's own word, so it moves requests of the same user
only. A user that comes back after a pause starts where the others are: idle time gives no credit.
"""

from __future__ import annotations

import heapq


class _User:
    __slots__ = ("attained", "held", "live", "name", "stamp", "waiting")

    def __init__(self, name: str, attained: float):
        self.name, self.attained = name, attained
        self.held = self.live = self.stamp = 0  # `live`: requests that wait and are not cancelled
        self.waiting: list = []  # heap of (-priority, seq, request); cancelled ones stay until they come up


class FairQueue:
    """Requests have `user`, `priority`, `seq` and `cancelled`; all steps are O(log n)."""

    def __init__(self):
        self._users: dict[str, _User] = {}
        self._heap: list = []
        self._floor = 0.0
        self._count = self._stamp = 0

    def __len__(self) -> int:
        return self._count

    def unused(self) -> bool:
        """Whether nothing waits and nothing is held."""
        return not any(user.live or user.held for user in self._users.values())

    def push(self, request) -> None:
        """Queues a request, also one that was popped and could not be served: it keeps its place by `seq`."""
        user = self._user(request.user)
        if not user.live and not user.held:
            user.attained = max(user.attained, self._floor)
        heapq.heappush(user.waiting, (-request.priority, request.seq, request))
        user.live += 1
        self._count += 1
        self._rank(user)

    def discard(self, request) -> None:
        """Takes a queued request out."""
        request.cancelled = True
        user = self._users[request.user]
        user.live -= 1
        self._count -= 1
        if not user.live:
            user.waiting.clear()
        self._prune(user)

    def pop(self):
        """The next request, counted as held from now on; None where none waits."""
        while self._heap:
            _, _, _, stamp, name = heapq.heappop(self._heap)
            user = self._users.get(name)
            if user is None or user.stamp != stamp or not user.live:
                continue
            while True:
                _, _, request = heapq.heappop(user.waiting)
                if not request.cancelled:
                    break
            user.live -= 1
            self._count -= 1
            user.held += 1
            self._floor = max(self._floor, user.attained)
            self._rank(user)
            return request
        return None

    def hold(self, name: str) -> None:
        """Counts a device that the user has already, as after a restart."""
        user = self._user(name)
        user.held += 1
        self._rank(user)

    def end(self, name: str, seconds: float) -> None:
        """A device that the user held for these seconds is given back."""
        user = self._users[name]
        user.held -= 1
        user.attained += seconds
        self._rank(user)
        self._prune(user)

    def _user(self, name: str) -> _User:
        user = self._users.get(name)
        if user is None:
            user = self._users[name] = _User(name, self._floor)
        return user

    def _rank(self, user: _User) -> None:
        if user.live:
            while user.waiting[0][2].cancelled:
                heapq.heappop(user.waiting)
            user.stamp = self._stamp = self._stamp + 1
            heapq.heappush(self._heap, (user.held, user.attained, user.waiting[0][1], user.stamp, user.name))
            if len(self._heap) > 64 + 4 * len(self._users):  # mostly outdated entries
                self._heap = [entry for entry in self._heap if (found := self._users.get(entry[4])) and found.stamp == entry[3]]
                heapq.heapify(self._heap)

    def _prune(self, user: _User) -> None:
        if not user.live and not user.held and user.attained <= self._floor:
            del self._users[user.name]  # coming back, it starts at the floor as well


__all__ = ["FairQueue"]
