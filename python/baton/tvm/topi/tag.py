# SPDX-License-Identifier: Apache-2.0
"""Tags of a computation: how its elements depend on those of its inputs."""

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"


def is_broadcast(tag):
    """Whether elements depend on one element of each input, or on none."""
    return tag in (ELEMWISE, BROADCAST)


def is_injective(tag):
    """Whether each element depends on one element of each input, at any index."""
    return is_broadcast(tag) or tag == INJECTIVE
