# SPDX-License-Identifier: Apache-2.0
"""The Python front end of passes (PY) and instruments (IN)."""

import gc
import sys
import threading
import weakref

import pytest

import baton as tvm
from baton import relay
from baton.instrument import PassInstrument, PassTimingInstrument, PrintIRAfter, PrintIRBefore, pass_instrument


def _function(op=relay.add):
    x = relay.var("x", shape=(10, 20))
    return relay.Function([x], op(x, x) if op is relay.add else op(x))


def _module():
    return tvm.IRModule({"main": _function()})


@relay.transform.module_pass(opt_level=2)
def add_abs(mod, ctx):
    """The example of the documents: adds a function that computes abs."""
    tp = relay.TensorType((10,), "float32")
    x = relay.var("x", tp)
    new_mod = tvm.IRModule({relay.GlobalVar("abs"): relay.Function([x], relay.abs(x))})
    new_mod.update(mod)
    return new_mod


@relay.transform.function_pass(opt_level=1)
class ReplaceFunc:
    """The example of the documents: replaces every function by one."""

    def __init__(self, new_func):
        self.new_func = new_func

    def transform_function(self, func, mod, ctx):
        return self.new_func


def test_same_objects_under_all_names():  # NM-010
    for name in ("Pass", "PassInfo", "PassContext", "ModulePass", "Sequential", "module_pass", "sequential"):
        objects = {id(getattr(m, name)) for m in (relay.transform, tvm.transform, tvm.ir.transform)}
        assert len(objects) == 1, name
    assert tvm.instrument.pass_instrument is tvm.ir.instrument.pass_instrument


def test_context_is_entered_and_left():  # PY-001, PY-002, PY-003, PY-005, PY-006
    outer = tvm.transform.PassContext.current()
    assert outer.opt_level == 2 and type(outer) is tvm.transform.PassContext, "one that C++ made"
    with tvm.transform.PassContext(opt_level=3, required_pass=["FoldConstant"], disabled_pass=["FuseOps"], config={}) as ctx:
        assert isinstance(ctx, tvm.transform.PassContext) and isinstance(ctx, tvm.runtime.Object)
        assert tvm.transform.PassContext.current().same_as(ctx)
        assert (ctx.opt_level, ctx.required_pass, ctx.disabled_pass, ctx.config) == (3, ["FoldConstant"], ["FuseOps"], {})
    assert tvm.transform.PassContext.current().opt_level == 2


def test_exit_takes_three_arguments_or_four():  # PY-004
    outer = tvm.transform.PassContext.current()
    for more in ((), (None,)):
        ctx = tvm.transform.PassContext(opt_level=1)
        assert ctx.__enter__() is ctx
        assert tvm.transform.PassContext.current().same_as(ctx)
        assert not ctx.__exit__(None, None, None, *more)
        assert tvm.transform.PassContext.current().same_as(outer)
        error = KeyError("no")
        ctx.__enter__()
        assert not ctx.__exit__(KeyError, error, None, *more), "an exception goes on"
        assert tvm.transform.PassContext.current().same_as(outer)


def test_config_is_checked():
    with pytest.raises(tvm.Error, match="no.such.key"):
        tvm.transform.PassContext(config={"no.such.key": 1})
    with pytest.raises(TypeError, match="config takes a dict"):
        tvm.transform.PassContext(config=[1])
    with pytest.raises(TypeError, match="required_pass takes a list"):
        tvm.transform.PassContext(required_pass="FoldConstant")
    assert isinstance(tvm.transform.PassContext.list_configs(), dict)


def test_module_pass_of_a_function():  # PY-008, PY-009, PY-010, PY-011
    assert isinstance(add_abs, relay.transform.ModulePass) and isinstance(add_abs, tvm.transform.Pass)
    assert add_abs.info.opt_level == 2 and add_abs.info.name == "add_abs" and add_abs.info.required == []
    made = add_abs(tvm.IRModule())
    assert [v.name_hint for v in made.get_global_vars()] == ["abs"]
    x = relay.var("x", shape=(10,))
    tvm.ir.assert_structural_equal(made["abs"], relay.Function([x], relay.abs(x)))
    mod = _module()
    made = add_abs(mod)
    assert {v.name_hint for v in made.get_global_vars()} == {"abs", "main"} and made["main"].same_as(mod["main"])
    assert len(mod) == 1, "the module that went in stays as it was"


