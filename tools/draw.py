#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a flow of stages as SVG from text: `python3 tools/draw.py docs/design/architecture.txt` writes the .svg beside it.

A line `= stage | where` begins a box; the lines below it are in the box; `> step | folder` is the arrow to the next box.
"""

import sys
from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, MARGIN, LINE, HEAD, ARROW, PAD = 860, 24, 19, 30, 46, 12
STYLE = """
  .box { fill: #f6f8fa; stroke: #57606a; stroke-width: 1.2 }
  .stage { font: 600 15px sans-serif; fill: #1f2328 }
  .where { font: 13px sans-serif; fill: #57606a }
  .code { font: 13px monospace; fill: #1f2328; white-space: pre }
  .step { font: 13px sans-serif; fill: #0550ae }
  .folder { font: 12px monospace; fill: #57606a }
  .arrow { stroke: #0550ae; stroke-width: 2 }
  .tip { fill: #0550ae }
"""


def read(text):
    """[(kind, left, right, lines)]: `=` boxes with their lines, `>` arrows."""
    out = []
    for line in text.splitlines():
        if line.startswith(("= ", "> ")):
            left, _, right = line[2:].partition(" | ")
            out.append((line[0], left, right, []))
        elif line.strip() and not line.startswith("#"):
            out[-1][3].append(line.rstrip())
    return out


def draw(text, title):
    """The SVG."""
    rows, y, body = read(text), MARGIN, []

    def put(kind, x, y, words, anchor="start"):
        body.append(f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}" xml:space="preserve">{escape(words)}</text>')

    for kind, left, right, lines in rows:
        if kind == "=":
            height = HEAD + LINE * len(lines) + PAD
            body.append(f'<rect class="box" x="{MARGIN}" y="{y}" width="{WIDTH - 2 * MARGIN}" height="{height}" rx="6"/>')
            put("stage", MARGIN + PAD, y + 21, left)
            put("where", WIDTH - MARGIN - PAD, y + 21, right, "end")
            for i, line in enumerate(lines):
                put("code", MARGIN + PAD, y + HEAD + LINE * i + 14, line)
            y += height
        else:
            x, end = MARGIN + 40, y + ARROW
            body.append(f'<line class="arrow" x1="{x}" y1="{y}" x2="{x}" y2="{end - 8}"/>')
            body.append(f'<path class="tip" d="M{x - 6},{end - 10} L{x + 6},{end - 10} L{x},{end} Z"/>')
            put("step", x + 18, y + 28, left)
            put("folder", WIDTH - MARGIN - PAD, y + 28, right, "end")
            y = end
    height = y + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def main(argv):
    """Draws each source beside it."""
    for name in argv:
        path = Path(name)
        path.with_suffix(".svg").write_text(draw(path.read_text(encoding="utf-8"), path.stem), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
