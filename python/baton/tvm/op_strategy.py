# SPDX-License-Identifier: Apache-2.0
"""`relay.op.strategy`: helpers for strategies of a program's own operators. Those of built-in operators are not there."""

from ..relay.op.implementations import naive_schedule, wrap_topi_compute, wrap_topi_schedule
from .absent import child

__path__ = []


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.startswith("wrap_compute_"):
        return lambda topi_compute, *args, **kwargs: wrap_topi_compute(topi_compute)
    if name.startswith("schedule_"):
        return naive_schedule
    return child("baton.relay.op.strategy", name)


__all__ = ["naive_schedule", "wrap_topi_compute", "wrap_topi_schedule"]
