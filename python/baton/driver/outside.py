# SPDX-License-Identifier: Apache-2.0
"""Functions for compilers that a program brings along, asked for without loading what makes them: most models have none."""

from .._ffi import get_global_func


def made_outside(mod):
    """(the module as `external.made_outside` gives it, the modules that code of it calls)"""
    if not get_global_func("driver.IsPartitioned")(mod):
        return mod, []
    from . import external

    return external.made_outside(mod)


def import_all(compiled, modules):
    """The compiled module, which imports these."""
    for module in modules:
        compiled.import_module(module)
    return compiled
