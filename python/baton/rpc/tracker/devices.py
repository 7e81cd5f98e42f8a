# SPDX-License-Identifier: Apache-2.0
"""The life of one device: it arrives, is prepared, leased, ended, fails, is quarantined, leaves."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from .records import AWAY, ENDING, IDLE, LEASED, PREPARING, QUARANTINED, RESTING, Device, Lease, Link

HOUR = 3600.0


class Devices:
    """The half of the tracker's state machine that moves devices; `state.Tracker` has the other, and the fields."""

    def _add(self, device: Device) -> None:
        device.since = self.now
        self.devices[device.id] = self._by_resume[device.resume] = device
        self._of_user[device.user] = self._of_user.get(device.user, 0) + 1
        self._of_key[device.key] = self._of_key.get(device.key, 0) + 1

    def _remove(self, device: Device) -> None:
        del self.devices[device.id], self._by_resume[device.resume]
        left = self._of_user[device.user] - 1
        if left:
            self._of_user[device.user] = left
        else:
            del self._of_user[device.user]
        self._leave_key(device.key)

    def _rename(self, device: Device, key: str) -> None:
        """Makes it a device of another kind; it is not idle."""
        if device.key != key:
            self._of_key[key] = self._of_key.get(key, 0) + 1
            self._leave_key(device.key)
            device.key = key

    def _leave_key(self, key: str) -> None:
        self._of_key[key] -= 1
        if not self._of_key[key]:
            del self._of_key[key]
            self._idle.pop(key, None)
            self._drop_key(key)

    def _drop_key(self, key: str) -> None:
        """Forgets the queue of a kind of device that is not there and that nothing waits for: names of kinds are clients' words."""
        if key not in self._of_key and key in self.queues and self.queues[key].unused():
            del self.queues[key]

    def _set(self, device: Device, state: str) -> None:
        """Moves a device to a state; the timer of the state before no longer counts."""
        if device.state == IDLE:
            del self._idle[device.key][device.id]
        device.state, device.since, device.timer = state, self.now, 0
        if state == IDLE:
            self._idle.setdefault(device.key, OrderedDict())[device.id] = device

    def _arrive(self, device: Device, link: Link, message: dict, address: str, resume: str) -> None:
        """The device's server connected, for the first time or again."""
        if device.conn is not None:  # the connection before is half open
            self.effects.closes.append(device.conn)
            old = self.links.get(device.conn)
            if old is not None:
                old.device = None
            self._leave(device)
        epoch = message.get("epoch", 0)
        goes_on = device.lease is not None and epoch == device.epoch
        if not goes_on and device.lease is not None:
            self._lost(device.lease, "its server was restarted")
            self._end_lease(device)
        self._rename(device, message["key"])
        device.address, device.conn, link.device = address, link.conn, device
        device.epoch = max(device.epoch, epoch)  # an epoch of another journal is not given again
        self._queue(device.key)
        self.effects.records.append(self._device_record(device))
        self._send(link.conn, {"type": "registered", "server": device.id, "resume": resume})
        if goes_on:
            self._set(device, LEASED)
        else:
            self._await_end(device)

    def _leave(self, device: Device) -> None:
        """The device's server is not connected any more. A granted lease goes on while it is renewed: client and server may see each other."""
        device.conn = None
        if device.state == PREPARING:
            self._requeue(device)
            self._end_lease(device)
        self._set(device, AWAY)
        self._start_timer(self.limits.forget, self._forget, device)
        self._dispatch(device.key)

    def _forget(self, device: Device, _) -> None:
        if device.state == AWAY and self.now - device.since >= self.limits.forget and self.devices.get(device.id) is device:
            self._end_lease(device)
            self._remove(device)
            self.effects.records.append({"what": "forget", "device": device.id})

    def _prepare(self, device: Device, token: str = "", ticket: str = "") -> None:
        """Asks the known answer, and hands over the next epoch; without a ticket it is a check."""
        seed, answer = self._questions.draw()
        device.epoch += 1
        device.ticket = (token, ticket, answer)
        self._set(device, PREPARING)
        lease, request = device.lease, device.request
        if lease is not None:
            self.effects.records.append(self._lease_record(lease))
        else:
            self.effects.records.append(self._device_record(device))
        message = {"type": "prepare", "epoch": device.epoch, "question": seed, "ticket": hashlib.sha256(ticket.encode()).hexdigest() if ticket else ""}
        message.update(user=request.user if request else "", seconds=lease.seconds if lease else 0)
        self._send(device.conn, message)
        device.timer = self._start_timer(self.limits.answer, self._no_answer, device)

    def _no_answer(self, device: Device, number: int) -> None:
        if device.timer == number:
            self._fail(device, f"it gave no answer to a known question in {self.limits.answer:g} s")

    def _fail(self, device: Device, why: str) -> None:
        """A known-answer run failed: the request goes back to its place, the device rests, and is quarantined after the third."""
        self._requeue(device)
        self._end_lease(device)
        device.failures += 1
        if device.suspect or device.failures >= self.limits.failures:
            device.suspect = True
            device.quarantines += 1
            self.effects.records.append({"what": "quarantine", "device": device.id, "times": device.quarantines})
            self.effects.resets.append({"device": device.id, "key": device.key, "address": device.address, "why": why})
        self._await_end(device)
        self._dispatch(device.key)

    def _stop(self, device: Device) -> None:
        """Ends the epoch of a device: its lease, if any, and the session, by its server."""
        self._end_lease(device)
        if device.conn is not None:
            self._await_end(device)

    def _await_end(self, device: Device) -> None:
        self._set(device, ENDING)
        self._send(device.conn, {"type": "end", "epoch": device.epoch})
        device.timer = self._start_timer(self.limits.ending, self._no_end, device)

    def _no_end(self, device: Device, number: int) -> None:
        """A server that does not answer has to connect again."""
        if device.timer == number:
            self.effects.closes.append(device.conn)
            self.links[device.conn].device = None
            self._leave(device)

    def _rest_or_idle(self, device: Device) -> None:
        if device.suspect:
            self._set(device, QUARANTINED)
            wait = min(self.limits.quarantine * 2 ** min(max(device.quarantines - 1, 0), 12), HOUR)
            device.timer = self._start_timer(wait, self._check, device)
        elif device.failures:
            self._set(device, RESTING)
            device.timer = self._start_timer(self.limits.rest * 2 ** (device.failures - 1), self._rested, device)
        else:
            self._set(device, IDLE)
            self._dispatch(device.key)

    def _rested(self, device: Device, number: int) -> None:
        if device.timer == number:
            self._set(device, IDLE)
            self._dispatch(device.key)

    def _check(self, device: Device, number: int) -> None:
        """Tries a quarantined device without a client."""
        if device.timer == number:
            self._prepare(device)

    def reset_done(self, now: float, device_id: str) -> None:
        """The reset command ended; a device that is connected is tried soon."""
        self._at(now)
        device = self.devices.get(device_id)
        if device is not None and device.state == QUARANTINED:
            device.timer = self._start_timer(self.limits.rest, self._check, device)

    def _expire(self, lease: Lease, _) -> None:
        """Ends a lease whose time is over, or that was not renewed; else looks again later."""
        if self.leases.get(lease.token) is not lease:
            return
        due = min(lease.expires, lease.ends or lease.expires)
        if self.now < due:
            self._start_timer_at(due, self._expire, lease)
            return
        self._lost(lease, f"its {lease.seconds:g} s are over" if lease.ends and self.now >= lease.ends else f"not renewed for {self.limits.renew:g} s")
        self._stop(lease.device)

    def _end_lease(self, device: Device) -> None:
        lease, device.lease = device.lease, None
        if lease is None:
            return
        del self.leases[lease.token]
        self.queues[lease.key].end(lease.user, self.now - lease.granted if lease.granted else 0.0)
        self._drop_key(lease.key)
        self.effects.records.append({"what": "end", "device": device.id, "epoch": lease.epoch})


__all__ = ["Devices"]
