# SPDX-License-Identifier: Apache-2.0
"""PyTorch's door where PyTorch is not installed, and what importing Baton loads."""

import subprocess
import sys

WITHOUT = "import sys; sys.modules['torch'] = None\nimport baton\n"


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_importing_loads_no_pytorch():
    done = run("import sys, baton, baton.relay.frontend, baton.contrib.torch\nassert 'torch' not in sys.modules and 'sympy' not in sys.modules")
    assert done.returncode == 0, done.stderr


def test_one_line_says_what_to_install():
    for use in ("baton.relay.frontend.from_pytorch(None, [])", "baton.compile('model.pt2')"):
        done = run(WITHOUT + use)
        assert done.stderr.strip().splitlines()[-1] == "ImportError: PyTorch is not installed: pip install torch", done.stderr
