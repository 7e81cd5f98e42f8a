# SPDX-License-Identifier: Apache-2.0
"""`baton.History`: every step that passes take, to look at, compare, and run again from any point."""

from __future__ import annotations

import json

from ._core import Object
from ._ffi import get_global_func, register_object
from .ir.instrument import PassInstrument
from .ir.module import IRModule
from .ir.transform import PassContext


@register_object("instrument.HistoryStep")
class _Record(Object):
    """A step as C++ keeps it."""

    __slots__ = ()


class Step:
    """A pass that ran, failed or was skipped; of a `History`.

    `name`; `index` in the history; `depth`, `parent`, `children`: steps nest as passes do; `scope`: "module", "function" or
    "sequence", `function`: the function that the pass around it was rewriting; `action`: "ran", "inserted" or "skipped", and
    `why`; `status`: "ok", "failed" (then `error` has "Kind: message"), "skipped", or "open" while it runs; `start` and `time` in
    seconds; `before`, `after`: modules, `after` is None where it failed; `changed`; `pass_`: the pass, None for skipped ones;
    `context`: its PassContext, without instruments; `target`.
    """

    def __init__(self, history, index, record):
        self._history, self._record, self.index = history, record, index
        self.name, self.depth = str(record.pass_name), int(record.depth)
        self.scope, self.function = str(record.scope), str(record.function)
        self.action, self.why = str(record.action), str(record.why)
        self.status, self.error = str(record.status), str(record.error)
        self.start, self.time = record.start_ms / 1e3, record.wall_ms / 1e3
        self.before, self.after = record.before, record.after
        self.pass_, self.context, self.target = record.pass_object, record.context, record.target
        self.inserted = self.action == "inserted" or self.action == "skipped" and self.scope == "inserted"
        if self.action == "skipped":
            self.scope = ""

    @property
    def parent(self):
        """The step that it ran in, or None."""
        at = int(self._record.parent)
        return None if at < 0 else self._history.steps[at]

    @property
    def children(self):
        """The steps that ran in it."""
        return [step for step in self._history.steps if int(step._record.parent) == self.index]

    @property
    def changed(self) -> bool:
        """Whether it made another module than it got."""
        return self.after is not None and not self.after.same_as(self.before)

    @property
    def nodes_before(self) -> int:
        """Nodes of all Relay functions before; a PrimFunc counts as one."""
        return self._history._nodes(self.before)

    @property
    def nodes_after(self) -> int | None:
        """Nodes after; None where it failed."""
        return None if self.after is None else self._history._nodes(self.after)

    def diff(self, fmt: str = "unified") -> str:
        """Returns its changes; as `History.diff`."""
        return self._history.diff(self, fmt=fmt)

    def __repr__(self):
        what = self.status if self.status != "ok" else "changed" if self.changed else "unchanged"
        return f"<step {self.index} {self.name}: {self.action}, {what}, {self.time * 1e3:.3f} ms>"


