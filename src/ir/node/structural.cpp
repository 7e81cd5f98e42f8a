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
#include <baton/ir/structural.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>
#include <baton/support/pages.h>
#include <baton/support/pointer_map.h>
#include <ir/node/structural_plan.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace baton {
namespace {

using namespace structural;  // NOLINT: of this file and structural_hash.cpp alone

bool IsUnitTuple(const Plan& p, const Object* o) { return p.tuple && IsNothing(RefAt(o, p.fields[0])); }

bool IsInteger(const Any& a) { return a.type_code() == kBatonInt || a.type_code() == kBatonBool; }

/// Values other than objects. Integers and bools compare as integers.
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
  /// `near`: numbers that are one in float32 are one.
  Comparer(bool map_free_vars, bool record, bool near) : map_free_(map_free_vars), record_(record), near_(near) {}

  bool Equal(const Object* a, const Object* b) {
    Push(a, b, -1);
    while (!stack_.empty()) {
      runtime::PollInterrupt();
      Item it = stack_.back();
      stack_.pop_back();
      if (!Step(it)) return false;
    }
    return true;
  }
  const std::string& where() const { return where_; }

 private:
  enum Mode : uint8_t { kWhole, kFieldsOnly, kTypedVar, kAnew };
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
    // For a very long path, the two ends suffice.
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
      bound_.clear(), by_id_.Clear(), by_id_rev_.Clear();
      identities_ = 0;
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
    if (it.mode != kFieldsOnly && it.mode != kTypedVar) {
      if (p.is_var) {
        if (int r = Variables(a, b)) return r > 0 || Differ(it);
        // A free one met first, to be mapped: its fields are compared like those of a bound one.
      } else if (p.graph && !IsUnitTuple(p, a)) {
        if (a->use_count() > 1 || b->use_count() > 1) {
          bool new_a = false, new_b = false;
          const Object*& x = fwd_.Insert(a, &new_a);
          const Object*& y = rev_.Insert(b, &new_b);
          if (!new_a || !new_b) {
            // The records of the other side no longer matter: the comparison ends.
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
      if (!BindField(it, f, p.infers_var ? kTypedVar : kFieldsOnly)) return false;
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
          same = SameNumber(*reinterpret_cast<const double*>(x), *reinterpret_cast<const double*>(y));
          break;
        case FieldKind::kDataType:
          same = *reinterpret_cast<const DataType*>(x) == *reinterpret_cast<const DataType*>(y);
          break;
        case FieldKind::kStdString:
          same = *reinterpret_cast<const std::string*>(x) == *reinterpret_cast<const std::string*>(y);
          break;
        case FieldKind::kObject: {
          const Object *r = RefAt(it.a, f), *s = RefAt(it.b, f);
          if (it.mode == kTypedVar && !r != !s) {
            (r ? s : r) = static_cast<const RelayExprNode*>(r ? it.b : it.a)->checked_type_.get();
          }
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

  bool BindField(const Item& it, const Field& f, Mode mode) {
    const Object *x = RefAt(it.a, f), *y = RefAt(it.b, f);
    int32_t path = Path(it.path, f.name);
    if (IsNothing(x) && IsNothing(y)) return true;
    if (!x || !y || x->type_index() != y->type_index()) return Fail(path, Brief(x) + " against " + Brief(y));
    if (x->type_index() != TypeIndex::kRuntimeArray) return BindOne(x, y, path, mode);
    const auto &v = static_cast<const ArrayObj*>(x)->items, &w = static_cast<const ArrayObj*>(y)->items;
    if (v.size() != w.size()) return Fail(path, std::to_string(v.size()) + " against " + std::to_string(w.size()));
    for (size_t i = 0; i < v.size(); ++i) {
      const Object *p = v[i].object(), *q = w[i].object();
      int32_t at = record_ ? PathAt(path, std::to_string(i)) : -1;
      if (!p || !q || p->type_index() != q->type_index()) return Fail(at, Brief(p) + " against " + Brief(q));
      if (!BindOne(p, q, at, mode)) return false;
    }
    return true;
  }
  bool BindOne(const Object* x, const Object* y, int32_t path, Mode mode) {
    if (!PlanOf(x).is_var) {
      Push(x, y, path);
      return true;
    }
    var_[x] = y;
    var_rev_[y] = x;
    if (PlanOf(x).has_id) bound_.emplace_back(x, y);
    if (x != y) renamed_ = true;
    if (x != y) Push(x, y, path, mode);
    return true;
  }

  /// The identity that corresponds to one of a bound variable; null for another's.
  const Object* Identity(const Object* id, bool reverse = false) {
    for (; identities_ < bound_.size(); ++identities_) {
      const auto& [x, y] = bound_[identities_];
      const Object *p = RefAt(x, PlanOf(x).id), *q = RefAt(y, PlanOf(y).id);
      if (p) by_id_[p] = q;
      if (q) by_id_rev_[q] = p;
    }
    const Object** found = (reverse ? by_id_rev_ : by_id_).Find(id);
    return found ? *found : nullptr;
  }

  /// 1 equal, -1 different, 0: now mapped, compare the fields.
  int Variables(const Object* a, const Object* b) {
    if (PlanOf(a).is_id) {
      const Object *x = Identity(a), *y = Identity(b, true);
      if (x || y) return x == b && y == a ? 1 : -1;
    }
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
        // `add(x, x)`: the second comparison of the same pair is immediate.
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
        const Object** bound = var_.Find(k);
        const Object* to = bound ? *bound : p.is_id ? Identity(k) : nullptr;
        if (to) {
          other = y->Find(Any(GetRef<ObjectRef>(to)));
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
          // Keys with variables of the surroundings inside are keys of no node.
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
      // Functions are separate units: one object under two names equals two copies.
      return Maps(m, kAnew);
    };
    Push(x->attrs.get(), y->attrs.get(), Path(it.path, "attrs"));
    // Items of later maps lie above on the stack, so the last pushed is compared first.
    return maps(x->functions.get(), y->functions.get(), "functions") &&
           maps(x->type_definitions.get(), y->type_definitions.get(), "type_definitions");
  }

  /// False if a and b were found or assumed equal before; else records the assumption. A difference ends the whole
  /// comparison, so assumptions need no undo.
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

  bool SameNumber(double x, double y) const {
    if (DoubleBits(x) == DoubleBits(y)) return true;
    const auto a = static_cast<float>(x), b = static_cast<float>(y);
    return near_ && a == b && std::isnormal(a);
  }

  bool map_free_, record_, near_;
  bool renamed_ = false;  ///< some variable corresponds to another, so one object need not equal itself
  support::PageStack<Item> stack_;
  std::vector<PathStep> paths_;
  std::string where_;
  PointerMap<const Object*> fwd_, rev_, var_, var_rev_;
  std::vector<std::pair<const Object*, const Object*>> bound_;  ///< variables with identities, left and right
  size_t identities_ = 0;                                       ///< how many of them are in the two maps
  PointerMap<const Object*> by_id_, by_id_rev_;
  PointerMap<int32_t> ids_a_, ids_b_;
  std::vector<int32_t> parent_;
};

bool Compare(const ObjectRef& a, const ObjectRef& b, bool map_free_vars, bool near, std::string* where) {
  if (a.same_as(b) && !map_free_vars) return true;
  Require(a.get(), "equality"), Require(b.get(), "equality");
  if (Comparer(map_free_vars, false, near).Equal(a.get(), b.get())) return true;
  if (where) {
    Comparer c(map_free_vars, true, near);
    c.Equal(a.get(), b.get());
    *where = c.where();
  }
  return false;
}

}  // namespace

bool StructuralEqual(const ObjectRef& a, const ObjectRef& b, bool map_free_vars, std::string* where) {
  return Compare(a, b, map_free_vars, false, where);
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
  // A program's own comparison: an attribute that was a float32 on the way is the number that it was made of.
  bool same = Compare(a, b, map_free, true, want ? &where : nullptr);
  if (!same && want) throw runtime::ValueError("not structurally equal at " + where);
  *rv = Any(same);
});
/// The path of the first difference of two values, or "" if they are equal.
BATON_REGISTER_GLOBAL("node.StructuralDifference").set_body_typed([](ObjectRef a, ObjectRef b, bool map_free_vars) {
  std::string where;
  return StructuralEqual(a, b, map_free_vars, &where) ? std::string() : where;
});
}  // namespace
