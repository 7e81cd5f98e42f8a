# SPDX-License-Identifier: Apache-2.0
"""`./dev new op NAME` and `./dev new pass NAME`."""

from .step import StepFailed


def new(kind, name):
    """Writes the source file and the test of a new operator or pass."""
    raise StepFailed(f"new: there is no template for a new {kind} yet", None, "see CONTRIBUTING.md for the steps by hand")
