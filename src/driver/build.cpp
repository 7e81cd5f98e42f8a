// SPDX-License-Identifier: Apache-2.0
#include <baton/driver/driver.h>
#include <baton/ir/failure.h>
#include <baton/ir/pipeline.h>
#include <baton/ir/structural.h>
#include <baton/relay/device.h>
#include <baton/relay/evaluator.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <baton/support/file.h>
#include <baton/support/nearest.h>
#include <baton/tir/expr.h>
#include <baton/tir/printer.h>

#include <algorithm>

#include "driver/compiled_graph.h"
#include "driver/devices.h"
#include "driver/profile.h"
#include "driver/size_words.h"
#include "driver/vm/compile.h"

namespace baton::driver {

using relay::Expr;
using relay::Function;
using relay::Var;

namespace {

std::vector<std::string> ParamNames(const Function& f) {
  std::vector<std::string> names;
  for (const Var& p : f->params) names.push_back(p->name_hint().str());
  return names;
}

/// A copy of the module with another main.
IRModule WithMain(const IRModule& mod, const Function& f) {
  IRModule out = mod.Copy();
  out.CopyOnWrite()->Update(mod->GetGlobalVar("main"), f);
  return out;
}

/// Main with parameters replaced: `replace(p)` gives another variable, a constant, or the parameter itself.
template <class F>
IRModule ReplaceParams(const IRModule& mod, F replace) {
  Function main = MainOf(mod);
  Map<Var, Expr> binds;
  Array<Var> params;
  for (const Var& p : main->params) {
    Expr e = replace(p);
    if (e.as<relay::VarNode>()) params.push_back(Downcast<Var>(e));
    if (!e.same_as(p)) binds.Set(p, e);
  }
  if (binds.empty()) return mod;
  return WithMain(mod, Function(params, relay::Bind(main->body, binds), Type(), main->type_params, main->attrs));
}

/// PrimFuncs for people, one after the other.
std::string TirText(const IRModule& mod) {
  std::string out;
  for (const auto& [var, func] : mod->functions) {
    if (!out.empty()) out += "\n";
    out += tir::AsText(func);
    if (out.back() != '\n') out += "\n";
  }
  return out;
}

/// A model in code of this process. The executor finds all that it needs here.
class AotModule : public runtime::ModuleNode {
 public:
  AotModule(CompiledGraph graph, IRModule mod, Target target, DebugOptions debug)
      : graph_(std::move(graph)), mod_(std::move(mod)), target_(std::move(target)), debug_(std::move(debug)) {}
  const char* type_key() const override { return "aot"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (name == "profile") {  // (inputs, rounds): JSON, see profile.h
      return PackedFunc([self, this](runtime::Args args, runtime::RetValue* rv) {
        With<Target> scope(target_);
        *rv = String(ProfileModel(MainOf(mod_), target_, args[0].As<Array<NDArray>>(), args[1].As<int>()));
      });
    }
    if (name == "guards") {
      return PackedFunc([self, this](runtime::Args, runtime::RetValue* rv) {
        Array<String> texts;
        for (const std::string& text : GuardTexts(MainOf(mod_))) texts.push_back(String(text));
        *rv = texts;
      });
    }
    return nullptr;
  }
  void* GetSymbol(const char* name) override {
    if (graph_.code.defined()) return graph_.code->GetSymbol(name);
    throw UnsupportedError("code for `" + target_.str() +
                           "` does not run on this machine; save it and load it there, or `baton.rpc.deploy`");
  }
  const runtime::ExecutableDesc* GetExecutable() const override { return &graph_.desc; }
  std::string GetSource(std::string_view format) override {
    std::string f(format);
    if (f == "relay") return AsText(mod_);
    LoweredModel model = LowerGraph(MainOf(mod_), target_);
    if (f == "tir") return TirText(model.mod);
    IRModule lowered = LowerTir(model.mod, target_);
    if (f == "llvm" || f == "ll") return codegen::CompileToText(lowered, target_, "ll");
    if (f == "asm") return codegen::CompileToText(lowered, target_, "asm");
    throw UnsupportedError("no source in format \"" + f + "\"; there are relay, tir, llvm, asm");
  }
  void SaveToFile(const std::string& path, std::string_view format) override {
    const bool object = format == "obj" || format == "o";
    if (!object && !format.empty() && format != "lib" && format != "so") {
      throw UnsupportedError("no file format \"" + std::string(format) + "\"; there are lib and obj");
    }
    if (object) {
      support::WriteFileAtomic(path, Compiled(1).objects[0]);
      return;
    }
    // Code for another kind of machine is made when it is saved: nothing here could run it.
    const codegen::ObjectCode made = graph_.objects.objects.empty() ? Compiled(2) : codegen::ObjectCode();
    const codegen::ObjectCode& code = graph_.objects.objects.empty() ? made : graph_.objects;
    const std::string elf = codegen::LinkShared(code, target_);
    runtime::ExecutableDesc desc = graph_.desc;
    desc.features = code.features;
    desc.forms = FormsOf(MainOf(mod_));
    runtime::WriteArtifact(path, elf.data(), elf.size(), desc, GuardTexts(MainOf(mod_)));
  }

