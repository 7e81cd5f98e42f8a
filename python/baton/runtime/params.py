# SPDX-License-Identifier: Apache-2.0
"""Parameters by name as one block of bytes."""

from .._ffi import get_global_func
from .ndarray import NDArray, array


def save_param_dict(params):
    """The arrays by name as bytes. Raises ValueError where the library has no such format."""
    values = {name: value if isinstance(value, NDArray) else array(value) for name, value in params.items()}
    return bytes(get_global_func("runtime.SaveParams")(values))


def load_param_dict(param_bytes):
    """The arrays by name that `save_param_dict` wrote."""
    return get_global_func("runtime.LoadParams")(bytes(param_bytes))
