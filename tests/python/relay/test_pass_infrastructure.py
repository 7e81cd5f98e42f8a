# SPDX-License-Identifier: Apache-2.0
"""Contexts, instruments, pipelines and passes in Python, as programs of Relay 0.8 use them."""

import pytest
from building import assert_same, calls, names, parsed, program

import baton as tvm
from baton import relay
from baton.relay import transform as t

Context = tvm.transform.PassContext


def module(text="exp(%x)"):
    return tvm.IRModule.from_expr(program("x[2]", text))


def net():
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    y = relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4))
    return tvm.IRModule.from_expr(relay.Function([x, w], relay.add(y, relay.add(relay.const(1.0), relay.const(2.0)))))


def recorder(log, tag="", fails=None, skips=()):
    """An instrument that logs `event`, or `event name` around passes, with a tag; it raises in the event `fails` and skips passes."""

    @tvm.instrument.pass_instrument
    class Recorder:
        def note(self, event):
            log.append(event + tag)
            if event.split()[0] == fails:
                raise RuntimeError(f"refused in {fails}")

        def enter_pass_ctx(self):
            self.note("enter")

        def exit_pass_ctx(self):
            self.note("exit")

        def should_run(self, mod, info):
            self.note(f"should {info.name}")
            return info.name not in skips

        def run_before_pass(self, mod, info):
            self.note(f"before {info.name}")

        def run_after_pass(self, mod, info):
            self.note(f"after {info.name}")

    return Recorder()


def logging_pass(log, name, opt_level=0, **options):
    return tvm.transform.module_pass(lambda mod, ctx: log.append(name) or mod, opt_level=opt_level, name=name, **options)


# ---- Contexts


def test_defaults_of_a_context():
    for context in (Context(), Context.current()):
        assert (context.opt_level, list(context.required_pass), list(context.disabled_pass), len(context.config)) == (2, [], [], 0)
        assert not context.instruments


def test_contexts_are_nested():
    with Context(opt_level=3, disabled_pass=["FuseOps"], config={"relay.FuseOps.max_depth": 4}) as outer:
        assert Context.current().same_as(outer) and (outer.opt_level, list(outer.disabled_pass)) == (3, ["FuseOps"])
        assert outer.config["relay.FuseOps.max_depth"] == 4
        with pytest.raises(KeyError), Context(opt_level=0):
            assert Context.current().opt_level == 0
            raise KeyError
        assert Context.current().same_as(outer)
    for _ in range(2):
        with outer:
            assert Context.current().opt_level == 3
    assert Context.current().opt_level == 2


@pytest.mark.parametrize("config, error", [({"relay.bad_key": 1}, AttributeError), ({"relay.FuseOps.max_depth": "x"}, tvm.TVMError)], ids=str)
def test_options_that_are_wrong(config, error):
    with pytest.raises(error), Context(config=config):
        pass


TAKEN = {"tir.disable_vectorize": True, "tir.instrument_bound_checkers": False, "tir.noalias": True, "tir.debug_keep_trivial_loop": False,
         "tir.detect_global_barrier": False, "relay.backend.use_auto_scheduler": False, "relay.backend.use_meta_schedule": False,
         "relay.fallback_device_type": 1}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_options_that_passes_read(name):
    seen = []
    with Context(config={name: TAKEN[name]}):
        tvm.transform.module_pass(lambda mod, ctx: seen.append(ctx.config[name]) or mod, opt_level=0)(module())
    assert seen == [TAKEN[name]]


def test_options_of_a_pass_are_a_record():
    with Context(config={"tir.UnrollLoop": {"auto_max_step": 10}}):
        assert Context.current().config["tir.UnrollLoop"].auto_max_step == 10
    known = Context.list_configs()
    assert known["relay.FuseOps.max_depth"]["type"] in ("IntImm", "runtime.IntImm") and "tir.disable_vectorize" in known


@pytest.mark.parametrize("make", [relay.build_config, t.build_config])
def test_a_context_by_its_older_name(make):
    with make(opt_level=3, disabled_pass=["AlterOpLayout"]):
        assert (Context.current().opt_level, list(Context.current().disabled_pass)) == (3, ["AlterOpLayout"])
    if make is t.build_config:
        with make(opt_level=1, required_pass=None, disabled_pass=None, trace=None) as context:
            assert (context.opt_level, list(context.required_pass)) == (1, [])


