# SPDX-License-Identifier: Apache-2.0
"""The treatment of each operator's calls by quantization.

A value is float, an operand in few bits (INPUT), or a sum in 32 bits (ACTIVATION). `annotate` says which of them a call takes and gives:
it asks the walk for operands by `operand` and `weight`, and returns (call, kind of its result), or None where it computes on floats.
`realize` gives the same call on integers: `walk.affine(arg)` is what an argument stands for, None for floats; None as a result means floats.
"""

import math

import numpy as np

from ...ir import TensorType
from ...relay.expr import Constant, Tuple, const
from . import affine as ints
from .affine import ROOM, Affine
from .config import QAnnotateKind

_INPUT, _ACTIVATION = QAnnotateKind.INPUT, QAnnotateKind.ACTIVATION
_RULES = {}
SIMULATED = "relay.op.annotation.simulated_quantize"


class Rule:
    """Of calls that compute on floats."""

    counted = False  # skip_conv_layers counts them
    dense = False  # skip_dense_layer is about them
    marks = False  # marks of quantization itself

    def annotate(self, walk, call, args):
        """(call, kind of the result), or None."""

    def realize(self, walk, call, args):
        """The call on integers, or None."""


def rule_of(op):
    """The rule of an operator; None for those on floats."""
    found = _RULES.get(op.name)
    if found is None and (op.get_attr("TValues") or 0) >= _SELECTS:
        return _MOVES
    return found


def _size(shape):
    """The number of elements; None where it is not known."""
    dims = [getattr(d, "value", d) for d in shape]
    return math.prod(int(d) for d in dims) if all(isinstance(d, int) for d in dims) else None


def _constant(expr):
    """The array of a constant of floats, or None."""
    return expr.data.numpy() if isinstance(expr, Constant) and str(expr.data.dtype).startswith("float") else None


class _Product(Rule):
    """Convolutions and matrix products: operands in few bits, sums in 32. `terms(call)`: the number of products in a sum; `outputs(call)`: the
    axis of the weight that a sum keeps, or None."""

    def __init__(self, terms, outputs=lambda call: None, counted=False, dense=False):
        self.terms, self.outputs, self.counted, self.dense = terms, outputs, counted, dense

    def _most(self, call, weight, x, w):
        """Returns the bound of a sum; None where that is not known."""
        kept = self.outputs(call)
        if isinstance(weight, Constant) and kept is not None:
            sizes = np.abs(weight.data.numpy().astype("int64"))
            return int(sizes.sum(tuple(i for i in range(sizes.ndim) if i != kept)).max(initial=0)) * x.peak
        terms = self.terms(call)
        return None if terms is None else terms * x.peak * w.peak

    def annotate(self, walk, call, args):
        weight = walk.weight(args[1]) if _constant(args[1]) is not None else walk.operand(args[1])
        return ints.with_args(call, [walk.operand(args[0]), weight]), _ACTIVATION

    def realize(self, walk, call, args):
        x, w = (walk.affine(a) for a in args)
        if not x or not w or not (x.narrow and w.narrow):
            return None
        most = self._most(call, args[1], x, w)
        if most is None or most >= ROOM:
            return None
        made = ints.with_args(call, args, out_dtype=walk.config.dtype_activation)
        return walk.stands_for(made, Affine(x.scale * w.scale, most, "int32", x.stands_for))


def _terms_of_convolution(call):
    layout = call.attrs["out_layout"] or call.attrs["data_layout"]
    weight, channels = _size(call.args[1].checked_type.shape), _size([call.checked_type.shape[layout.index("C")]])
    return None if weight is None or channels is None else weight // max(channels, 1)


def _outputs_of_convolution(call):
    layout = call.attrs["kernel_layout"]
    return layout.index("O") if layout.isalpha() and "O" in layout else None


def _terms_of_dense(call):
    return _size(call.args[1].checked_type.shape[-1:])


def _terms_of_matmul(call):
    at = -2 if call.attrs["transpose_a"] else -1
    return _size([call.args[0].checked_type.shape[at]])


