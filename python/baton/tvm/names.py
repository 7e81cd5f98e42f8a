# SPDX-License-Identifier: Apache-2.0
"""Functions under the names of older programs."""

import warnings

from ..ir.transform import PassContext
from ..runtime.devices import Device, device
from ..runtime.ndarray import array


def build_config(opt_level=2, required_pass=None, disabled_pass=None, trace=None, instruments=None, config=None):
    """The same as `PassContext(...)`, under the name of older programs."""
    return PassContext(opt_level, required_pass, disabled_pass, instruments, config)


def context(dev_type, dev_id=0):
    """The same as `baton.device(...)`, with a warning: devices were called so before 0.8. "gpu" is "cuda"."""
    warnings.warn("baton.context is called baton.device", DeprecationWarning, stacklevel=2)
    return Device({"gpu": "cuda"}.get(dev_type, dev_type), dev_id) if isinstance(dev_type, str) else device(dev_type, dev_id)


def elemwise_shape_func(attrs, inputs, out_ndims):
    """Shape function of operators whose result has the shape of the first argument: returns that shape as a tensor expression."""
    from ..te import compute

    return [compute(inputs[0].shape, lambda i: inputs[0][i])]


def pretty_print(obj):
    """Returns the text of a module, function or expression without its constants, as `astext(show_meta_data=False)`."""
    return obj.astext(show_meta_data=False)


def numpyasarray(np_data):
    """The array as an NDArray."""
    return array(np_data)