@register_object("instrument.History")
class History(PassInstrument):
    """Keeps every step that passes take while its block runs, those of nested contexts and of other threads' work too.

        with baton.History() as h:
            baton.compile("model.onnx")
        print(h.table())
        h["FuseOps"].before, h["FuseOps"].after     # modules; h["InferType", 2] is the third run, h[3] the fourth step
        print(h.diff("FoldConstant", "FuseOps"))    # from the module after one to the module after the other
        other = h.rerun(from_="FuseOps", skip=["FoldConstant"])
        other.module

    IR is immutable, so steps share what did not change. It may also be among the instruments of a PassContext. A pass that
    throws leaves a step with `status` "failed" and its error. Its steps live as long as it does; `clear()` lets go.
    """

    def __init__(self, name: str = "History"):
        self.__init_handle_by_constructor__(get_global_func("instrument.History"), name, True)
        self._scopes = []
        self._counts = {}
        self._seen = None

    def __enter__(self):
        context = PassContext.current()
        get_global_func("transform.AddInstrument")(context, self)
        self._scopes.append(context)
        return self

    def __exit__(self, *_):
        get_global_func("transform.RemoveInstrument")(self._scopes.pop(), self)

    # ---- Steps

    @property
    def steps(self) -> list[Step]:
        """All steps in order, each before those that ran in it."""
        records = get_global_func("instrument.HistorySteps")(self)
        seen = self._seen
        if seen is None or len(seen) != len(records) or any(step.status == "open" for step in seen):
            seen = self._seen = [Step(self, i, record) for i, record in enumerate(records)]
        return list(seen)

    def clear(self) -> None:
        """Forgets all steps."""
        get_global_func("instrument.HistoryClear")(self)
        self._seen, self._counts = None, {}

    def __len__(self):
        return len(self.steps)

    def __iter__(self):
        return iter(self.steps)

    def __bool__(self):
        return True

    def __contains__(self, name):
        return any(step.name == name for step in self.steps)

    def runs(self, name: str) -> list[Step]:
        """All steps of a pass, skipped ones too."""
        return [step for step in self.steps if step.name == name]

    def __getitem__(self, key):
        """A step by position; the first run of a pass by its name, the n-th (from 0) by (name, n)."""
        if isinstance(key, (int, slice)) and not isinstance(key, bool):
            steps = self.steps
            if isinstance(key, int) and not -len(steps) <= key < len(steps):
                raise IndexError(f"the history has {len(steps)} steps, there is no step {key}")
            return steps[key]
        name, which = key if isinstance(key, tuple) and len(key) == 2 else (key, 0)
        if not isinstance(name, str) or not isinstance(which, int):
            raise TypeError(f"a step is named by its position, by a pass's name, or by (name, n); got {key!r}")
        found = self.runs(name)
        if not found:
            raise KeyError(f"no step of `{name}`{_near(name, [step.name for step in self.steps])}")
        found = [step for step in found if step.action != "skipped"] or found
        if not -len(found) <= which < len(found):
            raise KeyError(f"`{name}` ran {len(found)} times, there is no run {which}; the first is 0")
        return found[which]

    @property
    def module(self):
        """The module after the last step that is in no other; what that one was given if it failed."""
        last = [step for step in self.steps if step.depth == 0]
        if not last:
            raise ValueError("the history is empty: no pass ran")
        return last[-1].after if last[-1].after is not None else last[-1].before

    @property
    def failed(self) -> Step | None:
        """The innermost step that failed, of the last step that is in no other; None if that went well."""
        steps, found = self.steps, None
        for step in steps:
            if step.depth == 0:
                found = step if step.status == "failed" else None
            elif found is not None and step.status == "failed" and int(step._record.parent) == found.index:
                found = step
        return found

    # ---- Looking at them

    def _nodes(self, module) -> int:
        count = get_global_func("relay.analysis.count_nodes")
        total = 0
        for function in module.functions.values():
            if function not in self._counts:  # equal is the same object
                self._counts[function] = int(count(function)) if type(function).__name__ == "Function" else 1
            total += self._counts[function]
        return total

    def _module(self, point):
        """A point in the history: a module, or what names a step: the module after it."""
        if isinstance(point, IRModule):
            return point
        step = point if isinstance(point, Step) else self[point]
        if step.after is None:
            raise ValueError(f"`{step.name}` failed, there is no module after it; `.before` is what it was given")
        return step.after

    def diff(self, a, b=None, *, fmt: str = "unified", context: int = 3) -> str:
        """The lines that differ between two points, "" if none do: a step (as `h[...]` takes it) stands for the module after
        it; modules are taken as they are. With one step: from before it to after it. fmt: "unified", or "side" for two
        columns. context: equal lines around."""
        if fmt not in ("unified", "side"):
            raise ValueError(f'fmt is "unified" or "side", not {fmt!r}')
        if b is None:
            step = a if isinstance(a, Step) else self[a]
            modules = step.before, self._module(step)
        else:
            modules = self._module(a), self._module(b)
        if modules[0].same_as(modules[1]):
            return ""
        lines = str(get_global_func("ir.DiffLines")(*map(_text, modules), int(context)))
        return lines if fmt == "unified" else side_by_side(lines)

    def table(self) -> str:
        """A row a step: position, pass (indented as passes nest), milliseconds, nodes, what came of it, and why it ran."""
        rows = [("#", "pass", "ms", "nodes", "", "why")]
        for step in self.steps:
            after = step.nodes_after
            nodes = str(step.nodes_before) if after in (None, step.nodes_before) else f"{step.nodes_before} -> {after}"
            what = step.status if step.status != "ok" else "changed" if step.changed else "unchanged"
            why = step.why if step.action != "inserted" else f"inserted: {step.why}"
            if step.function:
                why += f", in @{step.function}"
            if step.error:
                why += "; " + step.error.splitlines()[0]
            rows.append((str(step.index), "  " * step.depth + step.name, f"{step.time * 1e3:.3f}", nodes, what, why))
        width = [max(len(row[i]) for row in rows) for i in range(5)]
        return "".join(
            f"{r[0]:>{width[0]}}  {r[1]:<{width[1]}}  {r[2]:>{width[2]}}  {r[3]:>{width[3]}}  {r[4]:<{width[4]}}  {r[5]}".rstrip() + "\n"
            for r in rows
        )  # fmt: skip

    def to_json(self) -> str:
        """An array of objects, a step each: what `table` shows, and more; times in seconds."""
        rows = []
        for step in self.steps:
            rows.append({
                "index": step.index, "pass": step.name, "parent": int(step._record.parent), "depth": step.depth, "scope": step.scope,
                "function": step.function, "action": step.action, "why": step.why, "status": step.status, "error": step.error,
                "start": step.start, "time": step.time, "nodes_before": step.nodes_before, "nodes_after": step.nodes_after,
                "changed": step.changed,
            })  # fmt: skip
        return json.dumps(rows, indent=1)

    def cost(self) -> dict[str, int]:
        """Returns the size of all steps together, each object counted once, beside the first and the last module alone: `objects`, `bytes`
        of them, `tensor_bytes`; `copies`, of the objects those that only say what another one says, and `copied_bytes`;
        each with `first_` and `last_` before it. With `made_`: what steps put into modules, their own and those that they gave to
        steps within, that had not been in those before; `made_copies` are those without a change, since what the step was given
        says the same."""
        names, steps = ("objects", "bytes", "tensor_bytes", "copies", "copied_bytes"), self.steps
        measure, up_to = get_global_func("ir.MemoryFootprint"), get_global_func("ir.MemoryFootprintUpTo")
        out = {}
        for which, modules in {
            "": [module for step in steps for module in (step.before, step.after) if module is not None],
            "first_": [steps[0].before] if steps else [], "last_": [self.module] if steps else [],
        }.items():  # fmt: skip
            out |= {which + name: int(n) for name, n in zip(names, measure(modules), strict=True)}
        made = [0] * len(names)
        children = {step.index: [] for step in steps}
        for step in steps:
            if (around := int(step._record.parent)) >= 0:
                children[around].append(step)
        for step in steps:
            seen = [(step.before, False)]  # modules in the order of time, and whether the step itself made them
            for child in children[step.index]:
                seen += [(child.before, True), (child.after, False)]
            seen = [(module, own) for module, own in [*seen, (step.after, True)] if module is not None]
            rows = [[int(n) for n in row] for row in up_to([module for module, _ in seen])]
            for (_, own), before, after in zip(seen[1:], rows[:-1], rows[1:], strict=True):
                if own:
                    made = [m + b - a for m, a, b in zip(made, before, after, strict=True)]
        return out | {f"made_{name}": n for name, n in zip(names, made, strict=True)}

    def copies(self) -> dict[str, tuple[int, int]]:
        """Which objects only say what another one says, over all steps: type -> (number of objects, bytes), most bytes first."""
        modules = [module for step in self.steps for module in (step.before, step.after) if module is not None]
        rows = get_global_func("ir.Copies")(modules)
        return {str(type_): (int(row[0]), int(row[1])) for type_, row in rows.items()}

    # ---- Running again

    def rerun(self, from_, skip=()) -> History:
        """Runs what came from a step on, that step included, on the module that it was given; gives a new History, whose
        `module` is the result. skip: names of passes to leave out wherever a sequence lists them (a pass that another one needs
        runs before it all the same). Contexts are those of the steps. ValueError for a step within a pass other than a sequence."""
        if isinstance(skip, str) or not all(isinstance(name, str) for name in skip):
            raise TypeError(f"skip takes a list of names of passes, got {skip!r}")
        step = from_ if isinstance(from_, Step) else self._listed(from_)
        plan = self._rest(step)
        known = [name for pass_, _ in plan for name in _names(pass_)]
        for name in skip:
            if name not in known:
                raise ValueError(f"skip: `{name}` is not among the passes from step {step.index} on{_near(name, known)}")
        module, out = step.before, History(f"rerun from {step.name}")
        for pass_, like in plan:
            with _context(like, list(skip), out):
                if like.target is None:
                    module = pass_(module)
                else:
                    with like.target:
                        module = pass_(module)
        return out

    def _listed(self, key) -> Step:
        """The step of this name that `rerun` can start from: one that only sequences are around."""
        step = self[key]
        if isinstance(key, str):
            for one in self.runs(key):
                if one.action != "skipped" and _in_sequences(one):
                    return one
        return step

    def _rest(self, step: Step):
        """(pass, step whose context it ran in) in order: a step and all behind it."""
        if not _in_sequences(step):
            around = step.parent
            while around.scope == "sequence":
                around = around.parent
            raise ValueError(f"step {step.index}, `{step.name}`, ran within `{around.name}`, which is not a sequence: rerun from step {around.index}")
        if step.pass_ is None:
            raise ValueError(f"step {step.index}, `{step.name}`, was skipped: rerun from a step that ran")
        plan, first = [], True
        while step.parent is not None:
            around, siblings = step.parent, step.parent.children
            place = sum(not one.inserted for one in siblings if one.index < step.index)
            listed = list(around.pass_.passes)
            rest = listed[place + (0 if first or step.inserted else 1) :]
            if first and step.inserted:
                rest = [step.pass_, *rest]
            if rest or hasattr(around.pass_, "ends_with"):
                plan.append((_sequence(around.pass_, rest), step))
            step, first = around, False
        roots = [one for one in self.steps if one.depth == 0]
        at = next(i for i, one in enumerate(roots) if one.index == step.index)
        if first:
            plan.append((step.pass_, step))
        for one, following in zip(roots[at:], roots[at + 1 :], strict=False):
            if one.after is None or not following.before.same_as(one.after) or following.pass_ is None:
                break  # another module: another story
            plan.append((following.pass_, following))
        return plan


