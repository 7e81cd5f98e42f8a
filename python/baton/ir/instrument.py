# SPDX-License-Identifier: Apache-2.0
"""Instruments: code that runs around passes."""

import difflib
import functools
import inspect
import json
import sys
import warnings

from .._core import Object
from .._ffi import attach_classes, get_global_func, register_func, register_object
from .pass_names import chosen


@register_func("runtime.PrintText", override=True)
def _print_text(text):
    """Where C++ prints modules: sys.stdout as it is now, so that redirecting it works."""
    sys.stdout.write(str(text))


_HOOKS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass", "on_pass_failed", "on_pass_skipped")


def _warn_of_misspelt(cls, stacklevel):
    """A method that nearly has the name of a hook is never called: a warning."""
    for name in vars(cls):
        if not name.startswith("_") and name not in _HOOKS and callable(getattr(cls, name)):
            for near in difflib.get_close_matches(name, _HOOKS, 1, 0.84):
                warnings.warn(f"`{name}` of instrument `{cls.__name__}` is no hook; did you mean `{near}`?", stacklevel=stacklevel + 1)


def _hooks(cls, instance):
    """The hooks of an instance, None for missing ones. A hook that is not callable is a TypeError now, not in a pass."""
    out = []
    for name in _HOOKS:
        hook = getattr(instance, name, None)
        if hook is not None and not callable(hook):
            raise TypeError(f"`{name}` of instrument `{cls.__name__}` is {hook!r}; a hook is a method")
        out.append(hook)
    return out


def made_with(instrument):
    """How an instrument was made: {"class": "module:name", "args": [...], "kwargs": {...}}, or None where that is not known."""
    if isinstance(instrument, VerifyIR):  # in C++: its fields say all
        return {
            "class": "baton.ir.instrument:VerifyIR",
            "args": [[str(p) for p in instrument.properties], bool(instrument.contracts), bool(instrument.unchanged), bool(instrument.determinism)],
            "kwargs": {},
        }
    text = str(getattr(instrument, "origin", ""))
    return json.loads(text) if text else None


