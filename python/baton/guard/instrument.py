# SPDX-License-Identifier: Apache-2.0
"""SemanticGuard: the instrument that notices a pass that changes what a program computes."""

import threading

from ..error import InternalError, register_error
from ..ir.instrument import PassInstrument
from .checker import Checker, has_relay
from .sample import KINDS


@register_error
class SemanticGuardError(InternalError):
    """A pass changed what the program computes. `finding` says how."""

    finding = None


class _Frame:
    __slots__ = ("changes", "findings", "inner", "loose", "mod", "name", "sound")

    def __init__(self, mod, info, findings):
        self.mod, self.name, self.findings, self.inner = mod, str(info.name), findings, False
        self.loose, self.changes = info.reassociates, info.changes_results
        self.sound = mod  # how far the passes within have been found to keep what `mod` computes


class SemanticGuard(PassInstrument):
    """Evaluates the module before and after each pass on sampled inputs, and names the first pass that changes a result.

        with PassContext(opt_level=3, instruments=[SemanticGuard()]):
            lib = relay.build(mod, target="llvm")       # SemanticGuardError: pass `FoldScaleAxis` changed what @main computes ...

    mode: "raise" at the first finding, or "record" all in `findings` and go on. sample: "all" evaluates each function on all
    kinds of samples around each pass; "changed" the functions that the pass changed, and large programs on one sample;
    an int n the same for every n-th pass that changes something (when it finds something, it goes back to the pass that did
    it). seed: of the samples. kinds: of samples, from `baton.guard.KINDS`. passes: only these; skip: not these, in addition to
    passes that are there to change results, such as gradients. reassociating: passes, in addition to built-in ones, that may
    round elsewhere, and are compared with a wider tolerance. rtol, atol: instead of tolerances by element type.

    `not_checked` has (pass, function, why) for what could not be evaluated. Operators are evaluated one by one, by the
    interpreter, also those of fusion groups; PrimFuncs only with sample="all". Needs NumPy.
    """

    observes = True

    def __init__(
        self,
        mode="raise",
        sample="all",
        seed=0,
        kinds=KINDS,
        passes=None,
        skip=(),
        reassociating=(),
        rtol=None,
        atol=None,
        max_calls=1 << 18,
        max_bytes=8 << 30,
    ):
        if mode not in ("raise", "record"):
            raise ValueError(f"mode is \"raise\" or \"record\", not {mode!r}")
        every = sample if isinstance(sample, int) and not isinstance(sample, bool) else 1
        if sample not in ("all", "changed") and (isinstance(sample, (bool, str)) or not isinstance(sample, int) or sample < 1):
            raise ValueError(f"sample is \"all\", \"changed\" or a number of passes from 1 on, not {sample!r}")
        for what, names in (("passes", passes), ("skip", skip), ("reassociating", reassociating)):
            if isinstance(names, str) or not all(isinstance(name, str) for name in names or ()):
                raise TypeError(f"{what} takes a list of names of passes, got {names!r}")
        self._all, self._every, self._raise = sample == "all", every, mode == "raise"
        self._passes = None if passes is None else frozenset(passes)
        self._skip, self._reassociating = frozenset(skip), frozenset(reassociating)
        self._options = {"seed": seed, "kinds": kinds, "max_calls": max_calls, "max_bytes": max_bytes, "adaptive": not self._all,
                         "rtol": rtol, "atol": atol}  # fmt: skip
        Checker(**self._options)  # wrong options are an error now
        self._local, self._lock = threading.local(), threading.Lock()
        self._findings, self._reasons = [], {}
        self.checked = {}
        super().__init__()

    @property
    def findings(self):
        """The findings in order, a `Finding` each."""
        return list(self._findings)

    @property
    def not_checked(self):
        """(pass, function, why) for what could not be evaluated, each once."""
        return list(self._reasons)

    def summary(self):
        """Returns what was checked and what was not, in lines."""
        lines = [f"{sum(self.checked.values())} passes checked, {len(self._findings)} changed results"]
        lines += [found.text() for found in self._findings]
        lines += [f"not checked: @{function} around {name}, because {why}" for name, function, why in self._reasons]
        return "\n".join(lines)

    # ---- Hooks

    def exit_pass_ctx(self):
        """Lets go of what was remembered: values of a large model are large."""
        state = self._state()
        if not state.busy:
            state.frames, state.window, state.checker = [], [], None

    def run_before_pass(self, mod, info):
        """Keeps the module that the pass is given."""
        state = self._state()
        if not state.busy:
            for frame in state.frames[-1:]:
                frame.inner = True
            state.frames.append(_Frame(mod, info, state.found))

    def run_after_pass(self, mod, info):
        """Compares."""
        state = self._state()
        if state.busy:
            return
        frame = self._pop(state, str(info.name))
        if frame is None or (frame.mod.same_as(mod) and not self._all):
            return
        if not has_relay(frame.mod) and (not self._all or not len(frame.mod.functions)):
            return  # there are many PrimFuncs, and they run long
        if state.found > frame.findings:  # a pass within this one is to blame, and was named
            state.window.clear()
            return
        outer = state.frames[-1] if state.frames else None
        checked = frame.inner and frame.sound.same_as(mod) and not self._all
        if not checked:
            state.busy = True
            try:
                checked = self._check(state, frame, mod)
            finally:
                state.busy = False
        if checked and outer is not None and outer.sound.same_as(frame.mod):
            outer.sound = mod

    def on_pass_failed(self, mod, info, error):
        """Forgets the module."""
        state = self._state()
        if not state.busy:
            self._pop(state, str(info.name))

    # ---- Work

    def _state(self):
        state = self._local
        if not hasattr(state, "frames"):
            state.frames, state.busy, state.window, state.checker, state.found = [], False, [], None, 0
        return state

    def _pop(self, state, name):
        while state.frames:
            frame = state.frames.pop()
            if frame.name == name:
                return frame
        return None

    def _wanted(self, frame):
        return not frame.changes and frame.name not in self._skip and (self._passes is None or frame.name in self._passes)

    def _check(self, state, frame, after):
        """Whether the module after the pass is known to compute what the one before does."""
        name = frame.name
        if state.checker is None:
            state.checker = Checker(**self._options)
        if not self._wanted(frame):
            steps, state.window = state.window, []
            if steps:  # passes that came before this one, or within it, and were not yet compared
                self._compare_steps(state, steps)
            return False
        steps = [(name, frame.mod, after, frame.loose or name in self._reassociating)]
        if self._every > 1:
            window = state.window
            if frame.inner and window:
                # The end of a sequence: whatever of it has not been looked at.
                steps = window if window[-1][2].same_as(after) else [*window, (name, window[-1][2], after, steps[0][3])]
            elif window and not window[-1][2].same_as(frame.mod):
                steps = [*window, *steps]
            else:
                window += steps
                if len(window) < self._every:
                    return False
                steps = list(window)
            state.window = []
        return self._compare_steps(state, steps)

    def _compare_steps(self, state, steps):
        """Compares what some passes in a row made. Returns whether every one of them is known to keep results; notes or raises the first that does not."""
        if self._every > 1:
            name, _, after, _ = steps[-1]
            found, reasons = self._compare(state, name, steps[0][1], after, any(step[3] for step in steps))
            if found is None:
                self._note(reasons, name)
                return False
        clean = self._every == 1
        for step, old, new, may_round in steps:
            found, reasons = self._compare(state, step, old, new, may_round)
            self._note(reasons, step)
            clean = clean and found is None and not reasons
            if found is not None:
                state.found += 1
                with self._lock:
                    self._findings.append(found)
                if self._raise:
                    error = SemanticGuardError(found.text())
                    error.finding = found
                    raise error
        return clean

    def _compare(self, state, name, old, new, loose):
        found, reasons = state.checker.check(old, new, name, loose, changed_only=not self._all)
        with self._lock:
            self.checked[name] = self.checked.get(name, 0) + 1
        return found, reasons

    def _note(self, reasons, name):
        with self._lock:
            for function, why in reasons:
                self._reasons.setdefault((name, function, why))
