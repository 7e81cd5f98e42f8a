# SPDX-License-Identifier: Apache-2.0
"""The standard library's text about itself: the first paragraphs of its modules' docstrings.

Python sources are parsed, not imported: importing `this` or `antigravity` does things. Modules written in C have
their docstring only in memory; they are imported unless they are known to act on import.
"""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import importlib.util
import inspect
import pkgutil
import sys
import tokenize
import warnings

# Jokes, tests, other programs, and data: nothing that a person would look for.
_SKIPPED = {
    "antigravity",
    "this",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "turtledemo",
    "test",
    "encodings",
    "ensurepip",
    "distutils",
}
_ACTS_ON_IMPORT = {"readline"}  # initialises the terminal
_SHORTEST = 20  # characters; a shorter docstring says nothing
_LONGEST = 700  # characters; about 150 tokens


def first_paragraphs(doc: str, limit: int = _LONGEST) -> str:
    """The leading paragraphs of a docstring that together fit in `limit` characters, at least one; white space is
    joined.
    """
    out, size = [], 0
    for paragraph in inspect.cleandoc(doc).split("\n\n"):
        text = " ".join(paragraph.split())
        if not text or not any(map(str.isalnum, text)):
            continue
        if out and size + len(text) > limit:
            break
        out.append(text)
        size += len(text)
    return " ".join(out)[:limit]


def _native_doc(name: str) -> str | None:
    """The docstring of a module written in C."""
    if name in _ACTS_ON_IMPORT:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # modules that will go say so when imported
            return importlib.import_module(name).__doc__
    except ImportError:
        return None


def _is_native(spec) -> bool:
    return spec.origin == "built-in" or str(spec.origin).endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))


def _source_doc(path: str) -> str | None:
    """The docstring of a Python source, read and not run; `from _struct import __doc__` is followed to the C module."""
    try:
        with tokenize.open(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return None
    doc = ast.get_docstring(tree)
    if doc is None:
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and not node.level and any(a.name == "__doc__" for a in node.names):
                spec = _find(node.module)
                return _native_doc(node.module) if spec and _is_native(spec) else None
    return doc


def _find(name: str, path=None):
    """The spec of a module, found without importing its parents."""
    if path is None:
        spec = importlib.machinery.BuiltinImporter.find_spec(name)
        if spec:
            return spec
    return importlib.machinery.PathFinder.find_spec(name, path)


def _visit(name: str, spec, out: dict[str, str]) -> None:
    if spec is None:
        return
    if _is_native(spec):
        doc = _native_doc(name)
    else:
        doc = _source_doc(spec.origin) if spec.origin and spec.origin.endswith(".py") else None
    text = first_paragraphs(doc) if doc else ""
    if len(text) >= _SHORTEST:
        out[name] = text
    # One level down only: `urllib` and `xml` say little, `urllib.request` and `xml.sax` say what they do.
    if spec.submodule_search_locations and "." not in name:
        for info in pkgutil.iter_modules(spec.submodule_search_locations):
            if not info.name.startswith("_") and info.name not in _SKIPPED and not info.name.startswith("test"):
                full = f"{name}.{info.name}"
                _visit(full, _find(full, spec.submodule_search_locations), out)


def standard_library() -> dict[str, str]:
    """Module name to text, for the public modules of the running Python that have a docstring; sorted by name."""
    out: dict[str, str] = {}
    for name in sorted(sys.stdlib_module_names):
        if not name.startswith("_") and name not in _SKIPPED:
            _visit(name, _find(name), out)
    return dict(sorted(out.items()))
