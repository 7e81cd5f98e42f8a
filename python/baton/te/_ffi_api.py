# SPDX-License-Identifier: Apache-2.0
"""The global functions `te.X`."""

from .._ffi import _init_api

_init_api("te", __name__)
