# SPDX-License-Identifier: Apache-2.0
"""Orders of dimensions by letters: "NCHW", and "NCHW16c" with blocks of 16 channels innermost. Indices and shapes from one to another."""

import re

from .._core import Array
from . import op


class Layout:
    """An order of dimensions. `layout[i]` is the letter of dimension i, `len(layout)` their number; lower case letters are the inner
    blocks, with their factors. Raises ValueError for a text that is not a layout."""

    def __init__(self, name):
        self.name = str(name)
        self._axes = []
        if self.name in ("", "__undef__"):
            return
        if not re.fullmatch(r"(?:[A-Z]|[1-9]\d*[a-z])+", self.name):
            raise ValueError(f"{self.name!r} is not a layout: it has capital letters for dimensions, and a number before each small one, as NCHW16c")
        for factor, letter in re.findall(r"(\d*)([A-Za-z])", self.name):
            if any(letter == known for known, _ in self._axes):
                raise ValueError(f"the layout {self.name!r} has `{letter}` twice")
            self._axes.append((letter, int(factor) if factor else -1))
        for letter, _ in self._axes:
            if letter.islower() and letter.upper() not in self:
                raise ValueError(f"the layout {self.name!r} has `{letter}` and not `{letter.upper()}`, which it is a part of")

    def __len__(self):
        return len(self._axes)

    def __contains__(self, axis):
        return any(axis == letter for letter, _ in self._axes)

    def __getitem__(self, index):
        return self._axes[index][0]

    def __iter__(self):
        return (letter for letter, _ in self._axes)

    def __eq__(self, other):
        return isinstance(other, Layout) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"Layout({self.name!r})"

    def index_of(self, axis):
        """The place of a letter; -1 where there is none."""
        return next((i for i, (letter, _) in enumerate(self._axes) if letter == axis), -1)

    def factor_of(self, axis):
        """The extent of a dimension's inner block, by either letter; -1 for a dimension without one."""
        return next((factor for letter, factor in self._axes if letter == axis.lower()), -1)


class BijectiveLayout:
    """A bijection between two layouts. Raises ValueError if they have different dimensions."""

    def __init__(self, src_layout, dst_layout):
        self.src_layout, self.dst_layout = (x if isinstance(x, Layout) else Layout(x) for x in (src_layout, dst_layout))
        if {a.upper() for a in self.src_layout} != {a.upper() for a in self.dst_layout} or not len(self.src_layout):
            raise ValueError(f"the layouts {self.src_layout} and {self.dst_layout} have other letters")

    def forward_index(self, index):
        """The index of an element in the second layout, from that in the first."""
        return Array(_index(self.src_layout, self.dst_layout, index))

    def backward_index(self, index):
        """The index of an element in the first layout."""
        return Array(_index(self.dst_layout, self.src_layout, index))

    def forward_shape(self, shape):
        """The shape in the second layout."""
        return Array(_shape(self.src_layout, self.dst_layout, shape))

    def backward_shape(self, shape):
        """The shape in the first layout."""
        return Array(_shape(self.dst_layout, self.src_layout, shape))


def _given(layout, values, what):
    values = list(values)
    if len(values) != len(layout):
        raise ValueError(f"the {what} has {len(values)} numbers, the layout {layout} {len(layout)} dimensions")
    return dict(zip(layout, values, strict=True))


def _index(src, dst, index):
    at = _given(src, index, "index")
    out = []
    for axis in dst:
        name = axis.upper()
        whole = at[name] * src.factor_of(name) + at[name.lower()] if name.lower() in src else at[name]
        factor = dst.factor_of(name)
        out.append(whole if factor < 0 else op.indexmod(op.convert(whole), factor) if axis.islower() else op.indexdiv(op.convert(whole), factor))
    return out


def _shape(src, dst, shape):
    extents = _given(src, shape, "shape")
    out = []
    for axis in dst:
        name, factor = axis.upper(), dst.factor_of(axis)
        whole = extents[name] * src.factor_of(name) if name.lower() in src else extents[name]
        if axis.islower():
            out.append(factor)
        elif factor < 0:
            out.append(whole)
        else:
            out.append(-(-whole // factor) if isinstance(whole, int) else op.indexdiv(whole + (factor - 1), factor))
    return out


def layout(layout_str):
    """A layout."""
    return Layout(layout_str)


def bijective_layout(src_layout, dst_layout):
    """The way from one layout to another and back."""
    return BijectiveLayout(src_layout, dst_layout)


__all__ = ["BijectiveLayout", "Layout", "bijective_layout", "layout"]
