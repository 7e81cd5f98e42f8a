# SPDX-License-Identifier: Apache-2.0
"""`python -m baton.exec.rpc_proxy`: the same as `baton rpc-proxy`."""

import sys

from ..cli import main

if __name__ == "__main__":
    sys.exit(main(["rpc-proxy", *sys.argv[1:]]))
