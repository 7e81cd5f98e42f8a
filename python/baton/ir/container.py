# SPDX-License-Identifier: Apache-2.0
"""Array and Map, under the name that Relay's users know."""

from ..runtime.container import Array, Map

__all__ = ["Array", "Map"]
