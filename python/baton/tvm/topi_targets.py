# SPDX-License-Identifier: Apache-2.0
"""Operators and schedules that were one for each kind of target: `topi.generic`, `topi.x86`, `topi.cuda` and their like. Operators are those of
`baton.topi`; a schedule is the plain one, since the compiler schedules kernels itself."""

from . import topi, topi_sort, topi_vision
from .topi.schedules import plain_schedule

# Names of a target's own that are operators of all.
_OTHERS = {
    "argsort_thrust": lambda: topi.argsort,
    "dense_nopack": lambda: topi.nn.dense,
    "dense_pack": lambda: topi.nn.dense,
    "dense_small_batch": lambda: topi.nn.dense,
    "exclusive_scan": lambda: topi_sort.exclusive_scan,
    "inclusive_scan": lambda: topi_sort.inclusive_scan,
    "scan_thrust": lambda: topi_sort.scan_thrust,
    "sort_by_key": lambda: topi_sort.sort_by_key,
    "sort_thrust": lambda: topi.sort,
    "stable_sort_by_key_thrust": lambda: topi_sort.sort_by_key,
    "topk_thrust": lambda: topi.topk,
}


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.startswith("schedule_") or name == "default_schedule":
        value = plain_schedule
    elif name in _OTHERS:
        value = _OTHERS[name]()
    else:
        value = next((found for home in (topi.nn, topi.vision, topi_vision) if (found := getattr(home, name, None)) is not None), None) or getattr(topi, name)
    globals()[name] = value
    return value
