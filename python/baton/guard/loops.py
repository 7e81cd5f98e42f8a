# SPDX-License-Identifier: Apache-2.0
"""PrimFuncs before and after a pass, run by their interpreter on the same arrays."""

from .._ffi import get_global_func
from .compare import Difference, differences
from .finding import Finding
from .sample import CannotSample, Sampler, array_of, numpy_of

MAX_STEPS = 4 << 20
"""Evaluations of a node, of one function on one sample."""


def check_loops(checker, name, old, new, tolerance):
    """(Finding or None, why it was not checked or None) of a PrimFunc before and after."""
    if len(old.params) != len(new.params):
        return None, f"it has {len(new.params)} parameters after the pass, {len(old.params)} before"
    evaluated, why = 0, None
    for kind in checker.kinds:
        try:
            arrays = _arrays(old, Sampler(kind, checker.seed))
        except CannotSample as error:
            return None, str(error)
        before, why_not = _run(old, arrays)
        if why_not is not None:
            why = why or f"it cannot be run before the pass: {why_not}"
            continue
        after, why_not = _run(new, arrays)
        evaluated += 1
        # A budget that is used up, and calls of functions that the pass made, say nothing of what is computed.
        if why_not is not None and ("budget" in why_not or "does not know the function @" in why_not):
            return None, f"it cannot be run after the pass: {why_not}"
        for i, buffer in enumerate(_buffers(old)):
            path = str(buffer.name)
            if why_not is not None:
                found = [Difference("result", f"it fails after the pass: {why_not}")]
            else:
                found = differences(before[i], after[i], tolerance, path)
            if found:
                names = [str(b.name) for b in _buffers(old)]
                return Finding("", name, found[0], kind, checker.seed, None, dict(zip(names, arrays, strict=True))), None
    return None, None if evaluated else why


def _buffers(func):
    buffers = {var: buffer for var, buffer in func.buffer_map.items()}
    try:
        return [buffers[param] for param in func.params]
    except KeyError:
        raise CannotSample("it has parameters that are not buffers") from None


def _arrays(func, sampler):
    return [sampler.tensor([sampler.dim(d) for d in buffer.shape], str(buffer.dtype)) for buffer in _buffers(func)]


def _run(func, arrays):
    """(arrays afterwards, None) or (None, why not)."""
    out = [array_of(numpy_of(array), str(array.dtype)) for array in arrays]
    try:
        get_global_func("relay.guard.RunLoops")(func, out, MAX_STEPS)
    except Exception as error:  # of any kind: programs under test are broken ones
        return None, (str(error).strip().splitlines() or [type(error).__name__])[0]
    return out, None