def test_function_pass_of_a_class():  # PY-012, PY-013
    f1 = relay.Function([x := relay.var("x", shape=(10, 20))], relay.log(x))
    replace = ReplaceFunc(f1)
    assert isinstance(replace, relay.transform.FunctionPass) and replace.info.name == "ReplaceFunc"
    mod = tvm.IRModule({"main": _function(), "other": _function()})
    new = replace(mod)
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(f1))["main"]  # as the results of passes over functions are
    assert tvm.ir.structural_equal(new["main"], typed) and tvm.ir.structural_equal(new["other"], typed)
    assert replace.new_func.same_as(f1), "the object keeps its state"
    other = ReplaceFunc(_function())
    assert not other.new_func.same_as(f1)
    assert "replaces every function" in ReplaceFunc.__doc__ and ReplaceFunc.__name__ == "ReplaceFunc"


def test_decorators_take_functions_and_classes_alike():  # PY-014
    @tvm.transform.module_pass(opt_level=1, name="named", required=["InferType"])
    class Module:
        def transform_module(self, mod, ctx):
            assert isinstance(ctx, tvm.transform.PassContext)
            return mod

    assert Module().info.name == "named" and Module().info.required == ["InferType"]
    mod = _module()
    assert isinstance(Module()(mod), tvm.IRModule)

    @relay.transform.function_pass(opt_level=1)
    def same(func, mod, ctx):
        return func

    typed = relay.transform.InferType()(mod)
    assert same(typed)["main"].same_as(typed["main"])
    with pytest.raises(TypeError, match="`Wrong` has no method `transform_module`"):

        @tvm.transform.module_pass(opt_level=1)
        class Wrong:
            def transform_function(self, func, mod, ctx):
                return func


def _base_pass(decorator, method):
    class Base:
        """Notes which pass ran."""

        def __init__(self, label="base"):
            self.label, self.ran = label, []

        def note(self):
            self.ran.append(("base", self.label))

    def body(self, what, *rest):
        self.note()
        return what

    setattr(Base, method, body)
    return decorator(opt_level=0)(Base)


@pytest.mark.parametrize(
    ("decorator", "method"),
    [
        (tvm.transform.module_pass, "transform_module"),
        (relay.transform.function_pass, "transform_function"),
        (tvm.tir.transform.prim_func_pass, "transform_function"),
    ],
    ids=["module", "function", "prim_func"],
)
def test_what_a_class_overrides_of_a_decorated_one_runs(decorator, method):
    base = _base_pass(decorator, method)
    mod = tvm.IRModule({"main": tvm.tir.PrimFunc([], tvm.tir.Evaluate(0))}) if "prim" in decorator.__name__ else _module()

    class Derived(base):
        def __init__(self):
            self.early = 1
            super().__init__("derived")
            self.late = 2

    def body(self, what, *rest):
        self.ran.append(("override", self.early, self.late))
        return getattr(super(Derived, self), method)(what, *rest)

    setattr(Derived, method, body)
    one = Derived()
    assert isinstance(one, Derived) and isinstance(one, tvm.transform.Pass)
    assert one(mod).functions.items() and one.ran == [("override", 1, 2), ("base", "derived")]

    class Hook(base):
        def note(self):
            self.ran.append("hook")
            super().note()

    hook = Hook("h")
    hook(mod)
    assert hook.ran == ["hook", ("base", "h")] and hook.label == "h", "what the body calls is overridden, too"

    class Further(Derived):
        pass

    further = Further()
    further(mod)
    assert further.ran == one.ran and one.ran is not further.ran
    base()(mod)  # is as it was


