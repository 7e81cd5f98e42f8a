# SPDX-License-Identifier: Apache-2.0
"""`python -m baton` is the command `baton`."""

import sys

from baton.cli import main

sys.exit(main())
