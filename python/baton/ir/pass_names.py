# SPDX-License-Identifier: Apache-2.0
"""Names of passes, as users give them: lists that are checked, and a warning for a name that is nearly one."""

import warnings

from .. import error as errors
from .._ffi import get_global_func


def _names(what, names, of="passes"):
    """A list of names; sets in order of the alphabet, so that runs are equal."""
    if names is None:
        return []
    if isinstance(names, str) or not isinstance(names, (list, tuple, set, frozenset)) and not hasattr(names, "__getitem__"):
        raise errors.TypeError(f"{what} takes a list of names of {of}, got {names!r}")
    for name in names:
        if not isinstance(name, str):
            raise errors.TypeError(f"{what} takes names of {of}, got {name!r} among them")
    return sorted(names) if isinstance(names, (set, frozenset)) else list(names)


# Names of passes that were made in Python: contexts may name these too.
_made = set()


def _named(what, name):
    """A name for a pass."""
    if not isinstance(name, str) or not name:
        raise errors.TypeError(f"{what} takes a text that is not empty, got {name!r}")
    _made.add(name)
    return name


def chosen(what, names, stacklevel=2):
    """A list of pass names chosen by the user. An unknown name that resembles a known one is a warning, since it has no effect."""
    names = _names(what, names)
    for name in names:
        if name not in _made and (near := str(get_global_func("transform.NearPass")(name))):
            warnings.warn(f"{what}: there is no pass `{name}`{near}", stacklevel=stacklevel + 1)
    return names
