# SPDX-License-Identifier: Apache-2.0
"""Plain schedules of tensors, by the names that programs ask for. The compiler schedules kernels itself."""

from ... import te


def plain_schedule(outs, *_, **__):
    """The schedule of tensors with each stage after the other."""
    outs = [outs] if isinstance(outs, te.Tensor) else list(outs)
    return te.create_schedule([out.op for out in outs])


def of_target(target=None):
    """The schedule for a target: the plain one."""
    return plain_schedule


def dispatch(target, dispatch_map):
    """Returns a target's entry of a map from keys of targets and "generic"."""
    from ...target import Target

    keys = (Target(target) if not isinstance(target, Target) else target).keys
    return next((dispatch_map[key] for key in keys if key in dispatch_map), None) or dispatch_map["generic"]


__all__ = ["dispatch", "of_target", "plain_schedule"]
