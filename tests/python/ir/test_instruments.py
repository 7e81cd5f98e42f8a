# SPDX-License-Identifier: Apache-2.0
"""Instruments beyond the documents: failed and skipped passes, isolation, inheritance, timing, printing, verification."""

import io
import json
import threading
import time

import pytest

import baton as tvm
from baton import relay
from baton._ffi import get_global_func
from baton.instrument import (
    PassInstrument,
    PassTimingInstrument,
    PassWatchdog,
    PrintIR,
    VerifyIR,
    pass_instrument,
)
from baton.transform import PassContext, Sequential, module_pass


def _module(text="add(exp(%x), multiply(2f, 3f))"):
    return relay.fromtext(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) {{ {text} }}')


def _noop(name="P", level=0):
    return module_pass(lambda mod, ctx: mod, opt_level=level, name=name)


def _failing(error, name="Fails"):
    def body(mod, ctx):
        raise error

    return module_pass(body, opt_level=0, name=name)


@pass_instrument
class Log:
    def __init__(self, log, name="", fail=None, error=LookupError):
        self.log, self.tag, self.fail, self.error = log, name, fail, error

    def _say(self, hook, *more):
        self.log.append((self.tag, hook, *more))
        if self.fail == hook:
            raise self.error(hook)

    def enter_pass_ctx(self):
        self._say("enter")

    def exit_pass_ctx(self):
        self._say("exit")

    def should_run(self, mod, info):
        self._say("should", info.name)
        return True

    def run_before_pass(self, mod, info):
        self._say("before", info.name)

    def run_after_pass(self, mod, info):
        self._say("after", info.name)

    def on_pass_failed(self, mod, info, error):
        assert isinstance(mod, tvm.IRModule)
        self._say("failed", info.name, str(error))

    def on_pass_skipped(self, mod, info, reason):
        self._say("skipped", info.name, str(reason))


@pass_instrument
class Observer(Log):
    observes = True


def _hooks(log, *without):
    return [entry[1:] for entry in log if entry[1] not in without]


# ---- Failed and skipped


def test_a_failed_pass_is_told_with_its_error_and_the_exception_is_the_same():
    log, error = [], LookupError("inside")
    with pytest.raises(LookupError) as caught, PassContext(instruments=[Log(log)]):
        Sequential([_noop("A"), _failing(error)])(_module())
    assert caught.value is error
    assert _hooks(log, "should", "before") == [
        ("enter",),
        ("after", "A"),
        ("failed", "Fails", "LookupError: inside"),
        ("failed", "sequential", "LookupError: inside"),
        ("exit",),
    ]


def test_a_pass_of_cpp_that_fails():
    log = []
    with pytest.raises(tvm.error.CompileError), PassContext(instruments=[Log(log)]):
        relay.transform.InferType()(_module("%x.0"))
    failed = [entry for entry in log if entry[1] == "failed"]
    assert len(failed) == 1 and failed[0][2] == "InferType" and failed[0][3].startswith("CompileError: ")


def test_the_pass_s_exception_wins_over_that_of_on_pass_failed():
    with pytest.raises(KeyError), PassContext(instruments=[Log([], fail="failed")]):
        _failing(KeyError("first"))(_module())
    assert PassContext.current().opt_level == 2


def test_skipped_passes_are_told_with_the_reason():
    log = []

    @pass_instrument
    class No:
        def should_run(self, mod, info):
            return info.name != "Blocked"

    with PassContext(opt_level=1, disabled_pass=["Off"], instruments=[Log(log), No()]):
        Sequential([_noop("High", 3), _noop("Off"), _noop("Blocked"), _noop("On")])(_module())
    assert [entry[2:] for entry in log if entry[1] == "skipped"] == [
        ("High", "needs opt_level 3, the context has 1"),
        ("Off", "disabled by the context"),
        ("Blocked", "blocked by should_run of No"),
    ]


