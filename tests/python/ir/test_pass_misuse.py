# SPDX-License-Identifier: Apache-2.0
"""Every misuse of passes and contexts is an error that says what, where and how to mend; the context stack stays intact."""

import threading

import pytest

import baton as tvm
from baton import relay
from baton._ffi.registry import remove_global_func
from baton.instrument import PassInstrument, PassTimingInstrument, PassWatchdog, pass_instrument
from baton.transform import PassContext, PassInfo, Sequential, module_pass


@pytest.fixture(autouse=True)
def stack_is_intact():
    before = PassContext.current()
    yield
    assert PassContext.current().same_as(before)


def _module():
    return relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: int32) { add(%x, 1) }')


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"opt_level": "3"}, TypeError, ["opt_level takes an int, got '3'"]),
        ({"opt_level": True}, TypeError, ["opt_level takes an int"]),
        ({"required_pass": "InferType"}, TypeError, ["required_pass takes a list of names", "'InferType'"]),
        ({"disabled_pass": [3]}, TypeError, ["disabled_pass takes names of passes, got 3"]),
        ({"disabled_pass": 3}, TypeError, ["disabled_pass takes a list"]),
        ({"instruments": PassTimingInstrument}, TypeError, ["instruments takes a list"]),
        ({"instruments": [PassTimingInstrument]}, TypeError, ["the class `PassTimingInstrument`; make an instance"]),
        ({"instruments": [None]}, TypeError, ["got None"]),
        ({"instruments": [lambda: 0]}, TypeError, ["pass_instrument"]),
        ({"config": ["a"]}, TypeError, ["config takes a dict"]),
        ({"config": {"relay.FuseOps.max_dpth": 3}}, AttributeError, ["`relay.FuseOps.max_dpth`", "did you mean `relay.FuseOps.max_depth`"]),
        ({"config": {"xyz": 3}}, AttributeError, ["`xyz`", "list_configs"]),
        ({"config": {"relay.FuseOps.max_depth": "deep"}}, TypeError, ["relay.FuseOps.max_depth", "expected int"]),
        ({"config": {"tir.UnrollLoop": {"auto_max_stp": 3}}}, AttributeError, ["tir.UnrollLoop", "auto_max_stp", "auto_max_step"]),
        ({"config": {"tir.UnrollLoop": {"auto_max_step": "x"}}}, TypeError, ["tir.UnrollLoop"]),
        ({"config": {"tir.UnrollLoop": 3}}, TypeError, ["tir.UnrollLoop", "UnrollLoopConfig"]),
        ({"config": {3: 3}}, TypeError, []),
        ({"num_threads": 0}, ValueError, ["num_threads is 0; it is from 1 to 1,024"]),
        ({"diag_ctx": PassInfo(0, "x")}, TypeError, ["DiagnosticContext", "transform.PassInfo"]),
        ({"opt_levl": 3}, TypeError, ["opt_levl"]),
        ({"trace": print}, TypeError, ["trace is the name of an early option that is not there", "instruments"]),
    ],
)
def test_contexts_made_wrong(options, error, words):  # PI-017, PI-019
    with pytest.raises(error) as caught:
        PassContext(**options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("names", [["A", "B"], ("A", "B"), {"B", "A"}, frozenset(["A", "B"])])
def test_names_are_lists_tuples_or_sets(names):  # PI-006
    ctx = PassContext(required_pass=names, disabled_pass=names)
    assert list(ctx.required_pass) == list(ctx.disabled_pass) == ["A", "B"]


def test_config_is_read_in_python():  # PI-020
    ctx = PassContext(config={"relay.FuseOps.max_depth": 5, "tir.UnrollLoop": {"auto_max_step": 16}})
    assert ctx.config["relay.FuseOps.max_depth"] == 5 and ctx.config["tir.UnrollLoop"].auto_max_step == 16
    assert PassContext.list_configs()["tir.UnrollLoop"] == "tir.transform.UnrollLoopConfig"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: module_pass(lambda m, c: m), ["needs an opt_level"]),
        (lambda: module_pass(lambda m, c: m, opt_level="1"), ["opt_level takes an int"]),
        (lambda: module_pass(3, opt_level=1), ["`transform_module`", "not of 3"]),
        (lambda: module_pass(type("Empty", (), {}), opt_level=1), ["class `Empty` has no method `transform_module`"]),
        (lambda: relay.transform.function_pass(type("Empty", (), {}), opt_level=1), ["class `Empty` has no method `transform_function`"]),
        (lambda: module_pass(lambda m, c: m, opt_level=1, required="InferType"), ["required takes a list", "'InferType'"]),
        (lambda: module_pass(lambda m, c: m, opt_level=1, required=[None]), ["required takes names"]),
        (lambda: Sequential([relay.transform.InferType]), ["a sequence takes passes", "pair of parentheses"]),
        (lambda: Sequential([3]), ["a sequence takes passes, got 3"]),
        (lambda: pass_instrument(3), ["pass_instrument decorates classes"]),
        (lambda: pass_instrument(type("Bad", (), {"run_before_pass": 3}))(), ["`run_before_pass` of instrument `Bad` is 3"]),
        (lambda: PassInfo("a", 0), ["opt_level takes an int, got 'a'"]),
        (lambda: module_pass(lambda m: m, opt_level=0, name="short"), ["body of pass `short` is called with (mod, ctx), but takes (m)"]),
        (lambda: relay.transform.function_pass(lambda f: f, opt_level=0, name="short"), ["called with (func, mod, ctx), but takes (f)"]),
        (lambda: module_pass(type("Short", (), {"transform_module": lambda self, m: m}), opt_level=0), ["`Short` is called with (mod, ctx)"]),
        (lambda: module_pass(lambda m, c: m, opt_level=0, name=3), ["name takes a text that is not empty, got 3"]),
        (lambda: module_pass(lambda m, c: m, opt_level=0, name=""), ["name takes a text that is not empty"]),
        (lambda: module_pass(lambda m, c: m, opt_level=0, needs="Typed"), ["needs takes a list of names of properties, got 'Typed'"]),
        (lambda: Sequential(relay.transform.InferType()), ["a sequence takes a list of passes, got <pass InferType"]),
        (lambda: Sequential(3), ["a sequence takes a list of passes, got 3"]),
        (lambda: Sequential([], name=3), ["name takes a text"]),
        (lambda: Sequential([], opt_level="1"), ["opt_level takes an int"]),
        (lambda: PassContext.current().override_instruments(PassTimingInstrument()), ["instruments takes a list of instruments"]),
        (lambda: PassTimingInstrument(budgets=3), ["budgets takes a dict by name of a pass"]),
        (lambda: PassTimingInstrument(budgets={"*": 3}), ["the budget of `*`"]),
        (lambda: PassTimingInstrument(budgets={"*": {"time": "1"}}), ["the budget of `*`: `time` takes a number from 0 on, got '1'"]),
        (lambda: PassTimingInstrument(budgets={"*": {"time": -1}}), ["takes a number from 0 on, got -1"]),
        (lambda: PassWatchdog("1"), ["seconds takes a number, got '1'"]),
        (lambda: tvm.transform.ApplyPassToFunction(relay.transform.InferType, "main"), ["takes a pass, got"]),
        (lambda: tvm.transform.ApplyPassToFunction(relay.transform.InferType(), "ma(in"), ["'ma(in' is not a regular expression"]),
        (lambda: tvm.transform.join_pipeline("FoldConstant", pipeline="DefaultPipelin"), ["`DefaultPipelin`; did you mean `DefaultPipeline`?"]),
        (lambda: tvm.transform.leave_pipeline("FoldConstant", pipeline="X"), ["there is no built-in pipeline `X`"]),
        (lambda: tvm.compile(_module(), disabled_pass="FuseOps"), ["disabled_pass takes a list of names of passes, got 'FuseOps'"]),
    ],
)
def test_passes_made_wrong(make, words):  # PY-014, PY-017, TR-06
    with pytest.raises((TypeError, ValueError)) as caught:
        make()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("what", [None, 3, "text", relay.var("x")])
