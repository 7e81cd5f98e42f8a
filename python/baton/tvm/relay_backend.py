# SPDX-License-Identifier: Apache-2.0
"""Functions of Relay's back end that programs call by their global names."""

from ..relay.backend.graph_plan import MemoryPlan


def GraphPlanMemory(func):
    """Where the values of a typed function lie: `expr_to_storage_info` has an entry for each expression."""
    return MemoryPlan(func)


__all__ = ["GraphPlanMemory"]
