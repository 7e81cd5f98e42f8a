# SPDX-License-Identifier: Apache-2.0
"""The result of `relay.build`, under the names of its kinds: a module with code, graph and weights."""

from ..runtime import Module


class _Kind(type):
    def __instancecheck__(cls, value):
        return isinstance(value, Module) and getattr(value, "libmod_name", None) is not None and cls._is(value)


class ExecutorFactoryModule(metaclass=_Kind):
    """Whether `relay.build` gave a module: for `isinstance`. Not to be made."""

    @staticmethod
    def _is(_):
        return True

    def __init__(self, *args, **kwargs):
        raise TypeError("relay.build gives such modules; contrib.graph_executor.create runs a graph of one's own")


class GraphExecutorFactoryModule(ExecutorFactoryModule):
    """Whether `relay.build` gave a module that has a graph: for `isinstance`. Not to be made."""


class AOTExecutorFactoryModule(ExecutorFactoryModule):
    """Whether `relay.build` gave a module for the executor `aot`: for `isinstance`. Not to be made."""

    @staticmethod
    def _is(value):
        return value.type_key == "aot"


__all__ = ["AOTExecutorFactoryModule", "ExecutorFactoryModule", "GraphExecutorFactoryModule"]
