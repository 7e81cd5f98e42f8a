# SPDX-License-Identifier: Apache-2.0
"""Two modules on the same inputs: where they differ, or why that cannot be said."""

from .._ffi import get_global_func
from ..ir import TupleType
from ..ir.tensor_type import TensorType
from .compare import EXACT, REASSOCIATING, Difference, beyond_noise, differences, mostly_not_finite
from .finding import Finding
from .loops import check_loops
from .sample import KINDS, CannotSample, Sampler
from .typed import typed

LARGE = 8 << 20
"""Bytes of results from which an evaluation is costly: one sample must do where speed was asked for."""


class Evaluation:
    """The result of one function on one sample: `value`, or `error` (one line) and whether that is a fault of the program."""

    __slots__ = ("bytes", "calls", "error", "fault", "value")

    def __init__(self, value=None, error=None, fault=False, bytes_=0, calls=0):
        self.value, self.error, self.fault, self.bytes, self.calls = value, error, fault, bytes_, calls


class Checker:
    """Evaluates and compares, and remembers what operators gave. One thread at a time."""

    def __init__(self, seed=0, kinds=KINDS, sizes=None, max_calls=1 << 18, max_bytes=8 << 30, adaptive=False, rtol=None, atol=None):
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise ValueError(f"there are no samples of kind {unknown[0]!r}; there are {', '.join(KINDS)}")
        self.seed, self.kinds, self.sizes = int(seed), tuple(kinds), sizes
        self.max_calls, self.max_bytes, self.adaptive = max_calls, max_bytes, adaptive
        self.exact = EXACT if rtol is None and atol is None else type(EXACT)(rtol=rtol, atol=atol)
        self.loose = REASSOCIATING if rtol is None and atol is None else type(EXACT)(rtol=rtol, atol=atol, exact=False)
        self.session = get_global_func("relay.guard.Session")()
        self._evaluate = get_global_func("relay.guard.Evaluate")
        self._evaluate.release_gil = True
        self._counts = get_global_func("relay.guard.Counts")
        self._next = get_global_func("relay.guard.NextGeneration")
        self._last, self._inputs, self._drowned = {}, {}, False
        self.evaluations = 0

    # ---- Inputs

    def sample(self, types, kind, definitions, size=None, names=()):
        """(values, whether they may be used again): references change while a program runs."""
        key = kind, size, tuple(str(t) for t in types), tuple(names)
        if key in self._inputs:
            return self._inputs[key], True
        sampler = Sampler(kind, self.seed, definitions, size, weights=len(types) > 8)
        names = names or [""] * len(types)
        values = [sampler.value(t, name=name) for t, name in zip(types, names, strict=True)]
        if sampler.has_reference:
            return values, False
        if all(isinstance(t, TensorType) for t in types):  # names of data types may mean others in another module
            if len(self._inputs) > 256:
                self._inputs.clear()
            self._inputs[key] = values
        return values, True

    # ---- Evaluation

    def evaluate(self, func, args, mod, snap=False, noise=0.0, seed=0, max_calls=None, session=None):
        """An Evaluation. Never raises for what the program does."""
        self.evaluations += 1
        limit = self.max_calls if max_calls is None else min(max_calls, self.max_calls)
        try:
            value = self._evaluate(session or self.session, func, args, mod, snap, float(noise), int(seed), limit, self.max_bytes)
        except Exception as error:  # of any kind: programs under test are broken ones
            text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            # A program that goes on long after the one before had ended is broken; one that is too long anyway is not for us.
            endless = "BudgetError" in text and "calls" in text and limit < self.max_calls
            unable = type(error).__name__ == "UnsupportedError" or "BudgetError" in text or isinstance(error, MemoryError)
            return Evaluation(error=text.removeprefix("BudgetError: "), fault=endless or not unable)
        counts = self._counts(session or self.session)
        return Evaluation(value, bytes_=int(counts[1]), calls=int(counts[0]))

    # ---- Comparison

    def check(self, before, after, pass_name="", reassociates=False, changed_only=True):
        """(Finding or None, reasons): reasons are (function, why it was not checked)."""
        from .. import relay

        reasons = []
        old = {var.name_hint: func for var, func in before.functions.items() if isinstance(func, relay.Function)}
        new = {var.name_hint: func for var, func in after.functions.items() if isinstance(func, relay.Function)}
        if not old:
            return self._check_loops(before, after, pass_name, reassociates, changed_only)
        if "main" in old and "main" not in new:
            return None, [("main", "the pass removed it" if new else "the pass made PrimFuncs of it")]
        names = [name for name in old if name in new]
        touched = any(name not in new or not new[name].same_as(old[name]) for name in old) or len(new) != len(old)
        if changed_only and not touched:
            return None, reasons
        # Callees first: the function that is named is the one that was rewritten; `main` has the last word.
        names.sort(key=lambda name: name == "main")
        for name in names:
            if changed_only and new[name].same_as(old[name]) and name != "main" and "main" in old:
                continue
            found, why = self.check_function(name, old[name], before, new[name], after, pass_name, reassociates)
            if why:
                reasons.append((name, why))
            if found is not None:
                found.before, found.after = before, after
                return found, reasons
        self._next(self.session)
        return None, reasons

    def _check_loops(self, before, after, pass_name, reassociates, changed_only):
        """The same for PrimFuncs, by their interpreter."""
        reasons = []
        new = {var.name_hint: func for var, func in after.functions.items()}
        for var, func in before.functions.items():
            name = var.name_hint
            if name not in new or type(func).__name__ != "PrimFunc" or changed_only and new[name].same_as(func):
                continue
            found, why = check_loops(self, name, func, new[name], self.loose if reassociates else self.exact)
            if why:
                reasons.append((name, why))
            if found is not None:
                found.pass_name, found.before, found.after = pass_name, before, after
                return found, reasons
        return None, reasons

    def check_function(self, name, old, before, new, after, pass_name, reassociates):
        """(Finding or None, why it was not checked or None) of one function before and after."""
        types, why = self._types(name, old, before, new)
        if why:
            return None, why
        definitions = list(after.type_definitions.items()) or list(before.type_definitions.items())
        tolerance = self.loose if reassociates else self.exact
        evaluated, why = 0, None
        for kind in self.kinds:
            sizes = [None] if not _has_open(types) else self.sizes or [None, 1, 4, 8]
            for size in sizes:
                try:
                    found, why_here, weight = self._on_sample(name, old, before, new, after, types, kind, size, definitions, tolerance)
                except CannotSample as error:
                    return None, str(error)
                if why_here is None:
                    break
            if why_here is not None:
                why = why or why_here
                continue
            evaluated += 1
            if found is not None:
                found.pass_name = pass_name
                return found, None
            if self.adaptive and weight > LARGE and not self._drowned:
                break
        return None, None if evaluated else why

    def _on_sample(self, name, old, before, new, after, types, kind, size, definitions, tolerance):
        """(Finding or None, why the sample says nothing or None, bytes that the program made)."""
        names = [p.name_hint for p in old.params]
        args, again = self.sample(types, kind, definitions, size, names)
        first = self._remembered(old, before, kind, size, args) if again else None
        if first is None:
            first = self.evaluate(old, args, before)
        if first.error is not None:
            return None, f"it cannot be evaluated before the pass: {first.error}", 0
        others = args if again else self.sample(types, kind, definitions, size, names)[0]
        second = self.evaluate(new, others, after, snap=kind not in ("special", "extreme"), max_calls=64 * first.calls + 8192)
        if second.error is not None and not second.fault:
            return None, f"it cannot be evaluated after the pass: {second.error}", 0
        if again and second.error is None:
            self._remember(new, after, kind, size, others, second)

        def finding(difference):
            inputs = dict(zip(names, args if again else self.sample(types, kind, definitions, size, names)[0], strict=True))
            return Finding("", name, difference, kind, self.seed, size, inputs, calls=first.calls)

        if second.error is not None:
            return finding(Difference("result", f"evaluation fails after the pass: {second.error}")), None, 0
        self._drowned = kind not in ("special", "extreme") and mostly_not_finite(first.value)
        states = [(first.value, second.value, "result")]
        if not again:
            states += [(x, y, f"%{p.name_hint}") for x, y, p in zip(args, others, old.params, strict=True)]
        for x, y, path in states:
            found = differences(x, y, tolerance, path)
            if found and all(d.mask is not None for d in found):
                found = self._confirmed(old, before, new, after, types, kind, size, definitions, tolerance, path)
            if found:
                return finding(found[0]), None, first.bytes
        return None, None, first.bytes

    def _confirmed(self, old, before, new, after, types, kind, size, definitions, tolerance, path):
        """The differences that stay when nothing is taken for what it only comes close to, and that rounding does not explain."""
        plain = get_global_func("relay.guard.Session")()
        names = [p.name_hint for p in old.params]
        index = None if path == "result" else names.index(path[1:])

        def state(func, mod, **how):
            args = self.sample(types, kind, definitions, size, names)[0]
            out = self.evaluate(func, args, mod, session=plain, **how)
            return None if out.error is not None else out.value if index is None else args[index]

        x, y = state(old, before), state(new, after)
        if x is None or y is None:
            return []
        if not differences(x, y, tolerance, path):
            return []
        noisy = []
        draws = 16  # each misses a tie between two equal numbers half the time
        for seed in range(1, draws + 1):
            value = state(old, before, noise=2.0, seed=seed)
            if value is not None:
                noisy.append(value)
            if seed in (1, 4) and (gross := beyond_noise(x, y, noisy, tolerance, path, gross=True)):
                return gross
            if seed % 4 == 0 and not (found := beyond_noise(x, y, noisy, tolerance, path)):
                break
        return found

    def _types(self, name, old, before, new):
        """(types of the parameters, why there are none)."""
        if len(old.params) != len(new.params):
            return None, f"it has {len(new.params)} parameters after the pass, {len(old.params)} before"
        types = []
        for p, q in zip(old.params, new.params, strict=True):
            a, b = _type_of(p), _type_of(q)
            if a is None and b is None:
                whole = typed(before)
                if whole is None:
                    return None, f"parameter %{p.name_hint} has no type"
                func = whole[name]
                return [_type_of(q) for q in func.params], None
            if a is not None and b is not None and a != b and not (_has_open([a]) or _has_open([b])):
                return None, f"parameter %{p.name_hint} is {b} after the pass, {a} before"
            types.append(a if b is None or (a is not None and not _has_open([a])) else b)
        return types, None

    # ---- The values of the last pass's result are those of the next one's input.

    def _remembered(self, func, mod, kind, size, args):
        entry = self._last.get((kind, size))
        if entry is None or not entry[0].same_as(func) or not _same_module(entry[1], mod) or not _same_args(entry[2], args):
            return None
        return entry[3]

    def _remember(self, func, mod, kind, size, args, evaluation):
        self._last[(kind, size)] = (func, mod, args, evaluation)


