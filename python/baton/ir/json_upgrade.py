# SPDX-License-Identifier: Apache-2.0
"""Files that Relay 0.6 saved, in the form of 0.8."""

import json
import re

from .. import _core

_RENAMED = {
    "Variable": "tir.Var",
    "SizeVar": "tir.SizeVar",
    "StrMap": "Map",
    "UIntImm": "IntImm",
    "relay.Module": "IRModule",
    "relay.Any": "tir.Any",
    "StringImm": "tir.StringImm",
}
_VERSION = re.compile(r'"tvm_version"\s*:\s*"0\.[0-6](\.|")')


def is_old(text):
    """Whether a text was saved by 0.6 or before."""
    return _VERSION.search(text, max(len(text) - 10_000, 0)) is not None or _VERSION.search(text[:10_000]) is not None


def _key(key):
    """The key that a type has today: those of the IR were below relay, those of TIR below nothing."""
    if key in _RENAMED:
        return _RENAMED[key]
    for known in (key, key.removeprefix("relay."), "tir." + key):
        if _core.type_known(known):
            return known
    return key


def upgrade(text):
    """The text as 0.8 would have written it."""
    file = json.loads(text)
    nodes = file["nodes"]
    names = {i: node["attrs"].get("name") for i, node in enumerate(nodes) if node.get("type_key") == "Variable"}
    for node in nodes:
        key, attrs = node.get("type_key", ""), node.get("attrs")
        if not key:
            continue
        node["type_key"] = _key(key)
        if "global_key" in node:  # operators and functions of the environment by name
            node["repr_str"] = node.pop("global_key")
        if attrs is None:
            continue
        if key == "Variable":
            attrs["name_hint"] = attrs.pop("name", "")
        if "var" in attrs and key in ("relay.TypeVar", "relay.GlobalTypeVar"):  # their name was that of a variable of TIR
            attrs["name_hint"] = names.get(int(attrs.pop("var")), "")
    file.setdefault("attrs", {})["tvm_version"] = "0.8.0"
    return json.dumps(file)


__all__ = ["is_old", "upgrade"]
