# SPDX-License-Identifier: Apache-2.0
"""Operators and schedules that were one for each kind of target: `topi.generic`, `topi.x86`, `topi.cuda` and their like. Operators are those of
`baton.topi`; a schedule is the plain one, since the compiler schedules kernels itself."""

from .. import topi
from ..topi.schedules import plain_schedule


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.startswith("schedule_") or name == "default_schedule":
        value = plain_schedule
    elif name in ("dense_nopack", "dense_pack"):
        value = topi.nn.dense
    else:
        value = getattr(topi.nn, name, None) or getattr(topi, name)
    globals()[name] = value
    return value
