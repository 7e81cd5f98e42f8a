// SPDX-License-Identifier: Apache-2.0
// Passes and contexts, requirement by requirement (those that tests/ir/transform.cpp does not show).
#include <baton/ir/diagnostic.h>
#include <baton/ir/target.h>
#include <baton/ir/transform.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <baton/runtime/threading.h>
#include <baton/tir/transform.h>
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using namespace baton;             // NOLINT
using namespace baton::transform;  // NOLINT

namespace {

IRModule Empty() { return IRModule(Map<GlobalVar, BaseFunc>()); }

relay::Function Identity() {
  relay::Var x("x", TensorType(Array<PrimExpr>{PrimExpr(2)}, DataType::Float(32)));
  return relay::Function({x}, x);
}
tir::PrimFunc Nothing() { return tir::PrimFunc(Array<tir::Var>(), tir::Evaluate(PrimExpr(0))); }

IRModule With1(const char* name, const BaseFunc& f) {
  IRModule mod = Empty();
  mod.CopyOnWrite()->Add(GlobalVar(name), f);
  return mod;
}

template <class F>
Pass ModulePassOf(F f, const char* name = "P", int level = 0, Array<String> required = {}) {
  return CreateModulePass(TypedPackedFunc<IRModule(IRModule, PassContext)>(f), level, name, required);
}
Pass Counting(int* count, const char* name, int level = 0) {
  return ModulePassOf(
      [count](IRModule m, PassContext) {
        ++*count;
        return m;
      },
      name, level);
}

PassContext Make(Map<String, Any> config) { return PassContext::Make(2, {}, {}, {}, config); }

template <class F>
std::string ErrorOf(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

int counted = 0;  ///< runs of TestCounted
struct RegisterCounted {
  RegisterCounted() {
    runtime::Registry::Register("relay._transform.TestCounted").set_body_typed([] {
      return Counting(&counted, "TestCounted");
    });
  }
} register_counted;

/// An instrument by subclass (IN-007).
class CountingNode : public Node<CountingNode, instrument::PassInstrumentNode> {
 public:
  static constexpr const char* _type_key = "test.CountingInstrument";
  static constexpr bool _type_has_hidden_members = true;
  static constexpr void Describe(auto&) {}
  mutable std::vector<std::string> log;
  void EnterPassContext() const final { log.push_back("enter"); }
  void ExitPassContext() const final { log.push_back("exit"); }
  bool ShouldRun(const IRModule& m, const PassInfo& i) const final { return Say("should", m, i); }
  void RunBeforePass(const IRModule& m, const PassInfo& i) const final { Say("before", m, i); }
  void RunAfterPass(const IRModule& m, const PassInfo& i) const final { Say("after", m, i); }
  bool Say(const char* what, const IRModule& m, const PassInfo& i) const {
    log.push_back(std::string(what) + " " + i->name.str() + " " + std::to_string(m->functions.size()));
    return true;
  }
};
const RegisterNodes<CountingNode> registered;
using Log = std::vector<std::string>;

}  // namespace

TEST_CASE("PI-001, PI-002, PI-003, PI-004, PI-064 PassInfo has what was given when the pass was made") {
  Pass p = ModulePassOf([](IRModule m, PassContext) { return m; }, "Named", 3, {"InferType"});
  CHECK(p->Info()->name == "Named");
  CHECK(p->Info()->opt_level == 3);
  CHECK(p->Info()->required[0] == "InferType");
  CHECK(ModulePassOf([](IRModule m, PassContext) { return m; })->Info()->required.empty());
}

TEST_CASE("PI-005, PI-007, PI-010 a fresh context has the defaults and is not active") {
  PassContext before = PassContext::Current(), ctx = PassContext::Create();
  CHECK(PassContext::Current().same_as(before));
  CHECK(ctx->opt_level == 2);
  CHECK(ctx->required_pass.empty());
  CHECK(ctx->disabled_pass.empty());
  CHECK(ctx->config.empty());
  CHECK(ctx->instruments.empty());
  CHECK_FALSE(ctx->diag_ctx.defined());
  ctx->diag_ctx = DiagnosticContext(DiagnosticContextNode{});
  CHECK(ctx->diag_ctx.defined());
}

TEST_CASE("PI-008, PI-011, PI-012, PI-013 scopes nest; the inner one replaces the outer; an exception leaves them") {
  PassContext base = PassContext::Current();
  CHECK(PassContext::Current().same_as(base));
  PassContext outer = PassContext::Make(3, {"A"}, {"B"}, {}, {}), inner = PassContext::Make(1, {}, {}, {}, {});
  {
    With<PassContext> a(outer);
    CHECK(PassContext::Current().same_as(outer));
    try {
      With<PassContext> b(inner);
      CHECK(PassContext::Current().same_as(inner));
      CHECK(PassContext::Current()->required_pass.empty());
      throw 1;
    } catch (int) {
    }
    CHECK(PassContext::Current().same_as(outer));
  }
  CHECK(PassContext::Current().same_as(base));
}

template <class T>
concept EnteredByHand = requires(T context) { context.EnterWithScope(); };
template <class T>
concept LeftByHand = requires(T context) { context.ExitWithScope(); };

struct AnyContext {
  void EnterWithScope() { ++inside; }
  void ExitWithScope() { --inside; }
  int inside = 0;
};

TEST_CASE("PI-012 only With enters and leaves a context") {
  static_assert(!EnteredByHand<PassContext> && !LeftByHand<PassContext>);
  static_assert(!EnteredByHand<Target> && !LeftByHand<Target>);
  static_assert(EnteredByHand<AnyContext> && LeftByHand<AnyContext>, "the question can be answered with yes");
  PassContext base = PassContext::Current(), inner = PassContext::Create();
  Target before = Target::Current();
  {
    With<PassContext> a(inner);
    With<Target> b(Target::Make("c"));
    CHECK(PassContext::Current().same_as(inner));
    CHECK(Target::Current()->kind == "c");
  }
  CHECK(PassContext::Current().same_as(base));
  CHECK(Target::Current()->kind == before->kind);
}

TEST_CASE("PI-009 contexts of one thread are not seen in another") {
  With<PassContext> a(PassContext::Make(4, {}, {}, {}, {}));
  int level = -1;
  std::thread([&] { level = PassContext::Current()->opt_level; }).join();
  CHECK(level == 2);
}

TEST_CASE("a context belongs to one thread at a time") {
  PassContext ctx = PassContext::Create();
  With<PassContext> a(ctx);
  std::string enter, exit;
  std::thread([&] {
    enter = ErrorOf([&] { With<PassContext> b(ctx); });
    exit = ErrorOf([&] { (*runtime::Registry::Get("transform.ExitPassContext"))(ctx); });
  }).join();
  CHECK(enter.find("entered in another thread") != std::string::npos);
  CHECK(exit.find("not entered in this thread") != std::string::npos);
  CHECK(PassContext::Current().same_as(ctx));
}

TEST_CASE("work handed to the pool keeps its context when it adopts it") {
  With<PassContext> a(PassContext::Make(4, {}, {}, {}, {}));
  PassContext ctx = PassContext::Current();
  std::atomic<int> right{0};
  runtime::threading::ParallelFor(8, 1, [&](int64_t begin, int64_t end) {
    AdoptPassContext adopt(ctx);
    for (int64_t i = begin; i < end; ++i) right += PassContext::Current()->opt_level == 4;
  });
  CHECK(right == 8);
  CHECK(PassContext::Current().same_as(ctx));
}

TEST_CASE("PI-014, PI-015 level 3 runs every pass up to it but those disabled") {
  int a = 0, b = 0, c = 0;
  With<PassContext> scope(PassContext::Make(3, {}, {"B"}, {}, {}));
  Sequential({Counting(&a, "A", 3), Counting(&b, "B", 0), Counting(&c, "C", 4)})(Empty());
  CHECK(a == 1);
  CHECK(b == 0);
  CHECK(c == 0);
}

TEST_CASE("PI-016 a pass reports through the context's diagnostics why it fails") {
  PassContext ctx = PassContext::Create();
  ctx->diag_ctx = DiagnosticContext(DiagnosticContextNode{});
  With<PassContext> scope(ctx);
  relay::Var x("x", TensorType(Array<PrimExpr>{PrimExpr(2)}, DataType::Float(32)));
  relay::Function bad({x}, relay::TupleGetItem(x, 0));
  CHECK_THROWS_AS(relay::transform::InferType()(With1("main", bad)), Error);
  auto found = Downcast<DiagnosticContext>(ctx->diag_ctx)->diagnostics;
  CHECK(found.size() >= 1);
}

TEST_CASE("PI-017, PI-019, PI-020 options have registered types") {
  CHECK(ErrorOf([] { Make({{"no.such", Any(1)}}); }).find("`no.such`") != std::string::npos);
  CHECK(ErrorOf([] { Make({{"relay.FuseOps.max_depth", Any(String("deep"))}}); }).find("relay.FuseOps.max_depth") !=
        std::string::npos);
  PassContext ctx = Make({{"relay.FuseOps.max_depth", Any(3)}});
  CHECK(ctx->GetConfig<int64_t>("relay.FuseOps.max_depth", 9) == 3);
  CHECK(ctx->GetConfig<int64_t>("relay.FoldWeights.max_bytes", 9) == 9);
}

TEST_CASE("PI-018, PI-019, PI-020 tir.UnrollLoop is an UnrollLoopConfig that the pass reads") {
  using tir::transform::UnrollLoopConfig;
  Map<String, Any> fields{{"auto_max_extent", Any(4)}};
  PassContext ctx = Make({{"tir.UnrollLoop", Any(fields)}});
  UnrollLoopConfig c = ctx->GetConfig<UnrollLoopConfig>("tir.UnrollLoop");
  CHECK(c->auto_max_extent == 4);
  CHECK(c->auto_max_step == 0);
  CHECK(c->auto_max_depth == 8);
  CHECK(c->explicit_unroll);
  CHECK(ErrorOf([] {
          Make({{"tir.UnrollLoop", Any(Map<String, Any>{{"auto_max_stp", Any(4)}})}});
        }).find("auto_max_stp") != std::string::npos);
  CHECK(ErrorOf([] { Make({{"tir.UnrollLoop", Any(Map<String, Any>{{"auto_max_step", Any(-4)}})}}); }) != "no error");
  // A loop of 3 that stores to memory stays a loop by itself, and goes with the option.
  tir::Buffer b = tir::Buffer::Make({PrimExpr(8)}, DataType::Float(32), "b");
  tir::Var i("i", DataType::Int(64));
  tir::Stmt loop = tir::For(i, PrimExpr(0), PrimExpr(3), tir::ForKind::kSerial,
                            tir::BufferStore(b, PrimExpr(1.0f), Array<PrimExpr>{i}));
  tir::PrimFunc f(Array<tir::Var>{b->data}, loop);
  IRModule mod = With1("f", f);
  Pass unroll = GetPass("tir.UnrollLoop");
  CHECK(Downcast<tir::PrimFunc>(unroll(mod)->Lookup("f"))->body.as<tir::ForNode>());
  With<PassContext> scope(ctx);
  CHECK(Downcast<tir::PrimFunc>(unroll(mod)->Lookup("f"))->body.as<tir::SeqStmtNode>());
}

TEST_CASE("PI-021, PI-022, PI-026, PI-040, PI-055 every kind of pass is a Pass from module to module") {
  Pass kinds[] = {
      ModulePassOf([](IRModule m, PassContext) { return m; }),
      relay::transform::CreateFunctionPass(TypedPackedFunc<relay::Function(relay::Function, IRModule, PassContext)>(
                                               [](relay::Function f, IRModule, PassContext) { return f; }),
                                           0, "F", {}),
      tir::transform::CreatePrimFuncPass(TypedPackedFunc<tir::PrimFunc(tir::PrimFunc, IRModule, PassContext)>(
                                             [](tir::PrimFunc f, IRModule, PassContext) { return f; }),
                                         0, "T", {}),
      Sequential({}, PassInfo(1, "S", {}))};
  IRModule mod = With1("main", Identity());
  for (const Pass& p : kinds) {
    const PassNode* node = p.get();
    CHECK((*node)(mod, PassContext::Current()).defined());
    CHECK(p(mod)->functions.size() == 1);
    CHECK_FALSE(p->Info()->name.view().empty());
  }
  CHECK(kinds[0].as<ModulePassNode>());
  CHECK(kinds[1].as<relay::transform::FunctionPassNode>());
  CHECK(kinds[2].as<tir::transform::PrimFuncPassNode>());
  const auto* s = kinds[3].as<SequentialNode>();
  REQUIRE(s);
  CHECK(s->passes.empty());
  CHECK(s->PassEnabled(PassInfo(2, "x", {})));
  CHECK_FALSE(s->PassEnabled(PassInfo(3, "x", {})));
}

TEST_CASE("PI-023 a pass called with a module alone runs under the current context") {
  int level = 0;
  Pass p = ModulePassOf([&](IRModule m, PassContext ctx) {
    level = ctx->opt_level;
    return m;
  });
  With<PassContext> scope(PassContext::Make(4, {}, {}, {}, {}));
  p(Empty());
  CHECK(level == 4);
}

TEST_CASE("PI-027, PI-028, PI-029, PI-060 a module pass may add and delete functions") {
  IRModule mod = With1("old", Identity());
  Pass p = ModulePassOf([](IRModule m, PassContext) {
    m.CopyOnWrite()->Remove(GlobalVar(m->GetGlobalVar("old")));
    m.CopyOnWrite()->Add(GlobalVar("new"), Identity());
    return m;
  });
  IRModule out = p(mod);
  CHECK(out->ContainGlobalVar("new"));
  CHECK_FALSE(out->ContainGlobalVar("old"));
  CHECK(mod->ContainGlobalVar("old"));
}

TEST_CASE("PI-032, PI-033, PI-035, PI-058 a function pass sees each function and may look up others") {
  IRModule mod = With1("a", Identity());
  mod.CopyOnWrite()->Add(GlobalVar("b"), Identity());
  int seen = 0;
  relay::Function replacement = Identity();
  Pass p =
      relay::transform::CreateFunctionPass(TypedPackedFunc<relay::Function(relay::Function, IRModule, PassContext)>(
                                               [&](relay::Function, IRModule m, PassContext) {
                                                 seen += m->ContainGlobalVar("a") && m->ContainGlobalVar("b");
                                                 return replacement;
                                               }),
                                           0, "F", {});
  IRModule out = p(mod);
  CHECK(seen == 2);
  CHECK(out->Lookup("a").same_as(replacement));
  CHECK(out->Lookup("b").same_as(replacement));
  const auto* node = p.as<FunctionPassNode>();
  REQUIRE(node);
  CHECK(node->SkipFunction(WithAttr(Identity(), attr::kSkipOptimization, Any(1))));
  CHECK_FALSE(node->SkipFunction(Identity()));
}

TEST_CASE("PI-037, PI-038, PI-059 in a mixed module each kind of pass leaves the other's functions") {
  IRModule mod = With1("relay", Identity());
  mod.CopyOnWrite()->Add(GlobalVar("prim"), Nothing());
  relay::Function r = Identity();
  tir::PrimFunc t = Nothing();
  IRModule a =
      relay::transform::CreateFunctionPass(TypedPackedFunc<relay::Function(relay::Function, IRModule, PassContext)>(
                                               [&](relay::Function, IRModule, PassContext) { return r; }),
                                           0, "F", {})(mod);
  CHECK(a->Lookup("relay").same_as(r));
  CHECK(a->Lookup("prim").same_as(mod->Lookup("prim")));
  IRModule b = tir::transform::CreatePrimFuncPass(TypedPackedFunc<tir::PrimFunc(tir::PrimFunc, IRModule, PassContext)>(
                                                      [&](tir::PrimFunc, IRModule, PassContext) { return t; }),
                                                  0, "T", {})(mod);
  CHECK(b->Lookup("relay").same_as(mod->Lookup("relay")));
  CHECK(b->Lookup("prim").same_as(t));
}

TEST_CASE("PI-039 common subexpressions and inference are function passes, vectorizing and flattening of PrimFuncs") {
  CHECK(GetPass("EliminateCommonSubexpr").as<relay::transform::FunctionPassNode>());
  CHECK(GetPass("SimplifyInference").as<relay::transform::FunctionPassNode>());
  CHECK(GetPass("VectorizeLoop").as<tir::transform::PrimFuncPassNode>());
  CHECK(GetPass("StorageFlatten").as<tir::transform::PrimFuncPassNode>());
}

TEST_CASE("PI-050 a prerequisite runs each time that it is needed") {
  int& count = counted;
  count = 0;
  auto same = [](IRModule m, PassContext) { return m; };
  Sequential({ModulePassOf(same, "A", 0, {"TestCounted"}), ModulePassOf(same, "B", 0, {"TestCounted"})})(Empty());
  CHECK(count == 2);
}

TEST_CASE("PI-053 passes of other layers are found, with and without the layer's name") {
  CHECK(GetPass("UnrollLoop")->Info()->name == "UnrollLoop");
  CHECK(GetPass("tir.UnrollLoop")->Info()->name == "UnrollLoop");
  CHECK(GetPass("relay.FoldConstant")->Info()->name == "FoldConstant");
  CHECK(GetPass("PrintIR")->Info()->name == "PrintIR");
}

TEST_CASE("PI-053 a name of several layers is Relay's") {
  auto named = [](const char* name) {
    return runtime::MakeTyped([name] { return ModulePassOf([](IRModule m, PassContext) { return m; }, name); });
  };
  runtime::Registry::Register("transform.TestLayered").set_body(named("of all layers"));
  CHECK(GetPass("TestLayered")->Info()->name == "of all layers");
  runtime::Registry::Register("relay._transform.TestLayered").set_body(named("of Relay"));
  CHECK(GetPass("TestLayered")->Info()->name == "of Relay");
  runtime::Registry::Remove("transform.TestLayered");
  runtime::Registry::Remove("relay._transform.TestLayered");
}

TEST_CASE("PI-021, IN-007 passes and instruments are abstract bases") {
  CHECK(std::is_abstract_v<PassNode>);
  CHECK(std::is_abstract_v<instrument::PassInstrumentNode>);
  CHECK(std::is_base_of_v<PassNode, ModulePassNode>);
  CHECK(std::is_base_of_v<PassNode, FunctionPassNode>);
  CHECK(std::is_base_of_v<PassNode, SequentialNode>);
}

TEST_CASE("IN-003, IN-021 a pass that throws: no after point, and every exit as the scope unwinds") {
  auto first = make_object<CountingNode>(), second = make_object<CountingNode>();
  Pass bad = ModulePassOf([](IRModule, PassContext) -> IRModule { throw runtime::ValueError("broken"); }, "Bad");
  CHECK(ErrorOf([&] {
          With<PassContext> scope(PassContext::Make(2, {}, {},
                                                    {instrument::PassInstrument{ObjectPtr<Object>(first)},
                                                     instrument::PassInstrument{ObjectPtr<Object>(second)}},
                                                    {}));
          bad(Empty());
        }) == "broken");
  for (const auto& node : {first, second}) CHECK(node->log == Log{"enter", "should Bad 0", "before Bad 0", "exit"});
}

TEST_CASE("IN-004 a pass that is blocked gives the module that it was handed") {
  int ran = 0;
  auto no = instrument::MakePassInstrument(
      "no", nullptr, nullptr, runtime::MakeTyped([](IRModule, PassInfo) { return false; }), nullptr, nullptr);
  With<PassContext> scope(PassContext::Make(2, {}, {}, {no}, {}));
  IRModule mod = With1("main", Identity());
  CHECK(Counting(&ran, "P")(mod).same_as(mod));
  CHECK(ran == 0);
}

TEST_CASE("PI-055, TR-26 a nested sequence is gated and instrumented by its own info, its parts by theirs") {
  int a = 0, b = 0;
  Pass inner = Sequential({Counting(&a, "A", 0), Counting(&b, "B", 3)}, PassInfo(1, "Inner", {}));
  auto node = make_object<CountingNode>();
  instrument::PassInstrument watch{ObjectPtr<Object>(node)};
  {
    With<PassContext> scope(PassContext::Make(2, {}, {}, {watch}, {}));
    Sequential({inner})(Empty());
  }
  CHECK(a == 1);
  CHECK(b == 0);
  CHECK(node->log == Log{"enter", "should sequential 0", "before sequential 0", "should Inner 0", "before Inner 0",
                         "should A 0", "before A 0", "after A 0", "after Inner 0", "after sequential 0", "exit"});
  With<PassContext> scope(PassContext::Make(0, {}, {}, {}, {}));
  Sequential({inner})(Empty());
  CHECK(a == 1);
}

TEST_CASE("PI-056 FoldScaleAxis runs backward before forward") {
  Pass p = relay::transform::FoldScaleAxis();
  const auto* s = p.as<SequentialNode>();
  REQUIRE(s);
  int backward = -1, forward = -1;
  for (int i = 0; i < static_cast<int>(s->passes.size()); ++i) {
    if (s->passes[i]->Info()->name == "BackwardFoldScaleAxis") backward = i;
    if (s->passes[i]->Info()->name == "ForwardFoldScaleAxis") forward = i;
  }
  CHECK(backward >= 0);
  CHECK(forward > backward);
}

TEST_CASE("PI-061, PI-065, PI-066 passes by their functions go into any sequence") {
  Pass s = Sequential({relay::transform::FoldConstant(), relay::transform::InferType()}, PassInfo(0, "mine", {}));
  CHECK(s(With1("main", Identity()))->ContainGlobalVar("main"));
}

TEST_CASE("IN-001, IN-002, IN-003, IN-004, IN-005, IN-007 an instrument by subclass, at each point") {
  auto node = make_object<CountingNode>();
  instrument::PassInstrument watch{ObjectPtr<Object>(node)};
  Pass adds = ModulePassOf(
      [](IRModule m, PassContext) {
        m.CopyOnWrite()->Add(GlobalVar("f"), Identity());
        return m;
      },
      "Adds");
  PassContext ctx = PassContext::Make(2, {}, {}, {watch}, {});
  {
    With<PassContext> scope(ctx);
    CHECK(node->log == Log{"enter"});
    adds(Empty());
    ctx.OverrideInstruments({});
  }
  CHECK(node->log == Log{"enter", "should Adds 0", "before Adds 0", "after Adds 1", "exit"});
  // The points themselves are public.
  ctx->instruments = {watch};
  ctx.InstrumentEnterPassContext();
  CHECK(ctx.InstrumentBeforePass(Empty(), adds->Info()));
  ctx.InstrumentAfterPass(Empty(), adds->Info());
  ctx.InstrumentExitPassContext();
  CHECK(node->log.size() == 10);
}

TEST_CASE("IN-009, TR-14 prerequisites are instrumented; one that is blocked is skipped and its user still runs") {
  int& count = counted;
  count = 0;
  int user = 0;
  Pass p = ModulePassOf(
      [&](IRModule m, PassContext) {
        ++user;
        return m;
      },
      "User", 0, {"TestCounted"});
  auto no = instrument::MakePassInstrument(
      "no", nullptr, nullptr, runtime::MakeTyped([](IRModule, PassInfo i) { return i->name != "TestCounted"; }),
      nullptr, nullptr);
  With<PassContext> scope(PassContext::Make(2, {}, {}, {no}, {}));
  Sequential({p})(Empty());
  CHECK(count == 0);
  CHECK(user == 1);
}

TEST_CASE("IN-022 leaving a scope normally while exit throws delivers that exception") {
  auto bad = instrument::MakePassInstrument(
      "bad", nullptr, runtime::MakeTyped([] { throw runtime::ValueError("late"); }), nullptr, nullptr, nullptr);
  CHECK(ErrorOf([&] { With<PassContext> scope(PassContext::Make(2, {}, {}, {bad}, {})); }) == "late");
}

TEST_CASE("IN-038 override: a throwing exit keeps the new ones out; a throwing enter clears them") {
  auto thrower = [](const char* hook) {
    PackedFunc f = runtime::MakeTyped([] { throw runtime::ValueError("bad"); });
    bool exit = std::string(hook) == "exit";
    return instrument::MakePassInstrument("bad", exit ? PackedFunc(nullptr) : f, exit ? f : PackedFunc(nullptr),
                                          nullptr, nullptr, nullptr);
  };
  auto node = make_object<CountingNode>();
  instrument::PassInstrument fresh{ObjectPtr<Object>(node)};
  PassContext ctx = PassContext::Make(2, {}, {}, {thrower("exit")}, {});
  With<PassContext> scope(ctx);
  CHECK(ErrorOf([&] { ctx.OverrideInstruments({fresh}); }) == "bad");
  CHECK(ctx->instruments.empty());
  CHECK(node->log.empty());
  CHECK(ErrorOf([&] { ctx.OverrideInstruments({fresh, thrower("enter")}); }) == "bad");
  CHECK(ctx->instruments.empty());
  CHECK(node->log == Log{"enter", "exit"});
}

TEST_CASE("a pass that says unchanged but changed something in place is named") {
  const PackedFunc* make = runtime::Registry::Get("instrument.VerifyIR");
  REQUIRE(make);
  auto verify = (*make)(Array<String>(), true, true, false).As<instrument::PassInstrument>();
  auto change = [](IRModule m) {
    auto* f = const_cast<relay::FunctionNode*>(m->Lookup("main").as<relay::FunctionNode>());
    f->body = relay::Tuple(Array<relay::Expr>{f->body});
  };
  Pass liar = ModulePassOf(
      [&](IRModule m, PassContext) {
        change(m);
        return m;
      },
      "Liar");
  Pass other = ModulePassOf(
      [&](IRModule m, PassContext) {
        change(m);
        return With1("main", Identity());
      },
      "ChangesItsInput");
  With<PassContext> scope(PassContext::Make(2, {}, {}, {verify}, {}));
  CHECK(ErrorOf([&] {
          liar(With1("main", Identity()));
        }).find("pass `Liar`: it returned the module that it got, but changed it in place") != std::string::npos);
  CHECK(ErrorOf([&] {
          other(With1("main", Identity()));
        }).find("pass `ChangesItsInput`: it changed the module that it was given") != std::string::npos);
  CHECK(ErrorOf([&] { relay::transform::InferType()(With1("main", Identity())); }) == "no error");
}

TEST_CASE("a pass that leaves an expression with the type of another is named") {
  const PackedFunc* make = runtime::Registry::Get("instrument.VerifyIR");
  REQUIRE(make);
  auto typed = [] {
    relay::Var x("x", TensorType(Array<PrimExpr>{PrimExpr(2)}, DataType::Float(32)));
    return relay::transform::InferType()(With1("main", relay::Function({x}, relay::Tuple(Array<relay::Expr>{x}))));
  };
  auto with_type = [&](const Type& type) {
    return ModulePassOf(
        [&, type](IRModule, PassContext) {
          IRModule mod = typed();
          const auto* f = mod->Lookup("main").as<relay::FunctionNode>();
          f->body->checked_type_ = type;
          return mod;
        },
        "Retypes");
  };
  auto tuple = [](Array<PrimExpr> shape) { return TupleType(Array<Type>{TensorType(shape, DataType::Float(32))}); };
  Array<instrument::PassInstrument> watch;
  watch.push_back((*make)(Array<String>{"WellTyped"}, false, false, false).As<instrument::PassInstrument>());
  With<PassContext> scope(PassContext::Make(2, {}, {}, watch, {}));
  std::string wrong = ErrorOf([&] { with_type(tuple({PrimExpr(3)}))(typed()); });
  CHECK(wrong.find("pass `Retypes`") != std::string::npos);
  CHECK(wrong.find("@main: relay.Tuple has the type (Tensor[(3), float32],), but its parts make it "
                   "(Tensor[(2), float32],)") != std::string::npos);
  CHECK(ErrorOf([&] { with_type(tuple({tir::AnyDim()}))(typed()); }) == "no error");
  CHECK(ErrorOf([&] { with_type(tuple({PrimExpr(2)}))(typed()); }) == "no error");
  CHECK(ErrorOf([&] { with_type(TupleType(Array<Type>()))(typed()); }) != "no error");
}
