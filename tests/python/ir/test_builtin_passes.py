# SPDX-License-Identifier: Apache-2.0
"""Every built-in pass: its endpoint, its Python function, its PassInfo, and that what it says of itself is true."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import baton as tvm
from baton import relay, tir
from baton._ffi import get_global_func
from baton.instrument import VerifyIR
from baton.transform import PassContext, Sequential, list_properties

NAMES = [n for n in map(str, get_global_func("transform.PassNames")()) if not n.startswith("Test")]

PROGRAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(4, 4, 3, 3), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]);
  %1 = nn.relu(add(%0, multiply(2f, 3f)));
  %2 = nn.dropout(add(%1, %1));
  (%2.0, add(%1, %1), reshape(%x, newshape=[4, -1]))
}
def @other(%y: Tensor[(4), float32]) { let %z = exp(%y); let %unused = exp(%z); add(%z, %z) }
"""


def _module():
    mod = relay.fromtext(PROGRAM)
    n = tir.Var("n", "int64")
    mod[relay.GlobalVar("loops")] = tir.PrimFunc([n], tir.For(tir.Var("i", "int64"), 0, 4, 0, tir.Evaluate(n)))
    return mod


def _make(name):
    short = name.removeprefix("tir.")
    return getattr(tir.transform if name.startswith("tir.") else relay.transform, short)()


