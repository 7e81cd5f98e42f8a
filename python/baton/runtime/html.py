# SPDX-License-Identifier: Apache-2.0
"""HTML of what people look at in notebooks: text that explains itself, tables, plots as SVG. Names come from files of strangers: everything is escaped,
nothing is fetched and nothing runs."""

from __future__ import annotations

import html
import re

# Light and dark pages have other tones of the same hues; what is of one kind has one colour.
_STYLE = """<style>
.baton{color-scheme:light dark;font:13px/1.45 system-ui,sans-serif;color:var(--ink);--ink:#1f2328;--dim:#59636e;--line:#d1d9e0;--bar:#2a78d6;--hot:#c2410c;
--rest:#9aa4ae;--op:#0550ae;--var:#8a3ffc;--num:#0a7a5a;--code:#f6f8fa}
@media(prefers-color-scheme:dark){.baton{--ink:#e6edf3;--dim:#9198a1;--line:#3d444d;--bar:#5b9df0;--hot:#f0883e;--rest:#6e7681;--op:#79c0ff;--var:#d2a8ff;
--num:#7ee0b8;--code:#161b22}}
.baton table{border-collapse:collapse;margin:.4em 0}.baton th,.baton td{padding:.15em .7em;border-bottom:1px solid var(--line);text-align:left;
font-weight:normal;vertical-align:top}.baton th{color:var(--dim)}.baton td.n,.baton th.n{text-align:right;font-variant-numeric:tabular-nums}
.baton pre{background:var(--code);padding:.6em .8em;margin:.3em 0;overflow:auto;max-height:36em;font:12px/1.5 ui-monospace,monospace;color:var(--ink)}
.baton .dim{color:var(--dim)}.baton .op{color:var(--op)}.baton .var{color:var(--var)}.baton .num{color:var(--num)}.baton p{margin:.3em 0}
.baton svg{display:block;max-width:100%}.baton svg text{fill:var(--ink);font:12px system-ui,sans-serif}.baton svg .dim{fill:var(--dim)}
.baton .bar{fill:var(--bar)}.baton .hot{fill:var(--hot)}.baton .rest{fill:var(--rest)}
</style>"""
_MOST_LINES = 400
_TOKENS = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|[%@][\w.]+|\b\d[\w.]*|\b[A-Za-z_][\w.]*(?=\()")
_KINDS = {"/": "dim", '"': "num", "%": "var", "@": "var"}


def escape(value) -> str:
    """The text of a value, without meaning to a browser. Characters that no page may have become U+FFFD."""
    text = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in str(value))
    return html.escape(text, quote=True)


def box(*parts: str) -> str:
    """Parts of HTML with the style that they need."""
    return f'<div class="baton">{_STYLE}{"".join(parts)}</div>'


def page(title: str, body: str) -> str:
    """A whole page."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f'<style>:root{{color-scheme:light dark}}body{{margin:1.5em;max-width:75em}}</style><body><h1 style="font:600 18px system-ui,sans-serif">'
        f"{escape(title)}</h1>{body}</body></html>\n"
    )


def table(head, rows, numbers=()) -> str:
    """A table; `numbers`: columns that are aligned to the right."""
    kind = lambda i: ' class="n"' if i in numbers else ""  # noqa: E731
    lines = ["<tr>" + "".join(f"<th{kind(i)}>{escape(h)}</th>" for i, h in enumerate(head)) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td{kind(i)}>{escape(c)}</td>" for i, c in enumerate(row)) + "</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table>"


def program(text: str, title: str = "", most: int = _MOST_LINES) -> str:
    """Text of a program, coloured; lines behind the first `most` are counted alone."""
    lines = text.splitlines()
    out, end = [], 0
    shown = "\n".join(lines[:most])
    for match in _TOKENS.finditer(shown):
        word = match[0]
        kind = _KINDS.get(word[0], "num" if word[0].isdigit() else "op")
        out += [escape(shown[end : match.start()]), f'<span class="{kind}">{escape(word)}</span>']
        end = match.end()
    out.append(escape(shown[end:]))
    left = f'<p class="dim">{len(lines) - most} more lines; print() shows all</p>' if len(lines) > most else ""
    head = f"<p><b>{escape(title)}</b></p>" if title else ""
    return box(head, f"<pre>{''.join(out)}</pre>", left)


def facts(title: str, rows, *tables: str) -> str:
    """A title, pairs of a name and a value, and tables."""
    pairs = "".join(f'<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>' for k, v in rows)
    return box(f"<p><b>{escape(title)}</b></p>", *tables, f"<table>{pairs}</table>" if pairs else "")


def time_text(us: float) -> str:
    """Microseconds for people."""
    return f"{us / 1e6:.2f} s" if us >= 1e6 else f"{us / 1e3:.2f} ms" if us >= 1e3 else f"{us:.1f} \u00b5s"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\u2026"


def _what(step) -> str:
    return step["operators"] + (f" ({step['source']})" if step["source"] else "")


_SVG_STYLE = """<style>text{fill:#1f2328;font:12px system-ui,sans-serif}.dim{fill:#59636e}.bar{fill:#2a78d6}.hot{fill:#c2410c}.rest{fill:#9aa4ae}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}.bar{fill:#5b9df0}.hot{fill:#f0883e}.rest{fill:#6e7681}}</style>"""


def _between(profile) -> float:
    """Microseconds of the rest that lie between the steps; the others were taken by other programs."""
    return profile.get("between_us", profile["rest_us"])


def profile_svg(profile, top: int = 15, width: int = 920, style: str = "") -> str:
    """The plot of a profile: the call from its begin to its end, then the steps that take most. `style`: of a separate file."""
    total, steps, rest = profile["total_us"] or 1.0, profile["steps"], profile["rest_us"]
    ordered = sorted(steps, key=lambda s: -s["us"])
    hot = ordered[0] if ordered else None
    out, x = [], 0.0
    for step in steps:
        wide = step["us"] / total * width
        if wide >= 0.05:
            kind = "hot" if step is hot else "bar"
            label = f"{_what(step)}: {time_text(step['us'])}, {step['share']:.1%}"
            gap = min(1.0, wide * 0.2)
            out.append(f'<rect class="{kind}" x="{x:.2f}" y="22" width="{wide - gap:.2f}" height="22"><title>{escape(label)}</title></rect>')
        x += wide
    label = f"rest: {time_text(rest)}, {rest / total:.1%}, {time_text(_between(profile))} of it between the steps"
    out.append(f'<rect class="rest" x="{x:.2f}" y="22" width="{max(0.0, width - x):.2f}" height="22"><title>{escape(label)}</title></rect>')
    out.append(f'<text x="0" y="14">one call, {escape(time_text(total))}: its steps in order</text>')
    out.append(f'<text class="dim" x="{width}" y="14" text-anchor="end">{escape(label)}</text>')
    y, longest = 66, max([s["us"] for s in ordered[:1]] + [1e-9])
    bar = width * 0.34
    for step in ordered[:top]:
        long = max(1.0, step["us"] / longest * bar)
        kind = "hot" if step is hot else "bar"
        words = _what({**step, "operators": _short(step["operators"], max(16, 62 - len(step["source"])))})
        out.append(
            f'<g><title>{escape(step["kernel"])}</title><text x="96" y="{y + 11}" text-anchor="end">{escape(time_text(step["us"]))}</text>'
            f'<text class="dim" x="148" y="{y + 11}" text-anchor="end">{step["share"]:.1%}</text>'
            f'<rect class="{kind}" x="156" y="{y}" width="{long:.1f}" height="14" rx="2"/>'
            f'<text x="{156 + bar + 10:.0f}" y="{y + 11}">{escape(words)}</text></g>'
        )
        y += 20
    if ordered[top:]:
        left = sum(s["us"] for s in ordered[top:])
        out.append(f'<text class="dim" x="96" y="{y + 11}" text-anchor="end">{escape(time_text(left))}</text>')
        out.append(f'<text class="dim" x="156" y="{y + 11}">{len(ordered) - top} more steps</text>')
        y += 20
    body = style + "".join(out)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + 4}" width="{width}" height="{y + 4}" role="img">{body}</svg>'


