# SPDX-License-Identifier: Apache-2.0
"""NM-003: the Python examples of the founding documents, run as written (`import baton as tvm`; misprints mended as TR says)."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay import transform as relay_transform


def test_myadd(capsys):
    """PF-007, "TVM Runtime System": the function that C++ registers; here Python does, the C++ example is 002_register_my_add."""
    tvm.register_func("seed.myadd", lambda a, b: a + b, override=True)
    myadd = tvm.get_global_func("seed.myadd")
    # prints 3
    print(myadd(1, 2))
    assert capsys.readouterr().out == "3\n"


def test_callhello(capsys):
    """PF-012, "TVM Runtime System"."""
    tvm.register_func("seed.callhello", lambda f: f("hello world"), override=True)

    def callback(msg):
        print(msg)

    # convert to PackedFunc
    f = tvm.convert(callback)
    callhello = tvm.get_global_func("seed.callhello")
    # prints hello world
    callhello(f)
    assert capsys.readouterr().out == "hello world\n"


def test_placeholder(capsys):
    """RF-004, "TVM Node and Compiler Stack"."""
    x = tvm.te.placeholder((3, 4), name="x")
    # access the op field of TensorNode
    print(x.op.name)
    assert capsys.readouterr().out == "x\n"


def test_placeholder_at_the_top():
    """RF-004: the early place of the same function."""
    x = tvm.placeholder((3, 4), name="x")
    assert x.op.name == "x"


def test_pass_context_scope():
    """PY-004, TR-05: the class of the document has this behaviour; `__exit__` takes Python's three arguments."""
    outside = tvm.transform.PassContext.current()
    with tvm.transform.PassContext(opt_level=3) as ctx:
        assert tvm.transform.PassContext.current().same_as(ctx)
        ctx.__exit__(None, None, None)
        assert tvm.transform.PassContext.current().same_as(outside)
        ctx.__enter__()
    assert tvm.transform.PassContext.current().same_as(outside)


def test_pass_is_called():
    """Pass Objects: a pass is a callable."""
    mod = tvm.IRModule.from_expr(relay.const(np.float32(1)) + relay.const(np.float32(2)))
    out = relay_transform.FoldConstant()(mod)
    assert float(out["main"].body.data.numpy()) == 3


def test_fold_constant_endpoint():
    """`def FoldConstant(): return _transform.FoldConstant()`."""
    fold = tvm.get_global_func("relay._transform.FoldConstant")
    assert fold().info.name == "FoldConstant"


def test_module_pass():
    """PY-014, TR-07: the decorated function is named `transform` in the document, which hides the module of that name."""

    @relay.transform.module_pass(opt_level=2)
    def transform(mod, ctx):
        tp = relay.TensorType((10,), "float32")
        x = relay.var("x", tp)
        gv = relay.GlobalVar("abs")
        func = relay.Function([x], relay.abs(x))
        new_mod = tvm.IRModule({gv: func})
        new_mod.update(mod)
        return new_mod

    module_pass = transform
    assert isinstance(module_pass, relay.transform.ModulePass)
    assert module_pass.info.opt_level == 2

    mod = tvm.IRModule()
    mod = module_pass(mod)
    assert [gv.name_hint for gv in mod.get_global_vars()] == ["abs"]


def test_function_pass():
    """TR-06: `transform_function` is a method."""

    @relay.transform.function_pass(opt_level=1)
    class TestReplaceFunc:
        def __init__(self, new_func):
            self.new_func = new_func

        def transform_function(self, func, mod, ctx):
            # Just for demo purposes
            # Transform func to new_func
            return self.new_func

    x = relay.var("x", shape=(10, 20))
    f1 = relay.Function([x], x)
    f2 = relay.Function([x], relay.log(x))
    # fpass is now a special pass that replaces every
    # function to f1
    fpass = TestReplaceFunc(f1)
    # Now every function in input_mod is replaced by f1
    input_mod = tvm.IRModule.from_expr(f2)
    res_mod = fpass(input_mod)
    # The result of a pass over functions has types.
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(f1))
    assert tvm.ir.structural_equal(res_mod["main"], typed["main"])


def test_function_pass_as_printed():
    """TR-06: the indentation of the document leaves the class without its method, which is a TypeError that names it."""
    with pytest.raises(TypeError, match="transform_function"):

        @relay.transform.function_pass(opt_level=1)
        class TestReplaceFunc:
            def __init__(self, new_func):
                self.new_func = new_func

                def transform_function(self, func, mod, ctx):
                    return self.new_func

        TestReplaceFunc(None)


def test_override_instruments():
    """Override Instruments in Current PassContext."""
    calls = []

    @tvm.instrument.pass_instrument
    class Count:
        def enter_pass_ctx(self):
            calls.append("enter")

        def exit_pass_ctx(self):
            calls.append("exit")

        def run_before_pass(self, mod, info):
            calls.append(info.name)

        def get_result(self):
            return calls

    pass_inst, mod = Count(), tvm.IRModule.from_expr(relay.const(1))
    pass_seq = tvm.transform.Sequential([relay.transform.InferType()])
    cur_pass_ctx = tvm.transform.PassContext.current()
    try:
        # override PassInstrument instances
        cur_pass_ctx.override_instruments([pass_inst])
        mod = pass_seq(mod)
        result = pass_inst.get_result()
    finally:
        cur_pass_ctx.override_instruments([])
    assert result[0] == "enter"
    assert "InferType" in result
    assert result[-1] == "exit"