def _near(name, known) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _text(module) -> str:
    text = str(get_global_func("ir.AsText")(module))
    return text if text.endswith("\n") else text + "\n"


def _in_sequences(step) -> bool:
    around = step.parent
    while around is not None and around.scope == "sequence":
        around = around.parent
    return around is None


def _sequence(like, passes):
    """A sequence of the same kind and name, of other passes."""
    from .ir.transform import Scheduled, Sequential

    info = like.info
    if isinstance(like, Scheduled):
        return Scheduled(passes, name=str(info.name), ends_with=[str(p) for p in like.ends_with])
    return Sequential(passes, opt_level=info.opt_level, name=str(info.name), required=[str(r) for r in info.required])


def _names(pass_):
    yield str(pass_.info.name)
    for inner in getattr(pass_, "passes", None) or ():
        yield from _names(inner)


def _context(step, skip, history):
    ctx = step.context
    return PassContext(
        opt_level=ctx.opt_level, required_pass=[str(n) for n in ctx.required_pass], num_threads=ctx.num_threads,
        disabled_pass=[*(str(n) for n in ctx.disabled_pass), *skip], config=dict(ctx.config.items()), instruments=[history],
    )  # fmt: skip


def side_by_side(unified: str, width: int = 78) -> str:
    """A unified diff in two columns; `|`, `<` and `>` between them as `diff -y` has it. Long lines are cut."""
    out, removed, added = [], [], []

    def cut(line):
        return line if len(line) <= width else line[: width - 1] + "…"

    def flush():
        for i in range(max(len(removed), len(added))):
            left = removed[i] if i < len(removed) else ""
            right = added[i] if i < len(added) else ""
            sign = "|" if i < len(removed) and i < len(added) else "<" if i < len(removed) else ">"
            out.append(f"{cut(left):<{width}} {sign} {cut(right)}".rstrip())
        removed.clear()
        added.clear()

    for line in unified.splitlines():
        if line.startswith("-"):
            removed.append(line[1:])
        elif line.startswith("+"):
            added.append(line[1:])
        else:
            flush()
            out.append(line if line.startswith("@@") else f"{cut(line[1:]):<{width}}   {cut(line[1:])}".rstrip())
    flush()
    return "\n".join(out) + "\n" if out else ""


__all__ = ["History", "Step"]
