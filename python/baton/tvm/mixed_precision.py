# SPDX-License-Identifier: Apache-2.0
"""Categories of operators under ToMixedPrecision, for functions of `register_mixed_precision_conversion`."""

from ..relay.op import register_mixed_precision_conversion

MIXED_PRECISION_ALWAYS, MIXED_PRECISION_FOLLOW, MIXED_PRECISION_NEVER = 0, 1, 2


def get_generic_out_dtypes(call_node, mixed_precision_type):
    """(dtype that the operator accumulates in, dtype of its result): float32 for those that take an `out_dtype`, else the narrow one."""
    if call_node.attrs is not None and hasattr(call_node.attrs, "out_dtype"):
        return ["float32", mixed_precision_type]
    return [mixed_precision_type, mixed_precision_type]


def _rule(category):
    def rule(call_node, mixed_precision_type):
        return [category, *get_generic_out_dtypes(call_node, mixed_precision_type)]

    return rule


generic_always_op, generic_follow_op, generic_never_op = map(_rule, (MIXED_PRECISION_ALWAYS, MIXED_PRECISION_FOLLOW, MIXED_PRECISION_NEVER))


def register_func_to_op_list(list_ops):
    """A decorator that sets a rule for several operators."""

    def decorator(func):
        for op_name in list_ops:
            register_mixed_precision_conversion(op_name, func=func)
        return func

    return decorator


__all__ = [
    "MIXED_PRECISION_ALWAYS",
    "MIXED_PRECISION_FOLLOW",
    "MIXED_PRECISION_NEVER",
    "generic_always_op",
    "generic_follow_op",
    "generic_never_op",
    "get_generic_out_dtypes",
    "register_func_to_op_list",
]