@register_object("instrument.PassInstrument")
class PassInstrument(Object):
    """Watches passes. Made by `pass_instrument`, or by a class derived from this one that has some of the hooks

    `enter_pass_ctx()`, `exit_pass_ctx()`: the context is entered, left;
    `should_run(mod, info)`: a bool. All of several instruments are asked, and a pass runs if all say yes;
    `run_before_pass(mod, info)`, `run_after_pass(mod, info)`: just before the pass, right after it;
    `on_pass_failed(mod, info, error)`: the pass threw; `mod` is what it was given, `error` "Kind: message";
    `on_pass_skipped(mod, info, reason)`: it does not run: disabled, above the level, blocked, or needless.

    A class attribute `observes = True` says that the instrument only watches: it sees the passes of contexts nested in its
    own too (its `enter_pass_ctx`, `exit_pass_ctx` and `should_run` are not called for these).

    An instrument may be on contexts of several threads at once. Its hooks run with the GIL held, so a single operation
    on a Python object is safe; several that belong together want a `threading.Lock`.
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _warn_of_misspelt(cls, 2)

    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls)
        object.__setattr__(self, "_made_with", (args, kwargs))
        return self

    def __init_handle_by_constructor__(self, make, *args):
        super().__init_handle_by_constructor__(make, *args)
        cls, (given, named) = type(self), self._made_with
        if "<locals>" in cls.__qualname__ or cls.__module__ == "__main__":
            return
        try:
            text = json.dumps({"class": f"{cls.__module__}:{cls.__qualname__}", "args": given, "kwargs": named})
        except (TypeError, ValueError):
            return  # made with something that has no text
        get_global_func("instrument.SetOrigin")(self, text)

    def __init__(self):
        # C++ keeps the hooks, and the hooks keep what they are methods of. That is a twin that shares the state, not this
        # object, which keeps C++: nothing would ever free such a ring.
        twin = type(self).__new__(type(self))
        object.__setattr__(twin, "__dict__", self.__dict__)
        self.__init_handle_by_constructor__(
            get_global_func("instrument.PassInstrument"),
            type(self).__name__,
            inspect.getattr_static(type(self), "observes", False) is True,
            *_hooks(type(self), twin),
        )


# The class of instruments of C++.
@register_object("instrument.FunctionInstrument")
class _FunctionInstrument(PassInstrument):
    __slots__ = ()


def pass_instrument(pi_cls=None):
    """Class decorator: makes a class with any of the hooks of PassInstrument a class of instruments.

        @baton.instrument.pass_instrument
        class CountPasses:
            def __init__(self): self.count = 0
            def run_before_pass(self, mod, info): self.count += 1

        with baton.transform.PassContext(instruments=[CountPasses()]): ...

    The instance's own state and methods stay reachable.
    """

    def create(cls):
        if not inspect.isclass(cls):
            raise TypeError(f"pass_instrument decorates classes that have some of {', '.join(_HOOKS)}; got {cls!r}")
        _warn_of_misspelt(cls, 3)

        class PyPassInstrument(PassInstrument):
            def __init__(self, *args, **kwargs):
                inst = cls(*args, **kwargs)
                self.__init_handle_by_constructor__(
                    get_global_func("instrument.PassInstrument"), cls.__name__, bool(getattr(inst, "observes", False)), *_hooks(cls, inst)
                )
                self._inst = inst

            def __getattr__(self, name):
                if name == "_inst":
                    raise AttributeError(name)
                return getattr(self._inst, name)

        functools.update_wrapper(PyPassInstrument.__init__, cls.__init__)
        PyPassInstrument.__name__, PyPassInstrument.__qualname__ = cls.__name__, cls.__qualname__
        PyPassInstrument.__doc__, PyPassInstrument.__module__ = cls.__doc__, cls.__module__
        return PyPassInstrument

    return create(pi_cls) if pi_cls is not None else create


class _Render:
    """`render` of a PassTimingInstrument: of an instance its own report; of the class that of the instrument that this thread
    made last, as older programs want it."""

    def __get__(self, instance, owner=None):
        text = get_global_func("instrument.RenderTimePassProfiles")
        return text if instance is None else functools.partial(text, instance)


def _budgets(budgets):
    if budgets is not None and not isinstance(budgets, dict):
        raise TypeError(f'budgets takes a dict by name of a pass, as {{"FuseOps": {{"time": 0.5}}}}, got {budgets!r}')
    for name, budget in (budgets or {}).items():
        if not isinstance(name, str):
            raise TypeError(f"budgets takes names of passes, got {name!r} among them")
        for what, limit in budget.items() if isinstance(budget, dict) else ():
            if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit >= 0:
                raise ValueError(f"the budget of `{name}`: `{what}` takes a number from 0 on, got {limit!r}")
    if budgets:
        chosen("budgets", [name for name in budgets if name != "*"], stacklevel=3)
    return {k: dict(v) if isinstance(v, dict) else v for k, v in (budgets or {}).items()}


@register_object("instrument.PassTimingInstrument")
class PassTimingInstrument(PassInstrument):
    """Measures how long each pass takes, nested as passes nest, a tree for each thread.

        timing = PassTimingInstrument(detail=True)
        with PassContext(instruments=[timing]):
            seq(mod)
        print(timing.render())                  # text; to_json() and to_chrome_trace() hold the same
        open("trace.json", "w").write(timing.to_chrome_trace())   # for chrome://tracing and Perfetto

    Each line has the pass's milliseconds, in brackets those outside of inner passes, and its share. detail: also CPU time,
    growth of the heap and of the process's peak in bytes, nodes before and after; counting takes time itself.
    budgets: by name of a pass, or "*" for those not named, a dict of `time` in seconds, `memory` (growth of the heap) in
    bytes, `growth` (nodes after by nodes before). A pass above its budget is noted in `over_budget` and in the report; with
    `strict` it is a RuntimeError that names it. Entering a context clears what was measured in that thread.
    """

    render = _Render()

    def __init__(self, detail=False, budgets=None, strict=False):
        self.__init_handle_by_constructor__(get_global_func("instrument.MakePassTimingInstrument"), bool(detail), _budgets(budgets), bool(strict))

    def to_json(self):
        """`{"threads": [{"thread": 0, "passes": [{"pass": name, "wall_ms": ..., "passes": [...]}]}], "over_budget": [...]}`"""
        return get_global_func("instrument.TimingJson")(self)

    def to_chrome_trace(self):
        """Events for chrome://tracing and Perfetto, as JSON."""
        return get_global_func("instrument.TimingChromeTrace")(self)

    @property
    def over_budget(self):
        """Returns the passes above their budget, a line each."""
        return [str(x) for x in get_global_func("instrument.TimingNotes")(self)]


