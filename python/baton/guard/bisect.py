# SPDX-License-Identifier: Apache-2.0
"""`baton.bisect`: which pass breaks a program, at which rewrite, and the smallest program that shows it."""

import contextlib
from dataclasses import dataclass, field

from .._ffi import get_global_func
from .checker import Checker, Finding, has_relay
from .reduce import Reducer, count_calls, typed
from .sample import KINDS


@dataclass
class BisectResult:
    """The result of `bisect`; `found` is False where no pass changes results and none throws.

    pass_name, run: the pass and its place among all passes that ran, from 1 on. fault: "result" or "error"; `finding` or `error` say
    more. function: the function that it broke. rewrite, rewrites: the first rewrite in it that goes wrong, of how many; None where
    the pass does not count them (`no_rewrite` says why); `rewrite_diff` has its lines. module, text, calls: the smallest program
    found, which `replay` runs; `text_after`: what the pass makes of it. before: the program that the pass was given. tests: programs
    that were tried. checked, not_checked: passes that were compared; (pass, function, why) that could not be.
    """

    found: bool = False
    pass_name: str | None = None
    run: int | None = None
    ran: int = 0
    why: str = ""
    fault: str | None = None
    error: str | None = None
    finding: Finding | None = None
    function: str | None = None
    rewrite: int | None = None
    rewrites: int | None = None
    no_rewrite: str = ""
    rewrite_diff: str = ""
    module: object = field(default=None, repr=False)
    before: object = field(default=None, repr=False)
    pass_: object = field(default=None, repr=False)
    text: str = ""
    text_after: str = ""
    calls: int | None = None
    tests: int = 0
    passes_text: str | None = None
    options: str = ""
    opt_level: int = 3
    seed: int = 0
    checked: int = 0
    not_checked: list = field(default_factory=list)

    def __bool__(self):
        return self.found

    def replay(self, file="bug.relay"):
        """The command that shows it again, with the program in a file; None where the pass has no name to call it by."""
        if self.passes_text is None:
            return None
        seed = f" --seed {self.seed}" if self.seed else ""
        return f"baton bisect {file} --passes '{self.passes_text}' -O {self.opt_level}{seed}{self.options}"

    def __str__(self):
        return self.show()

    def show(self, file="bug.relay", written=False):
        """All of it in lines. file: what the replaying command calls the program, and whether it is there already."""
        if not self.found:
            out = f"no pass changes results: {self.checked} of {self.ran} passes changed something and were compared"
            return "\n".join([out, *self._unchecked()])
        if self.fault == "error":
            out = [f"pass `{self.pass_name}` (number {self.run} of those that ran) fails", "  " + self.error]
        else:
            out = [f"pass `{self.pass_name}` (number {self.run} of those that ran) changes what @{self.function} computes",
                   "  " + self.finding.difference.text()]  # fmt: skip
        if self.rewrite is not None:
            out.append(f"  at rewrite {self.rewrite} of {self.rewrites} in it:")
            out += ["    " + line for line in self.rewrite_diff.splitlines()[:12]]
        elif self.no_rewrite:
            out.append(f"  which rewrite it is cannot be said: {self.no_rewrite}")
        if self.module is not None:
            size = f"({_calls(self.calls)}, {self.tests} tried)" if self.calls is not None else "(PrimFuncs are not made smaller)"
            out += [f"the smallest program found that shows it {size}:", "", self.text.rstrip(), ""]
            if self.text_after:
                out += ["what the pass makes of it:", "", self.text_after.rstrip(), ""]
        command = self.replay(file)
        if command and self.module is not None:
            out.append(f"replay: {command}" + ("" if written else f"   (with that program in {file})"))
        return "\n".join([*out, *self._unchecked()])

    def _unchecked(self):
        return [f"not checked: @{function} around {name}, because {why}" for name, function, why in self.not_checked]

    def to_json(self, file="bug.relay"):
        """Plain data."""
        return {
            "found": self.found, "pass": self.pass_name, "run": self.run, "ran": self.ran, "why": self.why, "fault": self.fault,
            "error": self.error, "function": self.function, "finding": self.finding.to_json() if self.finding else None,
            "rewrite": self.rewrite, "rewrites": self.rewrites, "no_rewrite": self.no_rewrite, "rewrite_diff": self.rewrite_diff,
            "program": self.text, "program_after": self.text_after, "calls": self.calls, "tests": self.tests,
            "replay": self.replay(file), "checked": self.checked,
            "not_checked": [dict(zip(("pass", "function", "why"), row, strict=True)) for row in self.not_checked],
        }  # fmt: skip


