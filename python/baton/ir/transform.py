# SPDX-License-Identifier: Apache-2.0
"""Passes and the context that they run in. Gating, order and instruments are the business of C++; this is a thin cover."""

import contextlib
import difflib
import functools
import inspect
import sys
import threading

from .. import _core
from .. import error as errors
from .._core import Object
from .._ffi import _init_api, attach_classes, register_func, register_object
from ..error import did_you_mean
from .pass_names import _named, _names, chosen

_init_api("transform", __name__)


def _api(name):
    from .._ffi import get_global_func

    return get_global_func("transform." + name)


def _instruments(instruments):
    from .._core import Array
    from .instrument import PassInstrument

    if instruments is not None and not isinstance(instruments, (list, tuple, Array)):
        raise errors.TypeError(f"instruments takes a list of instruments, got {instruments!r}")
    for one in instruments or ():
        if not isinstance(one, PassInstrument):
            kind = f"the class `{one.__name__}`; make an instance of it" if inspect.isclass(one) else repr(one)
            raise errors.TypeError(f"instruments takes PassInstruments (see baton.instrument.pass_instrument), got {kind}")
    return list(instruments or ())


@register_object("transform.PassInfo")
class PassInfo(Object):
    """The framework's facts of a pass: `opt_level`, `name`, `required`; its contract `needs`, `establishes`, `keeps`,
    `destroys`, lists of properties (see `Scheduled`)."""

    __slots__ = ()

    def __init__(self, opt_level, name, required=None, needs=None, establishes=None, keeps=None, destroys=None):
        if isinstance(opt_level, bool) or not isinstance(opt_level, int):
            raise errors.TypeError(f"opt_level takes an int, got {opt_level!r}")
        self.__init_handle_by_constructor__(
            _api("PassInfo"),
            opt_level,
            _named("name", name),
            _names("required", required),
            *(_names(what, names, "properties") for what, names in (("needs", needs), ("establishes", establishes), ("keeps", keeps), ("destroys", destroys))),
        )


class _AtEnd:
    """Gives back what a thread has entered and not left."""

    def __init__(self):
        self.give_back = _api("GiveBackPassContexts")

    def __del__(self):
        self.give_back()


class _Thread(threading.local):
    """Made in each thread that enters a context; ends with the thread, before `join` returns."""

    def __init__(self):
        if threading.current_thread() is not threading.main_thread():
            self.at_end = _AtEnd()


_thread = _Thread()


class _ConfigType(str):
    """Type of an option. Programs for Relay read it as a dict with the name of the class of nodes: `["type"]`."""

    __slots__ = ()

    def __getitem__(self, key):
        if key != "type":
            return super().__getitem__(key)
        return {"int": "IntImm", "bool": "IntImm"}.get(str(self), str(self))


