# SPDX-License-Identifier: Apache-2.0
"""Where a node of a graph comes from, in the user's terms."""

from __future__ import annotations

import os
import re

import torch

from ...ir import SourceName, Span

_TORCH = os.path.dirname(torch.__file__) + os.sep
_HERE = os.path.dirname(__file__) + os.sep


def place_of(node) -> tuple[str, str]:
    """(the user's file and line, the path of the module) of a node, as far as they are known."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    # A layer of PyTorch's own was called by the user's line; code that PyTorch made up is in no file; frames of this package, which restates graphs, are left out.
    frames = [f for f in frames if not f[0].startswith((_TORCH, "<", _HERE))] or [f for f in frames if not f[0].startswith(_HERE)]
    line = f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""
    stack = node.meta.get("nn_module_stack") or {}
    path = next(reversed(stack.values()))[0] if stack else ""
    return line, path.removeprefix("L['self'].").replace("L['self']", "")


def lines_of(text: str) -> str:
    """The last of the user's files and lines that a text of PyTorch names, "FILE:LINE"; empty where there is none."""
    frames = [f for f in re.findall(r'File "?([^"\n,:]+)"?(?:, line |:)(\d+)', text) if not f[0].startswith((_TORCH, "<"))]
    return ":".join(frames[-1]) if frames else ""


def span_of(node) -> Span:
    """The place of a node for messages: file, line, module."""
    line, path = place_of(node)
    text = f"{line} ({path})" if line and path else line or path or f"node `{node.name}`"
    return Span(SourceName(text))
