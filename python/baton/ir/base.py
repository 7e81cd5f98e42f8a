# SPDX-License-Identifier: Apache-2.0
"""Nodes, where they come from, comparing them, and their JSON form."""

from .. import _core
from .._core import Array, Object
from .._ffi import get_global_func
from .._ffi.hook import Hook
from . import json_upgrade

_annotated_text = Hook("ir.annotated_text")
_typed_text = Hook("ir.typed_text")
_PLAIN = (int, float, list, tuple, Array)


class SourceName(Object, key="SourceName"):
    """Name of a source: a file, or a node of an imported model. Equal names are equal."""

    __slots__ = ()

    def __eq__(self, other):
        return isinstance(other, SourceName) and self.name == other.name

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self.name)


class Span(Object, key="Span"):
    """A stretch of a source; lines and columns count from 1."""

    __slots__ = ()

    def __init__(self, source_name, line=0, end_line=0, column=0, end_column=0):
        if isinstance(source_name, str):
            source_name = SourceName(source_name)
        super().__init__(source_name=source_name, line=line, column=column, end_line=end_line, end_column=end_column)


def _beside(value, other):
    """A number that is compared with a literal, as a literal of the same dtype; the same for the items of lists and tuples."""
    if isinstance(value, (int, float)):
        kind = getattr(other, "type_key", None)
        fits = kind == "IntImm" and value == int(value) if value == value and abs(value) != float("inf") else False
        return make_node(kind, dtype=other.dtype, value=int(value) if kind == "IntImm" else float(value)) if fits or kind == "FloatImm" else value
    sequences = (list, tuple, Array)
    if isinstance(value, sequences) and isinstance(other, sequences) and len(value) == len(other):
        if any(isinstance(v, (int, float, list, tuple, Array)) for v in value):
            return [_beside(v, o) for v, o in zip(value, other, strict=True)]
    return value


def _both(lhs, rhs):
    """Two values to compare. Numbers of Python have no dtype: beside a literal they have its."""
    if isinstance(lhs, _PLAIN) or isinstance(rhs, _PLAIN):
        return _beside(lhs, rhs), _beside(rhs, lhs)
    return _as_in_types(lhs, rhs), _as_in_types(rhs, lhs)


def _as_in_types(value, other):
    """An expression of narrow integers beside one of int64 as it is in the shapes of types, which are int64."""
    narrow = getattr(value, "dtype", None)
    if narrow is None or not str(narrow).startswith("int") or str(narrow) == "int64" or str(getattr(other, "dtype", "")) != "int64":
        return value
    is_extent = isinstance(value, Object) and value.type_key.startswith("tir.")
    return get_global_func("ir.WideExtent")(value) if is_extent else value


def structural_equal(lhs, rhs, map_free_vars=False) -> bool:
    """Whether two objects are equal but for the names of what they bind. With `map_free_vars` free variables may be renamed
    too; without, a free variable equals itself alone. A number of Python equals a literal of the same value."""
    return get_global_func("node.StructuralEqual")(*_both(lhs, rhs), map_free_vars, False)


def assert_structural_equal(lhs, rhs, map_free_vars=False):
    """Raises ValueError that says where two objects first differ, unless they are structurally equal."""
    get_global_func("node.StructuralEqual")(*_both(lhs, rhs), map_free_vars, True)


def get_first_structural_mismatch(lhs, rhs, map_free_vars=False):
    """None if two objects are structurally equal, else where they first differ, as the pair of access paths on both sides
    (`.functions[@main].body.args[1]`), and what is there, in the attributes `lhs` and `rhs` of the pair."""
    text = get_global_func("node.StructuralDifference")(lhs, rhs, map_free_vars)
    return StructuralMismatch(str(text)) if text else None


class StructuralMismatch(tuple):
    """The access paths of the first difference on both sides; `str()` tells it in one line."""

    def __new__(cls, text):
        path, _, sides = text.partition(": ")
        self = super().__new__(cls, (path, path))
        self.path, self.text = path, text
        self.lhs, _, self.rhs = sides.partition(" against ")
        return self

    def __str__(self):
        return self.text


def structural_hash(node, map_free_vars=False) -> int:
    """A number that structurally equal objects share; others differ in it but for chance.

    It is the same in every process, unless the object has free variables and `map_free_vars` is False: each such variable is
    equal to itself alone, so its number is of this process.
    """
    return get_global_func("node.StructuralHash")(node, map_free_vars)


def save_json(node) -> str:
    """An object graph as JSON text; shared objects stay shared, constants keep their bits."""
    return get_global_func("node.SaveJSON")(node)


def load_json(json_str):
    """The objects of a text that `save_json` wrote, or Relay from 0.6 on."""
    if isinstance(json_str, str) and json_upgrade.is_old(json_str):
        json_str = json_upgrade.upgrade(json_str)
    return get_global_func("node.LoadJSON")(json_str)


def astext(node, show_meta_data=True, annotate=None, show_types=False):
    """Text form of any object. `annotate(call)` gives what a comment behind each call of a Relay expression is to say; none for
    an empty text. Without it `show_types` puts the types of calls and constants that are known into comments, `/* ty=int32 */`. The text
    reads back as without comments."""
    if annotate is not None:
        return _annotated_text(node, show_meta_data, lambda call: str(annotate(call) or ""))
    if show_types:
        return _typed_text(node, show_meta_data)
    return get_global_func("ir.AsText")(node, show_meta_data)


make_node = _core.make_node
