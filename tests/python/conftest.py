# SPDX-License-Identifier: Apache-2.0
"""Lets processes that tests start find the package in the checkout, as pytest's own setting does for this one.

What PYTHONPATH names already comes first: the package of a sanitizer build."""

import os
from pathlib import Path

_PACKAGES = str(Path(__file__).resolve().parents[2] / "python")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), _PACKAGES]))