class _Sum(Rule):
    """Sums and differences: at one scale, in 32 bits. A constant is brought to it as it is."""

    def annotate(self, walk, call, args):
        kinds = [walk.kind(a) for a in args]
        if not any(kinds):
            return None
        operands = [a if kind or _constant(a) is not None else walk.operand(a) for a, kind in zip(args, kinds, strict=True)]
        return ints.with_args(call, operands), _ACTIVATION

    def realize(self, walk, call, args):
        found, arrays = [walk.affine(a) for a in args], [_constant(a) for a in args]
        known = [a for a in found if a]
        if not known or any(a is None and c is None for a, c in zip(found, arrays, strict=True)):
            return None
        reach = sum(a.reach for a in known) + sum(float(np.abs(c).max(initial=0)) for c in arrays if c is not None)
        scale = min(a.scale for a in known)
        if all(a.narrow for a in known) and (len(known) < len(args) or len({a.scale for a in known}) > 1):
            scale /= 2**8  # the sum is between the steps of operands
        while reach / scale >= ROOM // 2:
            scale *= 2
        operands, peak = [], 0
        for arg, own, array in zip(args, found, arrays, strict=True):
            if own:
                ratio = own.scale / scale
                operands.append(ints.scaled(ints.wide(arg, own), ratio, walk.config))
                peak += math.ceil(own.peak * ratio) + 1
            else:
                operands.append(ints.of_array(array, scale, -ROOM, ROOM, "int32"))
                peak += int(np.abs(operands[-1].data.numpy().astype("int64")).max(initial=0))
        return walk.stands_for(ints.with_args(call, operands), Affine(scale, peak, "int32", known[0].stands_for))


class _Multiplied(Rule):
    """Products element by element."""

    def annotate(self, walk, call, args):
        if not any(walk.kind(a) for a in args):
            return None
        return ints.with_args(call, [walk.weight(a) if _constant(a) is not None else walk.operand(a) for a in args]), _ACTIVATION

    def realize(self, walk, call, args):
        found = [walk.affine(a) for a in args]
        if not all(found) or not all(a.narrow for a in found):
            return None
        x, y = found
        made = ints.with_args(call, [ints.wide(a, own) for a, own in zip(args, found, strict=True)])
        return walk.stands_for(made, Affine(x.scale * y.scale, x.peak * y.peak, "int32", x.stands_for))


class _Kept(Rule):
    """Element by element, at the scale that there is. `attrs(call, affine)`: attributes that are numbers, as integers."""

    def __init__(self, attrs=lambda call, affine: {}):
        self.attrs = attrs

    def annotate(self, walk, call, args):
        kind = walk.kind(args[0])
        return (ints.with_args(call, args), kind) if kind else None

    def realize(self, walk, call, args):
        own = walk.affine(args[0])
        return walk.stands_for(ints.with_args(call, args, **self.attrs(call, own)), own) if own else None


def _ends(call, affine):
    return {end: float(max(-ROOM, min(ROOM, round(call.attrs[end] / affine.scale)))) for end in ("a_min", "a_max")}


class _Moved(Rule):
    """Elements of the first operand elsewhere: those in few bits are fewer bytes."""

    def annotate(self, walk, call, args):
        if not args or isinstance(args[0], Tuple) or not walk.kind(args[0]) or not isinstance(call.checked_type, TensorType):
            return None
        return ints.with_args(call, [walk.operand(args[0]), *map(walk.plain, args[1:])]), _INPUT

    def realize(self, walk, call, args):
        own = walk.affine(args[0]) if args else None
        if not own or not isinstance(call.checked_type, TensorType):
            return None
        return walk.stands_for(ints.with_args(call, [args[0], *map(walk.plain, args[1:])]), own)


class _Padded(Rule):
    """Zeros around an operand."""

    def annotate(self, walk, call, args):
        fill = _constant(args[1])
        return (ints.with_args(call, [walk.operand(args[0]), args[1]]), _INPUT) if walk.kind(args[0]) and fill is not None and not fill.any() else None

    def realize(self, walk, call, args):
        own, fill = walk.affine(args[0]), _constant(args[1])
        if not own or fill is None or fill.any():
            return None
        return walk.stands_for(ints.with_args(call, [args[0], const(np.zeros(fill.shape, own.dtype), own.dtype)]), own)


