# SPDX-License-Identifier: Apache-2.0
"""The passes of Relay: `relay.transform.FoldConstant()` and its like, and how to write one."""

from . import _ffi_api  # noqa: F401
from . import transform as _transform
from .batch import BatchingOps, Conv2dToSparse, DenseToSparse, SimplifyFCTranspose  # noqa: F401
from .recast import ChangeBatch, recast  # noqa: F401
from .transform import *  # noqa: F403
from .transform import Defunctionalization, MergeComposite, __getattr__  # noqa: F401

__all__ = sorted({*_transform.__all__, *_transform.pass_names()})


def __dir__():
    return sorted({*globals(), *_transform.__dir__()})