def test_cleared_instruments_leave_passes_uninstrumented():  # IN-023
    log = []
    ctx = PassContext(instruments=[Log(log)])
    with ctx:
        with pytest.raises(LookupError):
            ctx.override_instruments([Log(log, "new", fail="enter")])
        del log[:]
        _noop()(_module())
    assert log == [] and ctx.instruments == []


def test_an_exit_that_throws_clears_and_later_passes_run_uninstrumented():  # IN-023, IN-038
    log = []
    current = PassContext.current()
    current.override_instruments([Log(log, "a", fail="exit"), Log(log, "b")])
    with pytest.raises(LookupError):
        current.override_instruments([Log(log, "new")])
    del log[:]
    _noop()(_module())
    assert log == [] and current.instruments == []


def test_exception_in_a_pass_runs_every_exit():  # IN-021
    log = []
    with pytest.raises(KeyError), PassContext(instruments=[Log(log, "a"), Log(log, "b")]):
        _failing(KeyError())(_module())
    assert not [e for e in log if e[1] == "after"] and [e[:2] for e in log if e[1] == "exit"] == [("a", "exit"), ("b", "exit")]


def test_no_scope_no_exit():  # TR-29
    log = []
    current = PassContext.current()
    current.override_instruments([Log(log)])
    try:
        with pytest.raises(KeyError):
            _failing(KeyError())(_module())
        assert not [e for e in log if e[1] == "exit"]
        assert len(current.instruments) == 1, "it stays until the next override"
    finally:
        current.override_instruments([])
    assert log[-1] == ("", "exit")


def test_instruments_measure_without_touching_passes():  # IN-010
    sizes = []

    @pass_instrument
    class Growth:
        def run_before_pass(self, mod, info):
            self.before = int(relay.analysis.count_nodes(mod["main"]))

        def run_after_pass(self, mod, info):
            sizes.append((info.name, self.before, int(relay.analysis.count_nodes(mod["main"]))))

    with PassContext(opt_level=3, instruments=[Growth()]):
        relay.transform.FoldConstant()(relay.transform.InferType()(_module()))
    assert sizes[-1][0] == "FoldConstant" and sizes[-1][1] > sizes[-1][2]


# ---- Isolation


@pytest.mark.parametrize("hook", ["enter", "should", "before", "after", "skipped", "failed", "exit"])
def test_isolated_instruments_are_taken_out_and_reported(hook, capfd):
    log, ok = [], []
    ctx = PassContext(isolate_instruments=True, disabled_pass=["Off"], instruments=[Log(ok, "a"), Log(log, "bad", fail=hook), Log(ok, "c")])
    with ctx:
        Sequential([_noop("A"), _noop("Off"), _noop("B")])(_module())
        with pytest.raises(KeyError):
            _failing(KeyError("k"))(_module())
    assert len(ctx.instrument_errors) == 1
    assert ctx.instrument_errors[0].startswith("Log, ") and f"LookupError: {hook}" in ctx.instrument_errors[0]
    assert log[-1][1] == hook and len([e for e in log if e[1] == hook]) == 1, "it is not called any more"
    assert [e[1] for e in ok if e[0] == "a"] == [e[1] for e in ok if e[0] == "c"], "the others do not notice"
    assert ("a", "after", "B") in ok and ok[-1] == ("c", "exit")
    assert "warning: instrument Log, " in capfd.readouterr().err
    assert PassContext.current().opt_level == 2


def test_without_isolation_the_documented_rule_holds():
    ctx = PassContext(instruments=[Log([], fail="enter")])
    with pytest.raises(LookupError):
        ctx.__enter__()
    assert ctx.instruments == [] and ctx.instrument_errors == []


# ---- Inheritance


def test_observers_see_nested_contexts_others_do_not():  # PI-013 for those that do not observe
    seen, plain = [], []
    with PassContext(opt_level=3, disabled_pass=["P"], instruments=[Observer(seen), Log(plain)]):
        with PassContext(opt_level=1):
            assert PassContext.current().instruments == [] and PassContext.current().disabled_pass == []
            Sequential([_noop("P"), _noop("High", 2)])(_module())
        del plain[:1]
    assert ("", "after", "P") in seen and ("", "skipped", "High", "needs opt_level 2, the context has 1") in seen
    assert [e[1] for e in seen].count("enter") == 1 and not [e for e in seen if e[1] == "should"], "no say in inner passes"
    assert plain == [("", "exit")]


