# SPDX-License-Identifier: Apache-2.0
"""Processes of servers in tests: one is started, looked at, waited for."""

import contextlib
import os
import subprocess
import time

from baton.rpc.server import program


@contextlib.contextmanager
def served(url, *options, folder=None, stderr=None, **environment):
    """`baton-rpc-server` at `url`, its files in `folder`; gives its process, and the URL that it says it listens on."""
    if folder is not None:
        environment["TMPDIR"] = str(folder)
    with subprocess.Popen(
        [program(), "--listen", url, *options], stdout=subprocess.PIPE, stderr=stderr, text=True, env={**os.environ, **environment}
    ) as process:
        try:
            yield process, process.stdout.readline().split()[-1]
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def until(holds, seconds=5):
    """Waits until something holds; gives whether it does."""
    end = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < end:
        time.sleep(0.01)
    return held


def alive(pid):
    """Whether a process runs, in any of its threads: one that ended and is not waited for does not."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/task/{task}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] not in "ZX":
                    return True
    return False


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
            found += [int(word) for word in file.read().split()]
    return found


def name_of(pid):
    with open(f"/proc/{pid}/comm") as file:
        return file.read().strip()


def resident(pid):
    """Bytes of memory that a process takes."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))
