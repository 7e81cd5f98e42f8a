# SPDX-License-Identifier: Apache-2.0
"""Lets the tests import `meaning`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