def test_inheritance_can_be_refused_and_reaches_all_depths():
    seen = []
    with PassContext(instruments=[Observer(seen, "outer")]):
        with PassContext(inherit_instruments=False):
            _noop("Hidden")(_module())
            with PassContext():
                _noop("Hidden")(_module())
        with PassContext(), PassContext(instruments=[Log(seen, "inner")]):
            _noop("Seen")(_module())
    assert not [e for e in seen if "Hidden" in e]
    assert [e[0] for e in seen if e[1] == "before"] == ["outer", "inner"], "outermost first"


def test_an_observer_on_both_contexts_is_called_once():
    seen = []
    one = Observer(seen)
    with PassContext(instruments=[one]), PassContext(instruments=[one]):
        _noop()(_module())
    assert _hooks(seen).count(("before", "P")) == 1


def test_observers_of_the_default_context():
    seen, current = [], PassContext.current()
    current.override_instruments([Observer(seen)])
    try:
        with PassContext(opt_level=1):
            _noop()(_module())
    finally:
        current.override_instruments([])
    assert ("", "after", "P") in seen


def test_observers_by_subclass():
    class Watch(PassInstrument):
        observes = True

        def __init__(self):
            super().__init__()
            self.names = []

        def run_after_pass(self, mod, info):
            self.names.append(info.name)

    watch = Watch()
    assert watch.name == "Watch"
    with PassContext(instruments=[watch]), PassContext():
        _noop("Inner")(_module())
    assert watch.names == ["Inner"]


def test_folding_is_not_changed_by_what_the_user_disables():
    with PassContext(opt_level=3, disabled_pass=["FuseOps", "InferType"]):
        out = relay.transform.FoldConstant()(relay.transform.InferType()(_module()))
    assert "6f" in out.astext() and "multiply" not in out.astext()


def _names(passes):
    for p in passes:
        yield p["pass"]
        yield from _names(p["passes"])


def test_lowering_is_seen_by_observers_and_is_not_a_matter_of_choice():
    timing, log = PassTimingInstrument(), []
    with PassContext(opt_level=3, disabled_pass=["StorageFlatten", "VectorizeLoop"], instruments=[timing, Log(log)]):
        lib = relay.build(_module("nn.softmax(exp(%x))"), target="llvm")
    assert lib is not None
    names = list(_names(json.loads(timing.to_json())["threads"][0]["passes"]))
    assert {"DefaultPipeline", "FuseOps", "LowerPipeline", "StorageFlatten", "VectorizeLoop"} <= set(names)
    assert not any("StorageFlatten" in e for e in log), "an instrument that does not observe sees its own context alone"


def test_folding_is_not_blind():
    """What constant folding compiles to evaluate it is seen where it happens: within FoldConstant."""
    import numpy as np

    # A shape of its own: kernels that were compiled before are not compiled again.
    x, ones = relay.var("x", shape=(4,)), relay.const(np.ones((61, 509), "float32"))
    mod = tvm.IRModule({"main": relay.Function([x], relay.add(x, relay.sum(relay.nn.dense(ones, ones))))})
    timing = PassTimingInstrument()
    with PassContext(opt_level=3, disabled_pass=["LowerPipeline", "UnrollLoop"], instruments=[timing]):
        out = relay.transform.FoldConstant()(relay.transform.InferType()(mod))
    assert "nn.dense" not in out.astext()
    top = json.loads(timing.to_json())["threads"][0]["passes"]
    assert [p["pass"] for p in top] == ["InferType", "FoldConstant"]
    assert "UnrollLoop" in set(_names(top[1]["passes"]))


# ---- Threads


