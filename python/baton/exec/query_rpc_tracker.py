# SPDX-License-Identifier: Apache-2.0
"""`python -m baton.exec.query_rpc_tracker`: the same as `baton rpc-tracker --summary`."""

import sys

from ..cli import main

if __name__ == "__main__":
    sys.exit(main(["rpc-tracker", "--summary", *sys.argv[1:]]))
