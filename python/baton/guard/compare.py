# SPDX-License-Identifier: Apache-2.0
"""How far two values may lie apart, and where they do."""

from dataclasses import dataclass, field

from ..runtime import ndarray as nd
from .sample import FLOATS, numpy_of

EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


@dataclass(frozen=True)
class Tolerance:
    """Units in the last place of a float that a result may be off: `relative` of the element, `absolute` of the largest finite
    element of its tensor. Numbers of 16 bits have so few that less of them are allowed. Integers and booleans are equal or
    not. `noise` is how many times farther than rounding errors move a result a change must go to count."""

    relative: float = 64
    absolute: float = 16
    noise: float = 8
    exact: bool = True
    """Infinities and NaN stay what they are. A pass that reassociates may overflow elsewhere."""
    rtol: float | None = None
    atol: float | None = None

    def bounds(self, dtype, scale):
        """(relative to the element, absolute)."""
        short = dtype in ("float16", "bfloat16")
        eps = EPSILON[dtype]
        relative, absolute = self.relative / (16 if short else 1) * eps, self.absolute / (8 if short else 1) * eps * scale
        return self.rtol if self.rtol is not None else relative, self.atol if self.atol is not None else absolute


EXACT = Tolerance()
REASSOCIATING = Tolerance(relative=1024, absolute=256, noise=64, exact=False)


@dataclass
class Difference:
    """Where two values differ: `path` in the result, and for tensors the element that is farthest off."""

    path: str
    what: str
    where: tuple = ()
    before: object = None
    after: object = None
    max_abs: float | None = None
    max_rel: float | None = None
    count: int = 0
    of: int = 0
    mask: object = field(default=None, repr=False)

    def text(self):
        """One line."""
        if self.max_abs is None:
            return f"{self.path}: {self.what}"
        place = f" at [{', '.join(map(str, self.where))}]" if self.where else ""
        off = f", off by {self.max_abs:.4g}" if self.max_abs == self.max_abs else ""
        off += f" ({self.max_rel:.3g} of it)" if off and self.max_rel not in (None, float("inf")) else ""
        many = f"{self.count} of {self.of} elements differ, most" if self.of > 1 else "differs"
        return f"{self.path}: {many}{place}: {self.before} before, {self.after} after{off}"

    def to_json(self):
        """Plain data."""
        return {"path": self.path, "what": self.what, "where": list(self.where), "before": _plain(self.before),
                "after": _plain(self.after), "max_abs": _plain(self.max_abs), "max_rel": _plain(self.max_rel), "count": self.count,
                "of": self.of}  # fmt: skip


def _plain(value):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    value = float(value)
    return value if value - value == 0 else str(value)


def differences(before, after, tolerance, path="result"):
    """Every place where two values differ, in order: a list of Difference."""
    out, work = [], [(before, after, path)]
    while work:
        a, b, here = work.pop()
        if isinstance(a, nd.NDArray) and isinstance(b, nd.NDArray):
            found = _tensors(a, b, tolerance, here)
            if found is not None:
                out.append(found)
            continue
        kinds = _kind(a), _kind(b)
        if kinds[0] != kinds[1]:
            out.append(Difference(here, f"{kinds[0]} became {kinds[1]}"))
        elif kinds[0] == "a tuple":
            if len(a) != len(b):
                out.append(Difference(here, f"a tuple of {len(a)} became one of {len(b)}"))
                continue
            work.extend((x, y, f"{here}[{i}]") for i, (x, y) in reversed(list(enumerate(zip(a, b, strict=True)))))
        elif kinds[0] == "data":
            names = a.constructor.name_hint, b.constructor.name_hint
            if names[0] != names[1]:
                out.append(Difference(here, f"{names[0]} became {names[1]}"))
                continue
            fields = list(enumerate(zip(a.fields, b.fields, strict=True)))
            work.extend((x, y, f"{here}.{names[0]}[{i}]") for i, (x, y) in reversed(fields))
        elif kinds[0] == "a reference":
            from .._ffi import get_global_func

            read = get_global_func("relay.guard.ReadRef")
            work.append((read(a), read(b), here + ".value"))
        # Functions are compared by their results, where they can be called.
    return out


def mostly_not_finite(value):
    """Whether a result is drowned in NaN and infinities, which are equal whatever else went wrong."""
    import numpy as np

    if isinstance(value, nd.NDArray):
        return str(value.dtype) in FLOATS and value.size > 0 and float(np.isfinite(numpy_of(value)).mean()) < 0.5
    return _kind(value) == "a tuple" and any(mostly_not_finite(field) for field in value)


