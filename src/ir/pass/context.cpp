// SPDX-License-Identifier: Apache-2.0
// PassContext: the stack of each thread, options, and calls of instruments.
#include <baton/ir/diagnostic.h>
#include <baton/ir/progress.h>
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "ir/pass/pass_internals.h"
#include "ir/thread_state.h"

namespace baton::transform {

using instrument::PassInstrument;
using runtime::Registry;

namespace {

using Instruments = std::vector<PassInstrument>;

}  // namespace

/// Inherited by a use of a context from those around it, outermost first. Threads that adopt the context share it.
class Inherited {
 public:
  explicit Inherited(Instruments list) : any_(!list.empty()), list_(std::move(list)) {}
  bool empty() const { return !any_.load(std::memory_order_relaxed); }
  Instruments Get() const {
    if (empty()) return {};
    std::lock_guard lock(mutex_);
    return list_;
  }
  void TakeOut(const PassInstrument& gone) {
    std::lock_guard lock(mutex_);
    std::erase_if(list_, [&](const PassInstrument& i) { return i.same_as(gone); });
    any_ = !list_.empty();
  }

 private:
  std::atomic<bool> any_;
  mutable std::mutex mutex_;
  Instruments list_;
};

namespace {

using InheritedPtr = std::shared_ptr<Inherited>;

/// Which thread a context is entered in, how often, and what it inherits there.
struct ActiveContexts {
  struct Use {
    std::thread::id thread;
    std::vector<InheritedPtr> inherited;  ///< one for each time that it is entered, the innermost last
  };
  std::mutex mutex;
  std::unordered_map<const Object*, Use> by_context;
  static ActiveContexts& Get() {
    static auto* t = new ActiveContexts;
    return *t;
  }
  void Enter(const PassContext& ctx, const InheritedPtr& inherited) {
    std::lock_guard lock(mutex);
    auto [it, fresh] = by_context.try_emplace(ctx.get(), Use{std::this_thread::get_id(), {}});
    if (!fresh && it->second.thread != std::this_thread::get_id()) {
      throw runtime::ValueError(
          "this PassContext is entered in another thread; a context belongs to one thread at a time, so make one for "
          "each (its instruments may be shared)");
    }
    it->second.inherited.push_back(inherited);
  }
  InheritedPtr InheritedBy(const PassContext& ctx) {
    std::lock_guard lock(mutex);
    auto it = by_context.find(ctx.get());
    return it == by_context.end() ? nullptr : it->second.inherited.back();
  }
  /// The context no longer inherits this instrument, on any thread.
  void TakeOut(const PassContext& ctx, const PassInstrument& gone) {
    std::lock_guard lock(mutex);
    auto it = by_context.find(ctx.get());
    if (it == by_context.end()) return;
    for (const InheritedPtr& i : it->second.inherited) i->TakeOut(gone);
  }
  void Exit(const PassContext& ctx) {
    std::lock_guard lock(mutex);
    auto it = by_context.find(ctx.get());
    if (it == by_context.end()) return;
    it->second.inherited.pop_back();
    if (it->second.inherited.empty()) by_context.erase(it);
  }
};

}  // namespace

ThreadState& ThreadState::Get() {
  static thread_local ThreadState s;
  return s;
}

void ThreadState::GiveBack() {
  const std::vector<ContextEntry> left = std::move(contexts);
  contexts.clear();
  entered = 0;
  for (const ContextEntry& e : left) {
    if (e.entered) ActiveContexts::Get().Exit(e.ctx);
  }
}

ThreadState::~ThreadState() {
  GiveBack();
  progress::EndThread(watching);
}

namespace {

struct ConfigOption {
  std::string type_name;
  PassContext::ConvertFn convert = nullptr;  ///< null: a field of a pass's options
  std::string doc;
  const runtime::TypeInfo* options = nullptr;  ///< of a pass: their type
  const runtime::FieldInfo* field = nullptr;   ///< and which of them; null: all, as a dict
};
struct ConfigTable {
  std::mutex mutex;
  std::map<std::string, ConfigOption, std::less<>> options;
  static ConfigTable& Get() {
    static auto* t = new ConfigTable;
    return *t;
  }
};

/// Passes over PrimFuncs are known as `tir.UnrollLoop`, too.
bool Contains(const Array<String>& names, const String& name) {
  for (const String& n : names) {
    if (n == name || n.str() == "tir." + name.str()) return true;
  }
  return false;
}

/// Null where it inherits nothing.
InheritedPtr InheritedBy(const PassContext& ctx) {
  const auto& stack = ThreadState::Get().contexts;
  for (auto it = stack.rbegin(); it != stack.rend(); ++it) {
    if (it->ctx.same_as(ctx)) return it->inherited;
  }
  return nullptr;
}

/// The instruments whose pass hooks are called: inherited ones first, then the context's own, each once.
Instruments Around(const PassContext& ctx) {
  const InheritedPtr inherited = InheritedBy(ctx);
  Instruments all = inherited ? inherited->Get() : Instruments();
  std::erase_if(all, [&](const PassInstrument& i) {
    for (const PassInstrument& own : ctx->instruments) {
      if (own.same_as(i)) return true;
    }
    return false;
  });
  for (const PassInstrument& i : ctx->instruments) all.push_back(i);
  return all;
}

bool Unwatched(const PassContext& ctx) {
  if (!ctx->instruments.empty()) return false;
  const InheritedPtr inherited = InheritedBy(ctx);
  return !inherited || inherited->empty();
}

/// Removes the instrument and keeps its error; without isolation the exception propagates.
void Isolate(const PassContext& ctx, const PassInstrument& culprit, const char* hook) {
  if (!ctx->isolate_instruments) throw;
  std::string what = culprit->name.str() + ", " + hook + ": " + DescribeException();
  ctx->instrument_errors.push_back(String(what));
  Array<PassInstrument> left;
  for (const PassInstrument& i : ctx->instruments) {
    if (!i.same_as(culprit)) left.push_back(i);
  }
  ctx->instruments = left;
  ActiveContexts::Get().TakeOut(ctx, culprit);
  what = "warning: instrument " + what + "; it is not called any more in this context\n";
  fputs(what.c_str(), stderr);
}

/// Calls `f` on each; in order, isolated where the context asks for it.
template <class F>
void ForEach(const PassContext& ctx, const Instruments& all, const char* hook, const F& f) {
  for (const PassInstrument& i : all) {
    try {
      f(i);
    } catch (...) {
      Isolate(ctx, i, hook);
    }
  }
}

const RegisterNodes<PassContextNode> registered_context;

}  // namespace

std::string DescribeException() {
  try {
    throw;
  } catch (const Error& e) {
    return e.kind() + ": " + e.message();
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

// ---- The stack

PassContext PassContext::Create() { return PassContext(PassContextNode{}); }

PassContext PassContext::Current() {
  ThreadState& s = ThreadState::Get();
  if (!s.contexts.empty()) return s.contexts.back().ctx;
  if (!s.fallback.defined()) s.fallback = Create();
  return s.fallback;
}

void PassContext::EnterWithScope() {
  Instruments inherited;
  if ((*this)->inherit_instruments) {
    inherited = Around(Current());
    std::erase_if(inherited, [](const PassInstrument& i) { return !i->observes; });
  }
  const auto shared = std::make_shared<Inherited>(std::move(inherited));
  ActiveContexts::Get().Enter(*this, shared);
  try {
    InstrumentEnterPassContext();  // a throw leaves the stack as it was
  } catch (...) {
    ActiveContexts::Get().Exit(*this);
    throw;
  }
  ThreadState::Get().contexts.push_back({.ctx = *this, .inherited = shared, .entered = true});
  ++ThreadState::Get().entered;
}

std::vector<PassInstrument> InstrumentsAround(const PassContext& ctx) { return Around(ctx); }

void PassContext::ExitWithScope() {
  ThreadState& s = ThreadState::Get();
  if (s.contexts.empty() || !s.contexts.back().entered || !s.contexts.back().ctx.same_as(*this)) {
    bool entered = false;
    for (const ContextEntry& e : s.contexts) entered |= e.entered && e.ctx.same_as(*this);
    throw runtime::ValueError(
        entered ? "this PassContext is not the innermost one of this thread: contexts are left in the reverse order of "
                  "entering; leave those entered after it first, or use `with` blocks"
                : "this PassContext is not entered in this thread: it was left before, never entered, or entered in "
                  "another thread, which alone can leave it");
  }
  s.contexts.pop_back();  // popped whatever the instruments do
  --s.entered;
  ActiveContexts::Get().Exit(*this);
  InstrumentExitPassContext();
}

static void PushAdopted(const PassContext& ctx) {
  ThreadState::Get().contexts.push_back({.ctx = ctx, .inherited = ActiveContexts::Get().InheritedBy(ctx)});
}
AdoptPassContext::AdoptPassContext(const PassContext& ctx) { PushAdopted(ctx); }
AdoptPassContext::~AdoptPassContext() { ThreadState::Get().contexts.pop_back(); }

PushDerived::PushDerived(const PassContext& ctx, const PassContext& from) {
  ThreadState::Get().contexts.push_back({.ctx = ctx, .inherited = InheritedBy(from)});
}
PushDerived::~PushDerived() { ThreadState::Get().contexts.pop_back(); }

// ---- Instruments

void PassContext::InstrumentEnterPassContext() {
  Array<PassInstrument> all = (*this)->instruments;
  Instruments entered;
  for (const PassInstrument& i : all) {
    try {
      i->EnterPassContext();
      entered.push_back(i);
    } catch (...) {
      if ((*this)->isolate_instruments) {
        Isolate(*this, i, "enter_pass_ctx");
        continue;
      }
      (*this)->instruments = Array<PassInstrument>();
      try {
        for (const PassInstrument& done : entered) done->ExitPassContext();
      } catch (...) {  // the first exception wins
      }
      throw;
    }
  }
}

void PassContext::InstrumentExitPassContext() {
  Array<PassInstrument> all = (*this)->instruments;
  try {
    for (const PassInstrument& i : all) {
      try {
        i->ExitPassContext();
      } catch (...) {
        Isolate(*this, i, "exit_pass_ctx");
      }
    }
  } catch (...) {
    (*this)->instruments = Array<PassInstrument>();
    throw;
  }
}

bool PassContext::BeforePass(const PassRun& run) const {
  if (Unwatched(*this)) return true;
  if (!Contains((*this)->required_pass, run.info->name)) {
    // Inherited instruments are not asked: only the context's own decide which passes run.
    std::string blocked;
    Instruments own((*this)->instruments.begin(), (*this)->instruments.end());
    ForEach(*this, own, "should_run", [&](const PassInstrument& i) {
      if (i->ShouldRun(run.module, run.info)) return;
      blocked += (blocked.empty() ? "" : ", ") + i->name.str();
    });
    if (!blocked.empty()) {
      PassSkipped(run, String("blocked by should_run of " + blocked));
      return false;
    }
  }
  ForEach(*this, Around(*this), "run_before_pass", [&](const PassInstrument& i) { i->BeforeRun(run); });
  return true;
}

void PassContext::AfterPass(const PassRun& run) const {
  if (Unwatched(*this)) return;
  ForEach(*this, Around(*this), "run_after_pass", [&](const PassInstrument& i) { i->AfterRun(run); });
}

void PassContext::PassFailed(const PassRun& run, const String& error) const {
  if (Unwatched(*this)) return;
  for (const PassInstrument& i : Around(*this)) {
    try {
      i->RunFailed(run, error);
    } catch (...) {  // the pass's exception is in flight and takes precedence
      if ((*this)->isolate_instruments) Isolate(*this, i, "on_pass_failed");
    }
  }
}

void PassContext::PassSkipped(const PassRun& run, const String& reason) const {
  if (Unwatched(*this)) return;
  ForEach(*this, Around(*this), "on_pass_skipped", [&](const PassInstrument& i) { i->RunSkipped(run, reason); });
}

namespace {
/// The record of a run whose hooks are called by hand.
struct ByHand {
  PassRun run;
  ByHand(const IRModule& mod, const PassInfo& info) {
    run.info = info;
    run.module = mod;
    run.parent = CurrentRun();
  }
};
}  // namespace

bool PassContext::InstrumentBeforePass(const IRModule& mod, const PassInfo& info) const {
  return BeforePass(ByHand(mod, info).run);
}
void PassContext::InstrumentAfterPass(const IRModule& mod, const PassInfo& info) const {
  ByHand after(mod, info);
  after.run.result = mod;
  AfterPass(after.run);
}
void PassContext::InstrumentPassFailed(const IRModule& mod, const PassInfo& info, const String& error) const {
  PassFailed(ByHand(mod, info).run, error);
}
void PassContext::InstrumentPassSkipped(const IRModule& mod, const PassInfo& info, const String& reason) const {
  PassSkipped(ByHand(mod, info).run, reason);
}

void PassContext::OverrideInstruments(Array<PassInstrument> instruments) {
  InstrumentExitPassContext();
  (*this)->instruments = instruments.defined() ? instruments : Array<PassInstrument>();
  InstrumentEnterPassContext();
}

// ---- Which passes run

std::string PassContext::WhyDisabled(const PassInfo& info) const {
  if (Contains((*this)->disabled_pass, info->name)) return "disabled by the context";
  if (Contains((*this)->required_pass, info->name) || (*this)->opt_level >= info->opt_level) return "";
  return "needs opt_level " + std::to_string(info->opt_level) + ", the context has " +
         std::to_string((*this)->opt_level);
}

bool PassContext::PassEnabled(const PassInfo& info) const {
  if (Contains((*this)->disabled_pass, info->name)) return false;
  return (*this)->opt_level >= info->opt_level || Contains((*this)->required_pass, info->name);
}

// ---- Options

void PassContext::RegisterConfigOption(const char* key, const char* type_name, ConvertFn convert, const char* doc) {
  ConfigTable& t = ConfigTable::Get();
  std::lock_guard lock(t.mutex);
  t.options[key] = {type_name, convert, doc};
}

void RegisterPassOptions(const std::string& layer, const std::string& pass, const char* options_key) {
  ConfigTable& t = ConfigTable::Get();
  std::lock_guard lock(t.mutex);
  const runtime::TypeInfo* type = runtime::TypeInfo::FindKey(options_key);
  const std::string own = layer + "." + pass;
  if (layer == "tir") {
    t.options[own] = {.type_name = type->key, .doc = "Options of the pass " + own + ".", .options = type};
    return;
  }
  for (const runtime::FieldInfo& f : type->fields) {
    t.options[own + "." + f.name] = {.type_name = f.type_name, .doc = f.doc, .options = type, .field = &f};
  }
}

namespace {

/// Options of Relay that are fixed here: one value is accepted and has no effect, the other is an error with the
/// reason.
struct FixedOption {
  std::string_view key;
  bool value;
  const char* reason;
};
// clang-format off
constexpr FixedOption kFixedOptions[] = {
    {"tir.noalias", true, "code is made for buffers that do not overlap; give each parameter memory of its own"},
    {"tir.instrument_bound_checkers", false, "compiled loops have no checks of bounds; state what has to hold by tir.AssertStmt"},
    {"tir.detect_global_barrier", false, "PrimFuncs have no threads that a barrier could hold"},
    {"tir.is_entry_func", false, "every function with a name can be called from outside"},
    {"tir.debug_keep_trivial_loop", false, "a loop of one round is its body"},
    {"tir.disable_storage_rewrite", false, "memory is planned by relay.build and tir.StorageRewrite, always"},
    {"tir.usmp.enable", false, "memory is planned by relay.build and tir.StorageRewrite, always"},
    {"relay.FuseOps.link_params", true, "weights are always part of the module"},
    {"relay.backend.disable_compile_engine_cache", true, "kernels are compiled once for each model"},
    {"relay.backend.use_auto_scheduler_dispatch", false, "there is one generator of kernels"},
    {"relay.backend.tir_converter", false, "there is one way from Relay to loops"},
};
// clang-format on

/// All options of a pass, from such an object or from a dict.
Any ConvertOptions(const runtime::TypeInfo* type, const Any& value) {
  if (value.Is<Attrs>() && !value.is_null() && value.As<Attrs>()->type_index() == type->index) return value;
  if (!value.Is<Map<String, Any>>() || value.is_null()) {
    throw runtime::TypeError("expected " + type->key + " or a dict of its fields, got " +
                             runtime::ValueKindName(value.raw()));
  }
  const ObjectPtr<Object> made = type->create();
  std::vector<BatonValue> kv;
  for (const auto& e : value.As<Map<String, Any>>().get()->entries) {
    kv.push_back(e.key.raw());
    kv.push_back(e.value.raw());
  }
  static_cast<BaseAttrsNode*>(made.get())->InitByPackedArgs(runtime::Args(kv.data(), static_cast<int>(kv.size())));
  return Any(ObjectRef(made));
}

Any ConvertOption(const String& key, const Any& value) {
  // Options of compilers that a program brings along: their code generators read them.
  if (key.view().starts_with("relay.ext.") && key.view().find(".options") != std::string_view::npos) return value;
  ConfigTable& t = ConfigTable::Get();
  ConfigOption option;
  {
    std::lock_guard lock(t.mutex);
    auto it = t.options.find(key.view());
    for (const FixedOption& o : kFixedOptions) {
      if (o.key != key.view()) continue;
      if ((value.Is<bool>() || value.Is<int64_t>()) && (value.As<int64_t>() != 0) == o.value) return value;
      throw UnsupportedError("pass option `" + key.str() + "` can only be " + (o.value ? "True" : "False") + ": " +
                             o.reason);
    }
    if (it == t.options.end()) {
      std::vector<std::string> known;
      for (const auto& [k, o] : t.options) known.push_back(k);
      std::string near = support::DidYouMean(key.view(), known);
      throw Error("AttributeError", "there is no pass option `" + key.str() + "`" +
                                        (near.empty() ? "; PassContext.list_configs() lists those there are" : near));
    }
    option = it->second;
  }
  if (option.field) return SetOption(key.str(), *option.field, option.options->create().get(), value);
  try {
    return option.convert ? option.convert(value) : ConvertOptions(option.options, value);
  } catch (const Error& e) {
    throw Error(e.kind(), "pass option `" + key.str() + "` (" + option.type_name + "): " + e.message());
  }
}

}  // namespace

PassContext PassContext::Make(int opt_level, Array<String> required, Array<String> disabled,
                              Array<PassInstrument> instruments, Map<String, Any> config) {
  PassContextNode n;
  n.opt_level = opt_level;
  if (required.defined()) n.required_pass = required;
  if (disabled.defined()) n.disabled_pass = disabled;
  if (instruments.defined()) n.instruments = instruments;
  for (const PassInstrument& i : n.instruments) {
    if (!i.defined()) throw runtime::TypeError("`instruments` takes PassInstruments, got None among them");
  }
  for (const auto& [key, value] : config) n.config.Set(key, ConvertOption(key, value));
  return PassContext(std::move(n));
}

PassContext PassContext::WithConfig(const Map<String, Any>& more) const {
  PassContextNode n = *get();
  for (const auto& [key, value] : more) n.config.Set(key, ConvertOption(key, value));
  return PassContext(std::move(n));
}

Map<String, Any> PassContext::ListConfigOptions() {
  ConfigTable& t = ConfigTable::Get();
  std::lock_guard lock(t.mutex);
  Map<String, Any> out;
  for (const auto& [key, option] : t.options) out.Set(key, Any(option.type_name));
  for (const FixedOption& option : kFixedOptions) out.Set(String(std::string(option.key)), Any(String("bool")));
  return out;
}

std::string PassContext::ConfigOptionDoc(std::string_view key) {
  ConfigTable& t = ConfigTable::Get();
  std::lock_guard lock(t.mutex);
  if (auto it = t.options.find(key); it != t.options.end()) return it->second.doc;
  for (const FixedOption& option : kFixedOptions) {
    if (option.key == key) return std::string("Only ") + (option.value ? "True" : "False") + ": " + option.reason + ".";
  }
  return "";
}

void PassContext::FillAttrs(BaseAttrsNode* attrs, const Map<String, Any>& values) {
  std::vector<BatonValue> kv;
  for (const auto& e : values.get()->entries) {
    kv.push_back(e.key.raw());
    kv.push_back(e.value.raw());
  }
  attrs->InitByPackedArgs(runtime::Args(kv.data(), static_cast<int>(kv.size())));
}

// ---- Front ends

BATON_REGISTER_GLOBAL("transform.PassContext")
    .set_body_typed([](int opt_level, Array<String> required, Array<String> disabled, Array<PassInstrument> instruments,
                       Map<String, Any> config) {
      return PassContext::Make(opt_level, required, disabled, instruments, config);
    });
BATON_REGISTER_GLOBAL("transform.PassContextOptions")
    .set_body_typed([](PassContext ctx, bool inherit, bool isolate, int num_threads, ObjectRef diag_ctx) {
      if (num_threads < 1 || num_threads > 1024) {
        throw runtime::ValueError("num_threads is " + std::to_string(num_threads) + "; it is from 1 to 1,024");
      }
      if (diag_ctx.defined() && !diag_ctx.as<DiagnosticContextNode>()) {
        throw runtime::TypeError("diag_ctx takes a DiagnosticContext, got " + diag_ctx.get()->GetTypeKey());
      }
      ctx->inherit_instruments = inherit;
      ctx->isolate_instruments = isolate;
      ctx->num_threads = num_threads;
      ctx->diag_ctx = diag_ctx;
    });
/// Scopes for languages without destructors.
struct PassContextScopes {
  static void Enter(PassContext ctx) { ctx.EnterWithScope(); }
  static void Exit(PassContext ctx) { ctx.ExitWithScope(); }
};
const struct RegisteredScopes {
  RegisteredScopes() {
    for (const char* prefix : {"transform.", "relay._transform."}) {  // the second is the early name
      std::string p = prefix;
      Registry::Register(p + "EnterPassContext").set_body_typed([](PassContext ctx) { PassContextScopes::Enter(ctx); });
      Registry::Register(p + "ExitPassContext").set_body_typed([](PassContext ctx) { PassContextScopes::Exit(ctx); });
      Registry::Register(p + "GetCurrentPassContext").set_body_typed([] { return PassContext::Current(); });
    }
  }
} registered_scopes;
/// For front ends that observe the end of a thread before its C++ thread-locals are destroyed.
BATON_REGISTER_GLOBAL("transform.GiveBackPassContexts").set_body_typed([] { ThreadState::Get().GiveBack(); });
/// AdoptPassContext for languages without destructors.
BATON_REGISTER_GLOBAL("transform.AdoptPassContext").set_body_typed([](PassContext ctx) { PushAdopted(ctx); });
BATON_REGISTER_GLOBAL("transform.LeaveAdoptedPassContext").set_body_typed([](PassContext ctx) {
  ThreadState& s = ThreadState::Get();
  if (s.contexts.empty() || s.contexts.back().entered || !s.contexts.back().ctx.same_as(ctx)) {
    throw runtime::ValueError(
        "this PassContext is not the one that this thread adopted last: leave those entered or adopted after it first, "
        "in the thread that adopted it, or use `with` blocks");
  }
  s.contexts.pop_back();
});
BATON_REGISTER_GLOBAL("transform.OverrideInstruments").set_body_typed([](PassContext ctx, Array<PassInstrument> i) {
  ctx.OverrideInstruments(i);
});
/// Puts an instrument on a context, and takes it off, between passes; no hook is called.
BATON_REGISTER_GLOBAL("transform.AddInstrument").set_body_typed([](PassContext ctx, PassInstrument i) {
  Array<PassInstrument> all(ctx->instruments.begin(), ctx->instruments.end());
  all.push_back(i);
  ctx->instruments = all;
});
BATON_REGISTER_GLOBAL("transform.RemoveInstrument").set_body_typed([](PassContext ctx, PassInstrument gone) {
  Array<PassInstrument> left;
  for (const PassInstrument& i : ctx->instruments) {
    if (!i.same_as(gone)) left.push_back(i);
  }
  ctx->instruments = left;
});
BATON_REGISTER_GLOBAL("transform.ConfigDoc").set_body_typed([](std::string key) {
  return PassContext::ConfigOptionDoc(key);
});
BATON_REGISTER_GLOBAL("transform.ListConfigs").set_body_typed([] { return PassContext::ListConfigOptions(); });

}  // namespace baton::transform
