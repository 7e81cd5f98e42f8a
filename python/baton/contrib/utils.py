# SPDX-License-Identifier: Apache-2.0
"""Temporary folders."""

import os
import tempfile


class TempDirectory:
    """A folder that is removed with the last reference to this object, or by `remove()`."""

    def __init__(self, custom_path=None):
        self._owner = None if custom_path else tempfile.TemporaryDirectory(prefix="baton-")
        self.temp_dir = custom_path or self._owner.name
        os.makedirs(self.temp_dir, exist_ok=True)

    def remove(self):
        """Removes the folder."""
        if self._owner is not None:
            self._owner.cleanup()

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


def tempdir(custom_path=None, keep_for_debug=None):
    """A temporary folder."""
    return TempDirectory(custom_path)
