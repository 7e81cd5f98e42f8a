# SPDX-License-Identifier: Apache-2.0
"""Journals: files of lines that survive a kill at any byte.

A line is `CRC32 LENGTH JSON`, the first two in hexadecimal. A kill cuts off the last line, which is dropped when the file is
opened again; a damaged line before whole ones is not from a kill, so it is an error. One process writes at a time.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import zlib
from pathlib import Path

from ..error import RPCError

MOST = 16 << 20  # bytes of one line


class JournalError(RPCError):
    """The file is not a journal, is damaged, or another process writes it."""


def _line(record) -> bytes:
    text = json.dumps(record, separators=(",", ":"), allow_nan=False, sort_keys=True).encode()
    return b"%08x %08x %s\n" % (zlib.crc32(text), len(text), text)


def _record(line: bytes):
    """The record of a whole line, without its end; ValueError where it is damaged."""
    if len(line) < 18 or line[8:9] != b" " or line[17:18] != b" ":
        raise ValueError("no header")
    crc, length, text = int(line[:8], 16), int(line[9:17], 16), line[18:]
    if length != len(text) or crc != zlib.crc32(text):
        raise ValueError("checksum")
    return json.loads(text)


def _overlong(tail: bytes) -> bool:
    """Whether a tail holds more than the line that it begins with: a kill leaves less."""
    try:
        return len(tail) > 18 + int(tail[9:17], 16) + 1
    except ValueError:
        return False


def scan(data: bytes, name: str = "journal") -> tuple[list, int]:
    """The records in `data` and the length of the part that holds them. The rest is a line that was being written."""
    records, at = [], 0
    while at < len(data):
        end = data.find(b"\n", at)
        try:
            if end < 0:
                raise ValueError("cut off")
            records.append(_record(data[at:end]))
        except (ValueError, RecursionError) as error:
            if (end >= 0 and end + 1 < len(data)) or _overlong(data[at:]):
                raise JournalError(
                    f"`{name}`: line {len(records) + 1}, byte {at}, is damaged ({error}), with more behind it; keep a copy, then cut it by hand"
                ) from None
            break
        at = end + 1
    return records, at


def sync_folder(path: str | os.PathLike) -> None:
    """Makes a new or renamed entry of a folder last."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Journal:
    """A journal opened for writing. `records` is what was in it; `append` writes more, and returns when they are on the disk."""

    def __init__(self, path: str | os.PathLike, sync: bool = True):
        self.path, self._sync = Path(path), sync
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._lock(self._file)
            with open(self._file, "rb", closefd=False) as reader:
                data = reader.read()
            self.records, self.size = scan(data, str(self.path))
            if self.size < len(data):
                os.ftruncate(self._file, self.size)
            os.lseek(self._file, self.size, os.SEEK_SET)
            self._flush()
            sync_folder(self.path.parent)
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self, file: int) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise JournalError(f"`{self.path}` is written by another process; end that one, or name another file") from None
        if not os.path.exists(self.path) or not os.path.samestat(os.fstat(file), os.stat(self.path)):
            raise JournalError(f"`{self.path}` was replaced by another process just now; try again")

    def _flush(self) -> None:
        if self._sync:
            os.fdatasync(self._file)

    def append(self, *records) -> None:
        """Writes the records, all before one flush."""
        if self._file < 0:
            raise JournalError(f"`{self.path}` is closed")
        lines = [_line(record) for record in records]
        if any(len(line) > MOST for line in lines):
            raise JournalError(f"a record of more than {MOST} bytes; write what is large to a file, and its hash to the journal")
        data = b"".join(lines)
        try:
            self._write(self._file, data)
            self._flush()
        except OSError as error:
            # A half-written line must not precede later ones.
            os.ftruncate(self._file, self.size)
            os.lseek(self._file, self.size, os.SEEK_SET)
            raise JournalError(f"`{self.path}`: {error.strerror}; nothing of this was kept") from error
        self.size += len(data)

    @staticmethod
    def _write(file: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]

    def rewrite(self, records) -> None:
        """Replaces the whole content by these records; a kill leaves the old or the new, never a mixture."""
        new = self.path.with_name(self.path.name + ".new")
        file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            data = b"".join(_line(record) for record in records)
            self._write(file, data)
            if self._sync:
                os.fdatasync(file)
            os.replace(new, self.path)
        except BaseException:
            os.close(file)
            raise
        os.close(self._file)
        self._file, self.size = file, len(data)
        sync_folder(self.path.parent)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def content_hash(value) -> str:
    """SHA-256 of a value of JSON, the same in every process. TypeError where the value is not of JSON."""
    return hashlib.sha256(json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()).hexdigest()


class TrialJournal:
    """Results of trials by the content of the trial: a run that was killed goes on where it stopped.

        with TrialJournal("conv2d.trials", of={"workload": "conv2d", "target": "llvm"}) as journal:
            results = journal.run(executor, measure, trials)

    `of` says what is measured; a trial's hash covers it, so that results of another workload are not taken. Trials and results are
    values of JSON. Each is one line, on the disk before the caller hears of it; a trial has one line at most.
    """

    def __init__(self, path: str | os.PathLike, of=None, sync: bool = True):
        self._of = of
        self._journal = Journal(path, sync)
        self._found: dict[str, object] = {}
        try:
            for record in self._journal.records:
                if not isinstance(record, dict) or "trial" not in record or "result" not in record:
                    raise JournalError(f"`{path}` is a journal of something else than trials")
                self._found.setdefault(record["trial"], record["result"])
        except BaseException:
            self._journal.close()
            raise
        self._journal.records = []

    def key(self, trial) -> str:
        return content_hash([self._of, trial])

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, trial) -> bool:
        return self.key(trial) in self._found

    def __getitem__(self, trial):
        return self._found[self.key(trial)]

    def record(self, trial, result):
        """Writes a result, and gives it as the journal has it: that of the first time, where there is one already."""
        key = self.key(trial)
        if key not in self._found:
            self._journal.append({"trial": key, "input": trial, "result": result})
            self._found[key] = json.loads(json.dumps(result))
        return self._found[key]

    def run(self, executor, function, trials, most: int = 64):
        """Results of `function(trial)` in the order of the trials, those of the journal without a call.

        `executor` is any `concurrent.futures.Executor`: threads, processes, a `FarmExecutor`, Dask's or Ray's; at most `most` trials are
        under way. A trial that raises stops the run with that error after those under way are recorded; record failures that a tuner
        wants to keep as results.
        """
        from concurrent.futures import FIRST_COMPLETED, wait

        trials = list(trials)
        keys = [self.key(trial) for trial in trials]
        todo = iter(dict((key, trial) for key, trial in zip(keys, trials, strict=True) if key not in self._found).items())
        under_way, failed = {}, None
        while True:
            while failed is None and len(under_way) < most and (item := next(todo, None)) is not None:
                under_way[executor.submit(function, item[1])] = item[1]
            if not under_way:
                break
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                trial = under_way.pop(future)
                if future.cancelled() or future.exception() is not None:
                    failed = failed or future
                else:
                    self.record(trial, future.result())
        if failed is not None:
            failed.result()
        return [self._found[key] for key in keys]

    def close(self) -> None:
        self._journal.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


__all__ = ["Journal", "JournalError", "TrialJournal", "content_hash", "scan"]
