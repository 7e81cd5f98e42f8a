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
    with tarfile.open(tar_file) as archive:
        archive.extractall(directory, filter="data")


__all__ = ["tar", "untar"]
