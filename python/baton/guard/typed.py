# SPDX-License-Identifier: Apache-2.0
"""Type inference for the guard's own use."""

from .._ffi import get_global_func


def typed(mod):
    """The module with types inferred, unseen by instruments; None where it has none."""
    from ..ir.transform import PassContext

    try:
        with PassContext(opt_level=0, inherit_instruments=False):
            return get_global_func("transform.RunPass")(get_global_func("transform.GetPass")("InferType"), mod)
    except Exception:  # no program
        return None
