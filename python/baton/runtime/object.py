# SPDX-License-Identifier: Apache-2.0
"""The base class of all objects."""

from .._core import Object

ObjectGeneric = Object
