# SPDX-License-Identifier: Apache-2.0
"""Helps for testing passes and operators."""

from ... import relay
from ...relay.transform import gradient
from ...runtime import ndarray
from ...testing import enabled_targets
from . import (
    dcgan,
    densenet,
    dqn,
    inception_v3,
    init,
    layers,
    lstm,
    mlp,
    mobilenet,
    nat,
    py_converter,
    resnet,
    resnet_3d,
    squeezenet,
    synthetic,
    vgg,
)
from .check_grad import _np_randn_from_type, check_grad  # noqa: F401
from .init import create_workload
from .nat import add_nat_definitions, count, make_nat_expr, make_nat_value
from .opt_pass import run_infer_type, run_opt_pass
from .py_converter import run_as_python, to_python
from .random_program import random_inputs, random_program
from .temp_op_attr import TempOpAttr


def rand(dtype="float32", *shape):
    """An NDArray of random values in [0, 1)."""
    import numpy as np

    return ndarray.array(np.random.rand(*shape).astype(dtype))


def count_ops(expr):
    """How often each operator is called, by name."""
    return relay.analysis.list_op_freqs(expr)


def ctx_list():
    """(target, device) of what is there to test on."""
    return enabled_targets()


__all__ = [
    "TempOpAttr",
    "add_nat_definitions",
    "check_grad",
    "count",
    "count_ops",
    "create_workload",
    "ctx_list",
    "dcgan",
    "densenet",
    "dqn",
    "enabled_targets",
    "gradient",
    "inception_v3",
    "init",
    "layers",
    "lstm",
    "make_nat_expr",
    "make_nat_value",
    "mlp",
    "mobilenet",
    "nat",
    "py_converter",
    "rand",
    "random_inputs",
    "random_program",
    "resnet",
    "resnet_3d",
    "run_as_python",
    "run_infer_type",
    "run_opt_pass",
    "squeezenet",
    "synthetic",
    "to_python",
    "vgg",
]