def test_a_pass_reads_its_context():
    seen = []
    read = tvm.transform.module_pass(lambda mod, ctx: seen.append((ctx.opt_level, list(ctx.disabled_pass))) or mod, opt_level=0)
    with Context(opt_level=4, disabled_pass=["Other"]):
        read(tvm.IRModule())
    assert seen == [(4, ["Other"])]


# ---- Pipelines

A_TO_C = [("a1", {}), ("b1", {}), ("c1", {"opt_level": 3})]
RUNS = {
    "default": ({}, ["a1", "b1"]),
    "level 3": ({"opt_level": 3}, ["a1", "b1", "c1"]),
    "disabled": ({"opt_level": 3, "disabled_pass": ["b1"]}, ["a1", "c1"]),
    "required": ({"opt_level": 0, "required_pass": ["c1"]}, ["a1", "b1", "c1"]),
}


@pytest.mark.parametrize("options, want", RUNS.values(), ids=RUNS)
def test_passes_of_a_nested_pipeline(options, want):
    log = []
    first, *rest = [logging_pass(log, name, **more) for name, more in A_TO_C]
    with Context(**options):
        tvm.transform.Sequential([first, tvm.transform.Sequential(rest)])(module())
    assert log == want


def test_what_a_pipeline_says():
    seq = tvm.transform.Sequential([t.InferType()], name="my", opt_level=1, required=["FoldConstant"])
    assert isinstance(seq, tvm.transform.Sequential) and isinstance(seq.info, tvm.transform.PassInfo) and "my" in str(seq.info)
    assert (seq.info.name, seq.info.opt_level, list(seq.info.required)) == ("my", 1, ["FoldConstant"])
    assert isinstance(t.InferType(), tvm.transform.Pass)
    high = tvm.transform.Sequential([t.InferType()], opt_level=4)
    assert high.info.opt_level == 4 and high(module())["main"].checked_type.ret_type == relay.TensorType((2,))
    for wrong in (lambda: tvm.transform.Sequential("x"), lambda: tvm.transform.Sequential([t.InferType()], required="x")):
        with pytest.raises(TypeError):
            wrong()


def test_required_and_disabled_passes_of_relay():
    seq = tvm.transform.Sequential([t.FoldConstant(), t.EliminateCommonSubexpr(), t.AlterOpLayout()])
    with Context(opt_level=0, required_pass=["FoldConstant"]):
        assert names(seq(net())["main"]).count("add") == 1
    with Context(opt_level=3, disabled_pass=["FoldConstant"]):
        assert names(seq(net())["main"]).count("add") == 2
    nested = tvm.transform.Sequential([tvm.transform.Sequential([t.InferType()]), t.FoldConstant()])
    assert nested(tvm.IRModule.from_expr(relay.const(1) + relay.const(1)))["main"].body.data.numpy() == 2


LEVELS = {"FoldConstant": 2, "SimplifyInference": 0, "FoldScaleAxis": 3, "CombineParallelConv2D": 4, "CombineParallelDense": 4, "AlterOpLayout": 3,
          "EliminateCommonSubexpr": 3, "FastMath": 4, "CanonicalizeCast": 3, "CanonicalizeOps": 3, "Legalize": 1}  # fmt: skip


def test_levels_of_passes():
    assert {name: getattr(t, name)().info.opt_level for name in LEVELS} == LEVELS


@pytest.mark.parametrize("given", ["HDR", {"header": "HDR", "show_meta_data": False}], ids=["by position", "by name"])
def test_print_ir(capfd, given):
    show = tvm.transform.PrintIR(given, True) if isinstance(given, str) else tvm.transform.PrintIR(**given)
    with Context(opt_level=3):
        tvm.transform.Sequential([t.InferType(), show, t.FoldConstant()])(net())
    text = "".join(capfd.readouterr())
    assert "HDR" in text and "nn.conv2d" in text


# ---- Instruments


