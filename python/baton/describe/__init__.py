# SPDX-License-Identifier: Apache-2.0
"""Stubs for editors and type checkers, and the reference, made from the descriptions in C++ and the docstrings.

$ python -m baton.describe stubs --out DIR
$ python -m baton.describe reference --out DIR
$ python -m baton.describe stubs --load gadget.so --package gadget --out DIR
"""

from .model import Field, NodeType, node_types, operators, options, packed_functions, passes
from .stubs import write_stubs

__all__ = ["Field", "NodeType", "node_types", "operators", "options", "packed_functions", "passes", "write_stubs"]
