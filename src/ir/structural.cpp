// SPDX-License-Identifier: Apache-2.0
// Equality and hash over field tables.
//
// Sharing. A Relay expression is a graph: `%0 = f(%x); (%0, %0)` computes f once, `(f(%x), f(%x))` twice, and with
// references they even differ in value. So expressions that compute something are compared as graphs: the nodes of
// both sides correspond one to one. Types, dimensions, loop expressions, constants and tuple accesses are values, and
// how they are shared in memory does not matter.
//
// Hash of variables. A bound variable hashes by the number of binders around it at its own, which does not depend on
// what was visited before, so that two equal values hash alike however each is shared.
#include <baton/ir/module.h>
#include <baton/ir/op.h>
#include <baton/ir/structural.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/hash.h>
#include <baton/support/pages.h>
#include <baton/support/pointer_map.h>
#include <baton/support/stack.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <unordered_map>

namespace baton {
namespace {

using runtime::ArrayObj;
using runtime::FieldInfo;
using runtime::FieldKind;
using runtime::MapObj;
using runtime::NDArrayObj;
using runtime::StringObj;
using runtime::TypeIndex;
using runtime::TypeInfo;
using support::HashCombine;

enum class Shape : uint8_t { kTable, kString, kArray, kMap, kNDArray, kModule, kIdentity };

struct Field {
  uint32_t offset;
  FieldKind kind;
  const char* name;
};
/// What the algorithms need of a type, read once off its table.
struct Plan {
  Shape shape = Shape::kIdentity;
  bool graph = false;  ///< compared as a node of a graph
  bool is_var = false;
  bool leaf = true;          ///< no fields that are objects
  bool tuple = false;        ///< the unit value is no node of a graph
  bool by_name = false;      ///< as a key of a map: by `name_hint`
  bool keeps_level = false;  ///< a pattern binds for what comes after it
  bool type_data = false;    ///< compares the fields of its constructors, whose variables it binds
  std::vector<Field> binds;
  std::vector<Field> fields;
  uint64_t seed = 0;
};

std::unique_ptr<Plan> MakePlan(uint32_t index) {
  auto p = std::make_unique<Plan>();
  const std::string key = Object::TypeIndex2Key(index);
  p->seed = support::HashString(key);
  switch (index) {
    case TypeIndex::kRuntimeString:
      p->shape = Shape::kString;
      return p;
    case TypeIndex::kRuntimeArray:
      p->shape = Shape::kArray, p->leaf = false;
      return p;
    case TypeIndex::kRuntimeMap:
      p->shape = Shape::kMap, p->leaf = false;
      return p;
    case TypeIndex::kRuntimeNDArray:
      p->shape = Shape::kNDArray;
      return p;
    default:
      break;
  }
  const TypeInfo* info = TypeInfo::Get(index);
  if (!info || info->identity || !info->create || !info->has_equal || !info->has_hash) return p;
  p->shape = index == IRModuleNode::RuntimeTypeIndex() ? Shape::kModule : Shape::kTable;
  p->is_var = info->is_var;
  for (const TypeInfo* i = info; i; i = i->index == i->parent ? nullptr : TypeInfo::Get(i->parent)) {
    if (i->key == "relay.Pattern") p->keeps_level = true;
  }
  p->graph = !info->is_value;
  p->tuple = key == "relay.Tuple";
  p->by_name = key == "GlobalVar" || key == "GlobalTypeVar";
  p->type_data = key == "relay.TypeData";
  for (const FieldInfo& f : info->fields) {
    if (f.flags & runtime::kIgnored) continue;
    // What a use of a constructor means is said by its name and data type; its fields are compared with the type.
    if (key == "relay.Constructor" && std::strcmp(f.name, "inputs") == 0) continue;
    if (f.kind == FieldKind::kObject) p->leaf = false;
    ((f.flags & runtime::kBinds) ? p->binds : p->fields).push_back({f.offset, f.kind, f.name});
  }
  return p;
}

/// Plans by type index, made when first asked for; they live as long as the process. Reading one takes no lock.
constexpr uint32_t kMaxTypes = 1 << 16;
std::atomic<const Plan*> plans[kMaxTypes];

[[gnu::noinline]] const Plan& NewPlan(uint32_t index) {
  std::unique_ptr<Plan> made = MakePlan(index);
  if (index >= kMaxTypes || (made->shape == Shape::kIdentity && !TypeInfo::Get(index))) {
    // Its table may come later: nothing is kept.
    static thread_local std::unique_ptr<Plan> last;
    last = std::move(made);
    return *last;
  }
  const Plan* there = nullptr;
  if (!plans[index].compare_exchange_strong(there, made.get(), std::memory_order_acq_rel)) return *there;
  return *made.release();
}

inline const Plan& PlanOf(const Object* o) {
  const uint32_t index = o->type_index();
  const Plan* p = index < kMaxTypes ? plans[index].load(std::memory_order_acquire) : nullptr;
  return p ? *p : NewPlan(index);
}

const char* At(const Object* o, const Field& f) { return reinterpret_cast<const char*>(o) + f.offset; }
const Object* RefAt(const Object* o, const Field& f) {
  return f.kind == FieldKind::kObject ? reinterpret_cast<const ObjectRef*>(At(o, f))->get() : nullptr;
}

uint64_t DoubleBits(double v) {
  if (std::isnan(v)) return 0x7ff8000000000000u;
  uint64_t bits;
  std::memcpy(&bits, &v, 8);
  return bits;
}

/// Null, and containers that hold nothing, are one value.
bool IsNothing(const Object* o) {
  if (!o) return true;
  switch (o->type_index()) {
    case TypeIndex::kRuntimeArray:
      return static_cast<const ArrayObj*>(o)->items.empty();
    case TypeIndex::kRuntimeMap:
      return static_cast<const MapObj*>(o)->entries.empty();
    default:
      return o->IsInstance<DictAttrsNode>() && static_cast<const DictAttrsNode*>(o)->dict.empty();
  }
}

bool IsUnitTuple(const Plan& p, const Object* o) { return p.tuple && IsNothing(RefAt(o, p.fields[0])); }

std::string_view NameOf(const Object* o) {
  return o->IsInstance<GlobalVarNode>() ? static_cast<const GlobalVarNode*>(o)->name_hint.view()
                                        : static_cast<const GlobalTypeVarNode*>(o)->name_hint.view();
}

/// Name of a variable; its own, or its identity's.
std::string_view VarName(const Object* o) {
  const TypeInfo* info = TypeInfo::Get(o->type_index());
  const FieldInfo* f = info ? info->Find("name_hint") : nullptr;
  if (!f && info) {
    if (const FieldInfo* id = info->Find("vid"); id && id->Ref(o).defined()) return VarName(id->Ref(o).get());
  }
  const auto* s = f ? f->Ref(o).as<StringObj>() : nullptr;
  return s ? std::string_view(s->data, s->size) : "";
}

std::string Brief(const Object* o) {
  if (!o) return "nothing";
  if (const Plan& p = PlanOf(o); p.shape == Shape::kString) {
    const auto* s = static_cast<const StringObj*>(o);
    return "\"" + std::string(s->data, std::min<size_t>(s->size, 60)) + "\"";
  } else if (p.shape == Shape::kArray) {
    return "an array of " + std::to_string(static_cast<const ArrayObj*>(o)->items.size());
  } else if (p.shape == Shape::kMap) {
    return "a map of " + std::to_string(static_cast<const MapObj*>(o)->entries.size());
  } else if (p.shape == Shape::kNDArray) {
    const auto& t = static_cast<const NDArrayObj*>(o)->dl_tensor;
    std::string s = "an NDArray " + runtime::DataType2String(t.dtype) + "[";
    for (int i = 0; i < t.ndim; ++i) s += (i ? ", " : "") + std::to_string(t.shape[i]);
    return s + "]";
  } else if (o->IsInstance<GlobalVarNode>()) {
    return "@" + std::string(NameOf(o));
  } else if (p.is_var) {
    return (o->IsInstance<RelayExprNode>() ? "%" : "") + std::string(VarName(o));
  } else if (o->IsInstance<TypeNode>() || o->IsInstance<PrimExprNode>() || o->IsInstance<OpNode>()) {
    std::string s = AsText(GetRef<ObjectRef>(o), false);
    size_t end = std::min<size_t>(s.find('\n'), 60);
    return s.substr(0, end);
  }
  // A larger thing is named by its kind, and by what it calls.
  std::string s = o->GetTypeKey();
  if (const TypeInfo* info = TypeInfo::Get(o->type_index())) {
    if (const FieldInfo* f = info->Find("op"); f && f->kind == FieldKind::kObject) {
      if (const auto* op = f->Ref(o).as<OpNode>()) s += " of " + op->name.str();
    }
  }
  return s;
}

std::string ScalarText(const char* p, FieldKind kind) {
  char buf[40];
  switch (kind) {
    case FieldKind::kBool:
      return *reinterpret_cast<const bool*>(p) ? "True" : "False";
    case FieldKind::kInt32:
      return std::to_string(*reinterpret_cast<const int32_t*>(p));
    case FieldKind::kInt64:
      return std::to_string(*reinterpret_cast<const int64_t*>(p));
    case FieldKind::kUInt64:
      return std::to_string(*reinterpret_cast<const uint64_t*>(p));
    case FieldKind::kDouble:
      snprintf(buf, sizeof buf, "%.17g", *reinterpret_cast<const double*>(p));
      return buf;
    case FieldKind::kDataType:
      return runtime::DataType2String(*reinterpret_cast<const DataType*>(p));
    case FieldKind::kStdString:
      return "\"" + *reinterpret_cast<const std::string*>(p) + "\"";
    default:
      return "";
  }
}

std::string AnyText(const Any& a) {
  switch (a.type_code()) {
    case kBatonNull:
      return "None";
    case kBatonObject:
      return Brief(a.object());
    case kBatonFloat:
      return ScalarText(reinterpret_cast<const char*>(&a.raw().v_float64), FieldKind::kDouble);
    case kBatonInt:
      return std::to_string(a.raw().v_int64);
    case kBatonBool:
      return a.raw().v_int64 ? "True" : "False";
    case kBatonDType:
      return runtime::DataType2String(a.raw().v_dtype);
    default:
      return runtime::ValueKindName(a.raw());
  }
}

bool IsInteger(const Any& a) { return a.type_code() == kBatonInt || a.type_code() == kBatonBool; }

/// Values that are no objects. Integers and bools compare as integers.
bool SameScalar(const Any& a, const Any& b) {
  if (IsInteger(a) && IsInteger(b)) return a.raw().v_int64 == b.raw().v_int64;
  if (a.type_code() != b.type_code()) return false;
  if (a.type_code() == kBatonFloat) return DoubleBits(a.raw().v_float64) == DoubleBits(b.raw().v_float64);
  return a.Same(b);
}

bool SameArray(const NDArrayObj* a, const NDArrayObj* b) {
  if (a == b) return true;
  const DLTensor &x = a->dl_tensor, &y = b->dl_tensor;
  if (!(DataType(x.dtype) == DataType(y.dtype)) || x.ndim != y.ndim || !std::equal(x.shape, x.shape + x.ndim, y.shape))
    return false;
  NDArray p = GetRef<NDArray>(a).Contiguous(), q = GetRef<NDArray>(b).Contiguous();
  return p.nbytes() == q.nbytes() && (p.nbytes() == 0 || std::memcmp(p.data(), q.data(), p.nbytes()) == 0);
}

class Comparer {
 public:
  Comparer(bool map_free_vars, bool record) : map_free_(map_free_vars), record_(record) {}

