# SPDX-License-Identifier: Apache-2.0
"""Lets processes that tests start find the package in the checkout, as pytest's own setting does for this one."""

import os
from pathlib import Path

_PACKAGES = str(Path(__file__).resolve().parents[2] / "python")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_PACKAGES, os.environ.get("PYTHONPATH")]))
