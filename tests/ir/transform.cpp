// SPDX-License-Identifier: Apache-2.0
// The pass infrastructure, by the numbers of the requirements.
#include <baton/ir/transform.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace baton;             // NOLINT
using namespace baton::transform;  // NOLINT

namespace {

std::vector<std::string> trace;

Pass Noop(const char* name, int level = 0, Array<String> required = {}) {
  std::string n = name;
  return CreateModulePass(TypedPackedFunc<IRModule(IRModule, PassContext)>([n](IRModule m, PassContext) {
                            trace.push_back(n);
                            return m;
                          }),
                          level, name, required);
}

IRModule Empty() { return IRModule(Map<GlobalVar, BaseFunc>()); }

instrument::PassInstrument Tracer(const char* name, const char* throw_at = "", bool run = true) {
  std::string n = name, bad = throw_at;
  auto point = [n, bad](std::string what) {
    trace.push_back(n + "." + what);
    if (bad == what) throw runtime::ValueError(n + " fails in " + what);
  };
  return instrument::MakePassInstrument(name, runtime::MakeTyped([point] { point("enter"); }),
                                        runtime::MakeTyped([point] { point("exit"); }),
                                        runtime::MakeTyped([point, run](IRModule, PassInfo) {
                                          point("should_run");
                                          return run;
                                        }),
                                        runtime::MakeTyped([point](IRModule, PassInfo i) {
                                          point("before");
                                          (void)i;
                                        }),
                                        runtime::MakeTyped([point](IRModule, PassInfo i) {
                                          point("after");
                                          (void)i;
                                        }));
}

PassContext Context(int level, Array<String> required = {}, Array<String> disabled = {},
                    Array<instrument::PassInstrument> instruments = {}) {
  return PassContext::Make(level, required, disabled, instruments, Map<String, Any>());
}

using Scope = With<PassContext>;

struct RegisterCycle {
  RegisterCycle() {
    runtime::Registry::Register("relay._transform.TestCycleA").set_body_typed([] {
      return Noop("TestCycleA", 0, {"TestCycleB"});
    });
    runtime::Registry::Register("relay._transform.TestCycleB").set_body_typed([] {
      return Noop("TestCycleB", 0, {"TestCycleA"});
    });
    runtime::Registry::Register("relay._transform.TestBase").set_body_typed([] { return Noop("TestBase", 4); });
    runtime::Registry::Register("relay._transform.TestMiddle").set_body_typed([] {
      return Noop("TestMiddle", 0, {"TestBase"});
    });
  }
} registered_cycle;

using Trace = std::vector<std::string>;

}  // namespace

TEST_CASE("PI-046 a pass runs when the context's level is at least its own; TR-01") {
  for (int pass = 0; pass <= 4; ++pass) {
    for (int ctx = 0; ctx <= 4; ++ctx) {
      trace.clear();
      Scope s(Context(ctx));
      Sequential({Noop("P", pass)})(Empty());
      CHECK(trace.size() == (ctx >= pass ? 1u : 0u));
    }
  }
}

TEST_CASE("PI-044, PI-045 disabled is stronger than required, required than the level") {
  PassInfo high(3, "High", {}), low(0, "Low", {});
  CHECK(Context(0, {"High"}).PassEnabled(high));
  CHECK_FALSE(Context(0).PassEnabled(high));
  CHECK_FALSE(Context(4, {"Low"}, {"Low"}).PassEnabled(low));
}

TEST_CASE("PI-041, PI-042, PI-043 order, undefined passes, skipped passes") {
  trace.clear();
  Sequential({Noop("A"), Noop("B"), Noop("C")})(Empty());
  CHECK(trace == Trace{"A", "B", "C"});
  CHECK_THROWS_WITH_AS(Sequential({Pass()})(Empty()), "Found undefined pass for optimization.", Error);
  trace.clear();
  Scope s(Context(0));
  IRModule m = Empty();
  CHECK(Sequential({Noop("Skipped", 3, {"TestBase"})})(m).same_as(m));
  CHECK(trace.empty());
}

