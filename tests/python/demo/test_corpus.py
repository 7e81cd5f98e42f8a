# SPDX-License-Identifier: Apache-2.0
"""The corpus is the standard library's own words, and reading it runs none of its modules."""

import subprocess
import sys

from baton.demo.corpus import first_paragraphs, standard_library


def test_paragraphs():
    doc = "First line\n    goes on.\n\n    -----\n\n    Second.\n\n    Third " + "x" * 50
    assert first_paragraphs(doc, 40) == "First line goes on. Second."
    assert first_paragraphs("y" * 99, 10) == "y" * 10  # one paragraph always, cut
    assert first_paragraphs("  \n ") == ""


def test_known_modules():
    library = standard_library()
    assert len(library) >= 135 and list(library) == sorted(library)
    for name in ("zipfile", "csv", "struct", "math", "sys", "urllib.request", "subprocess"):
        assert len(library[name]) >= 20, name
    assert "ZIP" in library["zipfile"]
    assert not {"this", "antigravity", "readline"} & library.keys()
    assert not any(part.startswith("_") for name in library for part in name.split("."))


def test_runs_no_python_module():
    code = (
        "import sys; from baton.demo.corpus import standard_library; before = set(sys.modules); standard_library();"
        "import importlib.machinery as m; new = set(sys.modules) - before;"
        "print(sorted(n for n in new if getattr(sys.modules[n].__spec__, 'origin', '').endswith('.py')))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    # A few C modules import Python ones themselves; the ones that act on import must not be among them.
    assert out.returncode == 0, out.stderr
    for name in ("this", "antigravity", "turtle", "tkinter", "idlelib", "webbrowser", "zipfile", "smtplib"):
        assert repr(name) not in out.stdout
    assert out.stderr == ""
