# SPDX-License-Identifier: Apache-2.0
"""Operators and schedules that were one for each kind of target: `topi.generic`, `topi.x86`, `topi.cuda` and their like. Operators are those of
`baton.topi`; a schedule is the plain one, since the compiler schedules kernels itself."""

from .. import te, topi


def _schedule(name):
    def schedule(outs, *_, **__):
        outs = [outs] if isinstance(outs, te.Tensor) else list(outs)
        return te.create_schedule([out.op for out in outs])

    schedule.__name__, schedule.__doc__ = name, "The plain schedule of tensors."
    return schedule


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.startswith("schedule_"):
        value = _schedule(name)
    else:
        value = getattr(topi.nn, name, None) or getattr(topi, name)
    globals()[name] = value
    return value