_when_watched, _watched = [], False


def when_watched(function):
    """Calls a function when the first watchdog is made; at once where there was one. Visitors say from then on where they are."""
    if _watched:
        function()
    else:
        _when_watched.append(function)


def _start_watching():
    global _watched
    _watched = True
    while _when_watched:
        _when_watched.pop()()


@register_object("instrument.PassWatchdog")
class PassWatchdog(PassInstrument):
    """Says on standard error which pass is slow, while it is: after `seconds`, then at twice the time, and so on.

    Names the pass, the function that it is about, and the expression that it visits. `reports` has all lines afterwards.
    """

    def __init__(self, seconds=1.0):
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise TypeError(f"seconds takes a number, got {seconds!r}")
        self.__init_handle_by_constructor__(get_global_func("instrument.PassWatchdog"), float(seconds))
        _start_watching()

    @property
    def reports(self):
        """Returns the reports, a line each; complete when the passes have ended."""
        return [str(x) for x in get_global_func("instrument.WatchdogReports")(self)]


def _patterns(what, names):
    if names is None:
        return []
    if isinstance(names, str) or not all(isinstance(n, str) for n in names):
        raise TypeError(f"{what} takes a list of names or patterns, got {names!r}")
    return list(names)


@register_object("instrument.PrintIR")
class PrintIR(PassInstrument):
    """Prints modules around passes; a choice of everything that PrintIRBefore and PrintIRAfter fix.

    before, after, on_failure: when; on_failure prints what the pass that failed was given. only_changed: after a pass only
    if the text differs. diff: after a pass the lines that differ. passes, functions: names or patterns with * and ?.
    directory: a file a step, numbered, instead of printing. file: a text file to print to (default: standard output).
    """

    def __init__(
        self,
        before=False,
        after=True,
        on_failure=True,
        only_changed=False,
        diff=False,
        passes=None,
        functions=None,
        directory=None,
        file=None,
        show_meta_data=False,
        name="PrintIR",
    ):
        sink = None
        if file is not None:
            if not callable(getattr(file, "write", None)):
                raise TypeError(f"file takes an open text file, got {file!r}")

            def sink(text):
                file.write(str(text))

        self.__init_handle_by_constructor__(
            get_global_func("instrument.PrintIR"),
            name,
            bool(before),
            bool(after),
            bool(on_failure),
            bool(only_changed),
            bool(diff),
            bool(show_meta_data),
            _patterns("passes", passes),
            _patterns("functions", functions),
            str(directory or ""),
            sink,
        )


class PrintIRBefore(PrintIR):
    """Prints the module before each pass, or before those of `pass_names`; to stdout or `file`."""

    def __init__(self, pass_names=None, file=None, show_meta_data=False):
        super().__init__(before=True, after=False, on_failure=False, passes=pass_names, file=file, show_meta_data=show_meta_data, name="PrintIRBefore")


class PrintIRAfter(PrintIR):
    """Prints the module after each pass, or after those of `pass_names`; to stdout or `file`."""

    def __init__(self, pass_names=None, file=None, show_meta_data=False):
        super().__init__(before=False, after=True, on_failure=False, passes=pass_names, file=file, show_meta_data=show_meta_data, name="PrintIRAfter")


PrintBefore = PrintBeforeAll = PrintIRBefore
PrintAfter = PrintAfterAll = PrintIRAfter


@register_object("instrument.VerifyIR")
class VerifyIR(PassInstrument):
    """Checks after each pass what it made; an InternalError names the pass.

    properties: must hold after each pass (see `baton.transform.list_properties()`); types, once they did. contracts: what a pass says that it
    establishes holds. unchanged: a pass has not changed the module that it was given, nor returned that very module changed.
    determinism: a second run on the same module gives an equal one.
    """

    def __init__(self, properties=("WellFormed", "WellTyped"), contracts=True, unchanged=True, determinism=False):
        self.__init_handle_by_constructor__(
            get_global_func("instrument.VerifyIR"), _patterns("properties", properties), bool(contracts), bool(unchanged), bool(determinism)
        )


attach_classes(__name__, "instrument.")
