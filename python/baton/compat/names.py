# SPDX-License-Identifier: Apache-2.0
"""Functions under the names of older programs."""

from ..ir.transform import PassContext
from ..runtime.ndarray import array


def build_config(opt_level=2, required_pass=None, disabled_pass=None, trace=None, instruments=None, config=None):
    """The same as `PassContext(...)`, under the name of older programs."""
    return PassContext(opt_level, required_pass, disabled_pass, instruments, config)


def numpyasarray(np_data):
    """The array as an NDArray."""
    return array(np_data)
