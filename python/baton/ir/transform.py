# SPDX-License-Identifier: Apache-2.0
"""Passes and the context that they run in. Gating, order and instruments are the business of C++; this is a thin cover."""

import functools
import inspect

from .._core import Object
from .._ffi import _init_api, register_object

_init_api("transform", __name__)


def _api(name):
    from .._ffi import get_global_func
    return get_global_func("transform." + name)


@register_object("transform.PassInfo")
class PassInfo(Object):
    """What the framework knows of a pass: `opt_level`, `name`, `required`."""

    __slots__ = ()

    def __init__(self, opt_level, name, required=None):
        self.__init_handle_by_constructor__(_api("PassInfo"), opt_level, name, list(required or ()))


@register_object("transform.PassContext")
class PassContext(Object):
    """The environment of passes; entered by `with`.

    opt_level: passes up to this level run (default 2). required_pass, disabled_pass: names; a disabled pass does not run even
    if it is required. instruments: called around each pass, in this order. config: options by registered key; see
    `PassContext.list_configs()`.
    """

    __slots__ = ()

    def __init__(self, opt_level=2, required_pass=None, disabled_pass=None, instruments=None, config=None, trace=None):
        for what, names in (("required_pass", required_pass), ("disabled_pass", disabled_pass)):
            if isinstance(names, str) or not isinstance(names, (list, tuple, set, type(None))):
                raise TypeError(f"{what} takes a list of names of passes, got {names!r}")
        if config is not None and not isinstance(config, dict):
            raise TypeError(f"config takes a dict of options by key, got {config!r}")
        self.__init_handle_by_constructor__(_api("PassContext"), opt_level, sorted(required_pass) if isinstance(required_pass, set)
                                            else list(required_pass or ()), sorted(disabled_pass or ())
                                            if isinstance(disabled_pass, set) else list(disabled_pass or ()),
                                            list(instruments or ()), dict(config or {}))

    def __enter__(self):
        _api("EnterPassContext")(self)
        return self

    def __exit__(self, ptype, value, trace, config=None):
        try:
            _api("ExitPassContext")(self)
        except BaseException as on_exit:
            if value is None:
                raise
            # The first exception wins.
            if hasattr(value, "add_note"):
                value.add_note(f"while leaving the PassContext: {type(on_exit).__name__}: {on_exit}")
        return False

    def override_instruments(self, instruments):
        """Exits the instruments there are, puts these in place, enters them."""
        _api("OverrideInstruments")(self, list(instruments or ()))

    @staticmethod
    def current():
        """The innermost context of this thread; a default one if none was entered."""
        return _api("GetCurrentPassContext")()

    @staticmethod
    def list_configs():
        """The options that `config` takes: a dict of the type, by key."""
        return dict(_api("ListConfigs")().items())


@register_object("transform.Pass")
class Pass(Object):
    """Base of all passes. `pass_(mod)` runs it under the current context."""

    __slots__ = ()

    @property
    def info(self):
        """The pass's PassInfo."""
        return _api("Info")(self)

    def __call__(self, mod):
        """The module that the pass makes of `mod`, which stays as it is."""
        return _api("RunPass")(self, mod)

    def __repr__(self):
        info = self.info
        return f"<pass {info.name}, opt_level={info.opt_level}>"

    __str__ = __repr__


@register_object("transform.ModulePass")
class ModulePass(Pass):
    """A pass over whole modules; made by `module_pass`."""

    __slots__ = ()


@register_object("transform.Sequential")
class Sequential(Pass):
    """Passes in order; those that the context does not enable are left out, prerequisites are run before.

    Also called with more arguments than the passes: `opt_level` of the sequence itself, `name`, `required`.
    """

    __slots__ = ()

    def __init__(self, passes=None, opt_level=0, name="sequential", required=None):
        self.__init_handle_by_constructor__(_api("Sequential"), list(passes or ()), opt_level, name, list(required or ()))


def sequential(passes=None, opt_level=0, name="sequential", required=None):
    """The same as `Sequential(passes, ...)`."""
    return Sequential(passes, opt_level, name, required)


def make_pass_decorator(make, base, method):
    """A decorator that turns functions and classes into passes of one kind.

    make: (body, PassInfo) -> pass of C++. base: the Python class of such passes. method: the name of a class's body.
    """

    def decorator(pass_func=None, opt_level=None, name=None, required=None):
        if opt_level is None:
            raise ValueError("a pass needs an opt_level: from which level of the context on it runs")
        required = list(required or ())

        def create(pass_arg):
            fname = name or getattr(pass_arg, "__name__", type(pass_arg).__name__)
            info = PassInfo(opt_level, fname, required)
            if inspect.isclass(pass_arg):
                return _wrap_class(pass_arg, info, make, base, method)
            if not callable(pass_arg):
                raise TypeError(f"a pass is made of a function or a class with `{method}`, not of {pass_arg!r}")
            return make(pass_arg, info)

        return create(pass_func) if pass_func is not None else create

    return decorator


def _wrap_class(pass_cls, info, make, base, method):
    """A class of passes out of a class whose `method` is the body; each instance keeps its own state."""
    if not callable(getattr(pass_cls, method, None)):
        raise TypeError(f"class `{pass_cls.__name__}` has no method `{method}`, which is the body of the pass")

    class PyPass(base):
        def __init__(self, *args, **kwargs):
            inst = pass_cls(*args, **kwargs)
            self.__init_handle_by_constructor__(make, getattr(inst, method), info)
            self._inst = inst

        def __getattr__(self, name):
            # The instance's own state and methods; `_inst` itself is missing while __init__ runs.
            if name == "_inst":
                raise AttributeError(name)
            return getattr(self._inst, name)

    functools.update_wrapper(PyPass.__init__, pass_cls.__init__)
    PyPass.__name__, PyPass.__qualname__ = pass_cls.__name__, pass_cls.__qualname__
    PyPass.__doc__, PyPass.__module__ = pass_cls.__doc__, pass_cls.__module__
    return PyPass


def _ir_module():
    from .module import IRModule
    return IRModule


module_pass = make_pass_decorator(lambda body, info: _api("MakeModulePass")(body, info), ModulePass, "transform_module")
module_pass.__name__ = module_pass.__qualname__ = "module_pass"
module_pass.__doc__ = """Makes a pass over modules of a function `(mod, ctx) -> mod` or of a class with
`transform_module(self, mod, ctx)`.

    @baton.transform.module_pass(opt_level=2)
    def add_abs(mod, ctx):
        ...

Called with the function as argument it gives the pass at once. `name` is the function's or the class's own by default;
`required` names passes that run before.
"""


def PrintIR(header="", show_meta_data=False):
    """A pass that prints the module and returns it."""
    return _api("PrintIR")(header, show_meta_data)


def ApplyPassToFunction(transform, func_name_regex, error_if_no_function_matches_regex=False):
    """A pass that runs another on the functions whose names match, leaving the others alone."""
    import re

    @module_pass(opt_level=0, name=f"ApplyPassTo({transform.info.name})")
    def apply(mod, ctx):
        chosen = {v: f for v, f in mod.functions.items() if re.fullmatch(func_name_regex, v.name_hint)}
        if not chosen and error_if_no_function_matches_regex:
            raise ValueError(f"no function's name matches {func_name_regex!r}")
        out = mod.shallow_copy()
        for var, func in transform(_ir_module()(chosen, dict(mod.type_definitions.items()))).functions.items():
            out[var] = func
        return out

    return apply