@register_object("transform.PassContext")
class PassContext(Object):
    """The environment of passes; entered by `with`.

    opt_level: passes up to this level run (default 2). required_pass, disabled_pass: names; a disabled pass does not run even
    if it is required. instruments: called around each pass, in this order. config: options by registered key; see
    `PassContext.list_configs()`. diag_ctx: a DiagnosticContext that collects what passes report. inherit_instruments: the
    observing instruments of the context around this one see its passes too; everything else is this context's own.
    isolate_instruments: an instrument that throws is taken out and noted in `instrument_errors`, and passes go on.
    num_threads: threads that function passes of C++ run on.
    """

    __slots__ = ()

    def __init__(
        self,
        opt_level=2,
        required_pass=None,
        disabled_pass=None,
        instruments=None,
        config=None,
        trace=None,
        *,
        diag_ctx=None,
        inherit_instruments=True,
        isolate_instruments=False,
        num_threads=1,
    ):
        if trace is not None:
            raise errors.TypeError(f"trace is the name of an early option that is not there, got {trace!r}; instruments=[...] are called around passes")
        if config is not None and not isinstance(config, dict):
            raise errors.TypeError(f"config takes a dict of options by key, got {config!r}")
        if isinstance(opt_level, bool) or not isinstance(opt_level, int):
            raise errors.TypeError(f"opt_level takes an int, got {opt_level!r}")
        self.__init_handle_by_constructor__(
            _api("PassContext"),
            opt_level,
            chosen("required_pass", required_pass),
            chosen("disabled_pass", disabled_pass),
            _instruments(instruments),
            dict(config or {}),
        )
        if diag_ctx is not None or not inherit_instruments or isolate_instruments or num_threads != 1:
            _api("PassContextOptions")(self, bool(inherit_instruments), bool(isolate_instruments), num_threads, diag_ctx)

    def __enter__(self):
        _api("EnterPassContext")(self)
        _thread.enters = True
        return self

    def __exit__(self, ptype, value, trace, config=None):
        try:
            _api("ExitPassContext")(self)
        except BaseException as on_exit:
            if value is None or isinstance(value, GeneratorExit):  # not reported to the caller
                raise
            # The first exception wins.
            if hasattr(value, "add_note"):
                value.add_note(f"while leaving the PassContext: {type(on_exit).__name__}: {on_exit}")
        return False

    @contextlib.contextmanager
    def adopted(self):
        """Makes a context that is entered in another thread the current one of this thread, for work that is handed over:

            ctx = PassContext.current()
            with ThreadPoolExecutor() as pool:
                def work(mod):
                    with ctx.adopted():
                        return seq(mod)
                mods = list(pool.map(work, mods))

        It is not entered: no instrument is told, but those of the context see the passes. Keep it entered until the work is done.
        """
        _api("AdoptPassContext")(self)
        try:
            yield self
        finally:
            _api("LeaveAdoptedPassContext")(self)

    def override_instruments(self, instruments):
        """Exits the instruments there are, puts these in place, enters them."""
        _api("OverrideInstruments")(self, _instruments(instruments))

    @staticmethod
    def current():
        """The innermost context of this thread; a default one if none was entered."""
        return _api("GetCurrentPassContext")()

    @staticmethod
    def list_configs():
        """The options that `config` takes: a dict of the type, by key. `["type"]` of a type is the name of its class."""
        return {key: _ConfigType(name) for key, name in _api("ListConfigs")().items()}


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
        if not isinstance(mod, _ir_module()):
            raise errors.TypeError(f"pass `{self.info.name}` takes an IRModule, got {type(mod).__name__} (IRModule.from_expr makes one of a function)")
        return _api("CallPass")(self, mod)

    def text(self):
        """The pass as a text that `parse_pipeline` reads back, with the options that it was made with. ValueError where no text makes it."""
        return str(_api("PipelineText")(self))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self  # nothing of it can change

    def __reduce__(self):
        return _of_text, (str(_api("PipelineText")(Sequential([self]))),)

    def __repr__(self):
        info = self.info
        return f"<pass {info.name}, opt_level={info.opt_level}>"

    __str__ = __repr__


def _of_text(text):
    """The only pass of a text: how passes are pickled."""
    return _api("ParsePipeline")(text).passes[0]


@register_object("transform.ModulePass")
class ModulePass(Pass):
    """A pass over whole modules; made by `module_pass`."""

    __slots__ = ()


# An example in the documents calls its pass `transform` and then asks `transform.ModulePass`.
ModulePass.ModulePass = ModulePass


@register_object("transform.Sequential")
class Sequential(Pass):
    """Passes in order; those that the context does not enable are left out, prerequisites are run before.

    Also called with more arguments than the passes: `opt_level` of the sequence itself, `name`, `required`.
    """

    __slots__ = ()

    def __init__(self, passes=None, opt_level=0, name="sequential", required=None):
        if isinstance(opt_level, bool) or not isinstance(opt_level, int):
            raise errors.TypeError(f"opt_level takes an int, got {opt_level!r}")
        self.__init_handle_by_constructor__(_api("Sequential"), _passes(passes), opt_level, _named("name", name), _names("required", required))


@register_object("transform.Scheduled")
class Scheduled(Pass):
    """Passes in order, by their contracts (see PassInfo): what a pass needs and what does not hold is established before it, a
    pass all of whose `establishes` hold is left out, and what was destroyed is restored only when it is needed, at the latest
    at the end if `ends_with` names it. Properties: `list_properties()`.
    """

    __slots__ = ()

    def __init__(self, passes=None, name="scheduled", ends_with=None):
        self.__init_handle_by_constructor__(_api("Scheduled"), _passes(passes), _named("name", name), _names("ends_with", ends_with, "properties"))


def _passes(passes):
    """A list of passes; None among them is for C++ to refuse when it gets there."""
    if isinstance(passes, Pass) or passes is not None and not hasattr(passes, "__iter__"):
        raise errors.TypeError(f"a sequence takes a list of passes, got {passes!r}")
    passes = list(passes or ())
    for one in passes:
        if one is not None and not isinstance(one, Pass):
            kind = f"{one!r}; is a pair of parentheses missing?" if callable(one) else repr(one)
            raise errors.TypeError(f"a sequence takes passes, got {kind}")
    return passes


