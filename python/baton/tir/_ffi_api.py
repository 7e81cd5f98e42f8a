# SPDX-License-Identifier: Apache-2.0
"""The global functions `tir.X`."""

from .._ffi import _init_api

_init_api("tir", __name__)
