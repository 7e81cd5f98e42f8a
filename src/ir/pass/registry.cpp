// SPDX-License-Identifier: Apache-2.0
// The registry of passes: passes by name, and their options.
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "ir/pass/pass_internals.h"

namespace baton::transform {

using runtime::FieldInfo;
using runtime::Registry;
using runtime::TypeInfo;

namespace {

/// Built-in passes by the global function that makes them.
struct PassTable {
  std::mutex mutex;
  std::map<std::string, RegisteredPass, std::less<>> by_key;  ///< entries never move or go
  static PassTable& Get() {
    static auto* t = new PassTable;
    return *t;
  }
};

const std::vector<FieldInfo>& FieldsOf(const char* options_key) {
  static const std::vector<FieldInfo> none;
  return options_key ? TypeInfo::FindKey(options_key)->fields : none;
}

/// "relay" or "tir": how keys of the context's options begin, as the type key of the options does.
std::string LayerOf(std::string_view options_key) { return std::string(options_key.substr(0, options_key.find('.'))); }

/// The name of an option in messages: its key in a context.
std::string OptionName(const char* options_key, std::string_view pass, const FieldInfo& field) {
  return LayerOf(options_key) + "." + std::string(pass) + "." + field.name;
}

/// A pass that was just made: its info has no other owner yet.
PassInfoNode* MutableInfo(const Pass& pass) { return const_cast<PassInfoNode*>(pass->Info().get()); }

/// Calls `make` with the options given by name; all others have their defaults. A null value asks for the default.
template <class Make>
Pass MadeWith(const char* options_key, std::string_view name, const Map<String, Any>& given, const Make& make) {
  if (!options_key) return make(Attrs());
  const TypeInfo* type = TypeInfo::FindKey(options_key);
  const ObjectPtr<Object> options = type->create();
  Map<String, Any> set;
  for (const auto& [option, value] : given) {
    const FieldInfo* field = type->Find(option.view());
    if (!field) {
      std::vector<std::string> known;
      for (const FieldInfo& f : type->fields) known.push_back(f.name);
      throw runtime::TypeError("pass `" + std::string(name) + "` has no option `" + option.str() + "`" +
                               support::DidYouMean(option.view(), known));
    }
    if (value.is_null()) continue;
    set.Set(option, SetOption(OptionName(options_key, name, *field), *field, options.get(), value));
  }
  const Pass made = make(Attrs(options));
  MutableInfo(made)->options = set;
  return made;
}

Pass MakeByOptions(const RegisteredPass& pass, const Map<String, Any>& given) {
  return MadeWith(pass.options_key, pass.name, given,
                  [&](const Attrs& options) { return pass.make(options).As<Pass>(); });
}

/// The global function of a pass: takes options in their order.
void MakeByPosition(const RegisteredPass& pass, runtime::Args args, runtime::RetValue* rv) {
  const auto& fields = FieldsOf(pass.options_key);
  Map<String, Any> given;
  if (!pass.takes_anything) {
    if (static_cast<size_t>(args.size()) > fields.size()) {
      throw runtime::TypeError("pass `" + pass.name + "` takes " + std::to_string(fields.size()) + " options, got " +
                               std::to_string(args.size()));
    }
    for (int i = 0; i < args.size(); ++i) given.Set(String(fields[static_cast<size_t>(i)].name), Any(args[i]));
  }
  *rv = MakeByOptions(pass, given);
}

/// For a function that makes a pass without options.
constexpr const char* kSignature = "() -> transform.Pass";

/// A pass function that a front end or a plug-in registered has no arguments, or unknown ones.
bool MayMakePass(const PackedFunc& f) {
  const char* signature = f.get()->signature;
  return !signature || std::string_view(signature) == kSignature;
}

}  // namespace

Any SetOption(const std::string& shown, const FieldInfo& field, Object* options, const Any& value) {
  try {
    field.Set(options, value.raw());
    return field.Get(options);
  } catch (const Error& e) {
    throw Error(e.kind(), "pass option `" + shown + "` (" + field.type_name + "): " + e.message());
  }
}

void PutPass(RegisteredPass pass) {
  PassTable& t = PassTable::Get();
  const std::string key = pass.prefix + pass.name;
  const RegisteredPass* put;
  {
    std::lock_guard lock(t.mutex);
    put = &t.by_key.insert_or_assign(key, std::move(pass)).first->second;
  }
  if (put->options_key) RegisterPassOptions(LayerOf(put->options_key), put->name, put->options_key);
  PackedFunc make([put](runtime::Args args, runtime::RetValue* rv) { MakeByPosition(*put, args, rv); });
  if (!put->options_key && !put->takes_anything) make.Describe(nullptr, kSignature);  // the registry names it
  Registry::Register(key).set_body(std::move(make));
}

const RegisteredPass* FindRegistered(std::string_view key) {
  PassTable& t = PassTable::Get();
  std::lock_guard lock(t.mutex);
  auto it = t.by_key.find(key);
  return it == t.by_key.end() ? nullptr : &it->second;
}

bool IsBuiltIn(std::string_view name) {
  for (const char* prefix : {"relay._transform.", "transform.", "tir.transform."}) {
    if (FindRegistered(prefix + std::string(name))) return true;
  }
  return false;
}

const PackedFunc* FindPassMaker(std::string_view name, std::string* key) {
  if (name.starts_with("python.")) {  // a pass by the path that imports it; see GetPass
    *key = std::string(name);
    return Registry::Get("transform.ImportPass");
  }
  auto find = [&](std::string_view prefix, std::string_view bare) {
    *key = std::string(prefix) + std::string(bare);
    return Registry::Get(*key);
  };
  if (name.starts_with("tir.")) return find("tir.transform.", name.substr(4));
  if (name.starts_with("relay.")) return find("relay._transform.", name.substr(6));
  for (const char* prefix : {"relay._transform.", "transform.", "tir.transform."}) {
    if (const PackedFunc* f = find(prefix, name)) return f;
  }
  return nullptr;
}

Pass GetPass(const String& name) {
  std::string key;
  if (const PackedFunc* f = FindPassMaker(name.view(), &key)) {
    Any made = name.view().starts_with("python.") ? (*f)(name) : (*f)();
    if (!made.Is<Pass>() || made.is_null()) {
      throw runtime::ValueError("`" + key + "` makes no pass, it returned " + runtime::ValueKindName(made.raw()));
    }
    return made.As<Pass>();
  }
  std::string near = support::DidYouMean(name.view(), PassNames());
  throw runtime::ValueError("Cannot find relay._transform." + name.str() + " to create pass " + name.str() +
                            (near.empty() ? "; `baton opt --list` prints all passes" : near));
}

Pass GetPass(const String& name, const Map<String, Any>& options) {
  if (options.empty()) return GetPass(name);
  std::string key;
  FindPassMaker(name.view(), &key);
  return MakeRegistered(key, options);
}

Pass MakeRegistered(const std::string& key, const Map<String, Any>& given) {
  const RegisteredPass* pass = FindRegistered(key);
  if (!pass) throw runtime::ValueError("there is no built-in pass `" + key + "`");
  return MakeByOptions(*pass, given);
}

std::vector<std::string> PassNames() {
  std::vector<std::string> out;
  for (const std::string& key : Registry::ListNames()) {
    for (std::string_view prefix : {"relay._transform.", "tir.transform."}) {
      if (!key.starts_with(prefix)) continue;
      const PackedFunc* f = FindRegistered(key) ? nullptr : Registry::Get(key);
      if (f && !MayMakePass(*f)) continue;
      out.push_back((prefix[0] == 't' ? "tir." : "") + key.substr(prefix.size()));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

// ---- Options of passes

Pass Described(Pass pass, const PassDef& def, PassOptionsMaker maker, const BaseAttrsNode* options) {
  PassInfoNode* info = MutableInfo(pass);
  info->doc = def.doc;
  info->needs = def.needs;
  info->establishes = def.establishes;
  info->keeps = def.keeps;
  info->destroys = def.destroys;
  info->reassociates = def.reassociates;
  info->changes_results = def.changes_results;
  if (options) {
    // Options on the stack do not know their type: a copy does.
    const ObjectPtr<Object> own = TypeInfo::FindKey(maker.options_key)->copy(options);
    static_cast<const BaseAttrsNode*>(own.get())->VisitFields(
        [&](const char* name, const Any& value) { info->options.Set(String(name), value); }, true);
  }
  if (auto* f = const_cast<FunctionPassNode*>(pass.as<FunctionPassNode>())) {
    f->parallel = true;
    f->options_maker = maker;
  } else if (auto* m = const_cast<ModulePassNode*>(pass.as<ModulePassNode>())) {
    m->options_maker = maker;
  }
  return pass;
}

PassInfo WithTraitsOf(const Array<Pass>& passes, PassInfo info) {
  bool reassociates = info->reassociates, changes_results = info->changes_results;
  for (const Pass& pass : passes) {
    if (!pass.defined()) continue;  // running it is the error
    const PassInfo one = pass->Info();
    reassociates |= one->reassociates;
    changes_results |= one->changes_results;
  }
  if (reassociates == info->reassociates && changes_results == info->changes_results) return info;
  PassInfoNode more = *info.get();
  more.reassociates = reassociates;
  more.changes_results = changes_results;
  return PassInfo(std::move(more));
}

Pass WithContextOptions(const PassInfo& info, const PassOptionsMaker& maker, const PassContext& ctx) {
  if (!maker.options_key || ctx->config.empty()) return Pass();
  const std::string own = LayerOf(maker.options_key) + "." + info->name.str();
  Map<String, Any> all = info->options;
  bool any = false;
  auto set = [&](std::string_view option, const Any& value) {
    if (value.is_null() || info->options.count(String(option))) return;
    all.Set(String(option), value);
    any = true;
  };
  for (const auto& [key, value] : ctx->config) {
    const std::string_view k = key.view();
    if (!k.starts_with(own)) continue;
    if (k.size() == own.size()) {
      if (value.Is<Attrs>() && !value.is_null()) value.As<Attrs>()->VisitFields(set, true);
    } else if (k[own.size()] == '.') {
      set(k.substr(own.size() + 1), value);
    }
  }
  if (!any) return Pass();
  return MadeWith(maker.options_key, info->name.view(), all, maker.make);
}

// ---- Front ends

/// A front end's pass: the path that imports it, "python.package.module.name".
BATON_REGISTER_GLOBAL("transform.SetPassOrigin").set_body_typed([](PassInfo info, String origin) {
  const_cast<PassInfoNode*>(info.get())->origin = origin;
});
/// A front end's pass that was made with arguments, which have no text form.
BATON_REGISTER_GLOBAL("transform.SetPassOptions").set_body_typed([](PassInfo info, Map<String, Any> options) {
  const_cast<PassInfoNode*>(info.get())->options = options;
});
BATON_REGISTER_GLOBAL("transform.PassNames").set_body_typed([] {
  Array<String> out;
  for (const std::string& n : PassNames()) out.push_back(String(n));
  return out;
});
/// The nearest name of a pass that can be made by name, for one that cannot; "" for one that can, or where none is
/// near.
BATON_REGISTER_GLOBAL("transform.NearPass").set_body_typed([](String name) {
  std::string key;
  if (name.view().starts_with("python.") || FindPassMaker(name.view(), &key)) return String("");
  std::vector<std::string> known;
  for (const std::string& n : PassNames()) known.push_back(n.starts_with("tir.") ? n.substr(4) : n);
  return String(support::DidYouMean(name.view(), known));
});
BATON_REGISTER_GLOBAL("transform.GetPass").set_body_typed([](String name) { return GetPass(name); });
/// (global function of a built-in pass, options by name): the pass.
BATON_REGISTER_GLOBAL("transform.MakePass").set_body_typed([](String key, Map<String, Any> options) {
  return MakeRegistered(key.str(), options);
});
/// The type key of the options that a global function makes a pass with: "" for one without options; null where it is
/// of no built-in pass, or takes what it is given.
BATON_REGISTER_GLOBAL("transform.PassOptionsKey").set_body_typed([](String key) -> Any {
  const RegisteredPass* pass = FindRegistered(key.view());
  if (!pass || pass->takes_anything) return Any();
  return Any(String(pass->options_key ? pass->options_key : ""));
});

}  // namespace baton::transform
