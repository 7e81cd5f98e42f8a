# SPDX-License-Identifier: Apache-2.0
"""A fault of a pass, as the guard reports it."""

from dataclasses import dataclass, field

from .compare import Difference


@dataclass
class Finding:
    """A fault of a pass."""

    pass_name: str
    function: str
    difference: Difference
    kind: str
    seed: int
    size: int | None
    inputs: dict = field(repr=False)
    before: object = field(repr=False, default=None)
    after: object = field(repr=False, default=None)
    calls: int = 0

    def text(self):
        """The fault, its place and its inputs in a few lines."""
        lines = [f"pass `{self.pass_name}` changed what @{self.function} computes (sample `{self.kind}`, seed {self.seed})",
                 "  " + self.difference.text()]  # fmt: skip
        if self.inputs:
            lines.append("  inputs: " + ", ".join(f"{name}: {_type_text(value)}" for name, value in self.inputs.items()))
        return "\n".join(lines)

    __str__ = text

    def to_json(self):
        """Plain data, without the modules."""
        return {"pass": self.pass_name, "function": self.function, "sample": self.kind, "seed": self.seed, "size": self.size,
                "inputs": {name: _type_text(value) for name, value in self.inputs.items()}, "difference": self.difference.to_json()}  # fmt: skip


def _type_text(value):
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        shape = ", ".join(map(str, value.shape))
        return f"Tensor[({shape}), {dtype}]" if shape else str(dtype)
    return "a " + type(value).__name__
