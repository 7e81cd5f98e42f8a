# SPDX-License-Identifier: Apache-2.0
"""Where the time of a call goes, step by step. Needs the runtime library alone; what the machine can do at best is measured with the compiler's."""

from __future__ import annotations

from .._ffi import get_global_func
from ..error import BatonError
from ..runtime.steps import times_of_steps


class Profile(dict):
    """The times of a call, as `Executable.profile` takes them: a dict with a table for terminals (`str`) and a plot for notebooks.

    Keys, times in microseconds: `call_us`, the fastest call as it is; `total_us`, the fastest call whose steps were timed; `steps_us`, the sum
    of the steps' `us`; `rest_us`, so that `steps_us` + `rest_us` is `total_us`: `between_us` of it is spent between the steps (control flow,
    memory, shapes), the others are what other programs on the machine took; `rounds`; `peak_gflops` and `bandwidth_gb`, what this machine does at best with `threads` (None without the
    compiler); `steps`, in the order they ran first. A step has `kernel` (its function in the code), `operators` (of Relay, fused), `source`
    (ONNX node, or file:line), `count` (runs in one call), `us` and `median_us` (of all of them: the least and the median of the rounds),
    `share` (of `total_us`); for kernels `gflop` and `mb` (of inputs, weights and outputs, of one run; the mean of runs that differ), `gflops`, and `roofline`:
    the least time that arithmetic and memory allow, as a share of the time taken; else None for these.

    `result`: the value of the call.
    """

    result = None

    def __str__(self) -> str:
        return table(self)

    def _repr_html_(self) -> str:
        from ..runtime import html

        return html.profile(self)

    def svg(self, top: int = 15) -> str:
        """The plot as a file: the call from begin to end, then the `top` steps that take most."""
        from ..runtime import html

        return html.profile_file(self, top)

    def html(self, title: str = "profile") -> str:
        """A page with the plot and the table that needs no other file."""
        from ..runtime import html

        return html.page(title, html.profile(self))


def take(executor, arrays, rounds: int, here: bool = True) -> Profile:
    """Runs an executor on arrays, `rounds` times as it is and as often with a clock, in turns. `here`: on this machine, whose best is told."""
    found, value = times_of_steps(executor, arrays, rounds)
    profile = _with_rates(found, *(_roofline() if here else (None, None, None)))
    profile.result = value
    return profile


def _with_rates(found: dict, flops, bandwidth, threads) -> Profile:
    """The profile with how fast steps are, and how that compares with what the machine can do."""
    for step in found["steps"]:
        _rate(step, flops, bandwidth)
    return Profile(threads=threads, peak_gflops=flops and flops / 1e9, bandwidth_gb=bandwidth and bandwidth / 1e9, **found)


def _rate(step: dict, flops: float | None, bandwidth: float | None) -> None:
    """Adds the rates of a step."""
    seconds = step["us"] / 1e6
    known = step["gflop"] is not None and seconds > 0
    step["gflops"] = step["gflop"] * step["count"] / seconds if known else None
    least = max(step["gflop"] * 1e9 / flops, step["mb"] * 1e6 / bandwidth) * step["count"] if known and flops and bandwidth else None
    step["roofline"] = None if least is None else least / seconds


def _roofline():
    """(operations a second, bytes a second, threads); None each where the compiler is not installed."""
    try:
        flops, bandwidth, threads = get_global_func("driver.Roofline")()
    except (BatonError, ValueError):
        return None, None, None
    return float(flops), float(bandwidth), int(threads)


def slowest(profile: Profile) -> list[dict]:
    """The steps, what takes longest first."""
    return sorted(profile["steps"], key=lambda step: -step["us"])


def summary(profile: Profile) -> str:
    """Returns the sums of the rows, in a line or two."""
    total, rest = profile["total_us"], profile["rest_us"]
    lines = [
        f"a call takes {_time(profile['call_us'])}, with its steps timed {_time(total)}: "
        f"{len(profile['steps'])} steps {_time(profile['steps_us'])}, the rest {_time(rest)} ({rest / total:.1%})"
    ]
    if profile["peak_gflops"]:
        lines.append(f"this machine: {profile['peak_gflops']:.0f} GFLOP/s, {profile['bandwidth_gb']:.1f} GB/s, {profile['threads']} threads")
    return "\n".join(lines)


def rest_words(profile) -> str:
    """Returns the parts of the rest."""
    between = profile["between_us"]
    return f"{_time(between)} between the steps (control flow, memory, shapes), {_time(profile['rest_us'] - between)} taken by other programs"


def _time(us: float) -> str:
    return f"{us / 1e3:.2f} ms" if us >= 1e3 else f"{us:.1f} us"


def table(profile: Profile, top: int = 25, paint=lambda text, share: text) -> str:
    """The steps that take most, one a row; what is left out is summed up in a line. `paint`: colours a row by its share."""
    lines = [summary(profile), f"{'us':>10} {'share':>6} {'count':>6} {'GFLOP/s':>8} {'roofline':>8}  operators (source)"]
    ordered = slowest(profile)
    for step in ordered[:top]:
        source = f"  ({step['source']})" if step["source"] else ""
        rate = f"{step['gflops']:.1f}" if step["gflops"] is not None else ""
        roof = f"{step['roofline']:.0%}" if step["roofline"] is not None else ""
        row = f"{step['us']:>10.1f} {step['share']:>6.1%} {step['count']:>6} {rate:>8} {roof:>8}  {step['operators']}{source}"
        lines.append(paint(row, step["share"]))
    if rest := ordered[top:]:
        lines.append(f"{sum(s['us'] for s in rest):>10.1f} {sum(s['share'] for s in rest):>6.1%} {'':>6} {'':>8} {'':>8}  {len(rest)} more")
    lines.append(f"{profile['rest_us']:>10.1f} {profile['rest_us'] / profile['total_us']:>6.1%} {'':>6} {'':>8} {'':>8}  rest: {rest_words(profile)}")
    return "\n".join(lines)