def test_one_instrument_on_contexts_of_several_threads():
    lock, names, timing = threading.Lock(), [], PassTimingInstrument()

    @pass_instrument
    class Shared:
        def run_after_pass(self, mod, info):
            with lock:
                names.append(info.name)

    shared, start = Shared(), threading.Barrier(4)

    def work(i):
        start.wait()
        with PassContext(instruments=[shared, timing]):
            for _ in range(20):
                Sequential([_noop(f"P{i}")], name="S")(_module())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(names) == sorted(["S"] * 80 + [f"P{i}" for i in range(4)] * 20)
    report = json.loads(timing.to_json())
    assert len(report["threads"]) == 4
    for thread in report["threads"]:
        inner = {p["pass"] for s in thread["passes"] for p in s["passes"]}
        assert len(thread["passes"]) == 20 and len(inner) == 1, "passes of one thread are in one tree"


# ---- Timing


def _timed(**options):
    timing = PassTimingInstrument(**options)
    grow = module_pass(lambda mod, ctx: _module("add(exp(%x), exp(add(%x, 4f)))"), opt_level=0, name="Grow")
    with PassContext(opt_level=2, disabled_pass=["Off"], instruments=[timing]):
        Sequential([_noop("Same"), grow, _noop("Off"), Sequential([_noop("Deep")], name="inner")])(_module("exp(%x)"))
        with pytest.raises(KeyError):
            _failing(KeyError("k"))(_module())
    return timing


def test_timing_is_a_tree():  # GE-004
    text = _timed().render()
    lines = text.splitlines()
    assert [line.split(":")[0] for line in lines] == ["sequential", "  Same", "  Grow", "  Off", "  inner", "    Deep", "Fails", "Total"]
    assert lines[1].endswith("unchanged") and not lines[2].endswith("unchanged")
    assert lines[3] == "  Off: skipped: disabled by the context" and "failed: KeyError" in lines[6]


def test_timing_in_detail_as_json():
    report = json.loads(_timed(detail=True).to_json())
    top, failed = report["threads"][0]["passes"]
    by_name = {p["pass"]: p for p in top["passes"]}
    assert by_name["Grow"]["nodes_before"] < by_name["Grow"]["nodes_after"] and by_name["Grow"]["changed"]
    assert by_name["Same"]["nodes_before"] == by_name["Same"]["nodes_after"] and not by_name["Same"]["changed"]
    assert by_name["Off"]["status"].startswith("skipped") and failed["status"].startswith("failed: KeyError")
    assert top["wall_ms"] >= sum(p["wall_ms"] for p in top["passes"]) > 0
    assert {"cpu_ms", "allocated_bytes", "peak_growth_bytes", "start_ms"} <= set(top)
    assert by_name["inner"]["passes"][0]["pass"] == "Deep"


def test_timing_as_chrome_trace():
    events = json.loads(_timed().to_chrome_trace())["traceEvents"]
    by_name = {e["name"]: e for e in events}
    assert by_name["Deep"]["ph"] == "X" and by_name["Off"]["ph"] == "i"
    outer, inner = by_name["sequential"], by_name["Deep"]
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 1e-3


def test_timing_measures_wall_and_cpu_time_apart():
    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        module_pass(lambda mod, ctx: time.sleep(0.05) or mod, opt_level=0, name="Sleeps")(_module())
    one = json.loads(timing.to_json())["threads"][0]["passes"][0]
    assert one["wall_ms"] >= 50 > one["cpu_ms"]


def test_budgets():
    def run(**options):
        timing = PassTimingInstrument(**options)
        with PassContext(instruments=[timing]):
            module_pass(lambda mod, ctx: time.sleep(0.01) or mod, opt_level=0, name="Sleeps")(_module())
            module_pass(lambda mod, ctx: _module("add(exp(%x), exp(add(%x, 4f)))"), opt_level=0, name="Grow")(_module("exp(%x)"))
        return timing.over_budget

    assert run() == []
    assert run(budgets={"*": {"time": 100, "growth": 100, "memory": 1 << 40}}) == []
    (line,) = run(budgets={"Sleeps": {"time": 0.001}})
    assert line.startswith("pass `Sleeps` took ") and line.endswith("its budget is 0.001 s")
    (line,) = run(budgets={"*": {"growth": 1.5}})
    assert line.startswith("pass `Grow` made ") and "its budget is 1.5 times" in line
    with pytest.raises(tvm.Error, match="pass `Sleeps` took"):
        run(budgets={"Sleeps": {"time": 0.001}}, strict=True)
    assert PassContext.current().opt_level == 2
    with pytest.raises(ValueError, match="the budget of `A` has `tim`; there are time"):
        PassTimingInstrument(budgets={"A": {"tim": 1}})