def test_passes_called_with_no_module(what):
    with pytest.raises(TypeError, match="pass `InferType` takes an IRModule, got"):
        relay.transform.InferType()(what)


@pytest.mark.parametrize(("level", "runs"), [(2, True), (1, False)])
def test_the_same_level_runs_and_one_below_does_not(level, runs):  # TR-01, PI-046 in Python
    ran = []
    one = module_pass(lambda m, c: ran.append(1) or m, opt_level=2, name="Two")
    with PassContext(opt_level=level):
        Sequential([one])(_module())
    assert bool(ran) == runs


@pytest.mark.parametrize("use", [
    lambda: PassContext(disabled_pass=["FuseOp"]),
    lambda: PassContext(required_pass={"FuseOp"}),
    lambda: PassTimingInstrument(budgets={"FuseOp": {"time": 1}}),
    lambda: tvm.compile(_module(), disabled_pass=["FuseOp"]),
])  # fmt: skip
def test_a_misspelt_name_is_a_warning_with_the_nearest(use):
    with pytest.warns(UserWarning, match="there is no pass `FuseOp`; did you mean `FuseOps`") as caught:
        use()
    assert [w.filename for w in caught] == [__file__], "it points at the line with the name"


def test_names_of_passes_that_are_or_that_nothing_is_near_are_no_warning(recwarn):
    module_pass(lambda m, c: m, opt_level=0, name="FuseOpz")
    Sequential([], name="InferTypes")
    PassContext(disabled_pass=["FuseOpz", "InferTypes", "FuseOps", "tir.UnrollLoop", "Other"], required_pass=["UnrollLoop", "PrintIR"])
    assert not recwarn.list