def list_properties():
    """Properties of modules that contracts of passes may name: a dict of what each means, by name."""
    return {str(name): str(_api("PropertyDoc")(name)) for name in _api("ListProperties")()}


def parse_pipeline(text):
    """The sequence of passes that a text says.

        parse_pipeline("InferType,FuseOps(max_depth=64),tir.UnrollLoop(auto_max_step=16)")

    Names are those of passes, `tir.` or `relay.` before them choose the layer. Options are the arguments that a pass is made
    with, or options of the PassContext that belong to it, which hold while it runs: the last part of a key
    (`relay.FuseOps.max_depth`), or a field (`tir.UnrollLoop` has `auto_max_step`). Values: 3, 2.5, true, false, none, "text",
    [lists], {"key": value}. `Sequential(A,B)` and `Scheduled(A,B,ends_with=["Typed"])` nest. Raises ValueError that shows the
    place and the nearest names.
    """
    if not isinstance(text, str):
        raise errors.TypeError(f"a pipeline is a text, got {text!r}")
    return _api("ParsePipeline")(text)


def pipeline_text(pass_):
    """The text of a pass; `parse_pipeline` reads it back. ValueError for passes that no name makes."""
    return pass_.text()


def join_pipeline(name, before=None, after=None, pipeline="DefaultPipeline"):
    """From now on a built-in pipeline has this pass, which is registered as `relay._transform.NAME`.

        baton.register_func("relay._transform.DropNopReshape", DropNopReshape)
        join_pipeline("DropNopReshape", before="FuseOps")

    It comes before the first pass called `before`, or after the last called `after`, or at the end. pipeline: "DefaultPipeline",
    between import and lowering, or "LowerPipeline" over PrimFuncs. `leave_pipeline` takes it out.
    """
    _api("JoinPipeline")(pipeline, name, before or "", after or "")


def leave_pipeline(name, pipeline="DefaultPipeline"):
    """Takes a pass that joined a built-in pipeline out of it."""
    _api("LeavePipeline")(pipeline, name)


def rewrite_allowed():
    """Whether a pass may make its next rewrite. `baton bisect` has passes stop after some of them, to find the one that goes wrong;
    a pass in Python that asks before each rewrite that it could as well leave out takes part."""
    return bool(_api("RewriteAllowed")())


def explain(pass_, mod, json=False):
    """Runs a pass on a module and says why each pass within ran, was inserted or was skipped: (module, rows or JSON)."""
    out, text = _api("ExplainPipeline")(pass_, mod, bool(json))
    return out, str(text)


def sequential(passes=None, opt_level=0, name="sequential", required=None):
    """The same as `Sequential(passes, ...)`."""
    return Sequential(passes, opt_level, name, required)