  bool Equal(const Object* a, const Object* b) {
    Push(a, b, -1);
    while (!stack_.empty()) {
      Item it = stack_.back();
      stack_.pop_back();
      if (!Step(it)) return false;
    }
    return true;
  }
  const std::string& where() const { return where_; }

 private:
  enum Mode : uint8_t { kWhole, kFieldsOnly, kAnew };
  struct Item {
    const Object* a;
    const Object* b;
    int32_t path;
    Mode mode;
  };
  struct PathStep {
    int32_t parent;
    std::string text;
  };

  void Push(const Object* a, const Object* b, int32_t path, Mode mode = kWhole) {
    stack_.push_back({a, b, path, mode});
  }
  int32_t Path(int32_t parent, const char* field) {
    if (!record_) return -1;
    paths_.push_back({parent, std::string(".") + field});
    return static_cast<int32_t>(paths_.size()) - 1;
  }
  int32_t PathAt(int32_t parent, const std::string& key) {
    if (!record_) return -1;
    paths_.push_back({parent, "[" + key + "]"});
    return static_cast<int32_t>(paths_.size()) - 1;
  }
  bool Fail(int32_t path, const std::string& text) {
    if (!record_) return false;
    std::vector<const std::string*> steps;
    for (int32_t i = path; i >= 0; i = paths_[i].parent) steps.push_back(&paths_[i].text);
    // Of a very deep place the two ends tell enough.
    for (size_t i = steps.size(); i-- > 0;) {
      if (steps.size() > 60 && i == steps.size() - 30) {
        where_ += "...";
        i = 30;
      }
      where_ += *steps[i];
    }
    if (where_.empty()) where_ = "the whole";
    where_ += ": " + text;
    return false;
  }
  bool Differ(const Item& it) {
    if (!record_) return false;
    std::string x = Brief(it.a), y = Brief(it.b);
    return Fail(it.path, x == y ? x + " against another of the same name" : x + " against " + y);
  }

