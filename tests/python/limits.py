# SPDX-License-Identifier: Apache-2.0
"""Runs Python code in a process that meets a full disk, or that may not write where the file modes say so (root may)."""

import os
import subprocess
import sys

_FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
"""

# Root passes over file modes by the capability CAP_DAC_OVERRIDE (bit 1); without it they hold for it too.
_MODES_HOLD = """
import ctypes, os
if os.geteuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    head = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    assert libc.capget(head, data) == 0, os.strerror(ctypes.get_errno())
    data[0] &= ~0b110
    assert libc.capset(head, data) == 0, os.strerror(ctypes.get_errno())
"""


def run(code, cwd, disk=None, modes_hold=False, env=None):
    """The finished process of `code`. disk: bytes that a file may have, which stands in for a full disk: both fail in the
    middle of writing. modes_hold: a folder of mode 0500 is read-only, for root too.
    """
    before = (_FULL.format(disk) if disk is not None else "") + (_MODES_HOLD if modes_hold else "")
    return subprocess.run([sys.executable, "-c", before + code], capture_output=True, text=True, cwd=cwd, env={**os.environ, **(env or {})})