def test_the_object_of_a_derived_pass_goes_while_the_pass_runs_on():
    base = _base_pass(tvm.transform.module_pass, "transform_module")

    class Mark:
        pass

    class Derived(base):
        def transform_module(self, mod, ctx):
            ran.append(self.label)
            return mod

    ran, one = [], Derived("d")
    one.mark = Mark()
    gone = weakref.ref(one.mark)
    seq = tvm.transform.Sequential([one])
    del one
    gc.collect()
    seq(_module())
    assert ran == ["d"] and gone() is not None
    del seq
    gc.collect()
    assert gone() is None


def test_a_derived_pass_with_another_signature_is_refused():
    base = _base_pass(tvm.transform.module_pass, "transform_module")

    class Wrong(base):
        def transform_module(self, mod):
            return mod

    with pytest.raises(TypeError, match=r"called with \(mod, ctx\), but takes"):
        Wrong()


def test_a_class_that_cannot_be_derived_from_a_pass_is_refused():
    @tvm.transform.module_pass(opt_level=0)
    class Slots:
        __slots__ = ("__dict__", "x")

        def transform_module(self, mod, ctx):
            return mod

    class Derived(Slots):
        pass

    Slots()
    with pytest.raises(TypeError, match="`Derived` cannot be derived from the pass `Slots`.*not decorated"):
        Derived()


def test_without_decorator():  # PY-015, PY-016, PY-017
    made = tvm.transform.module_pass(lambda mod, ctx: mod, opt_level=2, name="x", required=["InferType"])
    assert isinstance(made, tvm.transform.ModulePass) and made.info.name == "x" and made.info.opt_level == 2
    with pytest.raises(ValueError, match="opt_level"):
        tvm.transform.module_pass(lambda mod, ctx: mod)
    seq = relay.transform.sequential([made])
    assert isinstance(seq, tvm.transform.Sequential) and isinstance(tvm.transform.Sequential([made, add_abs]), tvm.transform.Pass)
    with tvm.transform.PassContext(opt_level=2):
        assert "abs" in tvm.transform.Sequential([add_abs])(_module())
    with tvm.transform.PassContext(opt_level=1):
        assert "abs" not in tvm.transform.Sequential([add_abs])(_module())
    with tvm.transform.PassContext(opt_level=1, required_pass=["add_abs"]):
        assert "abs" in tvm.transform.Sequential([add_abs])(_module())


@pytest.mark.parametrize(
    "name",
    ["InferType", "FoldConstant", "FuseOps", "DeadCodeElimination", "EliminateCommonSubexpr", "SimplifyInference", "RemoveUnusedFunctions", "DynamicToStatic"],
)
def test_passes_of_cpp_have_functions(name):  # PY-018
    made = getattr(relay.transform, name)()
    assert isinstance(made, tvm.transform.Pass) and made.info.name == name
    assert getattr(relay.transform, name).__doc__ and name in dir(relay.transform)
    assert name in repr(made)


def test_unknown_pass():
    with pytest.raises(AttributeError, match="there is no pass `FoldConstants`"):
        relay.transform.FoldConstants()


def test_what_a_body_returns_is_checked():
    for bad in (None, 3, _function()):
        with pytest.raises(TypeError, match="pass `lazy` must return an IRModule"):
            tvm.transform.module_pass(lambda mod, ctx, bad=bad: bad, opt_level=0, name="lazy")(_module())
    for bad in (None, 3, _module()):
        with pytest.raises(TypeError, match="pass `lazy` must return"):
            relay.transform.function_pass(lambda f, m, c, bad=bad: bad, opt_level=0, name="lazy")(_module())


def test_signals_stop_a_sequence(capfd):
    import signal

    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(Stop):
            # Passes of C++ alone, for far longer than the timer; the last one would print.
            tvm.transform.Sequential([*[relay.transform.InferType()] * 500_000, tvm.transform.PrintIR()])(_module())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert capfd.readouterr().out == ""