TEST_CASE(
    "PI-047, PI-048, PI-049, TR-15 prerequisites run first, transitively, whatever their level or being disabled") {
  trace.clear();
  Scope s(Context(0, {}, {"TestBase"}));
  Sequential({Noop("User", 0, {"TestMiddle"})})(Empty());
  CHECK(trace == Trace{"TestBase", "TestMiddle", "User"});
}

TEST_CASE("PI-049 a cycle of prerequisites is an error that lists it") {
  std::string text;
  try {
    Sequential({Noop("User", 0, {"TestCycleA"})})(Empty());
  } catch (const Error& e) {
    text = e.what();
  }
  CHECK(text.find("TestCycleA -> TestCycleB -> TestCycleA") != std::string::npos);
}

TEST_CASE("PI-051, PI-052 look-up by name") {
  CHECK(GetPass("FoldConstant")->Info()->opt_level == 2);  // PI-063
  CHECK(GetPass("FoldConstant")->Info()->required.empty());
  std::string text;
  try {
    GetPass("FoldConstnat");
  } catch (const Error& e) {
    text = e.what();
  }
  CHECK(text.find("Cannot find relay._transform.FoldConstnat to create pass FoldConstnat") == 0);
  CHECK(text.find("`FoldConstant`") != std::string::npos);
}

TEST_CASE("PI-057 a pass called directly runs whatever its level") {
  trace.clear();
  Scope s(Context(0, {}, {"Direct"}));
  Noop("Direct", 4)(Empty());
  CHECK(trace == Trace{"Direct"});
}

TEST_CASE("PI-025 a body that gives no module is an error that names the pass") {
  Pass bad = CreateModulePass(TypedPackedFunc<IRModule(IRModule, PassContext)>(
                                  PackedFunc([](runtime::Args, runtime::RetValue* rv) { *rv = 3; })),
                              0, "Bad", {});
  CHECK_THROWS_WITH_AS(bad(Empty()), "pass `Bad` must return an IRModule, it returned int", Error);
}

TEST_CASE("PI-024, PI-034, PI-036 function passes: the module handed in, the set of functions, SkipOptimization") {
  using relay::Function;
  relay::Var x("x", TensorType(Array<PrimExpr>{PrimExpr(2)}, DataType::Float(32)));
  Function f({x}, x), skipped = WithAttr(Function({x}, x), attr::kSkipOptimization, Any(1));
  IRModule mod = Empty();
  mod.CopyOnWrite()->Add(GlobalVar("f"), f);
  mod.CopyOnWrite()->Add(GlobalVar("skipped"), skipped);
  Function other({x}, relay::Tuple(Array<relay::Expr>{x}));
  Pass p = relay::transform::CreateFunctionPass(
      TypedPackedFunc<Function(Function, IRModule, PassContext)>([other](Function, IRModule m, PassContext) {
        const_cast<IRModuleNode*>(m.get())->Add(GlobalVar("more"), other, true);
        return other;
      }),
      0, "Replace", {});
  IRModule out = p(mod);
  CHECK(out->functions.size() == 2);
  CHECK(out->Lookup("f").same_as(other));
  CHECK(out->Lookup("skipped").same_as(skipped));
  CHECK(mod->Lookup("f").same_as(f));
}

TEST_CASE("IN-006, IN-008 the sequence of calls; exit is not reversed (TR-13)") {
  trace.clear();
  {
    Scope s(Context(2, {}, {}, {Tracer("a"), Tracer("b")}));
    Noop("P1")(Empty());
  }
  CHECK(trace == Trace{"a.enter", "b.enter", "a.should_run", "b.should_run", "a.before", "b.before", "P1", "a.after",
                       "b.after", "a.exit", "b.exit"});
}