def test_the_list_is_not_empty():
    assert len(NAMES) >= 26 and {"InferType", "FoldConstant", "tir.VectorizeLoop"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_endpoint_function_and_info(name):  # PI-054, PY-018, PI-003
    short = name.removeprefix("tir.")
    prefix = "tir.transform." if name.startswith("tir.") else "relay._transform."
    assert get_global_func(prefix + short, allow_missing=True) is not None
    by_name, by_function = get_global_func("transform.GetPass")(name), _make(name)
    for one in (by_name, by_function):
        assert isinstance(one, tvm.transform.Pass)
        info = one.info
        assert info.name == short and 0 <= info.opt_level <= 5
        for required in info.required:
            get_global_func("transform.GetPass")(required)
        for prop in [*info.needs, *info.establishes, *info.keeps, *info.destroys]:
            assert prop == "*" or prop in list_properties(), prop
    function = getattr(tir.transform if name.startswith("tir.") else relay.transform, short)
    assert function.__name__ == short and len(function.__doc__) > 20
    assert not function.__doc__.startswith("The pass `"), "a pass says what it does"


@pytest.mark.parametrize("name", NAMES)
def test_what_the_info_says_is_true(name):
    """The prerequisites suffice; the contract holds; the module that went in is as it was; a second run gives the same."""
    mod = _module()
    before = mod.astext(show_types=False)  # types may be found in place
    with PassContext(opt_level=4, instruments=[VerifyIR(determinism=True)]):
        out = Sequential([_make(name)])(mod)
    assert isinstance(out, tvm.IRModule) and mod.astext(show_types=False) == before
    info = _make(name).info
    if info.keeps or info.destroys:
        typed = relay.transform.InferType()(mod)
        again = _make(name)(typed)
        for prop in ("Typed", "ANF"):
            held = not str(get_global_func("transform.CheckProperty")(prop, typed))
            kept = prop not in info.destroys and ("*" in info.keeps or prop in info.keeps or not info.keeps)
            if held and kept:
                assert str(get_global_func("transform.CheckProperty")(prop, again)) == ""


def _over_functions(name):
    return isinstance(get_global_func("transform.GetPass")(name), (relay.transform.FunctionPass, tir.transform.PrimFuncPass))


@pytest.mark.parametrize("name", list(filter(_over_functions, NAMES)))
def test_left_alone_means_the_same_functions(name):  # PI-036, PI-038
    mod = _module()
    for var in mod.get_global_vars():
        if var.name_hint != "loops":
            mod[var] = mod[var].with_attr("SkipOptimization", 1)
    mod = relay.transform.InferType()(mod)  # what has no types gets them
    one = get_global_func("transform.GetPass")(name)
    out = one(mod)
    for var in mod.get_global_vars():
        if var.name_hint != "loops" or isinstance(one, relay.transform.FunctionPass):
            assert out[var.name_hint].same_as(mod[var.name_hint])
    assert len(out) == len(mod), "a function pass cannot add or delete functions"


def test_what_is_received_decides_the_kind_of_pass():  # PY-019, PI-062
    info = tvm.transform.PassInfo(0, "x", [])
    kinds = {
        relay.transform.FunctionPass: get_global_func("relay._transform.MakeFunctionPass")(lambda f, m, c: f, info),
        tvm.transform.ModulePass: get_global_func("transform.MakeModulePass")(lambda m, c: m, info),
        tir.transform.PrimFuncPass: get_global_func("tir.transform.CreatePrimFuncPass")(lambda f, m, c: f, info),
        tvm.transform.Sequential: get_global_func("transform.Sequential")([], 0, "x", []),
    }
    for kind, one in kinds.items():
        assert isinstance(one, kind) and one.info.name == "x"


def test_backend_functions_have_their_early_names():  # PY-005
    for name in ("EnterPassContext", "ExitPassContext", "GetCurrentPassContext", "RunPass"):
        for prefix in ("transform.", "relay._transform."):
            assert get_global_func(prefix + name, allow_missing=True) is not None
    ctx = PassContext(opt_level=3)
    get_global_func("relay._transform.EnterPassContext")(ctx)
    assert get_global_func("relay._transform.GetCurrentPassContext")().same_as(ctx)
    mod = _module()
    assert get_global_func("relay._transform.RunPass")(relay.transform.InferType(), mod)["main"].body.checked_type is not None
    get_global_func("relay._transform.ExitPassContext")(ctx)


def test_python_bodies_with_python_functors():  # PY-022, GE-006
    class ExpToTanh(relay.ExprMutator):
        def visit_call(self, call):
            new = super().visit_call(call)
            return relay.tanh(new.args[0]) if call.op == relay.op.get("exp") else new

    class Names(relay.ExprVisitor):
        def __init__(self):
            super().__init__()
            self.names = []

        def visit_call(self, call):
            super().visit_call(call)
            self.names.append(str(call.op.name))

    @relay.transform.function_pass(opt_level=1)
    class Rewrite:
        def transform_function(self, func, mod, ctx):
            return ExpToTanh().visit(func)

    mod = Sequential([Rewrite()])(_module())
    names = Names()
    names.visit(mod["other"])
    assert "tanh" in names.names and "exp" not in names.names
    with PassContext(opt_level=0):
        assert Sequential([Rewrite()])(mod)["other"].same_as(mod["other"]), "gated as a pass of C++"


def test_dead_code_elimination_removes_functions_nobody_reaches():  # PI-030
    mod = relay.fromtext("""#[version = "0.0.5"]
def @main(%x: int32) -> int32 { let %unused = add(%x, 2); @used(%x) }
def @used(%x: int32) -> int32 { add(%x, 1) }
def @unused(%x: int32) -> int32 { @main(%x) }
""")
    one = relay.transform.DeadCodeElimination()
    assert isinstance(one, tvm.transform.ModulePass)
    out = one(mod)
    assert sorted(v.name_hint for v in out.get_global_vars()) == ["main", "used"] and "unused" not in out.astext()
    assert len(mod) == 3 and one(out).same_as(out)
    library = tvm.IRModule({"a": mod["used"], "b": mod["used"]})
    assert len(one(library)) == 2, "without a main every function is an entry"


@pytest.mark.parametrize("name", ["ToANormalForm", "LambdaLift"])
def test_normal_form_and_lambda_lifting_are_passes_over_modules(name):  # PI-031
    assert isinstance(get_global_func("transform.GetPass")(name), tvm.transform.ModulePass)


PLUGIN = """// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>

using namespace baton;             // NOLINT
using namespace baton::transform;  // NOLINT

namespace third_party {
/// The early recipe too: a pass of a lambda, registered by hand.
Pass TestDropsAll() {
  return CreateModulePass(TypedPackedFunc<IRModule(IRModule, PassContext)>([](IRModule mod, PassContext) {
                            IRModule out = mod.Copy();
                            for (const auto& [var, func] : mod->functions) out.CopyOnWrite()->Remove(var);
                            return out;
                          }),
                          1, "TestDropsAll", {"InferType"});
}
BATON_REGISTER_GLOBAL("relay._transform.TestDropsAll").set_body_typed(TestDropsAll);

/// And the later one.
Pass TestSameAgain() {
  return MakePass<TestSameAgain>({.doc = "Returns each function as it is.",
                                  .run = [](relay::Function f, IRModule, PassContext) { return f; }});
}
const RegisterPass<TestSameAgain> registered;
BATON_REGISTER_PASS_CONFIG_OPTION("test.plugin.level", int64_t);
}  // namespace third_party
"""

USER = """
import ctypes, sys
import baton as tvm
from baton import relay
ctypes.CDLL(sys.argv[1])
mod = relay.fromtext('#[version = "0.0.5"]\\ndef @main(%x: int32) { add(%x, 1) }')
assert len(relay.transform.TestDropsAll()(mod)) == 0
assert relay.transform.TestSameAgain().info.name == "TestSameAgain"
assert tvm.transform.parse_pipeline("TestSameAgain,TestDropsAll").text() == "TestSameAgain,TestDropsAll"
user = tvm.transform.module_pass(lambda m, c: m, opt_level=0, name="User", required=["TestDropsAll"])
assert len(tvm.transform.Sequential([user])(mod)) == 0
assert tvm.transform.PassContext(config={"test.plugin.level": 3}).config["test.plugin.level"] == 3
print("loaded")
"""


def test_passes_of_a_third_party_s_library(tmp_path):  # PI-067, GE-007, GE-008, GE-012, PI-063
    root = Path(__file__).resolve().parents[3]
    lib = Path(tvm.__path__[0]) / "lib"
    if not (root / "include" / "baton").is_dir():
        pytest.skip("no headers beside the tests")
    (tmp_path / "plugin.cpp").write_text(PLUGIN)
    done = subprocess.run(["c++", "-std=c++20", "-O0", "-shared", "-fPIC", f"-I{root / 'include'}", "plugin.cpp", "-o", "plugin.so",
                           f"-L{lib}", "-lbaton", "-lbaton_runtime", f"-Wl,-rpath,{lib}"],
                          cwd=tmp_path, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    done = subprocess.run([sys.executable, "-c", USER, str(tmp_path / "plugin.so")], capture_output=True, text=True)
    assert done.returncode == 0 and "loaded" in done.stdout, done.stderr[-2000:]
    assert sysconfig.get_platform().startswith("linux")


def test_the_fallback_device_comes_from_the_context():  # PI-020
    mod = relay.transform.InferType()(relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { exp(%x) }'))
    plan = get_global_func("transform.GetPass")("PlanDevices")

    def planned(**config):
        with PassContext(config=config):
            return plan(mod).astext()

    assert planned() == relay.transform.PlanDevices("cpu")(mod).astext()
    assert planned(**{"relay.fallback_device_type": 2}) == relay.transform.PlanDevices("cuda")(mod).astext() != planned()
    assert tvm.transform.parse_pipeline("PlanDevices(default_device=2)").text() == "PlanDevices(default_device=2)"
