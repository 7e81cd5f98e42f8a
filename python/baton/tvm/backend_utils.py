# SPDX-License-Identifier: Apache-2.0
"""Names of generated modules."""

from .name_transforms import prefix_generated_name, sanitize_name, to_c_variable_style


def mangle_module_name(mod_name):
    """The prefix of what is generated for a model: "tvmgen_" and its name; "tvmgen" for None. Raises ValueError for a name that C does
    not take."""
    if not mod_name:
        return "tvmgen"
    if sanitize_name(mod_name) != mod_name:
        raise ValueError(f"the module's name {mod_name!r} has characters that names in C do not have")
    return to_c_variable_style(prefix_generated_name(mod_name))


__all__ = ["mangle_module_name"]
