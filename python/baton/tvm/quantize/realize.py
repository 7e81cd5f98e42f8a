# SPDX-License-Identifier: Apache-2.0
"""A program that simulates integers as one that computes with them."""

from ... import error as errors
from ...relay.expr import Constant
from ...relay.transform import function_pass
from . import affine as ints
from .affine import Affine
from .config import QAnnotateKind
from .walk import Walk, is_constant


class _Realize(Walk):
    def __init__(self):
        super().__init__()
        self._affine, self._floats = {}, {}

    def affine(self, expr):
        """Returns the real numbers of an expression of quantised integers; None for floats."""
        return self._affine.get(expr)

    def stands_for(self, expr, affine):
        """The expression, whose integers stand for numbers from here on."""
        self._affine[expr] = affine
        return expr

    def plain_tensor(self, expr):
        own = self._affine.get(expr)
        if own is None:
            return expr
        made = self._floats.get(expr)
        if made is None:
            made = self._floats[expr] = ints.floats(expr, own)
        return made

    def step(self, rule, call, args):
        return rule.realize(self, call, args)

    def _quantized(self, rule, call):
        # Which calls are quantized is said by the marks on their operands.
        return True

    def quantized(self, call, args):
        """Returns the result for a `simulated_quantize`: integers."""
        kind, data = call.attrs["kind"], args[0]
        if kind == QAnnotateKind.IDENTITY:
            return data
        if not all(isinstance(a, Constant) for a in args[1:]):
            raise errors.CompileError("realize: a simulated_quantize has a scale or bound that is not a constant; calibrate the program first")
        scale, low, high = (float(a.data.numpy()) for a in args[1:])
        if not scale > 0:
            raise errors.CompileError(f"realize: a simulated_quantize has the scale {scale}, which is not above 0")
        dtype = self.config.get_dtype_by_kind(kind)
        stands_for, own = str(call.args[0].checked_type.dtype), self._affine.get(data)
        peak = int(max(-low, high))
        if own is not None:
            made = ints.narrowed(data, own, scale, low, high, dtype, self.config)
            if made.same_as(data):
                return data
        elif is_constant(data):
            made = ints.of_array(data.data.numpy(), scale, low, high, dtype)
            peak = int(abs(made.data.numpy().astype("int64")).max(initial=0))
        else:
            made = ints.of_floats(data, stands_for, scale, low, high, dtype)
        return self.stands_for(made, Affine(scale, peak, dtype, stands_for))


@function_pass(opt_level=1, required=["InferType"], name="QuantizeRealize")
class _RealizePass:
    """Computes in integers what `simulated_quantize` simulates."""

    def transform_function(self, func, mod, ctx):
        return _Realize().visit(func)


def realize():
    """The pass that makes a program that simulates integers one that computes with them: products of int8 summed in int32, scales changed
    by shifts and fixed-point products, as the current configuration says. Constants for weights are rounded here."""
    return _RealizePass()


__all__ = ["realize"]