  bool Step(const Item& it) {
    const Object *a = it.a, *b = it.b;
    if (it.mode == kAnew) {
      fwd_.Clear(), rev_.Clear(), var_.Clear(), var_rev_.Clear(), ids_a_.Clear(), ids_b_.Clear(), parent_.clear();
      renamed_ = false;
    }
    if (a == b && !renamed_ && !map_free_) return true;
    if (!a || !b || a->type_index() != b->type_index()) return (IsNothing(a) && IsNothing(b)) || Differ(it);
    const Plan& p = PlanOf(a);
    switch (p.shape) {
      case Shape::kString: {
        const auto *x = static_cast<const StringObj*>(a), *y = static_cast<const StringObj*>(b);
        return (x->size == y->size && std::memcmp(x->data, y->data, x->size) == 0) || Differ(it);
      }
      case Shape::kNDArray:
        if (SameArray(static_cast<const NDArrayObj*>(a), static_cast<const NDArrayObj*>(b))) return true;
        return Brief(a) == Brief(b) ? Fail(it.path, Brief(a) + " against one of other content") : Differ(it);
      case Shape::kIdentity:
        return a == b || Differ(it);
      case Shape::kModule:
        return Modules(it);
      default:
        break;
    }
    if (it.mode != kFieldsOnly) {
      if (p.is_var) {
        if (int r = Variables(a, b)) return r > 0 || Differ(it);
        // A free one met first, to be mapped: its fields are compared like those of a bound one.
      } else if (p.graph && !IsUnitTuple(p, a)) {
        if (a->use_count() > 1 || b->use_count() > 1) {
          bool new_a = false, new_b = false;
          const Object*& x = fwd_.Insert(a, &new_a);
          const Object*& y = rev_.Insert(b, &new_b);
          if (!new_a || !new_b) {
            // What is noted of the other side no longer matters then: the comparison ends.
            if (!new_a && !new_b && x == b && y == a) return true;
            return Fail(it.path, Brief(a) + (!new_a ? ": used twice on the left, two values on the right"
                                                    : ": two values on the left, used twice on the right"));
          }
          x = b;
          y = a;
        }
      } else if (!p.leaf && a->use_count() > 1 && b->use_count() > 1 && !Unite(a, b)) {
        return true;
      }
    }
    if (p.shape == Shape::kArray) return Arrays(it);
    if (p.shape == Shape::kMap) return Maps(it);
    return Table(it, p);
  }

