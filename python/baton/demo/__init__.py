# SPDX-License-Identifier: Apache-2.0
"""Search the Python standard library by meaning, with a real sentence encoder compiled by Baton.

`python -m baton.demo "how do I compress a file"` runs it; `python -m baton.demo --help` says more.
"""


class DemoError(Exception):
    """Something that the demo needs is missing or broken; `help` says how to mend it."""

    def __init__(self, message: str, help: str = ""):
        super().__init__(message)
        self.help = help
