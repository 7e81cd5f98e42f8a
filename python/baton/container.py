# SPDX-License-Identifier: Apache-2.0
"""Containers, under the name of older programs."""

from .runtime.container import ADT, Array, Map, ShapeTuple, String, getitem_helper, tuple_object

__all__ = ["ADT", "Array", "Map", "ShapeTuple", "String", "getitem_helper", "tuple_object"]
