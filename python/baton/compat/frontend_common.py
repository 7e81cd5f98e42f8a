# SPDX-License-Identifier: Apache-2.0
"""Helps for importers."""

from .. import relay
from ..ir import IRModule


def infer_type(node, mod=None):
    """An expression with its type; `mod` has the functions that it calls. The type is in `checked_type`."""
    if isinstance(mod, IRModule):
        whole = IRModule(dict(mod.functions.items()), dict(mod.type_definitions.items()))
    else:
        whole = IRModule()
    free = relay.analysis.free_vars(node)
    whole["main"] = node if isinstance(node, relay.Function) and not free else relay.Function(free, node)
    main = relay.transform.InferType()(whole)["main"]
    return main if isinstance(node, relay.Function) and not free else main.body


def infer_shape(inputs, mod=None):
    """The extents of an expression's value, those that are not known as they stand in its type."""
    out = infer_type(inputs, mod).checked_type
    return tuple(getattr(d, "value", d) for d in out.shape)


def infer_channels(inputs, transpose=False):
    """The number of channels of a weight: its first dimension, or its second for a transposed convolution."""
    return infer_shape(inputs)[1 if transpose else 0]


def new_var(name_hint, type_annotation=None, shape=None, dtype="float32"):
    """A variable."""
    return relay.var(name_hint, type_annotation, shape, dtype)


__all__ = ["infer_channels", "infer_shape", "infer_type", "new_var"]