def _calls(count):
    return f"{count} call" + ("" if count == 1 else "s")


def bisect(
    source,
    passes=None,
    *,
    target=None,
    opt_level=3,
    config=None,
    disabled_pass=(),
    shape=None,
    seed=0,
    kinds=KINDS,
    skip=(),
    reassociating=(),
    reduce=True,
    budget=600,
):
    """Runs passes on a program and finds the first that changes what it computes, or throws; then makes the program small.

        print(baton.bisect("model.onnx"))
        result = baton.bisect(mod, [relay.transform.FoldConstant(), MyPass()])
        if result:
            print(result.pass_name, result.rewrite, result.text)

    source: what `baton.compile` takes. passes: a list of passes, a pass, or the text of a pipeline; without it those of a
    compilation. shape: input name to shape. skip, reassociating, kinds, seed: as of SemanticGuard. reduce: also make the program small,
    by asking about at most `budget` programs. Returns a BisectResult.
    """
    from ..driver.compiler import Source
    from ..target import Target

    module = Source.of(source).read({name: tuple(dims) for name, dims in (shape or {}).items()})
    pass_ = _pipeline(passes)
    target = Target(target) if isinstance(target, str) else target or Target("llvm")
    history, thrown = _run(pass_, module, target, opt_level, config, disabled_pass)
    work = _Bisection(history, seed, kinds, skip, reassociating)
    work.result.opt_level, work.result.seed = opt_level, seed
    work.search()
    if not work.result.found and thrown is not None:
        raise thrown  # no pass threw it
    if work.result.found and reduce:
        work.find_rewrite()
        work.make_small(budget)
    return work.result


def _pipeline(passes):
    from ..driver import passes as by_name
    from ..ir.transform import Pass, Sequential

    if passes is None:
        return by_name.pipeline("default")
    if isinstance(passes, str):
        return by_name.pipeline(passes)
    if isinstance(passes, Pass):
        return passes
    return Sequential(passes)


def _run(pass_, module, target, opt_level, config, disabled_pass):
    """(History, what was thrown)."""
    from ..history import History
    from ..ir.transform import PassContext

    history, thrown = History(), None
    with target, PassContext(opt_level=opt_level, config=config, disabled_pass=list(disabled_pass), instruments=[history]):
        try:
            pass_(module)
        except Exception as error:  # of a pass under test: any
            thrown = error
    return history, thrown