  bool Table(const Item& it, const Plan& p) {
    const size_t base = stack_.size();
    for (const Field& f : p.binds) {
      if (!BindField(it, f)) return false;
    }
    for (const Field& f : p.fields) {
      const char *x = At(it.a, f), *y = At(it.b, f);
      bool same = true;
      switch (f.kind) {
        case FieldKind::kBool:
          same = *x == *y;
          break;
        case FieldKind::kInt32:
          same = std::memcmp(x, y, 4) == 0;
          break;
        case FieldKind::kInt64:
        case FieldKind::kUInt64:
        case FieldKind::kHandle:
          same = std::memcmp(x, y, 8) == 0;
          break;
        case FieldKind::kDouble:
          same = DoubleBits(*reinterpret_cast<const double*>(x)) == DoubleBits(*reinterpret_cast<const double*>(y));
          break;
        case FieldKind::kDataType:
          same = *reinterpret_cast<const DataType*>(x) == *reinterpret_cast<const DataType*>(y);
          break;
        case FieldKind::kStdString:
          same = *reinterpret_cast<const std::string*>(x) == *reinterpret_cast<const std::string*>(y);
          break;
        case FieldKind::kObject: {
          const Object *r = RefAt(it.a, f), *s = RefAt(it.b, f);
          if (r != s || renamed_ || map_free_) Push(r, s, Path(it.path, f.name));
          break;
        }
      }
      if (!same) return Fail(Path(it.path, f.name), ScalarText(x, f.kind) + " against " + ScalarText(y, f.kind));
    }
    if (p.type_data) {
      const auto &x = static_cast<const TypeDataNode*>(it.a)->constructors,
                 &y = static_cast<const TypeDataNode*>(it.b)->constructors;
      for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
        Push(x[i]->inputs.get(), y[i]->inputs.get(), Path(it.path, "constructors"));
      }
    }
    std::reverse(stack_.begin() + base, stack_.end());
    return true;
  }

  bool BindField(const Item& it, const Field& f) {
    const Object *x = RefAt(it.a, f), *y = RefAt(it.b, f);
    int32_t path = Path(it.path, f.name);
    if (IsNothing(x) && IsNothing(y)) return true;
    if (!x || !y || x->type_index() != y->type_index()) return Fail(path, Brief(x) + " against " + Brief(y));
    if (x->type_index() != TypeIndex::kRuntimeArray) return BindOne(x, y, path);
    const auto &v = static_cast<const ArrayObj*>(x)->items, &w = static_cast<const ArrayObj*>(y)->items;
    if (v.size() != w.size()) return Fail(path, std::to_string(v.size()) + " against " + std::to_string(w.size()));
    for (size_t i = 0; i < v.size(); ++i) {
      const Object *p = v[i].object(), *q = w[i].object();
      int32_t at = record_ ? PathAt(path, std::to_string(i)) : -1;
      if (!p || !q || p->type_index() != q->type_index()) return Fail(at, Brief(p) + " against " + Brief(q));
      if (!BindOne(p, q, at)) return false;
    }
    return true;
  }
  bool BindOne(const Object* x, const Object* y, int32_t path) {
    if (!PlanOf(x).is_var) {
      Push(x, y, path);
      return true;
    }
    var_[x] = y;
    var_rev_[y] = x;
    if (x != y) renamed_ = true;
    if (x != y) Push(x, y, path, kFieldsOnly);
    return true;
  }

  /// 1 equal, -1 different, 0: now mapped, compare the fields.
  int Variables(const Object* a, const Object* b) {
    const Object** x = var_.Find(a);
    const Object** y = var_rev_.Find(b);
    if (x || y) return x && y && *x == b && *y == a ? 1 : -1;
    if (a == b && !map_free_) return 1;
    if (!map_free_) return -1;
    var_[a] = b;
    var_rev_[b] = a;
    if (a == b) return 1;
    renamed_ = true;
    return 0;
  }