def _same_args(a, b):
    return len(a) == len(b) and all(x is y or x.same_as(y) if hasattr(x, "same_as") else x is y for x, y in zip(a, b, strict=True))


def _same_module(a, b):
    if a.same_as(b):
        return True
    x, y = list(a.functions.items()), list(b.functions.items())
    return len(x) == len(y) and len(x) <= 64 and all(f.same_as(g) for (_, f), (_, g) in zip(x, y, strict=True))


def has_relay(mod):
    """Whether some function of a module is one of Relay."""
    from ..relay import Function

    return any(isinstance(func, Function) for _, func in mod.functions.items())


def _type_of(param):
    return param.type_annotation if param.type_annotation is not None else param.checked_type_


def _has_open(types):
    """Whether some dimension of a tensor among them is open."""
    work = list(types)
    while work:
        t = work.pop()
        if isinstance(t, TupleType):
            work.extend(t.fields)
        for dim in getattr(t, "shape", ()):
            if not isinstance(getattr(dim, "value", dim), int):
                return True
    return False


def compare_modules(before, after, *, reassociates=False, seed=0, kinds=KINDS, **options):
    """Evaluates two modules on the same inputs: (Finding or None, reasons why functions were not compared).

        found, why = baton.guard.compare_modules(mod, my_pass(mod))
        assert found is None, found.text()

    All functions that both have are compared. Options: those of `Checker`.
    """
    return Checker(seed=seed, kinds=kinds, **options).check(before, after, "the change", reassociates, changed_only=False)