class _Bisection:
    def __init__(self, history, seed, kinds, skip, reassociating):
        self.steps = history.steps
        self.inner = {}
        for step in self.steps:
            if step.parent is not None:
                self.inner.setdefault(step.parent.index, []).append(step)
        self.kinds, self.seed = kinds, seed
        self.checker = Checker(seed=seed, kinds=kinds, adaptive=True)
        self.skip, self.reassociating = frozenset(skip), frozenset(reassociating)
        self.result = BisectResult()

    # ---- Which pass

    def search(self):
        """Compares in the order in which passes ran, inner ones first."""
        result = self.result
        self.loops = not any(has_relay(s.before) for s in self.steps if s.depth == 0)
        ran = [s for s in self.steps if s.status in ("ok", "failed") and (self.loops or has_relay(s.before))]
        result.ran = len(ran)
        for step in self.steps:
            if step.depth == 0 and self._look(step):
                self.numbers = {s.index: i + 1 for i, s in enumerate(ran)}
                self._note()
                return

    def _look(self, step):
        """Whether a step or one within it is the culprit. Steps whose parts are all sound are sound."""
        sound = step.before
        for one in self.inner.get(step.index, ()):
            if self._look(one):
                return True
            if one.after is not None and one.before.same_as(sound) and self._was_sound(one):
                sound = one.after
        if step.status == "failed":
            self.culprit, self.result.fault, self.error = step, "error", step.error
            inner = [one for one in self.inner.get(step.index, ()) if one.status == "ok"]
            if step.scope == "sequence" and inner:  # what a pass made may be refused after it has ended
                self.culprit = inner[-1]
                if not self._shows(self.culprit.before, self.checker):
                    self.culprit = step
            return True
        if step.after is None or step.after.same_as(step.before) or sound.same_as(step.after) or not (self.loops or has_relay(step.before)):
            return False
        if step.name in self.skip or (step.pass_ is not None and step.pass_.info.changes_results):
            self._unsound.add(step.index)
            return False
        found, reasons = self.checker.check(step.before, step.after, step.name, self._loose(step))
        self.result.checked += 1
        for function, why in reasons:
            self._unsound.add(step.index)
            if (step.name, function, why) not in self.result.not_checked:
                self.result.not_checked.append((step.name, function, why))
        if found is None:
            return False
        self.culprit, self.result.fault, self.result.finding = step, "result", found
        return True

    def _loose(self, step):
        """Whether the pass may round elsewhere."""
        return step.name in self.reassociating or (step.pass_ is not None and step.pass_.info.reassociates)

    @property
    def _unsound(self):
        return self.__dict__.setdefault("_unsound_steps", set())

    def _was_sound(self, step):
        return step.index not in self._unsound

    def _note(self):
        result, step = self.result, self.culprit
        result.found, result.pass_name, result.run, result.why = True, step.name, self.numbers.get(step.index), step.why
        result.before, result.pass_ = step.before, step.pass_
        result.function = result.finding.function if result.finding else step.function or "main"
        result.error = self.error.splitlines()[0] if result.fault == "error" else None
        try:
            result.passes_text = step.pass_.text()
            get_global_func("transform.ParsePipeline")(result.passes_text)
        except Exception:  # made in Python, with no name that makes it
            result.passes_text = None

    # ---- Running the culprit again

    @contextlib.contextmanager
    def _scope(self):
        from ..ir.transform import PassContext

        like = self.culprit.context
        with contextlib.ExitStack() as stack:
            if self.culprit.target is not None:
                stack.enter_context(self.culprit.target)
            stack.enter_context(PassContext(int(like.opt_level), list(like.required_pass), list(like.disabled_pass),
                                            config=dict(like.config.items()), inherit_instruments=False))  # fmt: skip
            yield

    def _wrong(self, before, after, checker):
        return checker.check(before, after, self.culprit.name, self._loose(self.culprit), changed_only=False)[0]

    def _shows(self, module, checker):
        """Whether the pass breaks a program: a Finding, or True for an error of the same kind; else None."""
        try:
            with self._scope():
                after = self.culprit.pass_(module)
        except Exception as error:  # of a pass under test: any
            return True if self.result.fault == "error" and _signature(error) == self._kind_of_error() else None
        return None if self.result.fault == "error" else self._wrong(module, after, checker)

    def _kind_of_error(self):
        return self.error.split(":", 1)[0].strip().split(".")[-1]

    # ---- Which rewrite

    def find_rewrite(self):
        """Halves the number of rewrites that the pass may make."""
        result, before = self.result, self.culprit.before
        if self.culprit.pass_ is None:
            return
        run = get_global_func("transform.RunLimited")
        checker = Checker(seed=self.seed, kinds=[result.finding.kind] if result.finding else self.kinds)

        def limited(limit):
            try:
                module = _renewed(before) or before
                with self._scope():
                    after, seen = run(self.culprit.pass_, module, limit)
            except Exception as error:  # of a pass under test: any
                wrong = result.fault == "error" and _signature(error) == self._kind_of_error()
                return None, 0, True if wrong else None
            return after, int(seen), self._wrong(before, after, checker) is not None if result.fault == "result" else False

        _, total, wrong = limited(-1)
        if result.fault == "error":
            result.no_rewrite = "the pass throws"
            return
        if total == 0:
            result.no_rewrite = "the pass does not count its rewrites"
            return
        low, high = 0, total
        if not wrong or limited(0)[2] is not False:
            result.no_rewrite = "the pass changes results with no rewrite made, or not when it is run again"
            return
        while high - low > 1:
            middle = (low + high) // 2
            wrong = limited(middle)[2]
            if wrong is None:
                result.no_rewrite = "the pass does not make a valid program when rewrites are left out"
                return
            low, high = (low, middle) if wrong else (middle, high)
        result.rewrite, result.rewrites = high, total
        a, b = limited(high - 1)[0], limited(high)[0]
        if a is not None and b is not None:
            result.rewrite_diff = _changed_lines(a, b)

    # ---- The smallest program

    def make_small(self, budget):
        """Reduces what the pass was given."""
        result = self.result
        if self.culprit.pass_ is None:
            return
        if not has_relay(self.culprit.before):
            result.module, result.text = self.culprit.before, str(get_global_func("ir.AsText")(self.culprit.before))
            return
        kinds = [result.finding.kind] if result.finding else self.kinds
        # Smaller programs are short programs: an endless one among them is not waited for.
        checker = Checker(seed=self.seed, kinds=kinds, max_calls=2 * (result.finding.calls if result.finding else 0) + 4096)
        reducer = Reducer(lambda module: self._shows(module, checker), budget)
        start = self.culprit.before
        if result.finding and result.function != "main" and "main" in start:
            # The part that broke is a separate function: it is main from here on.
            from ..ir import IRModule

            alone = IRModule(dict(start.functions.items()), dict(start.type_definitions.items()))
            broken = alone[result.function]
            del alone["main"]
            alone["main"] = broken
            if typed(alone) is not None and self._shows(typed(alone), checker):
                start = alone
        try:
            result.module = reducer.run(start)
        except ValueError:
            # It takes types or functions that are not there when the pass is run alone.
            result.module = self.culprit.before
        result.tests = reducer.tests
        result.calls = count_calls(result.module)
        if result.fault == "result":
            found = self._shows(result.module, checker)
            if found is not None and found is not True:
                result.finding, result.function = found, found.function
        text = get_global_func("ir.AsText")
        result.text = str(text(result.module))
        with contextlib.suppress(Exception), self._scope():
            result.text_after = str(text(self.culprit.pass_(result.module)))