def test_render_of_the_class_is_of_the_last_one():  # IN-025 as older programs write it
    with PassContext(instruments=[PassTimingInstrument()]):
        _noop("Mine")(_module())
        assert "Mine" in PassTimingInstrument.render()


def test_watchdog_names_pass_function_and_expression(capfd):
    dog = PassWatchdog(0.02)
    stop = time.monotonic() + 0.2

    class Slow(relay.ExprMutator):
        def visit_call(self, call):
            return super().visit_call(call)

    @relay.transform.function_pass(opt_level=0)
    def slow(func, mod, ctx):
        while time.monotonic() < stop:
            relay.transform.FoldConstantExpr(func)  # visits expressions in C++
        return func

    with PassContext(instruments=[dog]):
        slow(relay.transform.InferType()(_module()))
        _noop("Quick")(_module())
    assert dog.reports and all("pass `slow` has run for" in r for r in dog.reports)
    assert "now in @main" in dog.reports[0]
    assert any(", at " in r for r in dog.reports)
    assert len(dog.reports) <= 5, "each report waits twice as long"
    assert "warning: pass `slow`" in capfd.readouterr().err
    with pytest.raises(ValueError, match="above 0"):
        PassWatchdog(0)


def test_watchdog_names_the_expression_that_is_evaluated():
    import numpy as np

    dog, ones = PassWatchdog(0.02), relay.const(np.ones((400, 400), "float32"))
    product = ones
    for _ in range(12):
        product = relay.nn.dense(product, ones)
    mod = tvm.IRModule.from_expr(relay.Function([], relay.sum(product)))
    with PassContext(instruments=[dog]):
        relay.transform.FoldConstant()(relay.transform.InferType()(mod))
    folding = [r for r in dog.reports if "pass `FoldConstant`" in r]
    # On a busy machine the first may come before the evaluation begins.
    assert any("now in @main, at call of nn.dense" in r for r in folding)


@pytest.mark.parametrize("visitor", [relay.ExprVisitor, relay.ExprMutator])
def test_watchdog_names_the_expression_that_a_visitor_in_python_is_at(visitor):
    class Slow(visitor):
        def visit_call(self, call):
            end = time.monotonic() + 0.1
            while time.monotonic() < end:
                time.sleep(0.005)
            return super().visit_call(call)

    @relay.transform.function_pass(opt_level=0)
    def slow(func, mod, ctx):
        Slow().visit(func)
        return func

    dog = PassWatchdog(0.02)
    with PassContext(instruments=[dog]):
        slow(_module("add(exp(%x), multiply(exp(tanh(%x)), 3f))"))
    assert any("pass `slow`" in r and ", at call of " in r for r in dog.reports)


# ---- Printing


def _printed(mod=None, run=None, **options):
    out = io.StringIO()
    fold = [relay.transform.InferType(), relay.transform.FoldConstant(), _noop("Same")]
    with PassContext(opt_level=3, instruments=[PrintIR(file=out, **options)]):
        try:
            Sequential(run or fold, name="S")(mod or _module())
        except KeyError:
            pass
    return out.getvalue()


def _titles(text):
    return [line[6:] for line in text.splitlines() if line.startswith("// IR ")]


def test_print_before_and_after():  # GE-004
    assert _titles(_printed(before=True)) == [
        "before S",
        "before InferType",
        "after InferType",
        "before FoldConstant",
        "after FoldConstant",
        "before Same",
        "after Same",
        "after S",
    ]
    assert _titles(_printed()) == ["after InferType", "after FoldConstant", "after Same", "after S"]