class _Mean(Rule):
    """Means over windows: in 32 bits, with bits behind the point as far as there is room."""

    def annotate(self, walk, call, args):
        return (ints.with_args(call, [walk.operand(args[0])]), _ACTIVATION) if walk.kind(args[0]) else None

    def realize(self, walk, call, args):
        own = walk.affine(args[0])
        window = self._window(call)
        if not own or window is None or window * own.peak >= ROOM:
            return None
        bits = min(8, (ROOM // max(1, window * own.peak)).bit_length() - 1)
        data = ints.scaled(ints.wide(args[0], own), 2**bits, walk.config)
        return walk.stands_for(ints.with_args(call, [data]), Affine(own.scale / 2**bits, own.peak << bits, "int32", own.stands_for))

    @staticmethod
    def _window(call):
        """At most so many elements lie in a window."""
        if call.attrs is not None and "pool_size" in call.attrs.keys():  # noqa: SIM118
            return math.prod(int(n) for n in call.attrs["pool_size"])
        whole, parts = _size(call.args[0].checked_type.shape), _size(call.checked_type.shape)
        return None if whole is None or not parts else 4 * -(-whole // parts)  # windows of adaptive pools differ in size


class _Joined(Rule):
    """Operands one after the other, at the largest of their scales."""

    def annotate(self, walk, call, args):
        if not isinstance(args[0], Tuple) or not any(walk.kind(f) for f in args[0].fields):
            return None
        return ints.with_args(call, [Tuple([walk.operand(f) for f in args[0].fields])]), _INPUT

    def realize(self, walk, call, args):
        fields = list(args[0].fields) if isinstance(args[0], Tuple) else []
        found = [walk.affine(f) for f in fields]
        if not found or not all(found) or len({a.dtype for a in found}) > 1 or not found[0].narrow:
            return None
        scale, peak = max(a.scale for a in found), max(a.peak for a in found)
        fields = [ints.narrowed(f, a, scale, -peak, peak, a.dtype, walk.config) for f, a in zip(fields, found, strict=True)]
        return walk.stands_for(ints.with_args(call, [Tuple(fields)]), Affine(scale, peak, found[0].dtype, found[0].stands_for))


class _Hinted(Rule):
    """`annotation.cast_hint`: a sum becomes an operand here."""

    marks = True

    def annotate(self, walk, call, args):
        return walk.hinted(call, args[0])

    def realize(self, walk, call, args):
        return args[0]


class _Stopped(Rule):
    """`annotation.stop_fusion`: integers need none, since kernels begin at products."""

    marks = True

    def annotate(self, walk, call, args):
        kind = walk.kind(args[0])
        return (ints.with_args(call, args), kind) if kind else None

    def realize(self, walk, call, args):
        return args[0] if walk.affine(args[0]) else None


class _Simulated(Rule):
    """`simulated_quantize` itself."""

    marks = True

    def annotate(self, walk, call, args):
        kind = call.attrs["kind"]
        return (ints.with_args(call, args), _INPUT if kind == QAnnotateKind.WEIGHT else kind) if kind else None

    def realize(self, walk, call, args):
        return walk.quantized(call, args)


def _register(rule, *names):
    for name in names:
        _RULES[name] = rule


_SELECTS = 2  # Values::kSelects: each element of the result is one of the first operand
_MOVES = _Moved()
_register(_Product(_terms_of_convolution, _outputs_of_convolution, counted=True), "nn.conv2d")
_register(
    _Product(_terms_of_convolution, _outputs_of_convolution), "nn.conv1d", "nn.conv3d", "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"
)
_register(_Product(_terms_of_dense, lambda call: 0, dense=True), "nn.dense")
_register(_Product(_terms_of_matmul), "nn.batch_matmul")
_register(_Sum(), "add", "subtract", "nn.bias_add")
_register(_Multiplied(), "multiply")
_register(_Kept(), "nn.relu")
_register(_Kept(_ends), "clip")
_register(_Padded(), "nn.pad")
_register(_Mean(), *(f"nn.{kind}_pool{n}d" for kind in ("avg", "global_avg", "adaptive_avg") for n in (1, 2, 3)), "mean")
_register(_Joined(), "concatenate")
_register(_Hinted(), "annotation.cast_hint")
_register(_Stopped(), "annotation.stop_fusion")
_register(_Simulated(), SIMULATED)

__all__ = ["SIMULATED", "Rule", "rule_of"]
