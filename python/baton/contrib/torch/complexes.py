# SPDX-License-Identifier: Apache-2.0
"""Complex tensors as pairs of real ones: Relay has no complex dtype, so a complex value is two expressions."""

from __future__ import annotations

import torch

from .context import Context, Value

REAL_OF = {torch.complex64: torch.float32, torch.complex128: torch.float64}
RULES: dict = {}
# Operators that treat both parts alike: the rule of real tensors runs for each.
BY_PARTS: set[str] = set()


class Pair:
    """A complex value of a node in Relay: the expressions of its parts."""

    def __init__(self, re, im):
        self.re, self.im = re, im


def is_complex(fake) -> bool:
    """Whether what PyTorch knows of a value is a tensor of complex numbers that two real ones can hold."""
    return isinstance(fake, torch.Tensor) and fake.dtype in REAL_OF


def real_fake(fake):
    """A tensor as PyTorch knows it, with the dtype of its parts."""
    if isinstance(fake, (list, tuple)):
        return [real_fake(f) for f in fake]
    return fake.new_empty(fake.shape, dtype=REAL_OF[fake.dtype]) if is_complex(fake) else fake


class Complex:
    """A complex tensor as rules take it: `re` and `im` are Values."""

    def __init__(self, re, im):
        self.re, self.im = re, im
        self.shape, self.ndim, self.dtype, self.fake = re.shape, re.ndim, re.dtype, re.fake
        self.axis, self.axes = re.axis, re.axes

    @staticmethod
    def of(pair, fake, node=None):
        """The tensor of a node."""
        part = real_fake(fake)
        return Complex(Value(pair.re, part, node), Value(pair.im, part, node))


def complex_aten(*names: str):
    """Registers a rule of overloads that take or give complex tensors: as `aten`, with `Complex` beside `Value`, and a `Pair` as result
    where it is complex."""

    def register(rule):
        RULES.update({f"aten.{name}": rule for name in names})
        return rule

    return register


def by_parts(*names: str) -> None:
    """Says that overloads treat both parts alike."""
    BY_PARTS.update(f"aten.{name}" for name in names)


def _part(arg, name):
    if isinstance(arg, Complex):
        return getattr(arg, name)
    if isinstance(arg, (list, tuple)):
        return [_part(a, name) for a in arg]
    return arg


def convert_complex(name, real_rules, context: Context, args, kwargs):
    """Returns the value of a node that takes or gives complex tensors; None without a rule for its operator."""
    if name in RULES:
        return RULES[name](context, *args, **kwargs)
    if name not in BY_PARTS:
        return None
    rule = real_rules[name]
    parts = [rule(context, *(_part(a, p) for a in args), **{k: _part(v, p) for k, v in kwargs.items()}) for p in ("re", "im")]
    return [Pair(*both) for both in zip(*parts, strict=True)] if isinstance(parts[0], list) else Pair(*parts)
