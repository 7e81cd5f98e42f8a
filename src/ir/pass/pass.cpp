// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/failure.h>
#include <baton/ir/pipeline.h>
#include <baton/ir/progress.h>
#include <baton/ir/structural.h>
#include <baton/ir/target.h>
#include <baton/ir/text_stream.h>
#include <baton/ir/transform.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>
#include <baton/runtime/threading.h>
#include <baton/support/nearest.h>
#include <baton/support/stack.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <vector>

#include "ir/pass/pass_internals.h"
#include "ir/thread_state.h"

namespace baton::transform {

using runtime::Registry;

namespace {

const RegisterNodes<PassInfoNode, PassNode, ModulePassNode, FunctionPassNode, SequentialNode,
                    instrument::PassInstrumentNode>
    registered_pass;

}  // namespace

// ---- Passes

namespace {
constexpr int kMaxNesting = 200;

/// Nesting of passes: sequences in sequences, bodies and instruments that run passes. Bounded, since a pass that runs
/// itself would overflow the stack.
void CheckNesting(const PassRun& run) {
  if (run.nesting < kMaxNesting) return;
  throw runtime::ValueError("pass `" + run.info->name.str() + "` was to run within " + std::to_string(kMaxNesting) +
                            " others: a pass or an instrument runs itself, or sequences nest too deep; put the " +
                            "passes of nested sequences into one list");
}

/// Sequences around a run that is listed in one.
int DepthOf(const Listed& listed, const PassRun* parent) {
  if (!*listed.action) return -1;
  int depth = -1;
  for (const PassRun* r = parent; r; r = r->whole->parent) {
    if (r->pass && (r->pass->IsInstance<SequentialNode>() || r->pass->IsInstance<ScheduledNode>())) {
      ++depth;
    }
  }
  return depth;
}

void Fill(PassRun* run, const Pass& pass, const IRModule& mod, const Listed& listed) {
  run->pass = pass.get();
  run->info = pass->Info();
  run->module = mod;
  run->action = listed.action;
  run->why = listed.why;
  run->holds = listed.holds;
}
}  // namespace

IRModule Pass::operator()(IRModule mod) const { return (*this)(std::move(mod), PassContext::Current()); }
IRModule Pass::operator()(IRModule mod, const PassContext& ctx) const {
  return RunPass(*this, std::move(mod), ctx, {});
}

void SkipPass(const Pass& pass, const IRModule& mod, const PassContext& ctx, const Listed& listed,
              const std::string& reason) {
  PassRun run;
  Fill(&run, pass, mod, listed);
  run.parent = CurrentRun();
  run.depth = DepthOf(listed, run.parent);
  ctx.PassSkipped(run, String(reason));
}

IRModule RunPass(const Pass& pass, IRModule mod, const PassContext& ctx, const Listed& listed) {
  if (!pass.defined()) throw runtime::ValueError("Found undefined pass for optimization.");
  PassRun run;
  Fill(&run, pass, mod, listed);
  const std::string name = run.info->name.str();
  if (!mod.defined()) throw runtime::ValueError("pass `" + name + "` was given no module");
  RunScope scope(&run);
  run.depth = DepthOf(listed, run.parent);
  CheckNesting(run);
  // A front end reports an interrupt (Ctrl-C) as an error.
  runtime::CheckInterrupt();
  try {
    if (!ctx.BeforePass(run)) return mod;
  } catch (...) {
    failure::NoteRejected(run.info);
    throw;
  }
  const auto failed = [&] {
    const String what(DescribeException());
    for (const auto& i : BuiltInInstruments()) i->RunFailed(run, what);
    ctx.PassFailed(run, what);
  };
  try {
    for (const auto& i : BuiltInInstruments()) i->BeforeRun(run);
    // Python bodies use kilobytes of stack per level.
    IRModule out = support::WithStack([&] { return (*run.pass)(std::move(mod), ctx); });
    if (!out.defined()) throw runtime::TypeError("pass `" + name + "` returned no module");
    run.result = std::move(out);
  } catch (const Error& e) {
    // Internal errors name the pass first.
    if (e.kind() == "InternalError") e.get()->trace += "in pass `" + name + "`\n";
    failed();
    throw;
  } catch (...) {
    failed();
    throw;
  }
  try {
    ctx.AfterPass(run);
    for (const auto& i : BuiltInInstruments()) i->AfterRun(run);
  } catch (...) {
    failure::NoteRejected(run.info);
    throw;
  }
  return run.result;
}

namespace {

template <class M>
bool SameEntries(const M& a, const M& b) {
  if (a.same_as(b)) return true;
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto &x = a.get()->entries[i], &y = b.get()->entries[i];
    if (x.key.object() != y.key.object() || x.value.object() != y.value.object()) return false;
  }
  return true;
}

/// A pass made from its fields has no body and would not change any program.
void CheckBody(const PackedFunc& body, const PassInfo& info) {
  if (!body.defined()) {
    throw runtime::ValueError("pass `" + info->name.str() +
                              "` has no body: it was not made by a function that makes passes; " +
                              "the text of a pass makes it again");
  }
}

}  // namespace

