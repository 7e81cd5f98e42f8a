# SPDX-License-Identifier: Apache-2.0
"""Names of what is generated, in the styles of C. The prefix TVM is what programs look for."""

import re

from .. import error as errors


def _words(name, what):
    if not name:
        raise errors.ValueError(f"{what} name is empty")
    if not name.startswith("TVM"):
        raise errors.ValueError(f"{what} not TVM prefixed: {name!r}; see prefix_name and prefix_generated_name")
    return name.split("_")


def to_c_function_style(original_name):
    """The name of a function: "TVM_model_run" becomes "TVMModelRun". Raises ValueError for a name without the prefix."""
    return "".join(word[:1].upper() + word[1:] for word in _words(original_name, "Function"))


def to_c_variable_style(original_name):
    """The name of a variable: "TVM_Model_Input" becomes "tvm_model_input". Raises ValueError for a name without the prefix."""
    return "_".join(_words(original_name, "Variable")).lower()


def to_c_constant_style(original_name):
    """The name of a constant: "TVM_Model_Size" becomes "TVM_MODEL_SIZE". Raises ValueError for a name without the prefix."""
    return "_".join(_words(original_name, "Constant")).upper()


def _prefixed(prefix, names):
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise errors.ValueError("Name segments empty")
    if not all(names):
        raise errors.ValueError("Name segment is empty")
    return "_".join([prefix, *names])


def prefix_name(names):
    """The name of something of the runtime: "run" or ["model", "run"] becomes "TVM_run", "TVM_model_run"."""
    return _prefixed("TVM", names)


def prefix_generated_name(names):
    """The name of something that is generated: "run" or ["model", "run"] becomes "TVMGen_run", "TVMGen_model_run"."""
    return _prefixed("TVMGen", names)


def sanitize_name(name):
    """The name with every character that C does not have in names replaced by `_`."""
    if not name:
        raise errors.ValueError("Name is empty")
    return re.sub(r"\W", "_", name, flags=re.ASCII)


__all__ = ["prefix_generated_name", "prefix_name", "sanitize_name", "to_c_constant_style", "to_c_function_style", "to_c_variable_style"]
