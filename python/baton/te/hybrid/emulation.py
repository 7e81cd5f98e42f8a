# SPDX-License-Identifier: Apache-2.0
"""Functions that a script calls when it runs in Python, on NumPy's arrays."""

import types


def names():
    """Functions of scripts, by name."""
    import numpy as np

    def zeros(shape, dtype="float32", scope=None):
        return np.zeros(tuple(int(d) for d in ([shape] if isinstance(shape, int) else shape)), dtype)

    found = {
        "allocate": zeros,
        "output_tensor": zeros,
        "ceil_div": lambda a, b: -(-a // b),
        "likely": lambda condition: condition,
        "max_num_threads": lambda allow_none=True: 1024,
        "power": np.power,
        "round": np.round,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "popcount": lambda x: bin(int(x)).count("1"),
        **{name: getattr(np, name) for name in ("abs", "ceil", "exp", "floor", "log", "sqrt", "tanh")},
        **{name: range for name in ("const_range", "parallel", "serial", "unroll", "vectorize")},
        "bind": lambda tag, extent: range(extent),
    }
    for bits in (8, 16, 32, 64):
        for kind in ("int", "uint", "float"):
            if hasattr(np, f"{kind}{bits}"):
                found[f"{kind}{bits}"] = getattr(np, f"{kind}{bits}")
    return found


def run(function, args):
    """Returns the results of a script for arrays."""
    args = [a.numpy() if hasattr(a, "numpy") else a for a in args]
    known = {**names(), **function.__globals__}
    known.update({k: v for k, v in names().items() if k not in function.__globals__})
    return types.FunctionType(function.__code__, known, function.__name__, function.__defaults__, function.__closure__)(*args)
