# SPDX-License-Identifier: Apache-2.0
"""Values that are computed once for each set of arguments."""

import functools
import os
import pickle
from pathlib import Path


def memoize(key, save_at_exit=False):
    """A decorator: the function's value is computed once for each set of arguments of this process; with `save_at_exit` it is kept in a file
    of the folder `.pkl_memoize_py3`, for processes that come after."""

    def decorate(f):
        kept, path = {}, Path(".pkl_memoize_py3") / f"{key}.pkl"
        if save_at_exit:
            import atexit

            if path.exists():
                kept.update(pickle.loads(path.read_bytes()))

            def save():
                path.parent.mkdir(exist_ok=True)
                whole = path.with_suffix(f".{os.getpid()}")
                whole.write_bytes(pickle.dumps(kept))
                os.replace(whole, path)

            atexit.register(save)

        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            # Captured values are part of the function.
            closed = tuple(cell.cell_contents for cell in f.__closure__ or ())
            which = pickle.dumps((closed, args, sorted(kwargs.items())))
            if which not in kept:
                kept[which] = f(*args, **kwargs)
            return kept[which]

        return wrapper

    return decorate


__all__ = ["memoize"]
