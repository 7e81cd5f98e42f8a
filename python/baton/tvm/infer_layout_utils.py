# SPDX-License-Identifier: Apache-2.0
"""The results of functions of `register_infer_correct_layout`, as an object."""

from .._core import Array
from ..tir import Layout


class InferCorrectLayoutOutput(tuple):
    """Layouts of a call's inputs and outputs, and its attributes with them: `input_layouts`, `output_layouts`, `new_attrs`."""

    def __new__(cls, input_layouts, output_layouts, new_attrs=None):
        names = [[_name(layout) for layout in ([layouts] if isinstance(layouts, (str, Layout)) else layouts)] for layouts in (input_layouts, output_layouts)]
        self = super().__new__(cls, (*names, *([] if new_attrs is None else [new_attrs])))
        self.input_layouts, self.output_layouts, self.new_attrs = *names, new_attrs
        return self


def _name(layout):
    if isinstance(layout, (list, tuple, Array)):
        return [_name(x) for x in layout]
    return layout.name if isinstance(layout, Layout) else str(layout)


__all__ = ["InferCorrectLayoutOutput"]
