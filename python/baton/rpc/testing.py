# SPDX-License-Identifier: Apache-2.0
"""Functions for trying a connection: `remote.get_function("rpc.test.addone")(1)`. Each `rpc.Server` has them for clients that it trusts, or whose
`allow` names them."""

import sys

from .._ffi import register_func


@register_func("rpc.test.addone", override=True)
def _addone(x):
    return x + 1


@register_func("rpc.test.strcat", override=True)
def _strcat(name, x):
    return f"{name}:{x}"


@register_func("rpc.test.runtime_str_concat", override=True)
def _concat(x, y):
    return x + y


@register_func("rpc.test.except", override=True)
def _except(name):
    raise ValueError(name)


@register_func("rpc.test.remote_array_func", override=True)
def _array_func(y):
    """Fails unless the argument is an array (3, 4) of ones."""
    import numpy as np

    np.testing.assert_equal(y.numpy(), np.ones((3, 4)))


@register_func("rpc.test.add_to_lhs", override=True)
def _add_to_lhs(x):
    return lambda y: x + y


@register_func("rpc.test.remote_return_nd", override=True)
def _return_nd(name):
    """A function by its name: "get_arr", "ref_count", "get_elem" or "get_arr_elem"."""
    import numpy as np

    from ..runtime.ndarray import array

    made = array(np.zeros(10, "float32"))
    return {
        "get_arr": lambda: made,
        "ref_count": lambda: sys.getrefcount(made),
        "get_elem": lambda i: made.numpy()[i],
        "get_arr_elem": lambda other, i: other.numpy()[i],
    }[name]
