# SPDX-License-Identifier: Apache-2.0
"""Instruments: code that runs around passes."""

import functools
import inspect
import sys

from .._core import Object
from .._ffi import get_global_func, register_object

_HOOKS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


@register_object("instrument.PassInstrument")
class PassInstrument(Object):
    """Watches passes. Made by `pass_instrument`, or by a class derived from this one that has some of the hooks
    `enter_pass_ctx()`, `exit_pass_ctx()`, `should_run(mod, info)`, `run_before_pass(mod, info)`,
    `run_after_pass(mod, info)`. Of several instruments all are asked `should_run`, and a pass runs if all say yes."""

    def __init__(self):
        # C++ keeps the hooks, and the hooks keep what they are methods of. That is a twin that shares the state, not this
        # object, which keeps C++: nothing would ever free such a ring.
        twin = type(self).__new__(type(self))
        object.__setattr__(twin, "__dict__", self.__dict__)
        self.__init_handle_by_constructor__(get_global_func("instrument.PassInstrument"), type(self).__name__,
                                            *(getattr(twin, hook, None) for hook in _HOOKS))


# What an instrument in C++ arrives as.
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
            raise TypeError("pass_instrument decorates classes")

        class PyPassInstrument(PassInstrument):
            def __init__(self, *args, **kwargs):
                inst = cls(*args, **kwargs)
                self.__init_handle_by_constructor__(get_global_func("instrument.PassInstrument"), cls.__name__,
                                                    *(getattr(inst, hook, None) for hook in _HOOKS))
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


class PassTimingInstrument(PassInstrument):
    """Measures how long each pass takes; `render()` before the context ends."""

    def __init__(self):
        self.__init_handle_by_constructor__(get_global_func("instrument.MakePassTimingInstrument"))

    @staticmethod
    def render():
        """The report: milliseconds of each pass, nested as passes nest."""
        return get_global_func("instrument.RenderTimePassProfiles")()


class _PrintIR:
    def __init__(self, pass_names=None, file=None, show_meta_data=False):
        self.pass_names = None if pass_names is None else frozenset(pass_names)
        self.file, self.show_meta_data = file, show_meta_data

    def _print(self, when, mod, info):
        if self.pass_names is None or info.name in self.pass_names:
            print(f"// IR {when} {info.name}\n{mod.astext(self.show_meta_data)}", file=self.file or sys.stdout)


@pass_instrument
class PrintIRBefore(_PrintIR):
    """Prints the module before each pass, or before those of `pass_names`; to stdout or `file`."""

    def run_before_pass(self, mod, info):
        self._print("before", mod, info)


@pass_instrument
class PrintIRAfter(_PrintIR):
    """Prints the module after each pass, or after those of `pass_names`; to stdout or `file`."""

    def run_after_pass(self, mod, info):
        self._print("after", mod, info)


PrintBefore = PrintBeforeAll = PrintIRBefore
PrintAfter = PrintAfterAll = PrintIRAfter