static BaseFunc (*state_params)(const BaseFunc&, const IRModule&) = nullptr;
static IRModule (*infer_types)(const IRModule&) = nullptr;

/// The typed module; unchanged if inference fails.
static IRModule Inferred(const IRModule& mod) {
  try {
    return infer_types(mod);
  } catch (const CompileError&) {
    return mod;
  }
}

IRModule ModulePassNode::operator()(IRModule mod, const PassContext& ctx) const {
  CheckBody(pass_func.packed(), pass_info);
  if (const Pass other = WithContextOptions(pass_info, options_maker, ctx); other.defined()) {
    return (*other.get())(std::move(mod), ctx);
  }
  // The body may modify its input, so it gets a copy of the caller's module.
  Any out = pass_func.packed()(mod.Copy(), ctx);
  if (!out.Is<IRModule>() || out.is_null()) {
    throw runtime::TypeError("pass `" + pass_info->name.str() + "` must return an IRModule, it returned " +
                             runtime::ValueKindName(out.raw()));
  }
  IRModule result = out.As<IRModule>();
  // Nothing changed: the same object.
  if (SameEntries(result->functions, mod->functions) && SameEntries(result->type_definitions, mod->type_definitions) &&
      result->attrs.same_as(mod->attrs)) {
    return mod;
  }
  if (!state_params) return result;
  IRModule stated = result;
  for (const auto& [var, func] : result->functions) {
    const std::string_view name = var->name_hint.view();
    if (func->checked_type_.defined() || (mod->ContainGlobalVar(name) && mod->Lookup(name).same_as(func))) continue;
    const BaseFunc made = state_params(func, result);
    if (made.same_as(func)) continue;
    if (stated.same_as(result)) stated = result.Copy();
    stated.CopyOnWrite()->Update(var, made);
  }
  return stated;
}

namespace {

/// Runs `body(i)` for i in [0, n) on up to `threads` threads of the pool, each under this thread's context and target.
/// Rethrows the exception of the lowest i, as a single thread would.
template <class F>
void OnPool(size_t n, int threads, const PassContext& ctx, const F& body) {
  struct Work {
    const F& body;
    const PassContext& ctx;
    Target target;
    const PassRun* run;
    size_t n;
    std::atomic<size_t> next{0}, failed;
    std::vector<std::exception_ptr> errors;
  } work{body, ctx, Target::Current(), CurrentRun(), n, 0, n, std::vector<std::exception_ptr>(n)};
  auto task = [](int, int, void* p) {
    Work& w = *static_cast<Work*>(p);
    AdoptPassContext adopt(w.ctx);
    With<Target> target(w.target);
    PassRun run;
    if (w.run) run.info = w.run->info, run.module = w.run->module, run.pass = w.run->pass, run.whole = w.run->whole;
    RunScope scope(&run);
    for (size_t i; (i = w.next++) < w.n;) {
      if (i > w.failed) break;  // work after an error is skipped
      try {
        w.body(i);
      } catch (...) {
        w.errors[i] = std::current_exception();
        for (size_t seen = w.failed; i < seen && !w.failed.compare_exchange_weak(seen, i);) {
        }
      }
    }
    return 0;
  };
  runtime::threading::Launch(task, &work, std::min(threads, runtime::threading::NumThreads()));
  if (work.failed < n) std::rethrow_exception(work.errors[work.failed]);
}

}  // namespace

