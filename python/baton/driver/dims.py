# SPDX-License-Identifier: Apache-2.0
"""Dimensions that differ from call to call, and shapes that have them. Needs the runtime library alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

MAX_EXTENT = 1 << 31


class Dim(NamedTuple):
    """A dimension that is open: what it is called, and which lengths it takes.

        model = baton.compile("model.onnx", shape={"ids": (1, baton.Dim("seq", 1, 512, multiple=8))})

    Dimensions of one name are equal in every call. `min` and `max` are inclusive, in elements; lengths are multiples of
    `multiple`.
    """

    name: str
    min: int = 0
    max: int = MAX_EXTENT
    multiple: int = 1

    def __str__(self) -> str:
        text = self.name
        if self.max < MAX_EXTENT:
            text += f":{self.min}..{self.max}"
        elif self.min > 0:
            text += f":{self.min}.."
        return text + (f"/{self.multiple}" if self.multiple > 1 else "")


def checked(dim: Dim) -> Dim:
    """The dimension, if its bounds leave a length."""
    if not dim.name.isidentifier():
        raise ValueError(f"a dimension is called by an identifier, not {dim.name!r}")
    low = -(-max(dim.min, 0) // max(dim.multiple, 1)) * dim.multiple
    if dim.min < 0 or dim.multiple < 1 or dim.max > MAX_EXTENT or low > dim.max:
        raise ValueError(f"dimension `{dim.name}`: no length is at least {dim.min}, at most {dim.max} and a multiple of {dim.multiple}")
    return dim


class OpenShapes:
    """Shapes that a caller gives for inputs: an int, a name or a Dim for each dimension, None for one that the model names."""

    def __init__(self, shapes: Mapping[str, Sequence] | None):
        self.dims: dict[str, Dim] = {}
        self.shapes = {name: tuple(self._one(name, d) for d in dims) for name, dims in (shapes or {}).items()}

    def _one(self, name, dim):
        if dim is None:
            return None
        if isinstance(dim, str):
            dim = Dim(dim)
        if isinstance(dim, Dim):
            dim = checked(dim)
            known = self.dims.get(dim.name)
            if known is not None and known != dim and dim != Dim(dim.name):
                if known != Dim(dim.name):
                    raise ValueError(f"dimension `{dim.name}` is given twice, as {known} and as {dim}")
                known = None
            if known is None:
                self.dims[dim.name] = dim
            return dim.name
        try:
            size = int(dim)
        except (TypeError, ValueError):
            raise TypeError(f"shape: a dimension of `{name}` is an int, a name or a baton.Dim, not {dim!r}") from None
        return size

    @property
    def static(self) -> bool:
        """Whether every dimension that is given is a number."""
        return all(isinstance(d, int) for dims in self.shapes.values() for d in dims)
