// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/registry.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

namespace baton::runtime {

namespace {
struct RegistryEntry : Registry {
  /// The address of the function was handed out, so it may be copied or called at any time.
  std::atomic<bool> pinned{false};
};
}  // namespace

struct RegistryTable {
  std::shared_mutex mutex;
  std::map<std::string, std::unique_ptr<RegistryEntry>, std::less<>> entries;
  // Entries that were removed: functions keep the address of their name.
  std::vector<std::unique_ptr<RegistryEntry>> removed;
  /// Retires an entry. Returns the function if it was never handed out; the caller drops it after releasing the lock,
  /// since its destructor may run arbitrary code.
  PackedFunc PutAway(std::unique_ptr<RegistryEntry>* e) {
    PackedFunc old;
    removed.emplace_back();  // the one thing that may fail, before anything has changed
    if (!(*e)->pinned) std::swap(old, (*e)->func_);
    removed.back() = std::move(*e);
    return old;
  }
  /// Returns the function of a name as a new reference; null if there is none.
  static PackedFunc Find(std::string_view name) {
    RegistryTable& t = Get();
    std::shared_lock lock(t.mutex);
    auto it = t.entries.find(name);
    return it == t.entries.end() ? PackedFunc() : it->second->func_;
  }
  static RegistryTable& Get() {
    static auto* table = new RegistryTable;
    return *table;
  }
  static std::unique_ptr<RegistryEntry> Make(const std::string& name, bool can_override) {
    auto r = std::make_unique<RegistryEntry>();
    r->name_ = name;
    r->can_override_ = can_override;
    return r;
  }
  static const PackedFunc* Func(const Registry& r) { return r.func_.defined() ? &r.func_ : nullptr; }
};

Registry& Registry::set_body(PackedFunc f) {
  RegistryTable& t = RegistryTable::Get();
  std::unique_lock lock(t.mutex);
  // A function that is not shared yet takes the name that it is registered under.
  if (f.defined() && !f.get()->name && f.unique()) f.Describe(name_.c_str(), f.get()->signature);
  func_ = std::move(f);
  return *this;
}

Registry& Registry::Register(const std::string& name, bool can_override) {
  RegistryTable& t = RegistryTable::Get();
  PackedFunc old;  // outlives the lock
  std::unique_lock lock(t.mutex);
  auto it = t.entries.find(name);
  if (it != t.entries.end()) {
    if (!can_override && it->second->func_.defined()) {
      throw ValueError("global function `" + name + "` is registered already; ask for overriding to replace it");
    }
    auto made = RegistryTable::Make(name, can_override);
    old = t.PutAway(&it->second);
    it->second = std::move(made);
    return *it->second;
  }
  return *t.entries.emplace(name, RegistryTable::Make(name, can_override)).first->second;
}

bool Registry::Remove(const std::string& name) {
  RegistryTable& t = RegistryTable::Get();
  PackedFunc old;  // outlives the lock
  std::unique_lock lock(t.mutex);
  auto it = t.entries.find(name);
  if (it == t.entries.end()) return false;
  old = t.PutAway(&it->second);
  t.entries.erase(it);
  return true;
}

const PackedFunc* Registry::Get(const std::string& name) {
  RegistryTable& t = RegistryTable::Get();
  std::shared_lock lock(t.mutex);
  auto it = t.entries.find(name);
  if (it == t.entries.end()) return nullptr;
  const PackedFunc* f = RegistryTable::Func(*it->second);
  if (f && !it->second->pinned.load(std::memory_order_relaxed)) it->second->pinned = true;
  return f;
}

std::vector<std::string> Registry::ListNames() {
  RegistryTable& t = RegistryTable::Get();
  std::shared_lock lock(t.mutex);
  std::vector<std::string> names;
  for (const auto& [name, r] : t.entries) {
    if (RegistryTable::Func(*r)) names.push_back(name);
  }
  return names;
}

void Args::ThrowMissingArg(int i, int n) {
  throw TypeError("argument " + std::to_string(i) + " is missing: the call has " + std::to_string(n));
}

PackedFunc PackedFunc::FromPlain(void (*f)(Args, RetValue*)) {
  auto n = make_object<PackedFuncObj>();
  n->self = reinterpret_cast<void*>(f);
  n->call = [](void* self, const BatonValue* args, int num, BatonValue* ret) -> int {
    try {
      Any rv;
      reinterpret_cast<void (*)(Args, RetValue*)>(self)(Args(args, num), &rv);
      *ret = rv.Release();
      return 0;
    } catch (...) {
      return CatchToSlot();
    }
  };
  return PackedFunc(ObjectPtr<Object>(n));
}

PackedFunc PackedFunc::FromNamed(void (*f)(const char*, Args, RetValue*), const char* name, const char* signature) {
  struct Named : PackedFuncObj {
    void (*f)(const char*, Args, RetValue*);
  };
  auto* n = new Named;
  ObjectAccess::Init(n, PackedFuncObj::RuntimeTypeIndex(), [](Object* o) { delete static_cast<Named*>(o); });
  n->f = f;
  n->name = name;
  n->signature = signature;
  n->self = n;
  n->call = [](void* self, const BatonValue* args, int num, BatonValue* ret) -> int {
    auto* n = static_cast<Named*>(self);
    try {
      Any rv;
      n->f(n->name, Args(args, num), &rv);
      *ret = rv.Release();
      return 0;
    } catch (...) {
      return CatchToSlot(n->name);
    }
  };
  return PackedFunc(ObjectPtr<Object>(n));
}

PackedFunc PackedFunc::FromEntry(BatonCFunc entry, const char* name, const char* signature) {
  auto n = make_object<PackedFuncObj>();
  n->call = entry;
  n->self = const_cast<char*>(name);
  n->name = name;
  n->signature = signature;
  return PackedFunc(ObjectPtr<Object>(n));
}

void PackedFunc::ThrowNullCall() { throw ValueError("call of a null PackedFunc"); }

void RethrowArg(const Error& e, int index, const char* name) {
  if (e.kind() != "TypeError") throw e;
  throw TypeError("argument " + std::to_string(index) + " of `" + (*name ? name : "function") + "`: " + e.message());
}

void ThrowArity(const char* name, const char* signature, int want, int got) {
  throw TypeError(std::string("`") + (*name ? name : "function") + "` takes " + std::to_string(want) +
                  (want == 1 ? " argument, got " : " arguments, got ") + std::to_string(got) + ": its signature is " +
                  signature);
}

namespace {
/// Describes a detectable fault of an argument from outside; null if there is none.
const char* ArgumentError(const BatonValue& v) {
  switch (v.type_code) {
    case kBatonObject:
      return v.v_obj ? nullptr : "is an object handle that is null";
    case kBatonStr:
    case kBatonBytes:
    case kBatonTensor:
      return v.v_handle ? nullptr : "points to nothing";
    default:
      return v.type_code >= kBatonNull && v.type_code < kBatonStr ? nullptr : "has a type code that does not exist";
  }
}
struct Callback : PackedFuncObj {
  void (*free_self)(void*) = nullptr;
  void* outer = nullptr;
  ~Callback() {
    if (free_self) free_self(outer);
  }
};
}  // namespace

}  // namespace baton::runtime