def test_exception_in_a_body():  # PY-007, PY-021
    error = LookupError("inside")

    @tvm.transform.module_pass(opt_level=0)
    def fails(mod, ctx):
        raise error

    before = tvm.transform.PassContext.current()
    with pytest.raises(LookupError) as caught:
        with tvm.transform.PassContext(opt_level=3):
            tvm.transform.Sequential([fails])(_module())
    assert caught.value is error
    assert tvm.transform.PassContext.current().opt_level == before.opt_level == 2


def test_early_names():  # PY-020
    assert relay.base.RelayNode is tvm.Object and relay.base.register_relay_node is tvm.register_object


class Events:
    """Writes down what happens, and throws where it is told to."""

    def __init__(self, log, name="", fail=None, run=True):
        self.log, self.name_, self.fail, self.run = log, name, fail, run

    def _say(self, what, info=None):
        self.log.append((self.name_, what) if info is None else (self.name_, what, info.name))
        if self.fail == what:
            raise LookupError(what)

    def enter_pass_ctx(self):
        self._say("enter")

    def exit_pass_ctx(self):
        self._say("exit")

    def should_run(self, mod, info):
        assert isinstance(mod, tvm.IRModule) and isinstance(info, tvm.transform.PassInfo)
        self._say("should", info)
        return self.run

    def run_before_pass(self, mod, info):
        self._say("before", info)

    def run_after_pass(self, mod, info):
        self._say("after", info)

    def get_result(self):
        return len(self.log)


Instrument = pass_instrument(Events)


def _run(*names):
    mod = _module()
    for name in names:
        mod = tvm.transform.module_pass(lambda m, c: m, opt_level=0, name=name)(mod)
    return mod


def test_call_sequence():  # IN-008, IN-030, IN-031, IN-034, IN-035
    log = []
    instrument = Instrument(log)
    assert isinstance(instrument, PassInstrument) and instrument.name == "Events"
    with tvm.transform.PassContext(instruments=[instrument]):
        _run("P1", "P2")
    steps = [("", "enter")]
    for p in ("P1", "P2"):
        steps += [("", "should", p), ("", "before", p), ("", "after", p)]
    assert log == [*steps, ("", "exit")]
    assert instrument.get_result() == 8 and instrument.run is True


def test_missing_hooks_do_nothing():  # IN-032
    @pass_instrument
    class Nothing:
        pass

    ran = []
    with tvm.transform.PassContext(instruments=[Nothing()]):
        tvm.transform.module_pass(lambda m, c: ran.append(1) or m, opt_level=0, name="P")(_module())
    assert ran == [1], "a missing should_run means yes"


def test_should_run_of_all_instruments():  # IN-006, IN-012, IN-013, IN-014
    log = []
    with tvm.transform.PassContext(instruments=[Instrument(log, "A", run=False), Instrument(log, "B")]):
        assert tvm.transform.Sequential([add_abs])(_module()) is not None
    assert ("B", "should", "sequential") in log and not any(e[1] in ("before", "after") for e in log)


def test_exception_on_enter():  # TR-17, IN-015, IN-016, IN-017, IN-024
    log = []
    ctx = tvm.transform.PassContext(instruments=[Instrument(log, "A"), Instrument(log, "B", fail="enter"), Instrument(log, "C")])
    before = tvm.transform.PassContext.current()
    with pytest.raises(LookupError, match="enter"):
        with ctx:
            raise AssertionError("the body does not run")
    assert log == [("A", "enter"), ("B", "enter"), ("A", "exit")]
    assert ctx.instruments == [] and tvm.transform.PassContext.current().same_as(before)


def test_exception_on_exit():  # IN-018
    log = []
    ctx = tvm.transform.PassContext(instruments=[Instrument(log, "A"), Instrument(log, "B", fail="exit"), Instrument(log, "C")])
    before = tvm.transform.PassContext.current()
    with pytest.raises(LookupError, match="exit"):
        with ctx:
            pass
    assert [e for e in log if e[1] == "exit"] == [("A", "exit"), ("B", "exit")]
    assert ctx.instruments == [] and tvm.transform.PassContext.current().same_as(before)