  bool Arrays(const Item& it) {
    const auto &x = static_cast<const ArrayObj*>(it.a)->items, &y = static_cast<const ArrayObj*>(it.b)->items;
    if (x.size() != y.size())
      return Fail(it.path, std::to_string(x.size()) + " elements against " + std::to_string(y.size()));
    const size_t base = stack_.size();
    for (size_t i = 0; i < x.size(); ++i) {
      const bool p = x[i].type_code() == kBatonObject || x[i].is_null(),
                 q = y[i].type_code() == kBatonObject || y[i].is_null();
      if (p && q) {
        // `add(x, x)`: what is equal once is equal at once again.
        if (i > 0 && x[i].object() == x[i - 1].object() && y[i].object() == y[i - 1].object() && x[i - 1].object() &&
            y[i - 1].object()) {
          continue;
        }
        if (x[i].object() != y[i].object() || renamed_ || map_free_) {
          Push(x[i].object(), y[i].object(), record_ ? PathAt(it.path, std::to_string(i)) : -1);
        }
      } else if (p || q || !SameScalar(x[i], y[i])) {
        return Fail(record_ ? PathAt(it.path, std::to_string(i)) : -1, AnyText(x[i]) + " against " + AnyText(y[i]));
      }
    }
    std::reverse(stack_.begin() + base, stack_.end());
    return true;
  }

  bool Value(const Any& x, const Any& y, int32_t path, Mode mode = kWhole) {
    if ((x.object() || x.is_null()) && (y.object() || y.is_null())) {
      Push(x.object(), y.object(), path, mode);
      return true;
    }
    return SameScalar(x, y) || Fail(path, AnyText(x) + " against " + AnyText(y));
  }

  static std::string KeyText(const Any& k) { return AnyText(k); }

  bool Maps(const Item& it, Mode mode = kWhole) {
    const auto *x = static_cast<const MapObj*>(it.a), *y = static_cast<const MapObj*>(it.b);
    const size_t base = stack_.size();
    std::unordered_map<std::string_view, const MapObj::Entry*> names;
    std::unordered_multimap<uint64_t, const MapObj::Entry*> hashes;
    for (size_t i = 0; i < x->entries.size(); ++i) {
      const auto& e = x->entries[i];
      const MapObj::Entry* other = nullptr;
      const Object* k = e.key.object();
      if (!k || k->type_index() == TypeIndex::kRuntimeString) {
        other = y->Find(e.key);
      } else if (const Plan& p = PlanOf(k); p.by_name) {
        if (names.empty()) {
          for (const auto& o : y->entries) {
            if (o.key.object() && PlanOf(o.key.object()).by_name) names.emplace(NameOf(o.key.object()), &o);
          }
        }
        auto found = names.find(NameOf(k));
        if (found != names.end()) other = found->second;
      } else if (p.is_var) {
        const Object** to = var_.Find(k);
        if (to) {
          other = y->Find(Any(GetRef<ObjectRef>(*to)));
        } else if (map_free_ && i < y->entries.size()) {
          other = &y->entries[i];
          if (other->key.object()) Push(k, other->key.object(), PathAt(it.path, "key"));
        } else {
          other = y->Find(e.key);
        }
      } else {
        if (hashes.empty()) {
          for (const auto& o : y->entries) {
            if (o.key.object()) hashes.emplace(StructuralHash(GetRef<ObjectRef>(o.key.object()), map_free_), &o);
          }
        }
        auto [from, to] = hashes.equal_range(StructuralHash(GetRef<ObjectRef>(k), map_free_));
        for (; from != to && !other; ++from) {
          // Keys with variables of the surroundings inside are no keys that any node has.
          if (StructuralEqual(GetRef<ObjectRef>(k), GetRef<ObjectRef>(from->second->key.object()), map_free_))
            other = from->second;
        }
      }
      int32_t path = record_ ? PathAt(it.path, KeyText(e.key)) : -1;
      if (!other) return Fail(path, "missing on the right");
      if (!Value(e.value, other->value, path, mode)) return false;
    }
    if (x->entries.size() != y->entries.size()) {
      for (const auto& o : y->entries) {
        const Object* k = o.key.object();
        bool there = false;
        for (const auto& e : x->entries) {
          there = there || (k && PlanOf(k).by_name && e.key.object() && PlanOf(e.key.object()).by_name
                                ? NameOf(k) == NameOf(e.key.object())
                                : e.key.Same(o.key));
        }
        if (!there) return Fail(record_ ? PathAt(it.path, KeyText(o.key)) : -1, "missing on the left");
      }
      return Fail(it.path, std::to_string(x->entries.size()) + " entries against " + std::to_string(y->entries.size()));
    }
    std::reverse(stack_.begin() + base, stack_.end());
    return true;
  }

