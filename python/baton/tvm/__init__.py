# SPDX-License-Identifier: Apache-2.0
"""The floor: what serves programs that were written for Relay in 2021. `import baton as tvm` finds old spellings, old modules and old forms here.

`tables.py` says where each path and name of theirs leads, `finder.py` is the import hook that serves it, and the other modules have what exists for
such programs alone. `baton/__init__.py` loads this package by one line; no other module asks for it (`tools/check_layers.py`, rule `floor`), but for
`baton.describe`, which writes stubs for it.
"""

import sys
from importlib import import_module

from .finder import find, install
from .tables import ABSENT, MODULES, NAMES, PACKAGES, current, instead_of, paths


def serve(name="tvm"):
    """Lets `import tvm`, and any path below it, give this package, of which no module is loaded twice. For programs that are run unchanged, and
    packages that import them: call it before. `sys.modules["tvm"] = baton` does the same. Raises ImportError where another package of that name
    is in use."""
    found = sys.modules.setdefault(name, import_module("baton"))
    if found is not import_module("baton"):
        raise ImportError(f"the package `{name}` is loaded already, from {getattr(found, '__file__', 'memory')}; baton.tvm.serve comes before it")
    return found


install()

__all__ = ["ABSENT", "MODULES", "NAMES", "PACKAGES", "current", "find", "instead_of", "paths", "serve"]
