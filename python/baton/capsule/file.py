# SPDX-License-Identifier: Apache-2.0
"""The format: a header of JSON, then the IR as text, between lines that begin with `==`.

== baton capsule 1
{"signature": {...}, "pipeline": "FuseOps", ...}
== ir relay
#[version = "0.0.5"]
def @main(...) { ... }
== end
"""

from __future__ import annotations

import json
import os

VERSION = 1
_MAGIC = "== baton capsule "
_MOST_BYTES = 4 << 30
# Field of the header -> types it may have.
_FIELDS = {
    "signature": dict, "error": str, "stage": str, "pipeline": str, "pass": str, "entry": str, "argument": (str, type(None)),
    "context": dict, "instruments": list, "target": (str, type(None)), "versions": dict, "seeds": dict, "threads": int,
    "verify_passes": bool, "typed": bool, "isolate": (dict, type(None)), "weights": dict, "notes": list, "replayable": bool,
}  # fmt: skip
_SIGNATURE = {"kind": str, "pass": str, "message": str, "frames": list}
_CONTEXT = {"opt_level": int, "required_pass": list, "disabled_pass": list, "config": dict, "num_threads": int}
STAGES = ("pass", "entry", "import", "nothing")
FORMATS = ("relay", "json", "onnx", "none")


class CapsuleError(ValueError):
    """A file other than a capsule, or a broken one; says what is wrong and where."""


class CapsuleFile:
    """The contents of a capsule: `header`, a dict, and `ir`, text in the format `ir_format`."""

    def __init__(self, header: dict, ir_format: str, ir: str, path: str = "<capsule>"):
        self.header, self.ir_format, self.ir, self.path = header, ir_format, ir, path

    def __getattr__(self, name):
        try:
            return self.__dict__["header"][name]
        except KeyError:
            raise AttributeError(name) from None

    def text(self) -> str:
        """The whole file."""
        ir = self.ir if self.ir.endswith("\n") or not self.ir else self.ir + "\n"
        # A line of IR that looks like one of ours would end it: there is none, `==` begins no line of Relay text or JSON.
        header = json.dumps(self.header, indent=1, ensure_ascii=False)
        return f"{_MAGIC}{VERSION}\n{header}\n== ir {self.ir_format}\n{ir}== end\n"

    def save(self, path: str) -> None:
        """Writes it: whole, or not at all."""
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            with open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
                file.write(self.text())
            os.replace(temporary, path)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise


def _check(values: dict, fields: dict, where: str, path: str) -> None:
    for name, types in fields.items():
        if name not in values:
            raise CapsuleError(f"`{path}` is broken: {where} has no `{name}`")
        value = values[name]
        if not isinstance(value, types) or types is int and isinstance(value, bool):
            raise CapsuleError(f"`{path}` is broken: `{name}` of {where} is {str(value)[:40]!r}")


def parse(text: str, path: str = "<capsule>") -> CapsuleFile:
    """Reads a capsule's text. CapsuleError with the place for anything else."""
    first, _, rest = text.partition("\n")
    if not first.startswith(_MAGIC):
        raise CapsuleError(f"`{path}` is not a capsule: its first line is {first[:40]!r}, not `{_MAGIC}{VERSION}`")
    if first[len(_MAGIC) :].strip() != str(VERSION):
        raise CapsuleError(f"`{path}` is a capsule of version {first[len(_MAGIC) :].strip()[:20]!r}; this Baton reads version {VERSION}")
    if rest.startswith("== ir "):
        raise CapsuleError(f"`{path}` is broken: there is no header behind line 1")
    head, mark, rest = rest.partition("\n== ir ")
    if not mark:
        raise CapsuleError(f"`{path}` is broken: there is no line `== ir FORMAT`; was it cut?")
    try:
        header = json.loads(head)
    except (ValueError, RecursionError) as error:
        place = f"line {error.lineno + 1}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise CapsuleError(f"`{path}` is broken: the header is not JSON: {place}") from None
    if not isinstance(header, dict):
        raise CapsuleError(f"`{path}` is broken: the header is not a JSON object")
    _check(header, _FIELDS, "the header", path)
    _check(header["signature"], _SIGNATURE, "`signature`", path)
    _check(header["context"], _CONTEXT, "`context`", path)
    if header["stage"] not in STAGES:
        raise CapsuleError(f"`{path}` is broken: `stage` is {header['stage'][:40]!r}; there are {', '.join(STAGES)}")
    if not 1 <= header["threads"] <= 1024:
        raise CapsuleError(f"`{path}` is broken: `threads` is {header['threads']}; it is from 1 to 1,024")
    for name in ("required_pass", "disabled_pass"):
        if not all(isinstance(one, str) for one in header["context"][name]):
            raise CapsuleError(f"`{path}` is broken: `{name}` of `context` is not a list of names")
    ir_format, _, rest = rest.partition("\n")
    if ir_format not in FORMATS:
        raise CapsuleError(f"`{path}` is broken: IR of format {ir_format[:40]!r}; there are {', '.join(FORMATS)}")
    if rest.startswith("== end"):
        ir, end = "", rest
    else:
        ir, mark, end = rest.partition("\n== end")
        end = mark[1:] + end
        ir += "\n" if mark else ""
    if end.strip() != "== end":
        raise CapsuleError(f"`{path}` is broken: its last line is not `== end`; was it cut?")
    return CapsuleFile(header, ir_format, ir, path)


def load(path: str) -> CapsuleFile:
    """Reads a capsule. CapsuleError for a file that is none, OSError for one that cannot be read."""
    if os.path.isdir(path):
        raise CapsuleError(f"`{path}` is a directory; a capsule is a file")
    if os.path.getsize(path) > _MOST_BYTES:
        raise CapsuleError(f"`{path}` is larger than any capsule: {os.path.getsize(path)} bytes")
    with open(path, "rb") as file:
        data = file.read()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if not data.startswith(_MAGIC.encode()):
            raise CapsuleError(f"`{path}` is not a capsule: it is not text") from None
        raise CapsuleError(f"`{path}` is broken: byte {error.start} is not UTF-8") from None
    return parse(text, path)