  bool Modules(const Item& it) {
    const auto *x = static_cast<const IRModuleNode*>(it.a), *y = static_cast<const IRModuleNode*>(it.b);
    static const MapObj empty;
    auto maps = [&](const Object* p, const Object* q, const char* name) {
      Item m{p ? p : &empty, q ? q : &empty, Path(it.path, name), kWhole};
      // Functions are units of their own: one object under two names equals two copies.
      return Maps(m, kAnew);
    };
    Push(x->attrs.get(), y->attrs.get(), Path(it.path, "attrs"));
    // Items of later maps lie above on the stack, so the last pushed is compared first.
    return maps(x->functions.get(), y->functions.get(), "functions") &&
           maps(x->type_definitions.get(), y->type_definitions.get(), "type_definitions");
  }

  /// False if a and b were found or assumed equal before; else notes that they are. A failure ends it all anyway.
  bool Unite(const Object* a, const Object* b) {
    int32_t x = Root(Id(&ids_a_, a)), y = Root(Id(&ids_b_, b));
    if (x == y) return false;
    parent_[x] = y;
    return true;
  }
  int32_t Id(PointerMap<int32_t>* ids, const Object* o) {
    bool fresh = false;
    int32_t& id = ids->Insert(o, &fresh);
    if (fresh) {
      id = static_cast<int32_t>(parent_.size());
      parent_.push_back(id);
    }
    return id;
  }
  int32_t Root(int32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  bool map_free_, record_;
  bool renamed_ = false;  ///< some variable corresponds to another, so one object need not equal itself
  support::PageStack<Item> stack_;
  std::vector<PathStep> paths_;
  std::string where_;
  PointerMap<const Object*> fwd_, rev_, var_, var_rev_;
  PointerMap<int32_t> ids_a_, ids_b_;
  std::vector<int32_t> parent_;
};

class Hasher {
 public:
  explicit Hasher(bool map_free_vars) : map_free_(map_free_vars) {}

  uint64_t Hash(const Object* root) {
    uint64_t result = 0;
    if (Enter(root, &result)) return result;
    while (!frames_.empty()) {
      if (Advance(&result)) {
        if (frames_.empty()) break;
        Add(&frames_.back(), result);
      }
    }
    return result;
  }

 private:
  struct Frame {
    const Object* o;
    const Plan* plan;
    uint64_t acc;          ///< of a map: the length of `parts_` at its opening
    uint32_t next;         ///< child
    uint32_t level : 31;   ///< binders around it
    uint32_t binders : 1;  ///< something within binds
  };
  struct Memo {
    uint64_t hash;
    uint32_t level;
    bool any_level;
  };
  static constexpr uint64_t kNothing = 0x6e6f7468696e67u;

  static uint64_t Scalar(const Any& a) {
    switch (a.type_code()) {
      case kBatonNull:
        return kNothing;
      case kBatonInt:
      case kBatonBool:
        return HashCombine(1, static_cast<uint64_t>(a.raw().v_int64));
      case kBatonFloat:
        return HashCombine(2, DoubleBits(a.raw().v_float64));
      default:
        return HashCombine(3, a.Hash());
    }
  }

  /// The hash at once if that is possible, else opens a frame.
  bool Enter(const Object* o, uint64_t* out) {
    if (IsNothing(o)) {
      *out = kNothing;
      return true;
    }
    const Plan& p = PlanOf(o);
    switch (p.shape) {
      case Shape::kString: {
        const auto* s = static_cast<const StringObj*>(o);
        *out = support::HashBytes(s->data, s->size, 11);
        return true;
      }
      case Shape::kNDArray:
        *out = HashArray(static_cast<const NDArrayObj*>(o));
        return true;
      case Shape::kIdentity: {
        // By name where there is one: operators. Others hash by their kind alone.
        const auto* op = o->IsInstance<OpNode>() ? static_cast<const OpNode*>(o) : nullptr;
        *out = op ? support::HashString(op->name.view(), p.seed) : p.seed;
        return true;
      }
      case Shape::kModule:
        *out = HashModule(static_cast<const IRModuleNode*>(o));
        return true;
      default:
        break;
    }
    if (p.is_var) {
      if (const uint64_t* h = vars_.Find(o)) {
        *out = *h;
        return true;
      }
      uint64_t h = HashCombine(
          p.seed, map_free_ ? HashCombine(7, free_count_++) : HashCombine(8, support::HashString(VarName(o))));
      vars_[o] = h;
      *out = h;
      return true;
    }
    if (o->use_count() > 1 && !p.leaf) {
      if (const Memo* m = memo_.Find(o); m && (p.graph || m->any_level || m->level == level_)) {
        if (!m->any_level && !frames_.empty()) frames_.back().binders = true;
        *out = m->hash;
        return true;
      }
    }
    frames_.push_back({o, &p, p.shape == Shape::kMap ? parts_.size() : p.seed, 0, level_, !p.binds.empty()});
    for (const Field& f : p.binds) BindField(o, f);
    return false;
  }