IRModule FunctionPassNode::operator()(IRModule mod, const PassContext& ctx) const {
  CheckBody(pass_func, pass_info);
  if (const Pass other = WithContextOptions(pass_info, options_maker, ctx); other.defined()) {
    return (*other.get())(std::move(mod), ctx);
  }
  IRModule view = mod.Copy();  // changes of a body to its module argument have no effect
  struct Item {
    GlobalVar var;
    BaseFunc func;
    ObjectRef out;  ///< null: unchanged
  };
  std::vector<Item> work;
  for (const auto& [var, func] : mod->functions) {
    if (func.get()->type_index() == function_type && !SkipFunction(func)) work.push_back({var, func, ObjectRef()});
  }
  auto rewrite = [&](size_t i) {
    Item& item = work[i];
    progress::AtFunction(item.var);
    Any out = pass_func(item.func, view, ctx);
    Object* o = out.object();
    if (!o || o->type_index() != function_type) {
      throw runtime::TypeError("pass `" + pass_info->name.str() + "` must return a " +
                               Object::TypeIndex2Key(function_type) + " for @" + item.var->name_hint.str() +
                               ", it returned " + runtime::ValueKindName(out.raw()));
    }
    if (o == static_cast<const Object*>(item.func.get())) return;
    item.out = state_params ? state_params(out.As<BaseFunc>(), view) : out.As<BaseFunc>();
  };
  if (parallel && ctx->num_threads > 1 && work.size() > 1 && !runtime::threading::InParallelRegion()) {
    OnPool(work.size(), ctx->num_threads, ctx, rewrite);
  } else {
    for (size_t i = 0; i < work.size(); ++i) rewrite(i);
  }
  IRModule result = mod;
  for (const Item& item : work) {
    if (!item.out.defined()) continue;
    if (result.same_as(mod)) result = mod.Copy();
    result.CopyOnWrite()->functions.Set(item.var, Downcast<BaseFunc>(item.out));
  }
  if (types_after && infer_types) result = Inferred(result);
  return result;
}

IRModule RunRequired(const PassInfo& info, IRModule mod, const PassContext& ctx, RequiredPath* path) {
  if (!path->Push(info->name.str())) {
    std::string cycle;
    for (size_t j = path->At(info->name.str()); j < path->names.size(); ++j) cycle += path->names[j] + " -> ";
    throw runtime::ValueError("the passes require each other in a cycle: " + cycle + info->name.str() + " (met when `" +
                              path->names.front() + "` was to run); take one of them out of another's `required`");
  }
  for (const String& name : info->required) {
    Pass required = GetPass(name);
    mod = support::WithStack([&] { return RunRequired(required->Info(), std::move(mod), ctx, path); });
    mod = RunPass(required, std::move(mod), ctx, {"inserted", "`" + info->name.str() + "` requires it"});
  }
  path->Pop();
  return mod;
}

IRModule SequentialNode::operator()(IRModule mod, const PassContext& ctx) const {
  for (const Pass& pass : passes) {
    if (!pass.defined()) throw runtime::ValueError("Found undefined pass for optimization.");
    const PassInfo info = pass->Info();
    const Listed listed{"ran", "in the list"};
    if (!ctx.PassEnabled(info)) {
      SkipPass(pass, mod, ctx, listed, ctx.WhyDisabled(info));
      continue;
    }
    RequiredPath path;
    mod = RunRequired(info, std::move(mod), ctx, &path);
    mod = RunPass(pass, std::move(mod), ctx, listed);
  }
  return mod;
}

Sequential::Sequential(Array<Pass> passes, PassInfo info) {
  auto n = make_object<SequentialNode>();
  n->pass_info = WithTraitsOf(passes, std::move(info));
  n->passes = std::move(passes);
  data_ = std::move(n);
}
Sequential::Sequential(Array<Pass> passes, String name) : Sequential(std::move(passes), PassInfo(0, name, {})) {}

Pass CreateModulePass(const TypedPackedFunc<IRModule(IRModule, PassContext)>& pass_func, int opt_level, String name,
                      Array<String> required) {
  auto n = make_object<ModulePassNode>();
  n->pass_func = pass_func;
  n->pass_info = PassInfo(opt_level, name, required);
  return Pass(ObjectPtr<Object>(n));
}

void InitFunctionPass(FunctionPassNode* n, PackedFunc f, int opt_level, String name, Array<String> required,
                      uint32_t function_type) {
  n->pass_func = std::move(f);
  n->pass_info = PassInfo(opt_level, name, required);
  n->function_type = function_type;
}

void PrintText(std::string_view text) {
  // Printed in chunks of whole lines: printing copies its text several times, and a large program would need fresh
  // memory each time.
  constexpr size_t kPiece = 1 << 18;
  while (!text.empty()) {
    const size_t line = text.size() <= kPiece ? std::string_view::npos : text.find('\n', kPiece);
    const std::string piece(text.substr(0, line == std::string_view::npos ? line : line + 1));
    text.remove_prefix(piece.size());
    if (const PackedFunc* f = Registry::Get("runtime.PrintText")) {
      (*f)(piece);
    } else {
      fputs(piece.c_str(), stderr);
    }
  }
}

Pass PrintIR(const PrintIROptions& options) {
  return MakePass<PrintIR>(
      options, {
                   .doc = "Prints the module and returns it.",
                   .run =
                       [header = options.header, show_meta_data = options.show_meta_data](IRModule mod, PassContext) {
                         PrintText("PrintIR(" + header.str() + "):\n");
                         WriteText(mod, show_meta_data,
                                   {[](std::string_view piece, void*) { PrintText(piece); }, nullptr});
                         PrintText("\n");
                         return mod;
                       },
               });
}
const RegisterPass<PrintIR> registered_print_ir("transform."), registered_relay_print_ir;

