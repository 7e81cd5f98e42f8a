# SPDX-License-Identifier: Apache-2.0
"""Function passes on several threads: the same result, names, log and instrument order at any number of threads."""

import io

import pytest

import baton as tvm
from baton import relay
from baton.instrument import PrintIR, VerifyIR, pass_instrument
from baton.transform import PassContext, Sequential

THREADS = [1, 2, 4]
PASSES = ["InferType", "SimplifyInference", "FoldConstant", "EliminateCommonSubexpr", "FoldScaleAxis", "AlterOpLayout", "PackDense", "FuseOps"]


def _module(n=40):
    shared = "multiply(2f, 3f)"
    functions = []
    for i in range(n):
        functions.append(f"def @f{i}(%x: Tensor[(4, {8 + i % 3}), float32]) {{ %0 = nn.dense(%x, ones(shape=[8, {8 + i % 3}], dtype=\"float32\"), "
                         f"units=8); %1 = add(nn.relu(%0), {shared}); add(exp(%1), exp(%1)) }}")
    return relay.fromtext('#[version = "0.0.5"]\n' + "\n".join(functions))


def _run(threads, names=PASSES, mod=None, instruments=()):
    with PassContext(opt_level=3, num_threads=threads, instruments=list(instruments)):
        return Sequential([getattr(relay.transform, n)() for n in names])(mod or _module())


def test_results_are_the_same_at_any_number_of_threads():
    texts = {_run(threads).astext() for threads in THREADS for _ in range(3)}
    assert len(texts) == 1
    assert texts.pop().count("Primitive=1") >= 40


def test_instruments_and_prints_come_in_the_same_order():
    logs = []
    for threads in THREADS:
        log, out = [], io.StringIO()

        @pass_instrument
        class Log:
            def run_before_pass(self, mod, info, log=log):
                log.append(("before", info.name))

            def run_after_pass(self, mod, info, log=log):
                log.append(("after", info.name, len(mod)))

        _run(threads, instruments=[Log(), PrintIR(only_changed=True, file=out), VerifyIR(determinism=True)])
        logs.append((log, out.getvalue()))
    assert logs[0] == logs[1] == logs[2] and logs[0][0]


@pytest.mark.parametrize("threads", THREADS)
def test_the_error_is_that_of_the_first_function_that_fails(threads):
    mod = relay.transform.InferType()(_module())

    def fskip(expr):
        raise LookupError(str(expr.span)) if fail[0] else None

    fail = [True]
    for _ in range(5):
        with pytest.raises(LookupError):
            with PassContext(opt_level=3, num_threads=threads):
                relay.transform.EliminateCommonSubexpr(fskip)(mod)
    assert PassContext.current().opt_level == 2
    fail[0] = False


@pytest.mark.parametrize("threads", THREADS)
def test_bodies_in_python_see_their_context(threads):
    seen = []

    @relay.transform.function_pass(opt_level=0)
    def look(func, mod, ctx):
        seen.append((PassContext.current().opt_level, ctx.num_threads))
        return func

    with PassContext(opt_level=3, num_threads=threads):
        look(_module(6))
    assert seen == [(3, threads)] * 6


def test_functions_share_expressions():
    x = relay.var("x", shape=(4,), dtype="float32")
    common = relay.exp(relay.multiply(relay.const(2.0), relay.const(3.0)))
    mod = tvm.IRModule({f"f{i}": relay.Function([x], relay.add(x, common)) for i in range(32)})
    one = _run(1, mod=mod)
    for _ in range(10):
        assert tvm.ir.structural_equal(_run(4, mod=mod), one)


def test_python_runs_on_while_cpp_passes_run():  # PY-023: the GIL is released
    import threading

    state, mod = {"runs": 0}, _module(4)
    many = Sequential([relay.transform.InferType()] * 20_000)  # one call into C++

    def work():
        state["started"] = True
        many(mod)
        state["ended"] = True

    thread = threading.Thread(target=work)
    thread.start()
    while "ended" not in state:
        state["runs"] += "started" in state
    thread.join()
    assert state["runs"] > 1000, "the other thread stood still"
