# SPDX-License-Identifier: Apache-2.0
"""The global functions `relay._transform.X`."""

from ..._ffi import _init_api

_init_api("relay._transform", __name__)
