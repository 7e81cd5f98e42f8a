# SPDX-License-Identifier: Apache-2.0
"""The identity of a failure: kind, pass, message without what differs from run to run, innermost frames."""

from __future__ import annotations

import os
import re
import traceback

MOST_FRAMES = 3
_PLACE = re.compile(r"^(@\S+: )?(?:In )?(?:\S+|<[^>]*>):\d+:\d+: (?:error: )?", re.M)  # verifiers say the function first
_AT = re.compile(r" at (?:[^\s<>]+|<[^>]*>):\d+(?::\d+)?\b")
_EXCERPT = re.compile(r"^\s*\d* \|( .*)?$")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_FOLDER = re.compile(r"(?:/[\w.+~-]+)+/(?=[\w.+~-])")
_NUMBER = re.compile(r"(?<![A-Za-z_])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?:\.\.\.)?")


def normalise(message: str) -> str:
    """A message without places in source texts, addresses, folders and numbers."""
    # Excerpts of the source, `  2 | ...` and `    | ^~~`: whether there is one depends on where the IR came from.
    text = "\n".join(line.rstrip() for line in message.splitlines() if not _EXCERPT.match(line))
    text = _AT.sub("", _PLACE.sub(r"\1", text))
    text = _ADDRESS.sub("@", text)
    text = _FOLDER.sub("", text)
    return _NUMBER.sub("#", text).strip()


def _is_manager(frame: traceback.FrameSummary) -> bool:
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return frame.filename.startswith("<C++") or os.path.abspath(frame.filename).startswith(folder + os.sep)


def frames(error: BaseException) -> list[str]:
    """The innermost functions within the pass that the error passed, "file:function"; callers outside of the pass are left out."""
    out = []
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_manager(frame) or len(out) == MOST_FRAMES:
            break
        out.append(f"{os.path.basename(frame.filename)}:{frame.name}")
    return out


def cxx_frames(error: BaseException) -> list[str]:
    """The functions of C++ that an error of Baton's own fault says it passed within the pass."""
    out = []
    for line in str(getattr(error, "trace", "") or "").splitlines():
        if line.startswith(("in pass", "C++ pass body", "C++ transform.", "C++ driver.")):
            break
        out.append(normalise(line))
    return out[:MOST_FRAMES]


def kind_of(error: BaseException) -> str:
    """The word that C++ has for an error, or its class."""
    kind = getattr(error, "kind", None)
    return kind if isinstance(kind, str) and kind not in ("", "Error") else type(error).__name__


def of_error(error: BaseException, pass_name: str, in_pass: bool) -> dict:
    """The signature of an exception. in_pass: it came out of a pass's body, so that its frames are of the pass."""
    ours = cxx_frames(error)
    return {
        "kind": kind_of(error),
        "pass": pass_name,
        "message": normalise(str(error)),
        "frames": frames(error) if in_pass and not ours else ours,
    }


def of_death(kind: str, pass_name: str) -> dict:
    """The signature of a process that died: by a signal, of memory, of time."""
    return {"kind": kind, "pass": pass_name, "message": "", "frames": []}


def differences(want: dict, got: dict | None) -> list[str]:
    """Returns the differences, a line each; nothing where the failure is the same."""
    if got is None:
        return ["nothing failed"]
    return [f"{key}: {want.get(key)!r} in the capsule, {got.get(key)!r} now" for key in ("kind", "pass", "message", "frames") if want.get(key) != got.get(key)]
