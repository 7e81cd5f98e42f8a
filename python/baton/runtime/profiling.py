# SPDX-License-Identifier: Apache-2.0
"""Reports of where a program's time went."""

import json


class Duration(float):
    """A time, in microseconds."""

    @property
    def microseconds(self):
        """The time as a plain float."""
        return float(self)


class Count(int):
    """How often something happened."""

    @property
    def value(self):
        """The number as a plain int."""
        return int(self)


class Percent(float):
    """A share of the whole."""

    @property
    def percent(self):
        """The share as a plain float."""
        return float(self)


_KINDS = {"Duration (us)": Duration, "Count": Count, "Percent": Percent}


def _with_kinds(row):
    return {key: _KINDS[key](value) if key in _KINDS else value for key, value in row.items()}


class Report:
    """Times of a program: `calls`, a dict for each kernel, and `device_metrics`, sums by device. `str()` is a table."""

    def __init__(self, calls, device_metrics):
        self.calls = [_with_kinds(c) for c in calls]
        self.device_metrics = {device: _with_kinds(metrics) for device, metrics in dict(device_metrics).items()}

    def table(self, sort=True, aggregate=True, col_sums=True):
        """The table: with `sort`, what takes longest first; with `aggregate`, one line for all calls of a kernel; with `col_sums`, the
        sums below."""
        rows = [(str(c["Name"]), float(c["Duration (us)"]), int(c.get("Count", 1))) for c in self.calls]
        if aggregate:
            by_name = {}
            for name, time, count in rows:
                old = by_name.get(name, (0.0, 0))
                by_name[name] = (old[0] + time, old[1] + count)
            rows = [(name, time, count) for name, (time, count) in by_name.items()]
        if sort:
            rows.sort(key=lambda r: -r[1])
        total = sum(r[1] for r in rows)
        if col_sums:
            rows += [("Sum", total, sum(r[2] for r in rows))]
            rows += [(f"Total on {device}", float(m["Duration (us)"]), int(m.get("Count", 1))) for device, m in self.device_metrics.items()]
        width = max([4, *(len(r[0]) for r in rows)])
        lines = [f"{'Name':<{width}}  {'Duration (us)':>14}  {'Percent':>7}  {'Count':>6}"]
        lines += [f"{n:<{width}}  {t:>14.2f}  {100 * t / total if total else 0:>7.2f}  {c:>6}" for n, t, c in rows]
        return "\n".join(lines) + "\n"

    def csv(self):
        """The calls as comma-separated values, with a head."""
        import csv
        import io

        out = io.StringIO()
        names = sorted({k for c in self.calls for k in c})
        writer = csv.DictWriter(out, names)
        writer.writeheader()
        writer.writerows(self.calls)
        return out.getvalue()

    def json(self):
        """The report as JSON, which `from_json` reads."""
        return json.dumps({"calls": self.calls, "device_metrics": self.device_metrics})

    @classmethod
    def from_json(cls, s):
        """The report of a JSON text."""
        read = json.loads(s)
        return cls(read["calls"], read["device_metrics"])

    def __str__(self):
        return self.table()

    __repr__ = __str__

    def _repr_html_(self):
        """The table for notebooks."""
        from . import html

        rows = [(c["Name"], f"{c['Duration (us)']:.2f}", c.get("Count", 1)) for c in sorted(self.calls, key=lambda c: -c["Duration (us)"])]
        rows += [(f"Total on {device}", f"{m['Duration (us)']:.2f}", m.get("Count", 1)) for device, m in self.device_metrics.items()]
        return html.box(html.table(("name", "\u00b5s", "count"), rows, (1, 2)))


__all__ = ["Count", "Duration", "Percent", "Report"]