  void Add(Frame* f, uint64_t h) {
    if (f->plan->shape == Shape::kMap)
      parts_.push_back(h);
    else
      f->acc = HashCombine(f->acc, h);
  }

  void BindField(const Object* o, const Field& f) {
    const Object* x = RefAt(o, f);
    if (!x) return;
    if (x->type_index() == TypeIndex::kRuntimeArray) {
      for (const Any& a : static_cast<const ArrayObj*>(x)->items) {
        if (a.object()) BindOne(a.object());
      }
    } else {
      BindOne(x);
    }
  }
  void BindOne(const Object* v) {
    const Plan& p = PlanOf(v);
    if (p.is_var) vars_[v] = HashCombine(p.seed, HashCombine(9, level_++));
  }

  static uint64_t HashArray(const NDArrayObj* o) {
    const DLTensor& t = o->dl_tensor;
    uint64_t h = HashCombine(13, (uint64_t(t.dtype.code) << 32) | (uint64_t(t.dtype.bits) << 16) | t.dtype.lanes);
    for (int i = 0; i < t.ndim; ++i) h = HashCombine(h, static_cast<uint64_t>(t.shape[i]));
    NDArray dense = GetRef<NDArray>(o).Contiguous();
    return HashCombine(h, support::HashBytes(dense.data(), dense.nbytes()));
  }

  uint64_t HashModule(const IRModuleNode* m) {
    // By name, each function by itself, so that the hash of one does not depend on the others.
    std::vector<std::pair<std::string_view, uint64_t>> parts;
    for (const auto& e : m->functions.defined() ? m->functions->entries : std::vector<MapObj::Entry>()) {
      parts.push_back({NameOf(e.key.object()), Hasher(map_free_).Hash(e.value.object())});
    }
    std::sort(parts.begin(), parts.end());
    const size_t n = parts.size();
    for (const auto& e : m->type_definitions.defined() ? m->type_definitions->entries : std::vector<MapObj::Entry>()) {
      parts.push_back({NameOf(e.key.object()), Hasher(map_free_).Hash(e.value.object())});
    }
    std::sort(parts.begin() + n, parts.end());
    uint64_t h = HashCombine(17, n);
    for (const auto& [name, x] : parts) h = HashCombine(HashCombine(h, support::HashString(name)), x);
    return HashCombine(h, Hasher(map_free_).Hash(m->attrs.get()));
  }

  /// Goes on with the top frame: true when it is done, with its hash in *out.
  bool Advance(uint64_t* out) {
    for (;;) {
      Frame& f = frames_.back();
      const Object* child = nullptr;
      bool have = false;
      if (f.plan->shape == Shape::kArray) {
        const auto& items = static_cast<const ArrayObj*>(f.o)->items;
        if (f.next < items.size()) {
          const Any& a = items[f.next++];
          if (a.type_code() != kBatonObject) {
            Add(&f, Scalar(a));
            continue;
          }
          child = a.object(), have = true;
        }
      } else if (f.plan->shape == Shape::kMap) {
        const auto& entries = static_cast<const MapObj*>(f.o)->entries;
        if (f.next < 2 * entries.size()) {
          const Any& a = f.next % 2 ? entries[f.next / 2].value : entries[f.next / 2].key;
          ++f.next;
          if (a.type_code() != kBatonObject) {
            Add(&f, Scalar(a));
            continue;
          }
          child = a.object(), have = true;
        }
      } else {
        const size_t nb = f.plan->binds.size();
        if (f.next < nb + f.plan->fields.size()) {
          const bool bind = f.next < nb;
          const Field& field = bind ? f.plan->binds[f.next] : f.plan->fields[f.next - nb];
          ++f.next;
          if (field.kind != FieldKind::kObject) {
            Add(&f, Plain(At(f.o, field), field.kind));
            continue;
          }
          child = RefAt(f.o, field), have = true;
          if (bind && child && PlanOf(child).is_var) {
            // Of a bound variable its own fields count: the annotation.
            OpenVar(child);
            return false;
          }
          if (bind && child && child->type_index() == TypeIndex::kRuntimeArray) {
            const auto& items = static_cast<const ArrayObj*>(child)->items;
            Add(&f, items.empty() ? kNothing : items.size());
            for (size_t i = items.size(); i-- > 0;) {
              if (items[i].object() && PlanOf(items[i].object()).is_var) OpenVar(items[i].object());
            }
            if (!items.empty()) return false;
            continue;
          }
        }
      }
      if (!have) {
        Close(out);
        return true;
      }
      uint64_t h;
      if (!Enter(child, &h)) return false;
      Add(&frames_.back(), h);
    }
  }

  /// A frame over the fields of a variable that is being bound. Frames of siblings may wait below it, so each adds
  /// itself to the one below; the order is fixed by the structure, which is all that a hash needs.
  void OpenVar(const Object* v) {
    const Plan& p = PlanOf(v);
    frames_.push_back({v, &p, HashCombine(p.seed, 5), 0, level_, true});
  }

