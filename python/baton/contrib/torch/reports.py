# SPDX-License-Identifier: Apache-2.0
"""What `torch.compile(backend="baton")` and `baton.compile(program, fallback="eager")` did in this process: graphs, what was left to PyTorch and why, and times."""

from __future__ import annotations


class GraphReport:
    """One graph. kind: "inference", "forward", "backward", or "program" where `baton.compile` was given it. operators: calls in it. parts: how
    many pieces Baton compiled. left: operators that PyTorch runs, as (name, place, reason). calls, seconds: of the whole graph. packed: how
    often weights that are arguments were packed."""

    def __init__(self, kind, operators):
        self.kind, self.operators, self.parts, self.left = kind, operators, 0, []
        self.calls, self.seconds, self.weights = 0, 0.0, []
        self.left_seconds: list[float] = []
        self.copies: list[tuple[str, int | None]] = []

    @property
    def shares(self) -> dict[str, float]:
        """Shares of the time of all calls, which add up to 1: "compiled", with what lies between the pieces, and each operator that PyTorch runs.
        Empty before the first call."""
        if not self.seconds:
            return {}
        found: dict[str, float] = {}
        for (name, _, _), seconds in zip(self.left, self.left_seconds, strict=False):
            found[name] = found.get(name, 0.0) + seconds / self.seconds
        return {"compiled": 1.0 - sum(found.values()), **found}

    @property
    def packed(self) -> int:
        """How often the weights of the graph were packed for the processor; 0 where they are constants, or as they are."""
        return sum(w.packed for w in self.weights)

    def __str__(self):
        each = f", {self.seconds / self.calls * 1e6:.0f} us a call" if self.calls else ""
        lines = [f"{self.kind}: {self.operators} operators, {self.parts} compiled part{'s' if self.parts != 1 else ''}, {self.calls} calls{each}"]
        lines += [f"  {sum(len(w.places) for w in self.weights)} weights packed {self.packed} times"] if self.packed else []
        if self.copies:
            known = sum(count for _, count in self.copies if count is not None)
            unknown = ", more where sizes are open" if any(count is None for _, count in self.copies) else ""
            lines.append(f"  copied in each call: {', '.join(name for name, _ in self.copies)} ({known} bytes{unknown})")
        kinds: dict[tuple[str, str], list[str]] = {}
        for name, place, reason in self.left:
            kinds.setdefault((name, reason), []).append(place)
        shares = self.shares
        for (name, reason), places in kinds.items():
            where = f" at {places[0]}" if places[0] else ""
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            share = f", {shares[name]:.0%} of the time" if name in shares else ""
            lines.append(f"  left to PyTorch: {name}{where}{more}: {reason}{share}")
        if self.left and shares:
            lines.append(f"  compiled: {shares['compiled']:.0%} of the time")
        return "\n".join(lines)


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
