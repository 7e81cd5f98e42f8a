# SPDX-License-Identifier: Apache-2.0
"""The global functions `ir.X`."""

from .._ffi import _init_api

_init_api("ir", __name__)
