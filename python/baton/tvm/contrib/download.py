# SPDX-License-Identifier: Apache-2.0
"""Files of the network."""

import os
import shutil
import tempfile
import urllib.request
from pathlib import Path


def _folder():
    return Path(os.environ.get("TEST_DATA_ROOT_PATH", Path.home() / ".baton_test_data"))


def download(url, path, overwrite=False, size_compare=False, retries=3):
    """Writes what is under a URL to a file, whole or not at all, unless the file is there. size_compare: a file of another size than what is
    under the URL is replaced. retries: how often a failure is tried again."""
    path = Path(path)
    if path.exists() and not overwrite and not (size_compare and path.stat().st_size != _size(url)):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(retries + 1):
        try:
            with urllib.request.urlopen(url) as source, tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                shutil.copyfileobj(source, file)
            break
        except OSError:
            if attempt == retries:
                raise
    os.replace(file.name, path)


def _size(url):
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as answer:
        return int(answer.headers.get("content-length", -1))


def download_testdata(url, relpath, module=None, overwrite=False):
    """The path of what is under a URL, kept in a folder of test data: $TEST_DATA_ROOT_PATH, or `.baton_test_data` of the user. `module`: a
    folder, or several within each other, of it."""
    folder = _folder().joinpath(*([] if module is None else [module] if isinstance(module, str) else module))
    path = folder / relpath
    download(url, path, overwrite=overwrite, size_compare=False)
    return str(path)


__all__ = ["download", "download_testdata"]