using namespace baton::runtime;  // NOLINT: the C functions below

extern "C" {
int BatonFuncGetGlobal(const char* name, BatonObject** out) {
  try {
    if (!name) throw ValueError("BatonFuncGetGlobal: the name is null");
    PackedFunc f = RegistryTable::Find(name);
    *out = reinterpret_cast<BatonObject*>(ObjectAccess::Steal(f));
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}
int BatonFuncRegisterGlobal(const char* name, BatonObject* func, int override_existing) {
  try {
    if (!name) throw ValueError("BatonFuncRegisterGlobal: the name is null");
    auto* f = reinterpret_cast<Object*>(func);
    if (!f || !f->IsInstance<PackedFuncObj>()) {
      throw TypeError(std::string("BatonFuncRegisterGlobal: `") + name + "` is given " +
                      (f ? "a " + f->GetTypeKey() : "null") + ", not a function");
    }
    Registry::Register(name, override_existing != 0).set_body(PackedFunc(ObjectPtr<Object>(f)));
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}
int BatonFuncListGlobalNames(BatonValue* ret) {
  try {
    Array<String> names;
    for (const std::string& n : Registry::ListNames()) names.push_back(n);
    *ret = Any(names).Release();
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}
int BatonFuncCall(BatonObject* func, const BatonValue* args, int num_args, BatonValue* ret) {
  auto* o = reinterpret_cast<Object*>(func);
  if (!o || !o->IsInstance<PackedFuncObj>()) {
    BatonErrorSet("TypeError", "BatonFuncCall: the callee is not a function");
    return -1;
  }
  if (num_args < 0 || (num_args && !args)) {
    BatonErrorSet("ValueError", "BatonFuncCall: there are no arguments where some are counted");
    return -1;
  }
  for (int i = 0; i < num_args; ++i) {
    const char* wrong = ArgumentError(args[i]);
    if (!wrong) continue;
    try {
      throw ValueError("BatonFuncCall: argument " + std::to_string(i) + " " + wrong);
    } catch (...) {
      return CatchToSlot();
    }
  }
  auto* f = static_cast<PackedFuncObj*>(o);
  *ret = BatonValue{kBatonNull, 0, {.v_int64 = 0}};
  return f->call(f->self, args, num_args, ret);
}
int BatonFuncCreate(BatonCFunc call, void* self, void (*free_self)(void*), BatonObject** out) {
  try {
    if (!call) throw ValueError("BatonFuncCreate: the callback is null");
    auto* c = new Callback;
    c->call = call;
    c->self = c->outer = self;
    c->free_self = free_self;
    ObjectAccess::Init(c, PackedFuncObj::RuntimeTypeIndex(), [](Object* o) { delete static_cast<Callback*>(o); });
    ObjectAccess::IncRef(c);
    *out = reinterpret_cast<BatonObject*>(static_cast<Object*>(c));
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}
int BatonStringCreate(const char* data, size_t size, BatonObject** out) {
  try {
    Object* o = NewStringObj(data, size);
    ObjectAccess::IncRef(o);
    *out = reinterpret_cast<BatonObject*>(o);
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}
int BatonStringView(const BatonObject* str, const char** data, size_t* size) {
  auto* o = reinterpret_cast<const Object*>(str);
  if (o && o->IsInstance<BytesObj>()) {
    *data = static_cast<const BytesObj*>(o)->data.data();
    *size = static_cast<const BytesObj*>(o)->data.size();
    return 0;
  }
  if (!o || !o->IsInstance<StringObj>()) {
    BatonErrorSet("TypeError", "BatonStringView: neither a string nor bytes");
    return -1;
  }
  *data = static_cast<const StringObj*>(o)->data;
  *size = static_cast<const StringObj*>(o)->size;
  return 0;
}

int BatonArrayCreate(const BatonValue* items, size_t size, BatonObject** out) {
  try {
    if (size && !items) throw ValueError("BatonArrayCreate: the items are null");
    Array<Any> made;
    for (size_t i = 0; i < size; ++i) {
      if (items[i].type_code == kBatonTensor) {
        throw TypeError("BatonArrayCreate: a borrowed tensor cannot be kept; make it an object first");
      }
      made.push_back(Any::FromRaw(items[i]));
    }
    *out = reinterpret_cast<BatonObject*>(ObjectAccess::Steal(made));
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}
int BatonArrayView(const BatonObject* array, const BatonValue** items, size_t* size) {
  auto* o = reinterpret_cast<const Object*>(array);
  if (!o || !o->IsInstance<ArrayObj>()) {
    BatonErrorSet("TypeError", "BatonArrayView: not an Array");
    return -1;
  }
  const auto& all = static_cast<const ArrayObj*>(o)->items;
  *items = all.empty() ? nullptr : &all[0].raw();
  *size = all.size();
  return 0;
}
}

BATON_REGISTER_GLOBAL("runtime.ListGlobalFuncNames").set_body_typed([] {
  Array<String> names;
  for (const std::string& n : Registry::ListNames()) names.push_back(n);
  return names;
});
