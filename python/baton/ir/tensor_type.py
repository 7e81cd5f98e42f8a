# SPDX-License-Identifier: Apache-2.0
"""Types of tensors."""

import operator

from .. import error as errors
from .._ffi import get_global_func
from .expr import PrimExpr
from .type import Type


def _extent(dim):
    """A dimension as types hold it: whatever counts as an int is one, of whatever width its literal was. A TypeError else."""
    if isinstance(dim, PrimExpr) and not isinstance(getattr(dim, "value", None), int):  # no literal
        if dim.dtype != "int64":
            dim = get_global_func("ir.WideExtent")(dim)
        return get_global_func("ir.CanonicalExtent")(dim)  # equal sums and products are one expression
    try:
        return operator.index(dim)
    except TypeError:
        raise errors.TypeError(f"a dimension is an int, a TIR expression or relay.Any(), not {dim!r}") from None


class TensorType(Type, key="relay.TensorType"):
    """`Tensor[shape, dtype]`. A dimension is an int, a TIR variable, or `relay.Any()`."""

    __slots__ = ()

    def __init__(self, shape, dtype="float32", span=None):
        shape = list(shape)
        if any(d is None for d in shape):
            raise errors.TypeError(f"the shape {tuple(shape)} has None; a dimension that is not known is relay.Any()")
        super().__init__(shape=[_extent(d) for d in shape], dtype=str(dtype), span=span)

    @property
    def concrete_shape(self):
        """The shape as a tuple of ints. Raises TypeError where a dimension is not known."""
        return tuple(int(x) for x in self.shape)