def test_order_of_instruments():
    log = []
    with Context(instruments=[recorder(log, "0"), recorder(log, "1")]):
        t.InferType()(module())
    assert log == [e + i for e in ("enter", "should InferType", "before InferType", "after InferType", "exit") for i in "01"]


def test_an_instrument_skips_a_pass():
    log = []
    with Context(opt_level=3, instruments=[recorder(log, skips=["FoldConstant"]), recorder(log, "1")]):
        tvm.transform.Sequential([t.FoldConstant(), t.ToANormalForm()])(t.InferType()(module()))
    assert "before ToANormalForm" in log and "after ToANormalForm1" in log and "before FoldConstant" not in log and "before FoldConstant1" not in log
    assert log[:2] == ["enter", "enter1"] and log[-2:] == ["exit", "exit1"]


FAILURES = {
    "enter": ["enter0", "enter1", "exit0"],
    "should": ["enter0", "enter1", "enter2", "should InferType0", "should InferType1", "exit0", "exit1", "exit2"],
    "before": ["enter0", "enter1", "enter2", "should InferType0", "should InferType1", "should InferType2", "before InferType0", "before InferType1",
               "exit0", "exit1", "exit2"],
    "exit": None,
}  # fmt: skip


@pytest.mark.parametrize("fails, want", FAILURES.items())
def test_an_instrument_that_fails(fails, want):
    log = []
    with pytest.raises(RuntimeError, match=f"refused in {fails}"):
        with Context(opt_level=3, instruments=[recorder(log, "0"), recorder(log, "1", fails=fails), recorder(log, "2")]):
            t.InferType()(module())
    assert want is None or log == want
    assert Context.current().opt_level == 2 and not Context.current().instruments


def test_instruments_are_replaced():
    log = []
    with Context(instruments=[recorder(log, "0")]) as context:
        t.InferType()(module())
        context.override_instruments([recorder(log, "1")])
        t.InferType()(module())
        context.override_instruments([])
        assert len(context.instruments) == 0
        t.InferType()(module())
        context.override_instruments(None)
    around = ["enter", "should InferType", "before InferType", "after InferType", "exit"]
    assert log == [e + i for i in "01" for e in around]


def test_an_instrument_as_a_class():
    class Counter(tvm.instrument.PassInstrument):
        def __init__(self):
            super().__init__()
            self.seen = []

        def run_after_pass(self, mod, info):
            self.seen.append((info.name, len(mod.functions)))

    counter = Counter()
    with Context(instruments=[counter]):
        t.InferType()(module())
        t.FuseOps()(module())
    assert counter.seen == [("InferType", 1), ("FuseOps", 1)]

    @tvm.instrument.pass_instrument
    class Sum:
        def __init__(self, a, b=2):
            self.a, self.b = a, b

        def get(self):
            return self.a + self.b

    made = Sum(1)
    assert (made.a, made.get()) == (1, 3) and isinstance(made, tvm.instrument.PassInstrument)
    with pytest.raises(AttributeError):
        _ = made.missing


def test_an_instrument_sees_a_build():
    log = []
    with Context(opt_level=3, instruments=[recorder(log)]):
        relay.build(net(), "llvm")
    assert {"before InferType", "before FuseOps", "before FoldConstant"} <= set(log)


def test_time_of_passes():
    timing = tvm.instrument.PassTimingInstrument()
    assert not timing.render()
    with Context(instruments=[timing]):
        t.FuseOps(fuse_opt_level=2)(t.InferType()(net()))
        text = timing.render()
    assert "InferType:" in text and "FuseOps:" in text and "us" in text


# ---- Passes in Python


def test_a_pass_runs_what_it_requires():
    log = []
    with Context(instruments=[recorder(log)]):
        tvm.transform.Sequential([logging_pass([], "Mine", required=["InferType"])])(tvm.IRModule.from_expr(relay.const(1)))
    assert log.index("before InferType") < log.index("before Mine")