def _plain(value):
    """Tuples and arrays as lists, NumPy's numbers as Python's."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value.tolist() if type(value).__module__ == "numpy" else value


class PassFunction:
    """A built-in pass as a function of its options: `FuseOps(fuse_opt_level=-1)`. Made from the registry.

    key: the global function, "relay._transform.FuseOps". aliases: other names of options. convert: option to a function that makes its
    value of what a program gives. defaults: options that programs of Python have where they give none.
    """

    def __init__(self, key, module, aliases=None, convert=None, defaults=None):
        self.key, self.__module__ = key, module
        self.__name__ = self.__qualname__ = key.rsplit(".", 1)[-1]
        self.aliases, self.convert, self.defaults = aliases or {}, convert or {}, defaults or {}

    @functools.cached_property
    def _options_key(self):
        return _api("PassOptionsKey")(self.key)

    @property
    def takes_anything(self):
        """Whether its arguments are its own business: it is not a built-in pass, or ignores them."""
        return self._options_key is None

    @functools.cached_property
    def options(self):
        """(name, type, what it means, flags, default) of each option."""
        return _core.describe_type(str(self._options_key))[2] if self._options_key else []

    @property
    def __signature__(self):
        if self.takes_anything:
            return inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)])
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature(
            [inspect.Parameter(name, kind, default=self.defaults.get(name, default_of(default))) for name, _, _, _, default in self.options]
        )

    @property
    def __doc__(self):
        from .._ffi import get_global_func

        doc = ""
        with contextlib.suppress(Exception):  # registered by a program: it may want arguments
            doc = str(get_global_func(self.key)().info.doc)
        lines = [doc or f"The pass `{self.__name__}`."]
        if self.options:
            lines += ["", "Options:", *(f"    {name} ({kind}): {text}" for name, kind, text, _, _ in self.options)]
        return "\n".join(lines)

    def __call__(self, *args, **kwargs):
        if self.takes_anything:
            from .._ffi import get_global_func

            return get_global_func(self.key)(*args, **kwargs)
        names = [row[0] for row in self.options]
        if len(args) > len(names):
            raise errors.TypeError(f"{self.__name__} takes at most {len(names)} options, got {len(args)}")
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            own = self.aliases.get(name, name)
            if own not in names:
                near = difflib.get_close_matches(name, names, 1)
                raise errors.TypeError(
                    f"{self.__name__} has no option `{name}`"
                    + (f"; did you mean `{near[0]}`?" if near else f"; it has {', '.join(names)}" if names else "; it has none")
                )
            if own in given:
                raise errors.TypeError(f"{self.__name__} got `{own}` twice")
            given[own] = value
        for name, value in self.defaults.items():
            given.setdefault(name, value)
        kinds = {row[0]: row[1] for row in self.options}
        for name, value in given.items():
            if value is not None:  # which asks for the default
                given[name] = self.convert[name](value) if name in self.convert else _plain(value)
                if isinstance(value, str) and kinds[name].startswith("Array"):
                    given[name] = [value]
        return _api("MakePass")(self.key, given)

    def __repr__(self):
        return f"<function {self.__name__}{self.__signature__} that makes a pass>"


def default_of(default):
    """The default of an option as Python code writes it."""
    if isinstance(default, _core.Array):
        return tuple(default)
    return dict(default.items()) if isinstance(default, _core.Map) else default


def pass_functions(prefix, module, **special):
    """(`__getattr__`, names): a module's functions of passes, each made when a program first asks for it.

    prefix: of the global functions. special: by pass, further arguments of PassFunction.
    """
    from .._ffi import get_global_func

    def find(name):
        if name.startswith("_") or get_global_func(prefix + name, allow_missing=True) is None:
            raise AttributeError(f"there is no pass `{name}`" + ("" if name.startswith("_") else did_you_mean(name, names())))
        made = PassFunction(prefix + name, module, **special.get(name, {}))
        vars(sys.modules[module])[name] = made
        return made

    def names():
        layer = "tir." if prefix.startswith("tir.") else ""
        every = map(str, _api("PassNames")())
        return sorted(n.removeprefix("tir.") for n in every if n.startswith("tir.") == bool(layer))

    return find, names


def make_pass_decorator(make, base, method):
    """A decorator that turns functions and classes into passes of one kind.

    make: (body, PassInfo) -> pass of C++. base: the Python class of such passes. method: the name of a class's body.
    """

    def decorator(pass_func=None, opt_level=None, name=None, required=None, traceable=False, needs=None, establishes=None, keeps=None, destroys=None):
        if opt_level is None:
            raise errors.ValueError("a pass needs an opt_level: from which level of the context on it runs")
        if isinstance(opt_level, bool) or not isinstance(opt_level, int):
            raise errors.TypeError(f"opt_level takes an int, got {opt_level!r}")
        lists = (required, needs, establishes, keeps, destroys)

        def create(pass_arg):
            fname = getattr(pass_arg, "__name__", type(pass_arg).__name__) if name is None else name
            info = PassInfo(opt_level, fname, *lists)
            if inspect.isclass(pass_arg):
                return _wrap_class(pass_arg, info, make, base, method)
            if not callable(pass_arg):
                raise errors.TypeError(f"a pass is made of a function or a class with `{method}`, not of {pass_arg!r}")
            _check_arguments(fname, pass_arg, method)
            _set_origin(info, pass_arg)
            return make(pass_arg, info)

        return create(pass_func) if pass_func is not None else create

    return decorator


def _check_arguments(name, body, method, own=()):
    """A body that cannot be called as passes call theirs is a TypeError now, not in the middle of a compilation."""
    given = {"transform_module": ("mod", "ctx"), "transform_function": ("func", "mod", "ctx")}[method]
    try:
        signature = inspect.signature(body)
    except (TypeError, ValueError):
        return  # no signature, for example of a builtin
    try:
        signature.bind(*own, *given)
    except TypeError:
        raise errors.TypeError(f"the body of pass `{name}` is called with ({', '.join(given)}), but takes {signature}") from None


def _set_origin(info, made_of):
    """Notes the path by which a pass can be imported; one that is made within a function has none."""
    path = f"{getattr(made_of, '__module__', None)}.{getattr(made_of, '__qualname__', '<locals>')}"
    if all(part.isidentifier() for part in path.split(".")) and made_of.__module__ != "__main__":
        _api("SetPassOrigin")(info, "python." + path)


@register_func("transform.ImportPass", override=True)
def _import_pass(path):
    """The pass that texts of pipelines call `python.package.module.name`: a pass at the top of a module, or a class of passes."""
    import importlib

    path = str(path).removeprefix("python.")
    parts, found, missing = path.split("."), None, None
    for at in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:at]))
        except ModuleNotFoundError as error:
            if not (".".join(parts[:at]) + ".").startswith(f"{error.name}."):
                raise
            missing = error.name
            continue
        break
    if found is None:
        raise errors.ValueError(f"`python.{path}` cannot be imported: there is no module `{missing or path}` on sys.path")
    for part in parts[at:]:
        if not hasattr(found, part):
            raise errors.ValueError(f"`python.{path}` cannot be imported: `{found.__name__}` has no `{part}`")
        found = getattr(found, part)
    if not isinstance(found, Pass) and inspect.isclass(found) and issubclass(found, Pass):
        found = found()
    if not isinstance(found, Pass):
        raise errors.ValueError(f"`python.{path}` is not a pass but {found!r}"[:300])
    return found


def _wrap_class(pass_cls, info, make, base, method):
    """A class of passes out of a class whose `method` is the body; each instance keeps its own state."""
    if not callable(getattr(pass_cls, method, None)):
        raise errors.TypeError(f"class `{pass_cls.__name__}` has no method `{method}`, which is the body of the pass")
    if inspect.isfunction(inspect.getattr_static(pass_cls, method)):
        _check_arguments(info.name, getattr(pass_cls, method), method, own=("self",))

    def body_of(self, args, kwargs):
        """Returns an instance of the class to run; of a class derived from the pass, one that has the methods of both, and the
        state of the pass itself; it is not the pass itself, which would keep itself alive."""
        if type(self) is PyPass:
            return pass_cls(*args, **kwargs)
        own = type(self)
        if "_body_class" not in own.__dict__:
            try:
                own._body_class = type(own.__name__, (own, pass_cls), {"__module__": own.__module__, "__doc__": own.__doc__, "_body_class": None})
            except TypeError as error:
                raise errors.TypeError(
                    f"`{own.__name__}` cannot be derived from the pass `{pass_cls.__name__}`: {error}; derive it from a class that "
                    "is not decorated, and decorate both"
                ) from None
        if own._body_class is None:  # a body itself, of a class that was decorated twice
            return pass_cls(*args, **kwargs)
        inst = own._body_class.__new__(own._body_class)
        inst.__dict__ = self.__dict__
        pass_cls.__init__(inst, *args, **kwargs)
        _check_arguments(info.name, getattr(inst, method), method)
        return inst

    class PyPass(base):
        def __init__(self, *args, **kwargs):
            inst = body_of(self, args, kwargs)
            own = PassInfo(info.opt_level, info.name, info.required, info.needs, info.establishes, info.keeps, info.destroys)
            if type(self) is PyPass and not args and not kwargs:  # made anew without arguments it is the same
                _set_origin(own, pass_cls)
            else:
                _api("SetPassOptions")(own, {str(i): "an argument of Python" for i in range(len(args) + len(kwargs))})
            self.__init_handle_by_constructor__(make, getattr(inst, method), own)
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


PrintIR = PassFunction("transform.PrintIR", __name__)


def ApplyPassToFunction(transform, func_name_regex, error_if_no_function_matches_regex=False):
    """A pass that runs another on the functions whose names match, leaving the others alone."""
    import re

    if not isinstance(transform, Pass):
        raise errors.TypeError(f"ApplyPassToFunction takes a pass, got {transform!r}")
    try:
        re.compile(func_name_regex)
    except (re.error, TypeError) as error:
        raise errors.ValueError(f"{func_name_regex!r} is not a regular expression: {error}") from None

    @module_pass(opt_level=0, name=f"ApplyPassTo({transform.info.name})")
    def apply(mod, ctx):
        chosen = {v: f for v, f in mod.functions.items() if re.fullmatch(func_name_regex, v.name_hint)}
        if not chosen and error_if_no_function_matches_regex:
            raise errors.ValueError(f"no function's name matches {func_name_regex!r}")
        out = mod.shallow_copy()
        for var, func in transform(_ir_module()(chosen, dict(mod.type_definitions.items()))).functions.items():
            out[var] = func
        return out

    return apply


attach_classes(__name__, "transform.")
