# SPDX-License-Identifier: Apache-2.0
"""The global functions `relay.analysis.X`; `baton.relay.analysis._ffi_api` is this module."""

from .._ffi import _init_api, get_global_func


class _Solver:
    """The solver of type inference on its own: called with "AddConstraint", "Solve", "Unify" or "Resolve", it gives that function.
    Attributes can be set: `solver.Solve = solver("Solve")`."""

    def __init__(self, function):
        self._function = function

    def __call__(self, name):
        return self._function(name)


def _test_type_solver():
    """A new solver, with no constraints."""
    return _Solver(get_global_func("relay.analysis._test_type_solver")())


_init_api("relay.analysis", __name__)
