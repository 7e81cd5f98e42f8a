# SPDX-License-Identifier: Apache-2.0
"""Archives of files."""

import os
import tarfile


def tar(output, files):
    """Writes files to an archive, by their last names."""
    with tarfile.open(output, "w") as archive:
        for path in [files] if isinstance(files, (str, os.PathLike)) else files:
            archive.add(path, arcname=os.path.basename(path))


tar.output_format = "tar"


def untar(tar_file, directory):
    """Unpacks an archive to a folder; names that lead out of it are an error."""
    root = os.path.realpath(directory)
    with tarfile.open(tar_file) as archive:
        if hasattr(tarfile, "data_filter"):  # not in the first releases of Python 3.11
            archive.extractall(directory, filter="data")
            return
        for member in archive.getmembers():
            path = os.path.realpath(os.path.join(root, member.name))
            if os.path.commonpath([root, path]) != root or not (member.isfile() or member.isdir()):
                raise ValueError(f"`{tar_file}` holds `{member.name}`, which is no file or folder within `{directory}`")
        archive.extractall(directory)


__all__ = ["tar", "untar"]