  static uint64_t Plain(const char* p, FieldKind kind) {
    switch (kind) {
      case FieldKind::kBool:
        return *p ? 1 : 0;
      case FieldKind::kInt32:
        return static_cast<uint64_t>(static_cast<int64_t>(*reinterpret_cast<const int32_t*>(p)));
      case FieldKind::kInt64:
      case FieldKind::kUInt64:
        return *reinterpret_cast<const uint64_t*>(p);
      case FieldKind::kDouble:
        return DoubleBits(*reinterpret_cast<const double*>(p));
      case FieldKind::kDataType: {
        const auto& t = *reinterpret_cast<const DataType*>(p);
        return (uint64_t(t.code()) << 32) | (uint64_t(t.bits()) << 16) | static_cast<uint64_t>(t.lanes());
      }
      case FieldKind::kStdString:
        return support::HashString(*reinterpret_cast<const std::string*>(p), 11);
      default:
        return 0;
    }
  }

  void Close(uint64_t* out) {
    Frame& f = frames_.back();
    if (f.plan->shape == Shape::kMap) {
      // The order of a map is not part of its value.
      std::vector<std::pair<uint64_t, uint64_t>> pairs;
      for (size_t i = f.acc; i + 1 < parts_.size(); i += 2) pairs.push_back({parts_[i], parts_[i + 1]});
      parts_.resize(f.acc);
      std::sort(pairs.begin(), pairs.end());
      f.acc = f.plan->seed;
      for (const auto& [k, v] : pairs) f.acc = HashCombine(HashCombine(f.acc, k), v);
    }
    *out = f.acc;
    const bool binders = f.binders;
    if (!f.plan->is_var) {
      if (!f.plan->keeps_level) level_ = f.level;
      if (f.o->use_count() > 1 && !f.plan->leaf) memo_[f.o] = {f.acc, f.level, !binders};
    }
    frames_.pop_back();
    if (binders && !frames_.empty()) frames_.back().binders = true;
  }

  bool map_free_;
  uint64_t free_count_ = 0;
  uint32_t level_ = 0;
  support::PageStack<Frame> frames_;
  std::vector<uint64_t> parts_;  ///< hashes of keys and values of the maps that are open
  PointerMap<Memo> memo_;
  PointerMap<uint64_t> vars_;
};

}  // namespace

/// Within other values an object that has no structure of its own counts by identity; asked for itself it is an error.
static void Require(const Object* o, const char* what) {
  if (!o || PlanOf(o).shape != Shape::kIdentity) return;
  const TypeInfo* info = TypeInfo::Get(o->type_index());
  if (info && info->identity) return;
  throw runtime::TypeError("objects of type `" + o->GetTypeKey() + "` have no structural " + what);
}

bool StructuralEqual(const ObjectRef& a, const ObjectRef& b, bool map_free_vars, std::string* where) {
  if (a.same_as(b) && !map_free_vars) return true;
  Require(a.get(), "equality"), Require(b.get(), "equality");
  if (Comparer(map_free_vars, false).Equal(a.get(), b.get())) return true;
  if (where) {
    Comparer c(map_free_vars, true);
    c.Equal(a.get(), b.get());
    *where = c.where();
  }
  return false;
}

uint64_t StructuralHash(const ObjectRef& a, bool map_free_vars) {
  Require(a.get(), "hash");
  return Hasher(map_free_vars).Hash(a.get());
}

}  // namespace baton

namespace {
using namespace baton;  // NOLINT
BATON_REGISTER_GLOBAL("node.StructuralEqual").set_body([](runtime::Args args, runtime::RetValue* rv) {
  auto value = [&](int i) {
    return args[i].type_code() == kBatonObject || args[i].is_null() ? args[i].As<ObjectRef>()
                                                                    : Array<Any>{Any(args[i])};
  };
  ObjectRef a = value(0), b = value(1);
  bool map_free = args.size() > 2 && args[2].As<bool>(), want = args.size() > 3 && args[3].As<bool>();
  std::string where;
  bool same = StructuralEqual(a, b, map_free, want ? &where : nullptr);
  if (!same && want) throw runtime::ValueError("not structurally equal at " + where);
  *rv = Any(same);
});
BATON_REGISTER_GLOBAL("node.StructuralHash").set_body([](runtime::Args args, runtime::RetValue* rv) {
  ObjectRef a =
      args[0].type_code() == kBatonObject || args[0].is_null() ? args[0].As<ObjectRef>() : Array<Any>{Any(args[0])};
  *rv = Any(static_cast<int64_t>(StructuralHash(a, args.size() > 1 && args[1].As<bool>())));
});
/// Where two values first differ, or "" if they are equal.
BATON_REGISTER_GLOBAL("node.StructuralDifference").set_body_typed([](ObjectRef a, ObjectRef b, bool map_free_vars) {
  std::string where;
  return StructuralEqual(a, b, map_free_vars, &where) ? std::string() : where;
});
}  // namespace
