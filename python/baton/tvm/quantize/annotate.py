# SPDX-License-Identifier: Apache-2.0
"""Marks where a program of floats becomes one of integers: `partition` where sums become operands again, `annotate` every operand."""

from ...ir import make_node
from ...relay import op as _op
from ...relay.expr import Call, const
from ...relay.transform import function_pass
from .affine import call as make_call
from .config import QAnnotateKind, current_qconfig
from .rules import SIMULATED
from .walk import Walk


def simulated_quantize(data, dom_scale, clip_min, clip_max, kind=QAnnotateKind.INPUT, sign=True, rounding="round"):
    """round(data / dom_scale), at least clip_min and at most clip_max, times dom_scale: what integers make of `data`.
    Scalars are expressions or numbers. `kind`: a QAnnotateKind; IDENTITY gives data itself."""
    scalars = [const(float(v), "float32") if isinstance(v, (int, float)) else v for v in (dom_scale, clip_min, clip_max)]
    return make_call(SIMULATED, data, *scalars, kind=kind, sign=sign, rounding=rounding)


def attach_simulated_quantize(data, kind, sign=True, rounding="round"):
    """A `simulated_quantize` whose scale calibration is to choose: until then it is 1, and bounds are those of the bits that the
    configuration gives to the kind."""
    if isinstance(data, Call) and data.op == _op.get(SIMULATED):
        same = data.attrs["kind"] == kind and data.attrs["sign"] == sign and data.attrs["rounding"] == rounding
        if same:
            return data
    high = float(2 ** (current_qconfig().get_nbit_by_kind(kind) - bool(sign)) - 1)
    return simulated_quantize(data, 1.0, -high if sign else 0.0, high, kind, sign, rounding)


class _Marks(Walk):
    """Keeps what kind each value is of; None: floats."""

    def __init__(self):
        super().__init__()
        self._kinds, self._operands = {}, {}

    def kind(self, expr):
        return self._kinds.get(expr)

    def operand(self, expr):
        """A value in few bits."""
        if self.kind(expr) == QAnnotateKind.INPUT:
            return expr
        made = self._operands.get(expr)
        if made is None:
            made = self._operands[expr] = self.narrow(expr) if self.kind(expr) else self.mark(self.plain(expr))
        return made

    def narrow(self, expr):
        """A sum as an operand."""
        raise NotImplementedError

    def mark(self, expr):
        """Floats as an operand."""
        raise NotImplementedError

    def plain_tensor(self, expr):
        return self.operand(expr) if self.kind(expr) == QAnnotateKind.ACTIVATION else expr

    def step(self, rule, call, args):
        made = rule.annotate(self, call, args)
        if made is None:
            return None
        expr, kind = made
        if kind:
            self._kinds[expr] = kind
        return expr


class _Partition(_Marks):
    def narrow(self, expr):
        hint = Call(_op.get("annotation.cast_hint"), [expr], make_node("relay.attrs.CastHintAttrs", dtype=self.config.dtype_input))
        made = make_call("annotation.stop_fusion", hint)
        self._kinds[made] = QAnnotateKind.INPUT
        return made

    def mark(self, expr):
        return expr

    weight = mark

    def hinted(self, call, arg):
        return (Call(call.op, [arg], call.attrs, None, call.span), QAnnotateKind.INPUT) if self.kind(arg) else None


class _Annotate(_Marks):
    def mark(self, expr):
        made = attach_simulated_quantize(expr, QAnnotateKind.INPUT)
        self._kinds[made] = QAnnotateKind.INPUT
        return made

    narrow = mark

    def weight(self, expr):
        made = self._operands.get(expr)
        if made is None:
            made = self._operands[expr] = attach_simulated_quantize(expr, QAnnotateKind.WEIGHT)
        return made

    def hinted(self, call, arg):
        return (self.operand(arg), QAnnotateKind.INPUT) if self.kind(arg) else (arg, None)


@function_pass(opt_level=1, required=["InferType"], name="QuantizePartition")
class _PartitionPass:
    """Puts `stop_fusion(cast_hint(x, "int8"))` where sums of integers become operands again, and where integers end."""

    def transform_function(self, func, mod, ctx):
        return _Partition().visit(func)


@function_pass(opt_level=1, required=["InferType"], name="QuantizeAnnotate")
class _AnnotatePass:
    """Puts `simulated_quantize` on the operands and weights of what is to compute on integers, as the current configuration says."""

    def transform_function(self, func, mod, ctx):
        return _Annotate().visit(func)


def partition():
    """The pass that marks small sections of few bits: `annotation.stop_fusion(annotation.cast_hint(x, "int8"))` is put where sums of
    integers become operands again, and where integers end."""
    return _PartitionPass()


def annotate():
    """The pass that makes a program of floats one that simulates integers: `simulated_quantize` on the operands (kind 1) and weights
    (kind 2) of what the current configuration lets be quantized. `calibrate` chooses its scales."""
    return _AnnotatePass()


__all__ = ["annotate", "attach_simulated_quantize", "partition", "simulated_quantize"]
