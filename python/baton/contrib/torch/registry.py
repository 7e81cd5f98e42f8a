# SPDX-License-Identifier: Apache-2.0
"""The table of rules: for each overload of ATen the function that says it in Relay, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable

RULES: dict[str, Callable] = {}
REFUSED: dict[str, str] = {}


def aten(*names: str):
    """Registers a rule of overloads of ATen.

        @aten("relu.default")
        def relu(c, x):
            return c("nn.relu", x)

    `c` is the `Context` of the node. Arguments come as PyTorch's schema has them, with tensors as `Value`s; the rule gives an
    expression, or a list of them for several results (None for one that nothing uses).
    """

    def register(rule):
        for name in names:
            key = f"aten.{name}" if name.count(".") == 1 else name
            if key in RULES:
                raise ValueError(f"{key} has a rule already")
            RULES[key] = rule
        return rule

    return register


def refuse(reason: str, *names: str) -> None:
    """Says why overloads of ATen have no rule; messages quote it."""
    REFUSED.update({f"aten.{name}": reason for name in names})


def name_of(target) -> str:
    """An operator of a graph as the table names it: "aten.add.Tensor"."""
    return str(target) if hasattr(target, "_schema") else f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"
