# SPDX-License-Identifier: Apache-2.0
"""Temporary folders."""

import contextlib
import os
import tempfile
import weakref


class DirectoryCreatedPastAtExit(Exception):
    """A temporary folder was asked for while the process ends."""


class TempDirectory:
    """A folder that is removed with the last reference to this object, or by `remove()`; one of `custom_path`, and one that is kept for
    debugging, stays.

    TEMPDIRS: paths of all that were made and not removed.
    """

    _KEEP_FOR_DEBUG = False
    DEBUG_MODE = False
    TEMPDIRS = set()

    def __init__(self, custom_path=None, keep_for_debug=None):
        self.preset_keep_for_debug = keep_for_debug
        keep = TempDirectory._KEEP_FOR_DEBUG if keep_for_debug is None else keep_for_debug
        if custom_path:
            os.makedirs(custom_path, exist_ok=True)
            self.temp_dir, self._finish = custom_path, None
            return
        if TempDirectory.TEMPDIRS is None:
            raise DirectoryCreatedPastAtExit("a temporary folder was asked for while the process ends")
        self.temp_dir = tempfile.mkdtemp(prefix="baton-")
        TempDirectory.TEMPDIRS.add(self.temp_dir)
        self._finish = None if keep else weakref.finalize(self, TempDirectory._remove, self.temp_dir)

    @staticmethod
    def _remove(path):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
        TempDirectory.TEMPDIRS.discard(path)

    @classmethod
    @contextlib.contextmanager
    def set_keep_for_debug(cls, set_to=True):
        """Keeps folders that are made within `with`, unless they say otherwise."""
        before, TempDirectory._KEEP_FOR_DEBUG = TempDirectory._KEEP_FOR_DEBUG, set_to
        try:
            yield
        finally:
            TempDirectory._KEEP_FOR_DEBUG = before

    @classmethod
    def remove_tempdirs(cls):
        """Removes all folders that are left, also those that were kept."""
        for path in list(TempDirectory.TEMPDIRS):
            TempDirectory._remove(path)

    def remove(self):
        """Removes the folder, unless it is kept."""
        if self._finish is not None:
            self._finish()

    @property
    def path(self):
        """Path of the folder."""
        return self.temp_dir

    def __truediv__(self, name):
        return self.relpath(name)

    def relpath(self, name):
        """Path of a file in the folder."""
        return os.path.join(self.temp_dir, name)

    def listdir(self):
        """Names of what is in the folder."""
        return os.listdir(self.temp_dir)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


class FileLock:
    """`with FileLock(path):` waits until no other process holds the file."""

    def __init__(self, path):
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - open for as long as the lock is held
        import fcntl

        fcntl.lockf(self._file, fcntl.LOCK_EX)

    def release(self):
        """Lets others have the file."""
        if self._file is not None:
            import fcntl

            fcntl.lockf(self._file, fcntl.LOCK_UN)
            self._file.close()
            self._file = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()


def filelock(path):
    """Waits for a file and holds it; `release()` or the end of a `with` lets it go."""
    return FileLock(path)


def is_source_path(path):
    """Whether a path names a source of C, C++ or CUDA."""
    return os.path.splitext(path)[1] in (".cc", ".c", ".cpp", ".cu")


def which(exec_name):
    """Path of a program; None where there is none."""
    import shutil

    return shutil.which(exec_name)


def tempdir(custom_path=None, keep_for_debug=None):
    """A temporary folder; see `TempDirectory`."""
    return TempDirectory(custom_path, keep_for_debug)
