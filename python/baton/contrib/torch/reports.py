# SPDX-License-Identifier: Apache-2.0
"""What `torch.compile(backend="baton")` did in this process: graphs, what was left to PyTorch and why, and times."""

from __future__ import annotations

import time


class GraphReport:
    """One graph. kind: "inference", "forward" or "backward". operators: calls in it. parts: how many pieces Baton compiled. left: operators
    that PyTorch runs, as (name, place, reason). calls, seconds: of the whole graph."""

    def __init__(self, kind, operators):
        self.kind, self.operators, self.parts, self.left = kind, operators, 0, []
        self.calls, self.seconds, self._begin = 0, 0.0, 0.0

    def timed(self):
        """A `with` around a call."""
        return _Timer(self)

    def __str__(self):
        each = f", {self.seconds / self.calls * 1e6:.0f} us a call" if self.calls else ""
        lines = [f"{self.kind}: {self.operators} operators, {self.parts} compiled part{'s' if self.parts != 1 else ''}, {self.calls} calls{each}"]
        kinds: dict[tuple[str, str], list[str]] = {}
        for name, place, reason in self.left:
            kinds.setdefault((name, reason), []).append(place)
        for (name, reason), places in kinds.items():
            where = f" at {places[0]}" if places[0] else ""
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            lines.append(f"  left to PyTorch: {name}{where}{more}: {reason}")
        return "\n".join(lines)


class _Timer:
    __slots__ = ("begin", "report")

    def __init__(self, report):
        self.report = report

    def __enter__(self):
        self.begin = time.perf_counter()

    def __exit__(self, *_):
        self.report.seconds += time.perf_counter() - self.begin
        self.report.calls += 1


GRAPHS: list[GraphReport] = []


class Report(list):
    """The graphs, which print a few lines each."""

    def __str__(self):
        return "\n".join(map(str, self)) or "no graph was compiled"

    __repr__ = __str__


def report() -> Report:
    """The graphs that were compiled in this process, in order."""
    return Report(GRAPHS)


def reset() -> None:
    """Forgets them."""
    GRAPHS.clear()
