# SPDX-License-Identifier: Apache-2.0
"""An expression after a pass."""

from ...ir import IRModule
from ...relay import transform
from ...relay.function import Function


def run_opt_pass(expr, opt_pass, import_prelude=False):
    """An expression after a pass, or a list of passes, which find types."""
    if isinstance(opt_pass, (list, tuple)):
        opt_pass = transform.Sequential(opt_pass)
    mod = opt_pass(transform.InferType()(IRModule.of_main(expr)))
    entry = mod["main"]
    return entry if isinstance(expr, Function) else entry.body


def run_infer_type(expr):
    """An expression with its types."""
    return run_opt_pass(expr, transform.InferType())