def _changed_lines(a, b):
    """The lines that differ but for the numbers of expressions, which move when one goes."""
    import difflib
    import re

    text = get_global_func("ir.AsText")
    lines = [[line for line in str(text(m)).splitlines() if not line.startswith(("#[", "//"))] for m in (a, b)]
    plain = [[re.sub(r"%\d+|\[\d+\](?![,\])])", "%", line) for line in side] for side in lines]
    out = []
    for what, i, j, k, n in difflib.SequenceMatcher(None, *plain, autojunk=False).get_opcodes():
        if what != "equal":
            out += ["-" + line for line in lines[0][i:j]] + ["+" + line for line in lines[1][k:n]]
    return "\n".join(out)


def _renewed(mod):
    """The module with every call made anew: a pass in Python that keeps what it made of an expression makes it again."""
    from .. import relay
    from ..ir import IRModule

    class Renewer(relay.ExprMutator):
        def visit_call(self, call):
            new = super().visit_call(call)
            return relay.Call(new.op, list(new.args), new.attrs, list(new._field("type_args"))) if new.same_as(call) else new

    functions = {}
    for var, func in mod.functions.items():
        if isinstance(func, relay.Function):
            func = relay.Function(list(func.params), Renewer().visit(func.body), func._field("ret_type"), list(func.type_params), func.attrs)
        functions[var] = func
    return typed(IRModule(functions, dict(mod.type_definitions.items())))


def _signature(error):
    return type(error).__name__
