#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/shown.md, the page that says which command shows what, from shown.txt beside it.

$ python3 tools/shown.py            # writes the page
$ python3 tools/shown.py PI-044     # prints the commands that run the tests of a requirement
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "docs" / "reference" / "shown.txt"
PAGE = SOURCE.with_suffix(".md")

HEAD = """# What is shown by which command

Written by `python3 tools/shown.py` from `shown.txt`; change that file. Commands are for the top folder after `./dev build`, with these
definitions and files. `python3 tools/shown.py PI-044` prints the commands for a numbered [requirement](requirements.md).

```bash
export PYTHONPATH=python:. PATH=$PWD/.venv/bin:$PATH
pytest() { python -m pytest -q "$@"; }; baton() { python -m baton "$@"; }
printf '#[version = "0.0.5"]\\ndef @main(%%x: Tensor[(2, 3), float32]) { nn.relu(add(%%x, 1f)) }\\n' > in.relay
python -c 'import sys; sys.path.insert(0, "tests/python/cli"); from pathlib import Path; from onnx_files import node, write
write(Path("M.onnx"), [node("Relu", ["x"], ["y"])])'
printf 'import os\\nimport baton\\n@baton.transform.module_pass(opt_level=0)\\ndef abort(mod, ctx):\\n    os.abort()\\n' > crash.py
```
"""


def demands(text):
    """[(section, [(demand, [command])])] of the source; raises ValueError for a demand without a command."""
    sections = []
    for line in text.splitlines():
        if not line.strip() or re.match(r"# ?[^#]", line):
            continue
        if line.startswith("## "):
            sections.append((line[3:], []))
        elif line.startswith("    "):
            sections[-1][1][-1][1].append(line.strip())
        else:
            sections[-1][1].append((line, []))
    for section, rows in sections:
        for demand, commands in rows:
            if not commands:
                raise ValueError(f"{SOURCE.name}: no command shows `{demand}` ({section})")
    return sections


def page(text):
    """The page for a source."""
    out = [HEAD]
    for section, rows in demands(text):
        out.append(f"## {section}\n\n| demand | command |\n| --- | --- |")
        # A bar within code ends the cell unless it is escaped.
        out += [f"| {demand} | {'<br>'.join('`' + c.replace('|', chr(92) + '|') + '`' for c in commands)} |" for demand, commands in rows]
        out.append("")
    return "\n".join(out).rstrip() + "\n"


def commands_for(number):
    """Commands that run the tests whose files name a requirement."""
    files = [
        p
        for p in sorted((ROOT / "tests").rglob("*"))
        if p.suffix in (".py", ".cpp", ".relay") and p.name != "test_requirements.py" and re.search(rf"\b{re.escape(number)}\b", p.read_text(encoding="utf-8"))
    ]
    shown = [str(p.relative_to(ROOT)) for p in files]
    return [f"./dev test {' '.join(shown)}"] if shown else []


def main(argv):
    """Writes the page, or answers for the numbers given."""
    for number in argv:
        found = commands_for(number)
        print("\n".join(found) if found else f"{number}: no test names it")
    if not argv:
        PAGE.write_text(page(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