def profile_file(found, top: int = 15) -> str:
    """The plot as a separate file."""
    return profile_svg(found, top, style=_SVG_STYLE) + "\n"


def profile(found) -> str:
    """The plot of a profile, and its table."""
    head = ("\u00b5s", "share", "count", "GFLOP/s", "roofline", "operators", "source", "kernel")
    rows = []
    for step in sorted(found["steps"], key=lambda s: -s["us"]):
        rate = "" if step.get("gflops") is None else f"{step['gflops']:.1f}"
        roof = "" if step.get("roofline") is None else f"{step['roofline']:.0%}"
        rows.append((f"{step['us']:.1f}", f"{step['share']:.1%}", step["count"], rate, roof, step["operators"], step["source"], _short(step["kernel"], 60)))
    rows.append(
        (
            f"{found['rest_us']:.1f}",
            f"{found['rest_us'] / (found['total_us'] or 1):.1%}",
            "",
            "",
            "",
            f"rest: {time_text(_between(found))} of it between the steps",
            "",
            "",
        )
    )
    words = f"{len(found['steps'])} steps; a call takes {time_text(found['call_us'])} without a clock, {time_text(found['total_us'])} with one"
    if found.get("peak_gflops"):
        words += f"; this machine: {found['peak_gflops']:.0f} GFLOP/s, {found['bandwidth_gb']:.1f} GB/s, {found['threads']} threads"
    details = f"<details><summary>all steps</summary>{table(head, rows, range(5))}</details>"
    return box(profile_svg(found), f'<p class="dim">{escape(words)}</p>', details)


def times(samples, title: str = "") -> str:
    """Samples in milliseconds: least, median, 99 of 100, and how they are spread."""
    ordered = sorted(map(float, samples))
    if not ordered:
        return box(f"<p>{escape(title)}: no samples</p>")
    n = len(ordered)
    median, most = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2, ordered[min(n - 1, -(-99 * n // 100) - 1)]
    low, high, bins = ordered[0], max(most, ordered[0] * 1.0001, 1e-12), [0] * 60
    for value in ordered:
        bins[min(59, max(0, int((value - low) / (high - low) * 59.999)))] += 1
    tall = max(bins)
    bars = "".join(f'<rect class="bar" x="{8 * i}" y="{60 - 56 * b / tall:.1f}" width="7" height="{56 * b / tall:.1f}"/>' for i, b in enumerate(bins) if b)
    axis = f'<text class="dim" x="0" y="75">{low:.3f} ms</text><text class="dim" x="480" y="75" text-anchor="end">{high:.3f} ms</text>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 80" width="480" height="80" role="img">{bars}{axis}</svg>'
    words = f"min {low:.3f} ms, median {median:.3f} ms, 99 % {most:.3f} ms, {n} runs"
    return box(f"<p><b>{escape(title)}</b> {escape(words)}</p>" if title else f"<p>{escape(words)}</p>", svg)


__all__ = ["box", "escape", "facts", "page", "profile", "profile_file", "profile_svg", "program", "table", "time_text", "times"]
