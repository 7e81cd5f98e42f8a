# SPDX-License-Identifier: Apache-2.0
"""The explorer: what every pass did to a program, as one page that needs no server."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import Counter
from pathlib import Path

from .. import relay
from ..ir.base import astext

_MARK = re.compile(r" /\* (\d+) \*/")
_NUMBER = re.compile(r"%\w+|@[A-Za-z_]\w*|(?<=\]\[)\d+(?=\])")
_LIMIT = 2_000_000  # lines of all states together; beyond it PrimFuncs are left out


class _Texts:
    """Lines and states as numbers: a line is kept once, however many states have it."""

    def __init__(self):
        self.spans, self.lines, self.keys, self.states = {"": 0}, {}, {}, []
        self._state_of, self._same, self.total = {}, {}, 0

    def state(self, module) -> int:
        """The number of a module's text; -1 for one that is left out because there is too much already."""
        if module in self._state_of:
            return self._state_of[module]
        loops = all(type(f).__name__ == "PrimFunc" for f in module.functions.values()) and len(module.functions) > 0
        number = -1
        if not (loops and self.total > _LIMIT):
            rows = tuple(self._line(text) for text in astext(module, False, None if loops else self._span).splitlines())
            if rows in self._same:
                number = self._same[rows]
            else:
                number = self._same[rows] = len(self.states)
                self.states.append(rows)
                self.total += len(rows)
        self._state_of[module] = number
        return number

    def _span(self, call) -> str:
        name = str(call.span.source_name.name) if call.span is not None else ""
        if name and call.span.line:
            name += f":{call.span.line}"
        return str(self.spans.setdefault(name, len(self.spans)))

    def _line(self, text) -> int:
        found = _MARK.findall(text)
        span = int(found[-1]) if found else 0
        text = _MARK.sub("", text)
        return self.lines.setdefault((text, span), len(self.lines))

    def rows(self):
        """[text, span, key]: lines of one key say the same but for numbers."""
        return [[text, span, self.keys.setdefault((_NUMBER.sub("%", text), span), len(self.keys))] for text, span in self.lines]


def collect(history, title="", facts=None, kernels=()) -> dict:
    """Returns the data of the page, of a `History`. `kernels`: steps of `Executable.profile`."""
    texts, steps = _Texts(), []
    for step in history.steps:
        before = texts.state(step.before)
        after = before if step.after is None or step.after.same_as(step.before) else texts.state(step.after)
        steps.append({
            "name": step.name, "parent": int(step._record.parent), "depth": step.depth, "scope": step.scope, "fn": step.function,
            "action": step.action, "why": step.why, "status": step.status, "error": step.error, "start": step.start, "time": step.time,
            "n0": step.nodes_before, "n1": step.nodes_after, "a": before, "b": after,
        })  # fmt: skip
    rows, counts = texts.rows(), {}

    def count(state):
        if state not in counts:
            counts[state] = Counter(rows[i][2] for i in texts.states[state])
        return counts[state]

    for step in steps:
        a, b = step["a"], step["b"]
        known = a != b and a >= 0 and b >= 0
        step["plus"] = sum((count(b) - count(a)).values()) if known else 0
        step["minus"] = sum((count(a) - count(b)).values()) if known else 0
    return {
        "title": title, "facts": facts or {}, "spans": list(texts.spans), "lines": rows, "states": [list(s) for s in texts.states],
        "steps": steps, "kernels": _kernels(history, texts, kernels),
    }  # fmt: skip


def _kernels(history, texts, profile):
    """Kernels with the numbers of the spans of all that was fused into them."""
    inside = {}
    for step in reversed(history.steps):
        if step.after is None or not any(v.name_hint == "main" for v in step.after.get_global_vars()):
            continue
        if not isinstance(step.after["main"], relay.Function):
            continue

        def visit(e):
            if isinstance(e, relay.Call) and isinstance(e.op, relay.Function):
                spans = []
                relay.analysis.post_order_visit(e.op.body, lambda x: spans.append(texts._span(x)) if isinstance(x, relay.Call) else None)
                inside.setdefault(texts._span(e), set()).update(map(int, spans))

        relay.analysis.post_order_visit(step.after["main"], visit)
        break
    out = []
    for row in profile:
        source = texts.spans.get(row.get("source", ""), 0)
        spans = sorted({s for s in inside.get(str(source), ()) if s} | ({source} if source else set()))
        out.append({"name": row["kernel"], "ops": row["operators"], "us": row["median_us"], "share": row["share"], "spans": spans})
    return out


def render(data: dict) -> str:
    """The page of what `collect` gave: one text of HTML."""
    page = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
    packed = base64.b64encode(zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 9)).decode()
    title = data["title"].replace("&", "&amp;").replace("<", "&lt;")
    return page.replace("@TITLE@", title).replace("@DATA@", packed)


def explore(model, *, target=None, opt_level=3, shape=None, config=None, disabled_pass=(), profile=True) -> str:
    """Compiles a model, with the arguments of `baton.compile`, and gives the page that shows what each pass did.

    With `profile`, kernels are run on zeros for their times, where shapes are fixed. A pass that fails is the last one shown.

        Path("passes.html").write_text(baton.explorer.explore("model.onnx"))
    """
    import numpy as np

    from ..config import version
    from ..driver.compiler import compile as compile_model
    from ..history import History

    kernels, failure = [], ""
    with History() as history:
        try:
            lib = compile_model(model, target=target, opt_level=opt_level, shape=shape, config=config, disabled_pass=disabled_pass)
        except Exception as error:
            if not history.steps:
                raise
            lib, failure = None, f"{type(error).__name__}: {error}"
    if lib is not None and profile:
        try:
            kernels = lib.profile(*[np.zeros(i.shape, i.dtype) for i in lib.inputs], rounds=5)["steps"]
        except Exception as error:  # zeros may be a wrong input of the model; the page does without times
            failure = f"the kernels were not timed: {error}"
    facts = {"target": str(target or "this machine"), "level": str(opt_level), "version": version()}
    if failure:
        facts["error"] = failure.splitlines()[0]
    name = Path(model).name if isinstance(model, (str, Path)) else "a module"
    return render(collect(history, name, facts, kernels))


__all__ = ["collect", "explore", "render"]
