// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>
#include <baton/support/file.h>
#include <baton/support/text.h>

#include <chrono>

namespace baton::runtime {
using support::Cat;

Module LoadArtifact(const std::string& path);                      // artifact.cpp
Module CreateExecutorOn(const Module& code, const Args& devices);  // executor.cpp

void* ModuleNode::GetSymbol(const char*) { return nullptr; }
const ExecutableDesc* ModuleNode::GetExecutable() const { return nullptr; }

std::string ModuleNode::GetSource(std::string_view format) {
  throw UnsupportedError(Cat("a module of kind `", type_key(), "` has no source", format.empty() ? "" : " in format `",
                             format, format.empty() ? "" : "`"));
}

void ModuleNode::SaveToFile(const std::string&, std::string_view) {
  throw UnsupportedError(Cat("a module of kind `", type_key(), "` cannot be saved"));
}

void ModuleNode::Import(Module other) {
  if (!other.defined()) throw ValueError("import of a module that is None");
  // References must not form a circle, which would never be freed.
  std::vector<ModuleNode*> open{other.get()};
  size_t seen = 0;
  while (seen < open.size()) {
    ModuleNode* m = open[seen++];
    if (m == this) throw ValueError("a module cannot import itself, directly or through others");
    for (const Module& i : m->imports_) {
      bool known = false;
      for (ModuleNode* o : open) known = known || o == i.get();
      if (!known) open.push_back(i.get());
    }
  }
  imports_.push_back(std::move(other));
}

PackedFunc Module::GetFunction(std::string_view name, bool query_imports) const {
  if (!defined()) throw ValueError("a function of a module that is None");
  PackedFunc f = get()->GetFunction(name, data_);
  if (f.defined()) return f;
  if (name == "default" && get()->GetExecutable()) {
    return PackedFunc([self = *this](Args args, RetValue* rv) { *rv = CreateExecutorOn(self, args); });
  }
  if (query_imports) {
    for (const Module& m : get()->imports()) {
      f = m.GetFunction(name, true);
      if (f.defined()) return f;
    }
  }
  return f;
}

Module Module::LoadFromFile(const std::string& path) { return LoadArtifact(path); }

namespace {

Module Given(const Args& args) {
  Module m = args[0].As<Module>();
  if (!m.defined()) throw TypeError("expected Module, got None");
  return m;
}

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Calls a function `number` times, `repeat` times over (more often until a round takes `min_repeat_ms`), and tells the
/// seconds a call took in each round.
Array<double> TimeCalls(const PackedFunc& f, Device device, int number, int repeat, int min_repeat_ms,
                        const Args& args) {
  if (number < 1 || repeat < 1 || min_repeat_ms < 0) throw ValueError("number and repeat must be at least 1");
  DeviceAPI* api = DeviceAPI::Get(device);
  f.CallPacked(args.values, args.num_args);  // not counted: first touch of memory, waking of threads
  Array<double> out;
  int64_t n = number;
  for (int r = 0; r < repeat; ++r) {
    for (;;) {
      api->Sync(device);
      const double begin = Seconds();
      for (int64_t i = 0; i < n; ++i) f.CallPacked(args.values, args.num_args);
      api->Sync(device);
      const double took = Seconds() - begin;
      if (took * 1e3 >= min_repeat_ms) {
        out.push_back(took / static_cast<double>(n));
        break;
      }
      // As often as it should take, and a little more; at most ten times as often, since the first guess may be far
      // off.
      const double factor = took > 0 ? min_repeat_ms / (took * 1e3) * 1.1 + 0.01 : 10;
      n = static_cast<int64_t>(static_cast<double>(n) * (factor < 10 ? factor : 10)) + 1;
    }
  }
  return out;
}

BATON_REGISTER_GLOBAL("runtime.ModuleGetFunction").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = Given(args).GetFunction(args[1].As<std::string>(), args.size() > 2 && args[2].As<bool>());
}));
BATON_REGISTER_GLOBAL("runtime.ModuleGetTypeKey").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = std::string(Given(args)->type_key());
}));
/// How often compiled code of the module has looked a function up: once a place that calls, however often it does.
BATON_REGISTER_GLOBAL("runtime.ModuleNumLookups").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = Given(args)->num_lookups();
}));
BATON_REGISTER_GLOBAL("runtime.ModuleGetSource").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = Given(args)->GetSource(args.size() > 1 ? args[1].As<std::string>() : "");
}));
BATON_REGISTER_GLOBAL("runtime.ModuleSaveToFile").set_body(PackedFunc([](Args args, RetValue*) {
  Given(args)->SaveToFile(args[1].As<std::string>(), args.size() > 2 ? args[2].As<std::string>() : "");
}));
BATON_REGISTER_GLOBAL("runtime.ModuleImport").set_body(PackedFunc([](Args args, RetValue*) {
  Given(args)->Import(args[1].As<Module>());
}));
BATON_REGISTER_GLOBAL("runtime.ModuleImports").set_body(PackedFunc([](Args args, RetValue* rv) {
  const Module m = Given(args);
  *rv = Array<Module>(m->imports().begin(), m->imports().end());
}));
BATON_REGISTER_GLOBAL("runtime.ModuleLoadFromFile").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = Module::LoadFromFile(args[0].As<std::string>());
}));
/// (module or function, name, device, number, repeat, min_repeat_ms): a function that is called with the arguments of
/// the timed one and returns the seconds a call took, one for each repetition.
BATON_REGISTER_GLOBAL("runtime.TimeEvaluator").set_body(PackedFunc([](Args args, RetValue* rv) {
  const std::string name = args[1].As<std::string>();
  PackedFunc f;
  if (args[0].Is<PackedFunc>() && !args[0].is_null()) {
    f = args[0].As<PackedFunc>();
  } else {
    f = Given(args).GetFunction(name, true);
  }
  if (!f.defined()) throw ValueError(Cat("the module has no function `", name, "`"));
  const Device device = args[2].As<Device>();
  const int number = args[3].As<int>(), repeat = args[4].As<int>(), min_repeat_ms = args[5].As<int>();
  *rv = PackedFunc([=](Args a, RetValue* r) { *r = TimeCalls(f, device, number, repeat, min_repeat_ms, a); });
}));

}  // namespace

}  // namespace baton::runtime

using namespace baton::runtime;  // NOLINT: the C functions below

extern "C" {

int BatonModuleLoad(const char* path, BatonObject** out) {
  try {
    if (!path) throw ValueError("BatonModuleLoad: the path is null");
    Module m = Module::LoadFromFile(path);
    *out = reinterpret_cast<BatonObject*>(ObjectAccess::Steal(m));
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}

int BatonModuleGetFunction(BatonObject* module, const char* name, int query_imports, BatonObject** out) {
  try {
    auto* o = reinterpret_cast<Object*>(module);
    if (!name) throw ValueError("BatonModuleGetFunction: the name is null");
    if (!o || !o->IsInstance<ModuleNode>()) {
      throw TypeError("BatonModuleGetFunction: expected runtime.Module, got " + (o ? o->GetTypeKey() : "null"));
    }
    PackedFunc f = Module(ObjectPtr<Object>(o)).GetFunction(name, query_imports != 0);
    *out = reinterpret_cast<BatonObject*>(ObjectAccess::Steal(f));
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}
}