def test_print_by_name_or_pattern():
    assert _titles(_printed(passes=["Fold*"])) == ["after FoldConstant"]
    assert _titles(_printed(passes=["Sam?", "S"])) == ["after Same", "after S"]
    with pytest.raises(TypeError, match="passes takes a list"):
        PrintIR(passes="FoldConstant")


def test_print_only_when_changed():
    assert _titles(_printed(only_changed=True, passes=["F*", "Same"])) == ["after FoldConstant"]


def test_print_as_diff():
    text = _printed(diff=True, passes=["FoldConstant", "Same"])
    assert _titles(text) == ["diff of FoldConstant", "diff of Same"]
    assert any(line.startswith("-") and "multiply" in line for line in text.splitlines())
    assert any(line.startswith("+") and "6f" in line for line in text.splitlines())
    assert text.splitlines()[-1] == "unchanged"


def test_print_on_failure():
    text = _printed(after=False, run=[_noop("A"), _failing(KeyError("k"))])
    assert _titles(text) == ["that failed in Fails", "that failed in S"] and "KeyError" in text and "multiply(2f, 3f)" in text
    assert _printed(after=False, on_failure=False, run=[_failing(KeyError())]) == ""


def test_print_per_function():
    two = relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: int32) { add(%x, 1) }\ndef @other(%y: int32) { %y }')
    text = _printed(mod=two, run=[_noop("P")], functions=["oth*"])
    assert "@other" in text and "@main" not in text


def test_print_to_files(tmp_path):
    with PassContext(opt_level=3, instruments=[PrintIR(before=True, passes=["F*", "we/rd"], directory=tmp_path / "steps")]):
        Sequential([relay.transform.InferType(), relay.transform.FoldConstant(), _noop("we/rd")])(_module())
    names = sorted(p.name for p in (tmp_path / "steps").iterdir())
    assert names == ["0001_FoldConstant_before.relay", "0002_FoldConstant_after.relay", "0003_we_rd_before.relay", "0004_we_rd_after.relay"]
    text = (tmp_path / "steps" / names[1]).read_text()
    assert "6f" in relay.fromtext('#[version = "0.0.5"]\n' + text).astext(), "a step can be read again"
    (tmp_path / "file").write_text("")
    with pytest.raises(tvm.Error, match="is no directory"):
        PrintIR(directory=tmp_path / "file")


# ---- Verification


def test_verify_names_the_pass_that_breaks_the_program():
    def broken(mod, ctx):
        return tvm.IRModule({"main": relay.Function([relay.var("x", shape=(2,))], relay.var("loose", shape=(2,)))})

    with pytest.raises(tvm.Error, match="(?s)after pass `Breaks`.*not WellFormed.*loose"), PassContext(instruments=[VerifyIR()]):
        Sequential([_noop("Fine"), module_pass(broken, opt_level=0, name="Breaks")])(_module())


def test_verify_types():
    strip = module_pass(lambda mod, ctx: _module(), opt_level=0, name="Strips")
    with pytest.raises(tvm.Error, match="(?s)after pass `Strips`.*not Typed"), PassContext(instruments=[VerifyIR(["Typed"])]):
        strip(relay.transform.InferType()(_module()))
    with pytest.raises(ValueError, match="there is no property `Typd`"):
        VerifyIR(["Typd"])


@relay.transform.function_pass(opt_level=0)
class IllTyped(relay.ExprMutator):
    """exp(x) becomes a product that does not fit."""

    def transform_function(self, func, mod, ctx):
        return self.visit(func)

    def visit_call(self, call):
        new = super().visit_call(call)
        return relay.nn.dense(new.args[0], relay.const([[1.0, 2.0]])) if call.op == relay.op.get("exp") else new


def test_verify_names_the_pass_that_leaves_an_ill_typed_program():
    with pytest.raises(tvm.error.InternalError, match=r"(?s)pass `IllTyped`.*nn\.dense R"):
        with PassContext(opt_level=3, instruments=[VerifyIR()]):
            Sequential([relay.transform.InferType(), _noop("Fine"), IllTyped(), relay.transform.FuseOps()])(_module())


