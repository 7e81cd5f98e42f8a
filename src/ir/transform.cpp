// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>

#include <map>
#include <mutex>
#include <vector>

namespace baton::transform {
namespace {

struct ContextStack {
  PassContext fallback;
  std::vector<PassContext> stack;
};
ContextStack& Stack() {
  static thread_local ContextStack s;
  return s;
}

struct ConfigOption {
  std::string type_name;
  PassContext::ConvertFn convert;
};
struct ConfigTable {
  std::mutex mutex;
  std::map<std::string, ConfigOption, std::less<>> options;
  static ConfigTable& Get() {
    static auto* t = new ConfigTable;
    return *t;
  }
};

struct PassDocs {
  std::mutex mutex;
  std::map<std::string, std::string, std::less<>> docs;
  static PassDocs& Get() {
    static auto* t = new PassDocs;
    return *t;
  }
};

bool Contains(const Array<String>& names, const String& name) {
  for (const String& n : names) {
    if (n == name) return true;
  }
  return false;
}

const RegisterNodes<PassInfoNode, PassContextNode, PassNode, ModulePassNode, FunctionPassNode, SequentialNode,
                    instrument::PassInstrumentNode>
    registered;

}  // namespace

// ---- PassContext

PassContext PassContext::Create() { return PassContext(PassContextNode{}); }

PassContext PassContext::Current() {
  ContextStack& s = Stack();
  if (!s.stack.empty()) return s.stack.back();
  if (!s.fallback.defined()) s.fallback = Create();
  return s.fallback;
}

PassContext PassContext::Make(int opt_level, Array<String> required, Array<String> disabled,
                              Array<instrument::PassInstrument> instruments, Map<String, Any> config) {
  PassContextNode n;
  n.opt_level = opt_level;
  if (required.defined()) n.required_pass = required;
  if (disabled.defined()) n.disabled_pass = disabled;
  if (instruments.defined()) n.instruments = instruments;
  ConfigTable& t = ConfigTable::Get();
  for (const auto& [key, value] : config) {
    ConvertFn convert = nullptr;
    std::string type_name;
    {
      std::lock_guard lock(t.mutex);
      auto it = t.options.find(key.view());
      if (it == t.options.end()) {
        std::vector<std::string> known;
        for (const auto& [k, o] : t.options) known.push_back(k);
        throw Error("AttributeError",
                    "there is no pass option `" + key.str() + "`" + support::DidYouMean(key.view(), known));
      }
      convert = it->second.convert;
      type_name = it->second.type_name;
    }
    try {
      n.config.Set(key, convert(value));
    } catch (const Error& e) {
      throw Error(e.kind(), "pass option `" + key.str() + "` (" + type_name + "): " + e.message());
    }
  }
  return PassContext(std::move(n));
}

void PassContext::EnterWithScope() {
  InstrumentEnterPassContext();  // a throw leaves the stack as it was
  Stack().stack.push_back(*this);
}

void PassContext::ExitWithScope() {
  ContextStack& s = Stack();
  if (s.stack.empty() || !s.stack.back().same_as(*this)) {
    throw runtime::ValueError(
        "this PassContext is not the innermost one of this thread; contexts are left in the reverse order of entering");
  }
  s.stack.pop_back();  // popped whatever the instruments do
  InstrumentExitPassContext();
}

void PassContext::InstrumentEnterPassContext() {
  Array<instrument::PassInstrument> all = (*this)->instruments;
  std::vector<instrument::PassInstrument> entered;
  try {
    for (const auto& i : all) {
      i->EnterPassContext();
      entered.push_back(i);
    }
  } catch (...) {
    (*this)->instruments = Array<instrument::PassInstrument>();
    for (const auto& i : entered) i->ExitPassContext();
    throw;
  }
}

void PassContext::InstrumentExitPassContext() {
  Array<instrument::PassInstrument> all = (*this)->instruments;
  try {
    for (const auto& i : all) i->ExitPassContext();
  } catch (...) {
    (*this)->instruments = Array<instrument::PassInstrument>();
    throw;
  }
}

bool PassContext::InstrumentBeforePass(const IRModule& mod, const PassInfo& info) const {
  Array<instrument::PassInstrument> all = (*this)->instruments;
  if (all.empty()) return true;
  if (!Contains((*this)->required_pass, info->name)) {
    bool run = true;
    for (const auto& i : all) run &= i->ShouldRun(mod, info);
    if (!run) return false;
  }
  for (const auto& i : all) i->RunBeforePass(mod, info);
  return true;
}

void PassContext::InstrumentAfterPass(const IRModule& mod, const PassInfo& info) const {
  Array<instrument::PassInstrument> all = (*this)->instruments;
  for (const auto& i : all) i->RunAfterPass(mod, info);
}

void PassContext::OverrideInstruments(Array<instrument::PassInstrument> instruments) {
  InstrumentExitPassContext();
  (*this)->instruments = instruments.defined() ? instruments : Array<instrument::PassInstrument>();
  InstrumentEnterPassContext();
}

bool PassContext::PassEnabled(const PassInfo& info) const {
  if (Contains((*this)->disabled_pass, info->name)) return false;
  if (Contains((*this)->required_pass, info->name)) return true;
  return (*this)->opt_level >= info->opt_level;
}

void PassContext::RegisterConfigOption(const char* key, const char* type_name, ConvertFn convert) {
  ConfigTable& t = ConfigTable::Get();
  std::lock_guard lock(t.mutex);
  t.options[key] = {type_name, convert};
}

Map<String, Any> PassContext::ListConfigOptions() {
  ConfigTable& t = ConfigTable::Get();
  std::lock_guard lock(t.mutex);
  Map<String, Any> out;
  for (const auto& [key, option] : t.options) out.Set(key, Any(option.type_name));
  return out;
}

void PassContext::FillAttrs(BaseAttrsNode* attrs, const Map<String, Any>& values) {
  std::vector<BatonValue> kv;
  for (const auto& e : values.get()->entries) {
    kv.push_back(e.key.raw());
    kv.push_back(e.value.raw());
  }
  attrs->InitByPackedArgs(runtime::Args(kv.data(), static_cast<int>(kv.size())));
}

// ---- Passes

IRModule Pass::operator()(IRModule mod) const { return (*this)(std::move(mod), PassContext::Current()); }

IRModule Pass::operator()(IRModule mod, const PassContext& ctx) const {
  if (!defined()) throw runtime::ValueError("Found undefined pass for optimization.");
  if (!mod.defined()) throw runtime::ValueError("pass `" + get()->Info()->name.str() + "` was given no module");
  const PassNode* node = get();
  PassInfo info = node->Info();
  // A front end that was asked to stop (Ctrl-C) says so by an error.
  if (const PackedFunc* poll = runtime::Registry::Get("runtime.CheckSignals")) (*poll)();
  if (!ctx.InstrumentBeforePass(mod, info)) return mod;
  IRModule out = (*node)(std::move(mod), ctx);
  if (!out.defined()) throw runtime::TypeError("pass `" + info->name.str() + "` returned no module");
  ctx.InstrumentAfterPass(out, info);
  return out;
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

}  // namespace

IRModule ModulePassNode::operator()(IRModule mod, const PassContext& ctx) const {
  // The body may change what it is handed: the caller's module stays as it is.
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
  return result;
}

IRModule FunctionPassNode::operator()(IRModule mod, const PassContext& ctx) const {
  std::vector<std::pair<GlobalVar, BaseFunc>> updates;
  IRModule view = mod.Copy();  // what a body does to the module it is handed has no effect
  for (const auto& [var, func] : mod->functions) {
    if (func.get()->type_index() != function_type || SkipFunction(func)) continue;
    Any out = pass_func(func, view, ctx);
    Object* o = out.object();
    if (!o || o->type_index() != function_type) {
      throw runtime::TypeError("pass `" + pass_info->name.str() + "` must return a " +
                               Object::TypeIndex2Key(function_type) + " for @" + var->name_hint.str() +
                               ", it returned " + runtime::ValueKindName(out.raw()));
    }
    if (o != static_cast<const Object*>(func.get())) updates.push_back({var, out.As<BaseFunc>()});
  }
  if (updates.empty()) return mod;
  IRModule result = mod.Copy();
  for (const auto& [var, func] : updates) result.CopyOnWrite()->functions.Set(var, func);
  return result;
}

namespace {

/// Runs what `pass` requires, then what that requires, each time anew; a cycle is an error that lists it.
IRModule RunRequired(const PassInfo& info, IRModule mod, const PassContext& ctx, std::vector<std::string>* path) {
  path->push_back(info->name);
  for (const String& name : info->required) {
    for (const std::string& p : *path) {
      if (name != p) continue;
      std::string cycle;
      for (const std::string& q : *path) cycle += q + " -> ";
      throw runtime::ValueError("the passes require each other in a cycle: " + cycle + name.str());
    }
    Pass required = GetPass(name);
    mod = RunRequired(required->Info(), std::move(mod), ctx, path);
    mod = required(std::move(mod), ctx);
  }
  path->pop_back();
  return mod;
}

}  // namespace

IRModule SequentialNode::operator()(IRModule mod, const PassContext& ctx) const {
  for (const Pass& pass : passes) {
    if (!pass.defined()) throw runtime::ValueError("Found undefined pass for optimization.");
    PassInfo info = pass->Info();
    if (!ctx.PassEnabled(info)) continue;
    std::vector<std::string> path;
    mod = RunRequired(info, std::move(mod), ctx, &path);
    mod = pass(std::move(mod), ctx);
  }
  return mod;
}

Sequential::Sequential(Array<Pass> passes, PassInfo info) {
  auto n = make_object<SequentialNode>();
  n->passes = std::move(passes);
  n->pass_info = std::move(info);
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

Pass GetPass(const String& name) {
  for (const char* prefix : {"relay._transform.", "transform.", "tir.transform."}) {
    if (const PackedFunc* f = Registry::Get(prefix + name.str())) {
      Any made = (*f)();
      if (made.Is<Pass>() && !made.is_null()) return made.As<Pass>();
    }
  }
  std::vector<std::string> known;
  for (const std::string& n : Registry::ListNames()) {
    for (std::string_view prefix : {"relay._transform.", "tir.transform."}) {
      if (n.starts_with(prefix)) known.push_back(n.substr(prefix.size()));
    }
  }
  throw runtime::ValueError("Cannot find relay._transform." + name.str() + " to create pass " + name.str() +
                            support::DidYouMean(name.view(), known));
}

Pass PrintIR(String header, bool show_meta_data) {
  return CreateModulePass(
      TypedPackedFunc<IRModule(IRModule, PassContext)>([header, show_meta_data](IRModule mod, PassContext) {
        std::string text = "PrintIR(" + header.str() + "):\n" + AsText(mod, show_meta_data) + "\n";
        if (const PackedFunc* f = Registry::Get("runtime.PrintText")) {
          (*f)(text);
        } else {
          fputs(text.c_str(), stderr);
        }
        return mod;
      }),
      0, "PrintIR", {});
}

void RegisterPassDoc(std::string_view name, const char* doc) {
  PassDocs& t = PassDocs::Get();
  std::lock_guard lock(t.mutex);
  t.docs[std::string(name)] = doc;
}

void RegisterPassGlobal(const std::string& global_name, PackedFunc make) {
  Registry::Register(global_name).set_body(std::move(make));
}

// ---- Front ends

BATON_REGISTER_GLOBAL("transform.PassInfo").set_body_typed([](int opt_level, String name, Array<String> required) {
  return PassInfo(opt_level, name, required.defined() ? required : Array<String>());
});
BATON_REGISTER_GLOBAL("transform.Info").set_body_typed([](Pass p) { return p->Info(); });
BATON_REGISTER_GLOBAL("transform.PassDoc").set_body_typed([](String name) {
  PassDocs& t = PassDocs::Get();
  std::lock_guard lock(t.mutex);
  auto it = t.docs.find(name.view());
  return String(it == t.docs.end() ? "" : it->second);
});
BATON_REGISTER_GLOBAL("transform.PassContext")
    .set_body_typed([](int opt_level, Array<String> required, Array<String> disabled,
                       Array<instrument::PassInstrument> instruments, Map<String, Any> config) {
      return PassContext::Make(opt_level, required, disabled, instruments, config);
    });
BATON_REGISTER_GLOBAL("transform.EnterPassContext").set_body_typed([](PassContext ctx) { ctx.EnterWithScope(); });
BATON_REGISTER_GLOBAL("transform.ExitPassContext").set_body_typed([](PassContext ctx) { ctx.ExitWithScope(); });
BATON_REGISTER_GLOBAL("transform.GetCurrentPassContext").set_body_typed([] { return PassContext::Current(); });
BATON_REGISTER_GLOBAL("transform.OverrideInstruments")
    .set_body_typed([](PassContext ctx, Array<instrument::PassInstrument> i) { ctx.OverrideInstruments(i); });
BATON_REGISTER_GLOBAL("transform.ListConfigs").set_body_typed([] { return PassContext::ListConfigOptions(); });
BATON_REGISTER_GLOBAL("transform.RunPass").set_body_typed([](Pass pass, IRModule mod) { return pass(std::move(mod)); });
BATON_REGISTER_GLOBAL("transform.GetPass").set_body_typed([](String name) { return GetPass(name); });
BATON_REGISTER_GLOBAL("transform.MakeModulePass")
    .set_body_typed([](TypedPackedFunc<IRModule(IRModule, PassContext)> f, PassInfo info) {
      return CreateModulePass(f, info->opt_level, info->name, info->required);
    });
BATON_REGISTER_GLOBAL("transform.Sequential")
    .set_body_typed([](Array<Pass> passes, int opt_level, String name, Array<String> required) -> Pass {
      return Sequential(passes, PassInfo(opt_level, name, required.defined() ? required : Array<String>()));
    });
BATON_REGISTER_GLOBAL("transform.PrintIR").set_body([](runtime::Args args, runtime::RetValue* rv) {
  *rv = PrintIR(args.size() > 0 ? args[0].As<String>() : String(), args.size() > 1 && args[1].As<bool>());
});
BATON_REGISTER_GLOBAL("relay._transform.PrintIR").set_body([](runtime::Args args, runtime::RetValue* rv) {
  *rv = PrintIR(args.size() > 0 ? args[0].As<String>() : String(), args.size() > 1 && args[1].As<bool>());
});

}  // namespace baton::transform