def test_a_module_pass():
    @tvm.transform.module_pass(opt_level=2, name="adds", required=["InferType"])
    def adds(mod, ctx):
        assert isinstance(ctx, Context)
        mod["extra"] = relay.Function([], relay.const(1))
        return mod

    assert isinstance(adds, tvm.transform.ModulePass) and (adds.info.name, adds.info.opt_level, list(adds.info.required)) == ("adds", 2, ["InferType"])
    assert {v.name_hint for v in adds(module()).get_global_vars()} == {"main", "extra"}

    @tvm.transform.module_pass(opt_level=1)
    class Marks:
        def __init__(self, n):
            self.n = n

        def transform_module(self, mod, ctx):
            return mod.with_attr("n", self.n)

    assert Marks(4)(module()).get_attr("n") == Marks(4).n == 4 and Marks(4).info.name == "Marks"
    with pytest.raises((ValueError, TypeError, tvm.TVMError)):
        tvm.transform.module_pass(opt_level="x")(lambda mod, ctx: mod)


def test_a_function_pass():
    @t.function_pass(opt_level=1)
    def negates(func, mod, ctx):
        assert isinstance(mod, tvm.IRModule) and ctx.opt_level == 2
        return relay.Function(func.params, relay.negative(func.body), None, func.type_params, func.attrs)

    assert isinstance(negates, t.FunctionPass) and (negates.info.name, negates.info.opt_level, len(negates.info.required)) == ("negates", 1, 0)
    assert_same(negates(module())["main"], program("x[2]", "negative(exp(%x))"))
    assert_same(t.function_pass(lambda func, mod, ctx: func, opt_level=0, name="keeps")(module())["main"], program("x[2]", "exp(%x)"))


class Gives:
    def __init__(self, new):
        self.new = new

    def transform_function(self, func, mod, ctx):
        return self.new


@pytest.mark.parametrize("decorated", [False, True])
def test_a_function_pass_of_a_class(decorated):
    new = program("x[2]", "nn.relu(%x)")
    make = t.function_pass(opt_level=1)(Gives) if decorated else t.function_pass(Gives, opt_level=1, name="Named")
    made = make(new=new)
    assert isinstance(made, t.FunctionPass) and made.info.name == ("Gives" if decorated else "Named") and made.new.same_as(new)
    assert_same(made(module())["main"], new)


def test_a_function_pass_that_rewrites():
    @t.function_pass(opt_level=1, required=["InferType"])
    class Log(relay.ExprMutator):
        def transform_function(self, func, mod, ctx):
            return self.visit(func)

        def visit_call(self, call):
            call = super().visit_call(call)
            return relay.log(*call.args) if call.op == relay.op.get("exp") else call

    assert_same(Log()(module())["main"], program("x[2]", "log(%x)"))

    @t.function_pass(opt_level=1)
    class Times:
        def __init__(self, factor):
            self.factor = factor

        def transform_function(self, func, mod, ctx):
            outer = self

            class Rewrite(relay.ExprMutator):
                def visit_constant(self, c):
                    return relay.multiply(outer.factor, c)

            return Rewrite().visit(func)

    made = Times(factor=relay.const(3.0))
    assert made.info.name == "Times" and len(calls(made(net())["main"], "multiply")) == 2


def test_functions_that_a_pass_sees():
    seen = []
    look = t.function_pass(lambda func, mod, ctx: seen.append(func) or func, opt_level=0, name="look")
    look(parsed("def @e(SkipOptimization=1) { 2 } def @main(%x: T[2]) { 1 }"))
    assert [len(f.params) for f in seen] == [1]


@pytest.mark.parametrize("error", [KeyError, ZeroDivisionError])
@pytest.mark.parametrize("make", [t.function_pass, tvm.transform.module_pass])
def test_a_pass_that_fails(make, error):
    def fails(*args):
        raise error("its own reason")

    with pytest.raises((error, tvm.TVMError), match="its own reason"):
        make(fails, opt_level=0, name="fails")(net())


@pytest.mark.parametrize("given", [3, None, relay.const(1), program("x[2]", "%x")], ids=["int", "None", "expression", "function"])
def test_a_pass_takes_a_module(given):
    for one in (t.InferType(), t.FoldConstant()):
        with pytest.raises((TypeError, AttributeError, tvm.TVMError)):
            one(given)
