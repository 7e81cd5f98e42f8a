# SPDX-License-Identifier: Apache-2.0
"""The kernel cache: object code on disk, which a second process takes instead of compiling.

    import baton

    baton.compile("model.onnx")            # makes code and keeps it
    print(baton.cache.stats())             # folder, bound, entries, what was found lately
    for event in baton.cache.events():     # of this process: hit, or miss and why
        print(event["what"], event.get("why", ""))

Compiling uses it by itself. `BATON_CACHE=0` turns it off, and so does `PassContext(config={"codegen.cache": False})` for what is compiled
in it. `BATON_CACHE_DIR` and `BATON_CACHE_SIZE` say where it is and how large it may grow. `docs/guides/cache.md` has its rules.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections import Counter
from collections.abc import Iterator

from ._ffi import get_global_func
from ._ffi.base import load_compiler

MISSES = {
    "new": "functions of these names were not compiled before",
    "structure": "functions of these names are there, of other shapes, constants or schedules",
    "target": "they are there for another processor or optimisation level",
    "version": "they are there, made by another build of the compiler",
    "evicted": "the entry was evicted to keep the bound",
    "corrupt": "the entry was cut or changed",
    "untrusted": "the folder or the file is not this user's alone",
    "unreadable": "the system does not give the folder or the file",
}
"""The reasons of a miss, each with what it means."""


_INDEX = "index.json"  # the last part of an export: the names of the others


def _ask(name: str, *args):
    load_compiler()
    return get_global_func("codegen.cache." + name)(*args)


def place() -> dict:
    """Where the cache is: `folder`, `most` (bytes that it may take), `off` (why it is off, else empty), `problem` (why the folder is not
    used, else empty)."""
    return json.loads(str(_ask("Place")))


def entries() -> list[dict]:
    """The entries, the one that was not used for longest first: `name`, `bytes`, `used` and `made` (seconds since 1970), `functions`
    (their symbols), `target`, `build`, and `problem` (why it cannot be used, else empty)."""
    rows = json.loads(str(_ask("Entries")))
    for row in rows:
        row["functions"] = row.get("functions", "").split()
    return rows


def events() -> list[dict]:
    """Look-ups in this process, the oldest first: `what` (hit, miss, kept, not kept, evicted), of a miss `reason` (a key of
    `MISSES`) and `why`, `name` of the entry, `functions` (how many it has) and `first` of them, `time`, `process`."""
    return json.loads(str(_ask("Events")))


def log() -> list[dict]:
    """As `events`, of all processes, as far back as the log goes."""
    return json.loads(str(_ask("Log")))


def stats() -> dict:
    """As `place`, with `entries` and `bytes`, and of the log `hits`, `misses` by reason, and `evicted`."""
    found, past = entries(), log()
    return {
        **place(),
        "entries": len(found),
        "bytes": sum(row["bytes"] for row in found),
        "hits": sum(event["what"] == "hit" for event in past),
        "misses": dict(Counter(event["reason"] for event in past if event["what"] == "miss")),
        "evicted": sum(event["what"] == "evicted" for event in past),
    }


def clear() -> int:
    """Removes all entries and the log; gives the number of entries that went."""
    return _ask("Clear")


def export(path: str | os.PathLike) -> int:
    """Writes all sound entries to one tar file, whole or not at all; gives their number. `import_file` takes it in, on any machine."""
    rows = sorted(row["name"] for row in entries() if not row["problem"])
    temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
    try:
        with open(temporary, "xb") as file, tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            kept = []
            for name in rows:
                try:
                    data = bytes(_ask("Read", name))
                except ValueError:
                    continue  # another process has evicted it meanwhile
                _add(tar, name, data)
                kept.append(name)
            _add(tar, _INDEX, json.dumps(kept).encode())
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    return len(kept)


def import_file(path: str | os.PathLike) -> int:
    """Takes in the entries of a file that `export` wrote; gives their number. Code in them is run as if it were compiled here: import what
    you would run. Raises ValueError, with nothing taken in, for a file that is not an export or is damaged."""
    names, index = [], None
    for name, data in _members(path):
        if name == _INDEX:
            index = json.loads(data)
        else:
            _ask("Check", data)
            names.append(name)
    if names != index:
        raise ValueError(f"`{os.fspath(path)}` is not a whole export of a kernel cache: entries are missing")
    for name, data in _members(path):
        if name != _INDEX:
            _ask("Add", data)
    return len(names)


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o600
    tar.addfile(info, io.BytesIO(data))


def _members(path: str | os.PathLike) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(path, mode="r:") as tar:
            for member in tar:
                file = tar.extractfile(member) if member.isreg() else None
                if file is None:
                    raise ValueError(f"`{os.fspath(path)}` is not an export of a kernel cache: `{member.name}` is not a file")
                yield member.name, file.read()
    except tarfile.TarError as error:
        raise ValueError(f"`{os.fspath(path)}` is not an export of a kernel cache: {error}") from None


__all__ = ["MISSES", "clear", "entries", "events", "export", "import_file", "log", "place", "stats"]