 private:
  codegen::ObjectCode Compiled(int num_threads) const {
    const LoweredModel model = LowerGraph(MainOf(mod_), target_, debug_.Lowering());
    debug_.WriteSource(model.debug_source);
    return codegen::CompileToObjects(LowerTir(model.mod, target_), target_, num_threads, debug_.level);
  }

  CompiledGraph graph_;
  IRModule mod_;
  Target target_;
  DebugOptions debug_;
};

}  // namespace

// There is one way to make kernels; programs that ask for another one run on it.
BATON_REGISTER_PASS_CONFIG_OPTION(
    "relay.backend.use_auto_scheduler", bool,
    "Accepted for programs that ask for kernels found by search; there is one generator of kernels.");
BATON_REGISTER_PASS_CONFIG_OPTION(
    "relay.backend.use_meta_schedule", bool,
    "Accepted for programs that ask for kernels found by search; there is one generator of kernels.");

IRModule BindParams(const IRModule& mod, const Map<String, NDArray>& params) {
  if (params.empty()) return mod;
  std::vector<std::string> names = ParamNames(MainOf(mod));
  for (const auto& [name, value] : params) {
    if (std::find(names.begin(), names.end(), name.str()) == names.end()) {
      throw runtime::ValueError("@main has no parameter `" + name.str() + "`" +
                                support::DidYouMean(name.view(), names));
    }
    if (std::count(names.begin(), names.end(), name.str()) > 1) {
      throw runtime::ValueError("@main has several parameters `" + name.str() + "`; a name must tell which is bound");
    }
  }
  return ReplaceParams(mod, [&](const Var& p) -> Expr {
    if (!params.count(p->name_hint())) return p;
    relay::Constant c(NDArray(params.at(p->name_hint())));
    c->span = p->span;
    return c;
  });
}

namespace {

[[noreturn]] void WrongShape(const Var& p, const std::string& what) {
  throw runtime::ValueError("input `" + p->name_hint().str() + "` " + what);
}

/// One dimension of an input, as a caller gives it: a number, a name, or null or -1 where the model
/// decides.
PrimExpr GivenDim(const Var& p, size_t axis, const PrimExpr& have, const Any& given, bool name_unknown,
                  Map<String, tir::Var>* names) {
  const bool literal = relay::DimOf(have) >= 0;
  const bool by_model = given.is_null() || (given.Is<int64_t>() && given.As<int64_t>() == -1);
  if (!by_model && given.Is<int64_t>()) {
    const auto n = given.As<int64_t>();
    if (n < 0) throw runtime::ValueError("a dimension of `" + p->name_hint().str() + "` is " + std::to_string(n));
    if (literal && relay::DimOf(have) != n) {
      throw runtime::ValueError("dimension " + std::to_string(axis) + " of input `" + p->name_hint().str() + "` is " +
                                std::to_string(relay::DimOf(have)) + " in the model, got " + std::to_string(n));
    }
    return PrimExpr(n);
  }
  if (by_model) {
    if (!have.as<tir::AnyNode>() || !name_unknown) return have;
    const String name(p->name_hint().str() + "_" + std::to_string(axis));
    if (!names->count(name)) names->Set(name, tir::SizeVar(name, DataType::Int(64)));
    return names->at(name);
  }
  const auto name = given.As<String>();
  if (literal) {
    throw runtime::ValueError("dimension " + std::to_string(axis) + " of input `" + p->name_hint().str() + "` is " +
                              std::to_string(relay::DimOf(have)) + " in the model; it cannot be the open `" +
                              name.str() + "`");
  }
  if (const auto* v = have.as<tir::VarNode>(); v && v->name_hint == name) return have;
  if (!names->count(name)) names->Set(name, tir::SizeVar(name, DataType::Int(64)));
  return names->at(name);
}

void CheckNames(const std::vector<std::string>& names, const String& given) {
  if (std::find(names.begin(), names.end(), given.str()) == names.end()) {
    throw runtime::ValueError("@main has no input `" + given.str() + "`" + support::DidYouMean(given.view(), names));
  }
}

/// Symbols that stand alone in the types of parameters that get a shape.
Map<String, int64_t> SymbolsOf(const Function& main, const Map<String, Array<Any>>& shapes) {
  Map<String, int64_t> out;
  for (const Var& p : main->params) {
    const auto* t = p->type_annotation.as<TensorTypeNode>();
    if (!t || !shapes.count(p->name_hint()) || shapes.at(p->name_hint()).size() != t->shape.size()) continue;
    for (size_t i = 0; i < t->shape.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const auto* v = t->shape[at].as<tir::VarNode>();
      const Any given = shapes.at(p->name_hint())[at];
      if (!v || !given.Is<int64_t>()) continue;
      const auto n = given.As<int64_t>();
      if (n < 0) continue;
      if (out.count(v->name_hint) && out.at(v->name_hint) != n) {
        throw runtime::ValueError("input `" + p->name_hint().str() + "` has " + v->name_hint.str() + " = " +
                                  std::to_string(n) + ", an input before it has " +
                                  std::to_string(out.at(v->name_hint)));
      }
      out.Set(v->name_hint, n);
    }
  }
  return out;
}

}  // namespace

IRModule BindShapes(const IRModule& open, const Map<String, Array<Any>>& shapes, bool name_unknown) {
  if (shapes.empty() && !name_unknown) return open;
  const IRModule mod = BindDims(open, SymbolsOf(MainOf(open), shapes));
  const std::vector<std::string> inputs = ParamNames(MainOf(mod));
  for (const auto& [name, value] : shapes) CheckNames(inputs, name);
  Map<String, tir::Var> names;
  for (const Var& p : MainOf(mod)->params) {
    if (const auto* t = p->type_annotation.as<TensorTypeNode>()) {
      for (const PrimExpr& d : t->shape) {
        if (d.as<tir::VarNode>()) names.Set(Downcast<tir::Var>(d)->name_hint, Downcast<tir::Var>(d));
      }
    }
  }
  return ReplaceParams(mod, [&](const Var& p) -> Expr {
    const bool given = shapes.count(p->name_hint());
    const auto* t = p->type_annotation.as<TensorTypeNode>();
    if (!given && (!name_unknown || !t)) return p;
    Array<Any> shape;
    if (given) shape = shapes.at(p->name_hint());
    if (given && (!t || t->shape.size() != shape.size())) {
      WrongShape(p,
                 "has " + std::to_string(t ? t->shape.size() : 0) + " dimensions, got " + std::to_string(shape.size()));
    }
    Array<PrimExpr> dims;
    bool same = true;
    for (size_t i = 0; i < t->shape.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      dims.push_back(GivenDim(p, i, t->shape[at], given ? shape[at] : Any(), name_unknown, &names));
      same = same && dims.back().same_as(t->shape[at]);
    }
    if (same) return p;
    Var v(p->name_hint(), TensorType(dims, t->dtype));
    v->span = p->span;
    return v;
  });
}

namespace {

/// Decomposes until nothing does any more.
transform::Pass DecomposeAll() {
  transform::Pass pass = transform::CreateModulePass(
      TypedPackedFunc<IRModule(IRModule, transform::PassContext)>([](IRModule mod, transform::PassContext) {
        transform::Pass infer = relay::transform::InferType(), decompose = relay::transform::DecomposeOps();
        for (int round = 0; round < 16; ++round) {
          mod = infer(mod);
          IRModule next = decompose(mod);
          if (next.same_as(mod)) return mod;
          mod = next;
        }
        return infer(mod);
      }),
      0, "DecomposeAll", {});
  return transform::Described(pass, {.doc = "DecomposeOps and InferType in turns, until nothing is left to decompose.",
                                     .keeps = {"Typed"},
                                     .reassociates = true});
}
const transform::RegisterPass<DecomposeAll> registered_decompose;

}  // namespace

transform::Pass DefaultPipeline() {
  using namespace relay::transform;  // NOLINT: passes
  // Types are inferred where a pass needs them and something made expressions without; see `baton explain-pipeline`.
  Array<Pass> passes;
  auto add = [&](Pass p) { passes.push_back(p); };
  auto add_if_there = [&](const char* name) {
    if (Registry::Get(std::string("relay._transform.") + name)) add(baton::transform::GetPass(name));
  };
  // From here on, regions for external compilers that are not available are compiled like the rest.
  add(InlineCompilerFunctions());
  // From here on every program is one that type inference accepts.
  add(InferType());
  // From here on operators have static forms where shapes allow it.
  add(DynamicToStatic());
  // From here on half floats are what is handed in and out, and what is not known to compute.
  add(WidenHalfFloats());
  add(SimplifyInference());
  add(FoldConstant());
  add(DecomposeAll());
  add(WidenHalfFloats());  // what was decomposed
  // From here on weights are constants, also those that the model computes.
  add(FoldWeights());
  add(IntegersInFloat());
  add_if_there("FoldScaleAxis");
  add_if_there("SimplifyExpr");
  add_if_there("FastMath");  // level 4: off by default
  // From here on heavy operators are those that have kernels: transposed convolutions are convolutions.
  add(Legalize());
  add(FoldConstant());
  add(EliminateCommonSubexpr());
  // CombineParallelDense stays out: MiniLM's products, three in one, take no less time, and slicing them costs.
  // From here on data flows in the layouts of the kernels.
  add_if_there("AlterOpLayout");
  // From here on states are memory that is appended to.
  add(StateToBuffers());
  add(PackDense());
  add(SplitArgs());  // code of functions with thousands of parameters takes the square of them to make
  add(FoldConstant());
  add(NarrowWeights());
  // From here on every operator that has loops is in a primitive function.
  add(FuseOps(FuseOpsOptions::ViewsOutside()));
  return baton::transform::Scheduled(baton::transform::WithJoined("DefaultPipeline", passes), "DefaultPipeline",
                                     {"Typed"});
}

IRModule Optimize(const IRModule& mod, const Target& target) {
  With<Target> scope(target);
  return DefaultPipeline()(ForOneDevice(mod, target->device_type()));
}

namespace {
/// A target of a device alone, as CompileForDevices takes it.
Map<String, Target> OfItsDevice(const Target& target) {
  return {{String(relay::DeviceTypeName(target->device_type())), target}};
}
}  // namespace

runtime::Module Compile(const IRModule& mod, const Target& target) {
  if (!target->traits().on_host) return CompileForDevices(mod, OfItsDevice(target));
  transform::failure::Entry entry("driver.Compile", mod, target);
  return Generate(Optimize(mod, target), target);
}

namespace {
bool HasState(const Function& main) {
  return !main->GetAttr<Array<int64_t>>(relay::transform::kStateInputs, Array<int64_t>()).empty();
}
}  // namespace

runtime::Module Generate(const IRModule& optimized, const Target& target) {
  transform::failure::Entry entry("driver.Generate", optimized, target);
  Function main = MainOf(optimized);
  std::string why;
  const bool lowers = CanLowerGraph(main, &why);
  if (HasState(main) && !lowers) throw UnsupportedError("states are for models that become one function: " + why);
  if (!lowers) return CompileVm(optimized, target, why);
  With<Target> scope(target);
  DebugOptions debug = DebugOptions::FromContext();
  if (!target->mtriple.empty()) {
    // Code for another kind of machine cannot be loaded here; it is for saving. Code for another processor of this kind
    // can: executors check features before they run any of it.
    CompiledGraph g;
    LoweredModel model = LowerGraph(main, target);
    g.constants = PackConstants(model.constants);
    g.desc = model.desc;
    g.desc.constants = g.constants.ptr<uint8_t>();
    g.desc.target = target.str();
    g.code = codegen::LoadObjects(codegen::ObjectCode{});
    return runtime::MakeModule<AotModule>(std::move(g), optimized, target, debug);
  }
  return runtime::MakeModule<AotModule>(CompileGraph(main, target, 2, debug), optimized, target, debug);
}

std::string EmitText(const IRModule& mod, const Target& target, const std::string& stage) {
  transform::failure::Entry entry("driver.EmitText", mod, target, stage);
  if (!target->traits().on_host) {
    const int64_t device = target->device_type();
    const std::vector<DeviceTarget> targets{{device, target}};
    const IRModule planned = OptimizeForDevices(mod, targets, device);
    const Target host = Target::Host();
    return ProgramText(LowerProgram(planned, host, targets, device, DebugOptions()), planned, host, stage);
  }
  IRModule optimized = Optimize(mod, target);
  if (stage == "relay") return AsText(optimized);
  std::string why;
  Function main = MainOf(optimized);
  if (!CanLowerGraph(main, &why)) throw UnsupportedError("there is no " + stage + " of this program, because " + why);
  With<Target> scope(target);
  DebugOptions debug = DebugOptions::FromContext("none");
  LoweredModel model = LowerGraph(main, target, debug.Lowering());
  debug.WriteSource(model.debug_source);
  if (stage == "tir") return TirText(model.mod);
  IRModule lowered = LowerTir(model.mod, target);
  if (stage == "tir-lowered") return TirText(lowered);
  if (stage == "llvm") return codegen::CompileToText(lowered, target, "ll", debug.level);
  if (stage == "llvm-raw") return codegen::CompileToText(lowered, target, "ll-raw", debug.level);
  if (stage == "asm") return codegen::CompileToText(lowered, target, "asm", debug.level);
  throw runtime::ValueError("unknown stage \"" + stage + "\"; there are relay, tir, tir-lowered, llvm, asm");
}

namespace {
/// Null: the current target, else this machine.
Target Given(const Target& t) { return t.defined() ? t : Target::Current(); }
}  // namespace
BATON_REGISTER_GLOBAL("driver.BindParams").set_body_typed([](IRModule m, Map<String, NDArray> p) {
  return BindParams(m, p);
});
BATON_REGISTER_GLOBAL("driver.BindShapes").set_body_typed([](IRModule m, Map<String, Array<Any>> s, bool name_unknown) {
  return BindShapes(m, s, name_unknown);
});
/// Bounds of the dimensions of main, by name: [min, max, multiple].
BATON_REGISTER_GLOBAL("driver.SetDims").set_body_typed([](IRModule m, Map<String, Array<int64_t>> bounds) {
  return WithMain(m, WithAttr(MainOf(m), kDynamicDims, Any(bounds)));
});
/// States of main: names of inputs, each with that of the output which becomes the input of the next call.
BATON_REGISTER_GLOBAL("driver.SetState").set_body_typed([](IRModule m, Map<String, String> pairs) {
  return WithMain(m, WithAttr(MainOf(m), relay::transform::kState, Any(pairs)));
});
/// What callers call the unknown extents of main's inputs.
BATON_REGISTER_GLOBAL("driver.NameInputs").set_body_typed([](IRModule m, Map<String, Array<String>> names) {
  return WithMain(m, WithAttr(MainOf(m), kInputExtents, Any(names)));
});
/// The executable of a model with dynamic shapes; null for targets without code for them.
BATON_REGISTER_GLOBAL("driver.CompileDynamic").set_body_typed([](IRModule m, Target t) {
  t = Given(t);
  if (!t->traits().on_host) return runtime::Module();
  const IRModule optimized = Optimize(m, t);
  try {
    return Generate(optimized, t);
  } catch (const Error& e) {
    // The loops of some operators need lengths: the program calls back for those.
    std::string why;
    if (e.ends_work() || HasState(MainOf(optimized)) || !CanLowerGraph(MainOf(optimized), &why)) throw;
    return CompileVm(optimized, t, e.what());
  }
});
BATON_REGISTER_GLOBAL("driver.DefaultPipeline").set_body_typed([] { return DefaultPipeline(); });
BATON_REGISTER_GLOBAL("driver.Optimize").set_body_typed([](IRModule m, Target t) { return Optimize(m, Given(t)); });
BATON_REGISTER_GLOBAL("driver.IsOtherProcessor").set_body_typed([](Target t) { return codegen::IsOtherProcessor(t); });
BATON_REGISTER_GLOBAL("driver.Compile").set_body_typed([](IRModule m, Target t) { return Compile(m, Given(t)); });
/// For programs whose functions are all called by name.
BATON_REGISTER_GLOBAL("driver.CompileVm").set_body_typed([](IRModule m, Target t) {
  if (!Given(t)->traits().on_host) {
    throw UnsupportedError("driver.CompileVm makes code for the host alone, the target is \"" + t.str() +
                           "\"; use driver.CompileForDevices with a map from device to target");
  }
  transform::failure::Entry entry("driver.CompileVm", m, t);
  return CompileVm(Optimize(m, t), t, "its functions are called by name");
});
BATON_REGISTER_GLOBAL("driver.Generate").set_body_typed([](IRModule m, Target t) { return Generate(m, Given(t)); });
BATON_REGISTER_GLOBAL("driver.EmitText").set_body_typed([](IRModule m, Target t, String stage) {
  return String(EmitText(m, Given(t), stage.str()));
});
BATON_REGISTER_GLOBAL("driver.SaveModule").set_body_typed([](runtime::Module m, String path, String format) {
  m->SaveToFile(path.str(), format.view());
});
BATON_REGISTER_GLOBAL("driver.ModuleKind").set_body_typed([](runtime::Module m) { return String(m->type_key()); });
BATON_REGISTER_GLOBAL("driver.VersionText").set_body_typed([] {
  return String("Baton 0.1.0, LLVM " + codegen::Describe().at("llvm").str());
});
BATON_REGISTER_GLOBAL("driver.HasLinker").set_body_typed([] {
  return codegen::Describe().at("linker").view().starts_with("lld");
});
BATON_REGISTER_GLOBAL("driver.Describe").set_body_typed([] { return codegen::Describe(); });
BATON_REGISTER_GLOBAL("driver.CanLower").set_body_typed([](IRModule m) {
  std::string why;
  return String(CanLowerGraph(MainOf(m), &why) ? std::string() : why);
});

}  // namespace baton::driver