def test_the_first_exception_wins():  # PY-007, IN-022
    with pytest.raises(KeyError) as caught:
        with tvm.transform.PassContext(instruments=[Instrument([], fail="exit")]):
            raise KeyError("first")
    if sys.version_info >= (3, 11):  # which has notes of exceptions
        assert "LookupError: exit" in caught.value.__notes__[0]


@pytest.mark.parametrize("hook", ["should", "before", "after"])
def test_exception_around_a_pass(hook):  # IN-019, IN-020
    log, ran = [], []
    with pytest.raises(LookupError, match=hook):
        with tvm.transform.PassContext(instruments=[Instrument(log, "A", fail=hook), Instrument(log, "B")]):
            tvm.transform.module_pass(lambda m, c: ran.append(1) or m, opt_level=0, name="P")(_module())
    assert bool(ran) == (hook == "after")
    assert [e for e in log if e[1] == "exit"] == [("A", "exit"), ("B", "exit")]
    assert ("B", hook, "P") not in log


def test_override_instruments():  # IN-036, IN-037, IN-039
    log = []
    old, new = Instrument(log, "old"), Instrument(log, "new")
    with tvm.transform.PassContext(instruments=[old]):
        tvm.transform.PassContext.current().override_instruments([new])
        _run("P")
    assert log == [("old", "enter"), ("old", "exit"), ("new", "enter"), ("new", "should", "P"), ("new", "before", "P"), ("new", "after", "P"), ("new", "exit")]
    del log[:]
    current = tvm.transform.PassContext.current()
    current.override_instruments([new])
    try:
        _run("Q")
    finally:
        current.override_instruments(None)
    assert log[0] == ("new", "enter") and ("new", "after", "Q") in log and log[-1] == ("new", "exit")
    assert current.instruments == []


def test_instrument_by_subclass():  # IN-033
    class Count(PassInstrument):
        def __init__(self):
            super().__init__()
            self.count = 0

        def run_after_pass(self, mod, info):
            self.count += 1

    count = Count()
    with tvm.transform.PassContext(instruments=[count]):
        _run("P1", "P2")
    assert count.count == 2 and count.name == "Count"
    gone = weakref.ref(count)
    del count
    gc.collect()
    assert gone() is None


def test_timing():  # IN-025
    with tvm.transform.PassContext(instruments=[PassTimingInstrument()]):
        tvm.transform.Sequential([relay.transform.InferType(), relay.transform.FoldConstant()])(_module())
        text = PassTimingInstrument.render()
    assert "sequential" in text and "InferType" in text and "ms" in text


def test_printing(capsys):  # IN-026, IN-027, IN-028, IN-029
    with tvm.transform.PassContext(instruments=[PrintIRBefore(), PrintIRAfter(pass_names=["P2"])]):
        _run("P1", "P2")
    out = capsys.readouterr().out
    assert out.count("IR before") == 2 and out.count("IR after P2") == 1 and "IR after P1" not in out
    assert tvm.instrument.PrintBeforeAll is PrintIRBefore and tvm.instrument.PrintAfterAll is PrintIRAfter
    mod = _module()
    assert tvm.ir.structural_equal(tvm.transform.PrintIR()(mod), mod)


def test_threads_have_contexts_of_their_own():  # PY-023
    results, start = {}, threading.Barrier(4)

    def work(level):
        with tvm.transform.PassContext(opt_level=level):
            start.wait()
            for _ in range(50):
                tvm.transform.Sequential([relay.transform.InferType(), add_abs])(_module())
            results[level] = tvm.transform.PassContext.current().opt_level

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {i: i for i in range(4)}


def test_python_instruments_do_not_leak():
    log = []
    inst = Instrument(log)
    gone = weakref.ref(inst._inst)
    with tvm.transform.PassContext(instruments=[inst]):
        _run("P")
    del inst
    gc.collect()
    assert gone() is None
