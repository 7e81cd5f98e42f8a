# SPDX-License-Identifier: Apache-2.0
"""Options of a compilation: target, pass context, and a capsule of failures."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from .._ffi import get_global_func
from .._ffi.hook import Hook

_capsule_of_environment = Hook("driver.capsule")


class Options:
    """The target of a compilation, and the options of the pass context."""

    def __init__(self, target=None, opt_level: int = 3, config=None, disabled_pass: Sequence[str] = (), instruments=()):
        make = get_global_func("target.Target")
        self.targets = None
        if isinstance(target, (dict, list, tuple)):
            from .targets import target_of, targets_of

            self.targets = targets_of(target)
            target = None if self.targets else target_of(target)
        self.target = make(target or "llvm") if target is None or isinstance(target, str) else target
        self.opt_level, self.config, self.disabled_pass = opt_level, dict(config or {}), list(disabled_pass)
        self.instruments = list(instruments)

    @contextlib.contextmanager
    def context(self):
        """The pass context, entered; `baton.transform.PassContext` in two calls."""
        make = get_global_func("transform.PassContext")
        context = make(self.opt_level, [], self.disabled_pass, self.instruments, self.config)
        get_global_func("transform.EnterPassContext")(context)
        try:
            yield context
        finally:
            get_global_func("transform.ExitPassContext")(context)


def capsule():
    """A capsule where the environment wants one of what fails."""
    if not os.environ.get("BATON_CAPSULE_DIR"):
        return contextlib.nullcontext()
    return _capsule_of_environment()