def _deep_sequence(n=20_000):
    one = relay.transform.InferType()
    for _ in range(n):
        one = Sequential([one])
    return one


def _runs_itself():
    @module_pass(opt_level=0)
    def again(mod, ctx):
        return again(mod)

    return again


def _in_small_thread(work):
    caught = []

    def run():
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - goes on below
            caught.append(error)

    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    if caught:
        raise caught[0]


@pytest.mark.parametrize("make", [_deep_sequence, _runs_itself, lambda: tvm.transform.Scheduled([_deep_sequence()])])
@pytest.mark.parametrize("where", [lambda work: work(), _in_small_thread], ids=["", "512KiB"])
def test_passes_that_nest_without_end_are_an_error(make, where):
    one, mod = make(), _module()
    with pytest.raises(ValueError, match="was to run within 200 others: a pass or an instrument runs itself"):
        where(lambda: one(mod))


def test_an_instrument_that_runs_the_pass_it_watches_is_an_error():
    @pass_instrument
    class Again:
        def run_before_pass(self, mod, info):
            relay.transform.InferType()(mod)

    with pytest.raises(ValueError, match="`InferType` was to run within 200 others"), PassContext(instruments=[Again()]):
        relay.transform.InferType()(_module())


@pytest.mark.parametrize("sequence", [Sequential, tvm.transform.Scheduled])
@pytest.mark.parametrize("where", [lambda work: work(), _in_small_thread], ids=["", "512KiB"])
def test_prerequisites_may_be_a_long_chain(sequence, where):
    n, ran = 3000, []
    for i in range(n):
        one = module_pass(lambda m, c, i=i: ran.append(i) or m, opt_level=0, name=f"TestChain{i}", required=[f"TestChain{i + 1}"] if i + 1 < n else [])
        tvm.register_func(f"relay._transform.TestChain{i}", lambda one=one: one, override=True)
    try:
        where(lambda: sequence([tvm.get_global_func("relay._transform.TestChain0")()])(_module()))
    finally:
        for i in range(n):
            remove_global_func(f"relay._transform.TestChain{i}")
    assert ran == [*reversed(range(n))]


def test_undefined_passes():  # PI-042
    with pytest.raises(ValueError, match=r"^Found undefined pass for optimization\.$"):
        Sequential([None])(_module())


def test_unknown_and_useless_prerequisites():  # PI-052
    user = module_pass(lambda m, c: m, opt_level=0, name="User", required=["InferTyp"])
    with pytest.raises(ValueError, match="Cannot find relay._transform.InferTyp to create pass InferTyp; did you mean `InferType`"):
        Sequential([user])(_module())
    tvm.register_func("relay._transform.TestNoPass", lambda: 3, override=True)
    user = module_pass(lambda m, c: m, opt_level=0, name="User", required=["TestNoPass"])
    with pytest.raises(ValueError, match="`relay._transform.TestNoPass` makes no pass, it returned int"):
        Sequential([user])(_module())


def test_cycles_list_themselves():  # PI-049
    for a, b in (("TestLoopA", "TestLoopB"), ("TestLoopB", "TestLoopC"), ("TestLoopC", "TestLoopA")):
        one = module_pass(lambda m, c: m, opt_level=0, name=a, required=[b])
        tvm.register_func("relay._transform." + a, lambda one=one: one, override=True)
    user = module_pass(lambda m, c: m, opt_level=0, name="User", required=["TestLoopB"])
    with pytest.raises(ValueError) as caught:
        Sequential([user])(_module())
    assert "in a cycle: TestLoopB -> TestLoopC -> TestLoopA -> TestLoopB" in str(caught.value)
    assert "`User`" in str(caught.value) and "take one of them out" in str(caught.value)
    selfish = module_pass(lambda m, c: m, opt_level=0, name="TestSelf", required=["TestSelf"])
    tvm.register_func("relay._transform.TestSelf", lambda: selfish, override=True)
    with pytest.raises(ValueError, match="TestSelf -> TestSelf"):
        Sequential([selfish])(_module())


