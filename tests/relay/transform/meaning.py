# SPDX-License-Identifier: Apache-2.0
"""Random arguments for a function, and what the interpreter makes of them: for tests that a pass keeps the meaning."""

import numpy as np

from baton import relay


def value(kind, rng):
    """A random value of a type; None where there is none (functions, data types)."""
    if isinstance(kind, relay.TupleType):
        parts = [value(t, rng) for t in kind.fields]
        return None if any(p is None for p in parts) else tuple(parts)
    if not isinstance(kind, relay.TensorType):
        return None
    shape = [int(getattr(d, "value", 3)) for d in kind.shape]  # 3 for an unknown extent
    dtype = str(kind.dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        return np.asarray(rng.integers(1, 3, shape)).astype(dtype)
    return np.asarray(rng.uniform(0.5, 1.5, shape)).astype(dtype if dtype != "bfloat16" else "float32")


def flat(x):
    if isinstance(x, (tuple, list)) or type(x).__name__ in ("ADT", "Array"):
        return [leaf for part in x for leaf in flat(part)]
    return [x.numpy()] if hasattr(x, "numpy") else []


def arguments(func, seed=0):
    rng = np.random.default_rng(seed)
    return [value(p.checked_type, rng) for p in func.params]


def evaluate(mod, args):
    return flat(relay.create_executor("debug", mod).evaluate()(*args))