def test_a_parameter_s_type_that_was_found_from_a_use_stands_when_the_use_is_gone():
    mod = relay.transform.InferType()(relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32], %w) { nn.dense(%x, %w, units=4) }'))

    def cast(mod, ctx):
        x, w = mod["main"].params
        narrow = relay.nn.dense(relay.cast(x, "float16"), relay.cast(w, "float16"), units=4)
        return tvm.IRModule({"main": relay.Function([x, w], relay.cast(narrow, "float32"))})

    with PassContext(instruments=[VerifyIR()]):
        out = Sequential([module_pass(cast, opt_level=0, name="Cast"), relay.transform.InferType()])(mod)
    assert out["main"].params[1].checked_type == relay.TensorType((4, 3))


def test_a_program_that_was_ill_typed_is_not_the_pass_s_fault():
    mod = _module("nn.dense(%x, ones(shape=[2, 2], dtype=\"float32\"))")
    with PassContext(instruments=[VerifyIR()]):
        _noop()(mod)
        module_pass(lambda m, c: _module("nn.dense(%x, ones(shape=[3, 3], dtype=\"float32\"))"), opt_level=0, name="Other")(mod)
    with pytest.raises(tvm.error.CompileError, match="nn.dense R"), PassContext(instruments=[VerifyIR()]):
        relay.transform.InferType()(mod)


def test_verify_contracts():
    liar = module_pass(lambda mod, ctx: mod, opt_level=0, name="Liar", establishes=["Typed"])
    with pytest.raises(tvm.Error, match="(?s)after pass `Liar`.*not Typed"), PassContext(instruments=[VerifyIR()]):
        liar(_module())
    with PassContext(instruments=[VerifyIR(contracts=False)]):
        liar(_module())


def test_verify_determinism():
    count = []

    def unsteady(mod, ctx):
        count.append(1)
        return _module(f"add(%x, {len(count)}f)")

    with pytest.raises(tvm.Error, match="after pass `Unsteady`: it is not deterministic.*at "), PassContext(instruments=[VerifyIR(determinism=True)]):
        module_pass(unsteady, opt_level=0, name="Unsteady")(_module())
    assert PassContext.current().opt_level == 2


def test_verify_passes_what_is_right():
    log = []
    with PassContext(opt_level=3, instruments=[VerifyIR(determinism=True), Log(log)]):
        Sequential([relay.transform.InferType(), relay.transform.FoldConstant(), relay.transform.FuseOps()])(_module())
    assert [e[2] for e in log if e[1] == "before"].count("FoldConstant") == 1, "the second run is not instrumented"


def test_every_pass_of_the_default_pipeline_is_right():
    from baton._ffi import get_global_func

    mod = relay.fromtext("""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32], %b: Tensor[(4), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]);
  %1 = nn.relu(nn.bias_add(%0, %b));
  nn.softmax(nn.batch_flatten(add(%1, multiply(2f, 3f))))
}""")
    log = []
    with PassContext(opt_level=3, instruments=[VerifyIR(determinism=True), Log(log)]):
        get_global_func("driver.Optimize")(mod, tvm.target.Target("llvm"))
    assert {"InferType", "FoldConstant", "FoldScaleAxis", "SimplifyExpr", "AlterOpLayout", "FuseOps"} <= {e[2] for e in log if e[1] == "after"}


def test_the_pass_that_prints_prints_all_of_a_large_program(capsys):
    """In pieces, so that the text is never whole in memory."""
    lines = "".join(f"  %{i} = add(%{i - 1 if i else 'x'}, {i % 7}f);\n" for i in range(30_000))
    mod = relay.fromtext(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) {{\n{lines}  tanh(%29999)\n}}')
    get_global_func("transform.GetPass")("PrintIR")(mod)
    assert capsys.readouterr().out == "PrintIR():\n" + mod.astext(show_meta_data=False) + "\n"