@pytest.mark.parametrize("bad", ["yes", [], 1.5, None])
def test_should_run_gives_a_bool(bad):
    @pass_instrument
    class Odd:
        def should_run(self, mod, info):
            return bad

    with pytest.raises(TypeError, match="should_run of instrument `Odd` must return a bool, it returned .* for pass `InferType`"):
        with PassContext(instruments=[Odd()]):
            relay.transform.InferType()(_module())


@pytest.mark.parametrize("make", [
    lambda cls: pass_instrument(type("Odd", (), cls)),
    lambda cls: type("Odd", (PassInstrument,), cls),
])  # fmt: skip
@pytest.mark.parametrize(
    ("name", "near"),
    [("run_befor_pass", "run_before_pass"), ("before_pass", "run_before_pass"), ("enter_pass_context", "enter_pass_ctx"), ("should_runs", "should_run")],
)
def test_a_misspelt_hook_is_a_warning(make, name, near):
    with pytest.warns(UserWarning, match=f"`{name}` of instrument `Odd` is no hook; did you mean `{near}`") as caught:
        make({name: lambda self, *args: None})
    assert [w.filename for w in caught] == [__file__]


def test_methods_of_an_instrument_s_own_are_no_warning(recwarn):
    pass_instrument(type("Fine", (), {"run_after_pass": lambda self, mod, info: None, "get_result": lambda self: 0, "run": 3}))
    assert not recwarn.list


def test_hooks_of_the_wrong_shape_fail_when_they_are_called():
    @pass_instrument
    class Odd:
        def run_before_pass(self):
            pass

    with pytest.raises(TypeError, match="run_before_pass"), PassContext(instruments=[Odd()]):
        relay.transform.InferType()(_module())


def test_contexts_left_in_the_wrong_order():
    outer, inner = PassContext(opt_level=1), PassContext(opt_level=3)
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(ValueError, match="not the innermost.*reverse order.*`with`"):
        outer.__exit__(None, None, None)
    assert PassContext.current().same_as(inner), "nothing was left"
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)
    with pytest.raises(ValueError, match="not entered in this thread: it was left before"):
        outer.__exit__(None, None, None)
    with pytest.raises(ValueError, match="not entered"):
        PassContext.current().__exit__(None, None, None)


def test_generators_that_are_closed_in_the_wrong_order():
    def work(level):
        with PassContext(opt_level=level) as ctx:
            yield ctx

    outer, inner = work(1), work(3)
    first, _ = next(outer), next(inner)
    with pytest.raises(ValueError, match="not the innermost"):
        outer.close()
    inner.close()
    assert PassContext.current().same_as(first)
    first.__exit__(None, None, None)


def test_a_context_may_be_entered_again():
    ctx = PassContext(opt_level=3)
    with ctx, ctx:
        assert PassContext.current().same_as(ctx)
    with ctx:
        assert PassContext.current().same_as(ctx)


def test_a_context_shared_between_threads():
    ctx, errors = PassContext(opt_level=3), []

    def misuse():
        for use in (ctx.__enter__, lambda: ctx.__exit__(None, None, None)):
            try:
                use()
            except ValueError as error:
                errors.append(str(error))
        errors.append(PassContext.current().opt_level)

    with ctx:
        thread = threading.Thread(target=misuse)
        thread.start()
        thread.join()
        assert PassContext.current().same_as(ctx)
    assert "entered in another thread" in errors[0] and "make one for each" in errors[0]
    assert "not entered in this thread" in errors[1] and errors[2] == 2
    thread = threading.Thread(target=lambda: ctx.__enter__() and ctx.__exit__(None, None, None))
    thread.start()  # it is free again
    thread.join()


def test_a_thread_that_ends_within_a_context_gives_it_back():
    """Neither the context nor one that is made later, at its address, is still taken."""
    context = PassContext(opt_level=1)
    thread = threading.Thread(target=context.__enter__)
    thread.start()
    thread.join()
    with context:
        assert PassContext.current().same_as(context)


@pytest.mark.parametrize("bad", [None, 3, "text", lambda: 0])
def test_what_function_passes_return(bad):  # PI-025
    with pytest.raises(TypeError, match="pass `lazy` must return a relay.Function for @main, it returned"):
        relay.transform.function_pass(lambda f, m, c: bad, opt_level=0, name="lazy")(_module())
    with pytest.raises(TypeError, match="pass `lazy` must return an IRModule, it returned"):
        module_pass(lambda m, c: bad, opt_level=0, name="lazy")(_module())


def test_a_literal_copy_of_the_documents_example_works():  # TR-07
    @relay.transform.module_pass(opt_level=2)
    def transform(mod, ctx):
        return mod

    module_pass_ = transform
    assert isinstance(module_pass_, transform.ModulePass) and module_pass_.info.opt_level == 2
