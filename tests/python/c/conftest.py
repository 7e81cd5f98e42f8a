# SPDX-License-Identifier: Apache-2.0
"""Lets the tests import what they share, and the tables of operators."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "relay" / "op")]
