# SPDX-License-Identifier: Apache-2.0
"""The passes of Relay: `relay.transform.FoldConstant()` and its like, and how to write one."""

from . import _ffi_api  # noqa: F401
from .recast import ChangeBatch, recast  # noqa: F401
from .transform import *  # noqa: F403
from .transform import MergeComposite, __all__, __getattr__  # noqa: F401
from .transform import __dir__ as _dir


def __dir__():
    return sorted({*globals(), *_dir()})
