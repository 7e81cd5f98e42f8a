# SPDX-License-Identifier: Apache-2.0
"""The times of a call's steps, as executors take them (runtime/step_clock.h)."""

import json

_HEAD = ("kernel", "operators", "source")


def times_of_steps(executor, arrays, rounds):
    """(times, value) of calls of an executor on arrays, `rounds` of them as they are and as many with a clock, in turns. The times are a dict
    with the keys of `baton.driver.profile.Profile` that need nothing of the machine."""
    told, rows, times, value = executor["profile"](rounds, *arrays)
    told = json.loads(str(told)) if told else {"graphs": {}, "host": []}
    times = [list(map(float, of_round)) for of_round in times]
    sources = {(function, at): source for function, at, source in told["host"]}
    total, steps = min(t[1] for t in times) * 1e6, []
    for i, row in enumerate(rows):
        over = sorted(t[2 + i] * 1e6 for t in times)
        step = _row(told, sources, *row)
        step |= {"us": over[0], "median_us": (over[(len(over) - 1) // 2] + over[len(over) // 2]) / 2}
        step["share"] = step["us"] / total if total else 0.0
        steps.append(step)
    spent = sum(step["us"] for step in steps)
    # No sum of least times is above the least sum.
    found = {"rounds": len(times), "call_us": min(t[0] for t in times) * 1e6, "total_us": total, "steps_us": spent, "rest_us": total - spent}
    return {**found, "between_us": min(total - spent, *(max(0.0, t[1] - sum(t[2:])) * 1e6 for t in times)), "steps": steps}, value


def _row(told, sources, name, number, count, function, at, flops, size):
    """Returns the facts of a row: the step of a graph, a graph that keeps its steps to itself, or a call of a host function."""
    name, number, count, flops, size = str(name), int(number), int(count), float(flops), float(size)
    if function >= 0:
        return {"kernel": name, "operators": name, "source": sources.get((int(function), int(at)), ""), "count": count, "gflop": None, "mb": None}
    steps = told["graphs"].get(name, {}).get("steps", [])
    if not 0 <= number < len(steps):
        operators = "all steps" if number < 0 else f"step {number}"
        return {"kernel": name, "operators": operators, "source": "", "count": count, "gflop": None, "mb": None}
    head, known, runs = steps[number][:3], min(flops, size) >= 0, max(count, 1)
    return dict(zip(_HEAD, head, strict=True)) | {
        "count": count,
        "gflop": flops / runs / 1e9 if known else None,
        "mb": size / runs / 1e6 if known else None,
    }


__all__ = ["times_of_steps"]