// ---- Front ends

namespace {
/// Whether the last pass that a sequence runs is a built-in one over functions of Relay.
bool EndsInFunctions(const Pass& pass, const PassContext& ctx) {
  const auto* s = pass.as<SequentialNode>();
  if (!s) return pass.get()->GetTypeKey() == "relay.FunctionPass" && IsBuiltIn(pass->Info()->name.view());
  for (size_t i = s->passes.size(); i-- > 0;) {
    const Pass& last = s->passes[i];
    if (last.defined() && ctx.PassEnabled(last->Info())) {
      return support::WithStack([&] { return EndsInFunctions(last, ctx); });
    }
  }
  return false;
}

/// A built-in Relay pass that is called outside of a sequence: its input is typed if the pass needs types, and the
/// result of a function pass is typed, also where the pass changed nothing in it. Instruments do not observe this
/// inference. A program that cannot be typed is passed on unchanged. The same
/// goes for a sequence that ends in such a pass.
IRModule CallPass(const Pass& pass, const IRModule& mod) {
  if (infer_types && pass.as<SequentialNode>()) {
    IRModule out = pass(mod);
    return out.same_as(mod) || !EndsInFunctions(pass, PassContext::Current()) ? out : Inferred(out);
  }
  const PassInfo info = pass->Info();
  const bool functions = pass.get()->GetTypeKey() == "relay.FunctionPass";
  const bool built_in = infer_types && (functions || pass.as<ModulePassNode>()) && IsBuiltIn(info->name.view());
  if (!built_in) return pass(mod);
  bool asks = false;
  for (const String& name : info->required) asks |= name == "InferType";
  const IRModule typed = asks ? Inferred(mod) : mod;
  IRModule out = pass(typed);
  if (functions) return out.same_as(typed) ? typed : Inferred(out);
  if (out.same_as(typed)) return mod;
  if (typed.same_as(mod)) return out;
  // Unchanged functions keep their identity.
  IRModule back = out;
  for (const auto& [var, func] : mod->functions) {
    const std::string name = var->name_hint.str();
    const BaseFunc was = typed->Lookup(name);
    if (was.same_as(func) || !out->ContainGlobalVar(name) || !out->Lookup(name).same_as(was)) continue;
    if (back.same_as(out)) back = out.Copy();
    back.CopyOnWrite()->Update(out->GetGlobalVar(name), func);
  }
  return back;
}
}  // namespace

void SetTypeInference(IRModule (*infer)(const IRModule&)) { infer_types = infer; }
void SetParamStatement(BaseFunc (*state)(const BaseFunc&, const IRModule&)) { state_params = state; }

BATON_REGISTER_GLOBAL("transform.CallPass").set_body_typed([](Pass pass, IRModule mod) { return CallPass(pass, mod); });
BATON_REGISTER_GLOBAL("transform.PassInfo").set_body([](runtime::Args args, runtime::RetValue* rv) {
  // (opt_level, name, required, needs, establishes, keeps, destroys); the lists may be left out or null.
  auto names = [&](int i) {
    return args.size() > i && !args[i].is_null() ? args[i].As<Array<String>>() : Array<String>();
  };
  *rv = PassInfo(PassInfoNode{.opt_level = args[0].As<int>(),
                              .name = args[1].As<String>(),
                              .required = names(2),
                              .needs = names(3),
                              .establishes = names(4),
                              .keeps = names(5),
                              .destroys = names(6)});
});
BATON_REGISTER_GLOBAL("transform.Info").set_body_typed([](Pass p) { return p->Info(); });
const struct RegisteredRunPass {
  RegisteredRunPass() {
    for (const char* name : {"transform.RunPass", "relay._transform.RunPass"}) {  // the second is the early name
      Registry::Register(name).set_body_typed([](Pass pass, IRModule mod) { return pass(std::move(mod)); });
    }
  }
} registered_run_pass;
BATON_REGISTER_GLOBAL("transform.MakeModulePass")
    .set_body_typed([](TypedPackedFunc<IRModule(IRModule, PassContext)> f, PassInfo info) {
      auto n = make_object<ModulePassNode>();
      n->pass_func = f;
      n->pass_info = info;
      return Pass(ObjectPtr<Object>(n));
    });
BATON_REGISTER_GLOBAL("transform.Sequential")
    .set_body_typed([](Array<Pass> passes, int opt_level, String name, Array<String> required) -> Pass {
      return Sequential(passes, PassInfo(opt_level, name, required.defined() ? required : Array<String>()));
    });
}  // namespace baton::transform
