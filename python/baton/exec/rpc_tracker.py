# SPDX-License-Identifier: Apache-2.0
"""`python -m baton.exec.rpc_tracker`: the same as `baton rpc-tracker`."""

import sys

from ..cli import main

if __name__ == "__main__":
    sys.exit(main(["rpc-tracker", *sys.argv[1:]]))