def _kind(value):
    from ..relay.backend.interpreter import Closure, ConstructorValue, RefValue

    if isinstance(value, nd.NDArray):
        return "a tensor"
    if isinstance(value, ConstructorValue):
        return "data"
    if isinstance(value, RefValue):
        return "a reference"
    if isinstance(value, Closure):
        return "a function"
    return "a tuple" if hasattr(value, "__len__") else type(value).__name__


def _tensors(a, b, tolerance, path):
    import numpy as np

    if a.same_as(b):
        return None
    if a.dtype != b.dtype:
        return Difference(path, f"element type {a.dtype} became {b.dtype}")
    if tuple(a.shape) != tuple(b.shape):
        return Difference(path, f"shape {tuple(a.shape)} became {tuple(b.shape)}")
    dtype, x, y = str(a.dtype), numpy_of(a), numpy_of(b)
    if dtype not in FLOATS:
        wrong = np.asarray(x != y)
        if not wrong.any():
            return None
        off = np.abs(x.astype("float64") - y.astype("float64"))
        return _worst(path, x, y, wrong, off)
    with np.errstate(all="ignore"):
        wide_x, wide_y = x.astype("float64"), y.astype("float64")
        finite = np.isfinite(wide_x)
        scale = float(np.abs(wide_x[finite]).max()) if finite.any() else 0.0
        rtol, atol = tolerance.bounds(dtype, scale)
        off = np.abs(wide_x - wide_y)
        same = (wide_x == wide_y) | (np.isnan(wide_x) & np.isnan(wide_y)) | (off <= atol + rtol * np.abs(wide_x))
        if not tolerance.exact:
            same |= ~finite | ~np.isfinite(wide_y)
        else:
            same &= finite == np.isfinite(wide_y)
        wrong = np.asarray(~same)
    if not wrong.any():
        return None
    return _worst(path, x, y, wrong, off)


def _worst(path, x, y, wrong, off):
    import numpy as np

    ranked = np.where(wrong, np.nan_to_num(off, nan=np.inf), -1.0)
    where = tuple(int(i) for i in np.unravel_index(int(ranked.argmax()), x.shape))
    before, after, by = x[where], y[where], float(off[where])
    relative = by / abs(float(before)) if float(before) != 0 else float("inf")
    return Difference(path, "values differ", where, before.item(), after.item(), by, relative, int(wrong.sum()), int(x.size), wrong)


def beyond_noise(before, after, noisy, tolerance, path="result", gross=False):
    """The differences that rounding errors do not explain. `noisy` are values of the program before with errors put into it: an
    element that they move about as far as the pass did says nothing. With `gross`, only differences that no further draw can
    explain: of floats, far beyond what the errors do to any element of the tensor. An error may round to nothing in one element,
    so that takes many elements, or many draws."""
    import numpy as np

    found = differences(before, after, tolerance, path)
    if not noisy or not found:
        return found
    out = []
    for one in found:
        if one.mask is None:
            out.append(one)
            continue
        x, y = numpy_of(_at(before, one.path, path)).astype("float64"), numpy_of(_at(after, one.path, path)).astype("float64")
        spread = np.zeros(x.shape)
        with np.errstate(all="ignore"):
            for value in noisy:
                try:
                    z = numpy_of(_at(value, one.path, path)).astype("float64")
                except (LookupError, AttributeError):
                    z = None
                if z is None or z.shape != x.shape:  # errors change even what kind of value it is
                    spread[...] = np.inf
                    continue
                # Where numbers as large as -3.4e38 stand for minus infinity, noise alone makes infinities: they say nothing.
                lost = np.isfinite(x) & ~np.isfinite(z)
                moved = np.where((x == z) | (np.isnan(x) & np.isnan(z)) | lost, 0, np.abs(x - z))
                spread = np.maximum(spread, np.nan_to_num(moved, nan=np.inf))
            off = np.abs(x - y)
            bound = tolerance.noise * spread
            if gross:
                tensor = _at(before, one.path, path)
                known = str(tensor.dtype) in FLOATS and spread.size * len(noisy) >= 64
                bound = 64 * bound.max() if known and bound.size else np.inf
            wrong = one.mask & ~(np.nan_to_num(off, nan=np.inf) <= bound)
        if wrong.any():
            original_x, original_y = numpy_of(_at(before, one.path, path)), numpy_of(_at(after, one.path, path))
            out.append(_worst(one.path, original_x, original_y, np.asarray(wrong), off))
    return out


def _at(value, path, root):
    """The part of a value that a path of `differences` names."""
    import re

    from .._ffi import get_global_func

    for name, index in re.findall(r"\.?([A-Za-z_]\w*)?(?:\[(\d+)\])?", path[len(root) :]):
        if name == "value" and not index:
            value = get_global_func("relay.guard.ReadRef")(value)
        elif name and index:
            value = value.fields[int(index)]
        elif index:
            value = value[int(index)]
    return value