TEST_CASE("IN-011, IN-012, IN-013 should_run") {
  trace.clear();
  {
    Scope s(Context(2, {}, {}, {Tracer("no", "", false), Tracer("yes")}));
    Noop("P")(Empty());
  }
  CHECK(trace == Trace{"no.enter", "yes.enter", "no.should_run", "yes.should_run", "no.exit", "yes.exit"});
  trace.clear();
  {
    Scope s(Context(2, {"P"}, {}, {Tracer("no", "", false)}));
    Noop("P")(Empty());
  }
  CHECK(trace == Trace{"no.enter", "no.before", "P", "no.after", "no.exit"});
}

TEST_CASE("IN-015, IN-016, IN-017, TR-17 a throw while entering") {
  trace.clear();
  PassContext ctx = Context(2, {}, {}, {Tracer("a"), Tracer("b", "enter"), Tracer("c")});
  PassContext outer = PassContext::Current();
  CHECK_THROWS_AS(Scope{ctx}, Error);
  CHECK(trace == Trace{"a.enter", "b.enter", "a.exit"});
  CHECK(ctx->instruments.empty());
  CHECK(PassContext::Current().same_as(outer));
}

TEST_CASE("IN-018 a throw while leaving: later ones get no exit, the context is left all the same") {
  trace.clear();
  PassContext outer = PassContext::Current();
  PassContext ctx = Context(2, {}, {}, {Tracer("a"), Tracer("b", "exit"), Tracer("c")});
  bool thrown = false;
  try {
    Scope s(ctx);
  } catch (const Error&) {
    thrown = true;
  }
  CHECK(thrown);
  CHECK(trace == Trace{"a.enter", "b.enter", "c.enter", "a.exit", "b.exit"});
  CHECK(ctx->instruments.empty());
  CHECK(PassContext::Current().same_as(outer));
}

TEST_CASE("IN-019, IN-020, IN-021 throws around a pass") {
  trace.clear();
  auto run = [](const char* at) {
    With<PassContext> scope(Context(2, {}, {}, {Tracer("a", at), Tracer("b")}));
    Noop("P")(Empty());
  };
  CHECK_THROWS_AS(run("before"), Error);
  CHECK(trace == Trace{"a.enter", "b.enter", "a.should_run", "b.should_run", "a.before", "a.exit", "b.exit"});
  trace.clear();
  CHECK_THROWS_AS(run("after"), Error);
  CHECK(trace == Trace{"a.enter", "b.enter", "a.should_run", "b.should_run", "a.before", "b.before", "P", "a.after",
                       "a.exit", "b.exit"});
}

TEST_CASE("IN-022 TR-16 an exit that throws while an exception passes does not end the process; the first wins") {
  std::string text;
  try {
    With<PassContext> scope(Context(2, {}, {}, {Tracer("a", "exit")}));
    throw runtime::ValueError("first");
  } catch (const Error& e) {
    text = e.what();
  }
  CHECK(text == "first");
}

TEST_CASE("IN-036, IN-037, IN-039 override_instruments on the default context") {
  trace.clear();
  PassContext ctx = PassContext::Current();
  ctx.OverrideInstruments({Tracer("a")});
  Noop("P")(Empty());
  ctx.OverrideInstruments({Tracer("b")});
  ctx.OverrideInstruments({});
  Noop("Q")(Empty());
  CHECK(trace == Trace{"a.enter", "a.should_run", "a.before", "P", "a.after", "a.exit", "b.enter", "b.exit", "Q"});
}

TEST_CASE("unknown pass options are refused with the nearest known name") {
  Map<String, Any> config;
  config.Set("relay.FuseOps.max_dpth", Any(3));
  std::string text;
  try {
    PassContext::Make(2, {}, {}, {}, config);
  } catch (const Error& e) {
    text = e.what();
  }
  CHECK(text == "there is no pass option `relay.FuseOps.max_dpth`; did you mean `relay.FuseOps.max_depth`?");
}
