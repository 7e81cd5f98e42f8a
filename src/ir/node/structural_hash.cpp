// SPDX-License-Identifier: Apache-2.0
// The structural hash, consistent with structural equality (structural.cpp): equal values hash alike, and what equality
// tells apart hashes differently but for chance, where a program asks. The compiler's own hashes leave out what is only
// of this process, or changes when types are inferred in place. Attributes hash by their float32 value, because a
// program's own comparison takes those for equal.
#include <baton/ir/module.h>
#include <baton/ir/op.h>
#include <baton/ir/structural.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>
#include <baton/support/hash.h>
#include <baton/support/pages.h>
#include <baton/support/pointer_map.h>
#include <ir/node/structural_plan.h>

#include <algorithm>

namespace baton {
namespace {

using namespace structural;  // NOLINT: of this file and structural.cpp alone
using support::HashCombine;

class Hasher {
 public:
  /// `sharp`: free variables, and objects without structure, hash by their address instead of by name and kind, and
  /// annotations of variables of `let` count, unless inference has confirmed them: a program without them is equal
  /// then.
  Hasher(bool map_free_vars, bool sharp) : map_free_(map_free_vars), sharp_(sharp) {}

  uint64_t Hash(const Object* root) {
    uint64_t result = 0;
    if (Enter(root, &result)) return result;
    while (!frames_.empty()) {
      runtime::PollInterrupt();
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
    uint64_t acc;          ///< of a map: the length of `hashes_` at its opening
    uint32_t next;         ///< child
    uint32_t level : 29;   ///< binders around it
    uint32_t binders : 1;  ///< something within binds
    uint32_t graph : 1;    ///< it is a node of a graph, or one is within
    uint32_t free : 1;     ///< a free variable, whose hash is that of its fields too
  };
  struct Memo {
    uint64_t hash;
    uint32_t level;
    bool any_level, binders, graph;
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

  /// Returns the hash immediately if possible, else pushes a frame.
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
        // Operators hash by name, other objects by their kind.
        const auto* op = o->IsInstance<OpNode>() ? static_cast<const OpNode*>(o) : nullptr;
        *out = op       ? support::HashString(op->name.view(), p.seed)
               : sharp_ ? HashCombine(p.seed, reinterpret_cast<uintptr_t>(o))
                        : p.seed;
        return true;
      }
      case Shape::kModule:
        *out = HashModule(static_cast<const IRModuleNode*>(o));
        return true;
      default:
        break;
    }
    if (p.is_var) {
      if (const uint64_t* h = p.is_id ? Identity(o) : vars_.Find(o)) {
        *out = *h;
        return true;
      }
      return EnterFree(o, p, out);
    }
    const bool graph = p.graph && !(p.tuple && IsNothing(RefAt(o, p.fields[0])));
    if (o->use_count() > 1 && (graph || !p.leaf)) {
      if (const Memo* m = memo_.Find(o); m && (m->any_level || m->level == level_)) {
        if (!frames_.empty()) {
          if (m->binders) frames_.back().binders = true;
          if (m->graph) frames_.back().graph = true;
        }
        *out = m->hash;
        return true;
      }
    }
    frames_.push_back(
        {o, &p, p.shape == Shape::kMap ? hashes_.size() : p.seed, 0, level_, !p.binds.empty(), graph, false});
    if (p.shape == Shape::kMap) orders_.push_back(VisitOrder(static_cast<const MapObj*>(o)));
    // A node of a graph hashes by its place among them too, so that one that is used twice differs from two.
    if (graph) frames_.back().acc = HashCombine(p.seed, graph_count_++);
    for (const Field& f : p.binds) BindField(o, f);
    return false;
  }

  /// A free variable met first. Its fields are compared where free variables are mapped, so they count.
  bool EnterFree(const Object* o, const Plan& p, uint64_t* out) {
    const uint64_t h = HashCombine(p.seed, map_free_ ? HashCombine(7, free_count_++)
                                           : sharp_  ? HashCombine(6, reinterpret_cast<uintptr_t>(o))
                                                     : HashCombine(8, support::HashString(VarName(o))));
    vars_[o] = h;
    *out = h;
    if (!map_free_ || p.fields.empty()) return true;
    frames_.push_back({o, &p, h, 0, level_, false, false, true});
    return false;
  }

  /// The order in which entries are visited, as indices; it does not depend on the order in which they were entered,
  /// because nodes of graphs are counted on the way. Empty: as they come.
  std::vector<uint32_t> VisitOrder(const MapObj* map) {
    if (map->entries.size() < 2) return {};
    std::vector<std::pair<uint64_t, uint32_t>> keys;
    for (const auto& e : map->entries) {
      const Object* k = e.key.object();
      uint64_t h = 0;  // of a variable that is free and mapped: equality takes these in order
      if (!k) {
        h = Scalar(e.key);
      } else if (const Plan& p = PlanOf(k); !p.is_var) {
        h = Hasher(map_free_, sharp_).Hash(k);
      } else if (const uint64_t* known = p.is_id ? Identity(k) : vars_.Find(k)) {
        h = *known;
      } else if (!map_free_) {
        EnterFree(k, p, &h);
      }
      keys.push_back({h, static_cast<uint32_t>(keys.size())});
    }
    std::sort(keys.begin(), keys.end());
    std::vector<uint32_t> order;
    for (const auto& [key, index] : keys) order.push_back(index);
    return order;
  }

  void Add(Frame* f, uint64_t h) {
    if (f->plan->shape == Shape::kMap)
      hashes_.push_back(h);
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
    if (!p.is_var) return;
    vars_[v] = HashCombine(p.seed, HashCombine(9, level_++));
    if (p.has_id) bound_.push_back(v);
  }
  /// The hash of the bound variable that an identity is of; null for another's.
  const uint64_t* Identity(const Object* id) {
    for (; identities_ < bound_.size(); ++identities_) {
      const Object* v = bound_[identities_];
      if (const Object* own = RefAt(v, PlanOf(v).id)) by_id_[own] = v;
    }
    const Object** v = by_id_.Find(id);
    return v ? vars_.Find(*v) : nullptr;
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
    std::vector<std::pair<std::string_view, uint64_t>> entries;
    for (const auto& e : m->functions.defined() ? m->functions->entries : std::vector<MapObj::Entry>()) {
      entries.push_back({NameOf(e.key.object()), Hasher(map_free_, sharp_).Hash(e.value.object())});
    }
    std::sort(entries.begin(), entries.end());
    const size_t n = entries.size();
    for (const auto& e : m->type_definitions.defined() ? m->type_definitions->entries : std::vector<MapObj::Entry>()) {
      entries.push_back({NameOf(e.key.object()), Hasher(map_free_, sharp_).Hash(e.value.object())});
    }
    std::sort(entries.begin() + n, entries.end());
    uint64_t h = HashCombine(17, n);
    for (const auto& [name, x] : entries) h = HashCombine(HashCombine(h, support::HashString(name)), x);
    return HashCombine(h, Hasher(map_free_, sharp_).Hash(m->attrs.get()));
  }

  /// Continues the top frame; true when it is done, with its hash in *out.
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
          const auto& e = entries[orders_.back().empty() ? f.next / 2 : orders_.back()[f.next / 2]];
          const Any& a = f.next % 2 ? e.value : e.key;
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
            // The fields of a bound variable count: the annotation.
            OpenVar(child, f.plan->infers_var && !(sharp_ && IsClaim(child)));
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
        } else if (f.plan->type_data) {
          // The fields of constructors are compared with the type that they make.
          const auto& made = static_cast<const TypeDataNode*>(f.o)->constructors;
          const size_t i = f.next - nb - f.plan->fields.size();
          if (i < made.size()) {
            ++f.next;
            child = made[i]->inputs.get(), have = true;
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

  /// Whether a variable has an annotation that inference has not confirmed.
  static bool IsClaim(const Object* v) {
    if (static_cast<const RelayExprNode*>(v)->checked_type_.defined()) return false;
    const std::vector<Field>& fields = PlanOf(v).fields;
    return std::any_of(fields.begin(), fields.end(), [v](const Field& f) { return RefAt(v, f) != nullptr; });
  }

  /// A frame over the fields of a variable that is being bound. Frames of siblings may wait below it, so each adds
  /// itself to the one below; the order is fixed by the structure, which is all that a hash needs.
  void OpenVar(const Object* v, bool bare = false) {
    const Plan& p = PlanOf(v);
    frames_.push_back({v, &p, HashCombine(p.seed, 5), 0, level_, true, false, false});
    if (bare) frames_.back().next = static_cast<uint32_t>(p.binds.size() + p.fields.size());
  }

  /// Equal for doubles that are one float32, as a program's own comparison takes them.
  static uint64_t NumberBits(double v) {
    const auto near = static_cast<float>(v);
    return DoubleBits(std::isnormal(near) ? static_cast<double>(near) : v);
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
        return NumberBits(*reinterpret_cast<const double*>(p));
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
      for (size_t i = f.acc; i + 1 < hashes_.size(); i += 2) pairs.push_back({hashes_[i], hashes_[i + 1]});
      hashes_.resize(f.acc);
      orders_.pop_back();
      std::sort(pairs.begin(), pairs.end());
      f.acc = f.plan->seed;
      for (const auto& [k, v] : pairs) f.acc = HashCombine(HashCombine(f.acc, k), v);
    }
    *out = f.acc;
    const bool binders = f.binders, graph = f.graph;
    if (f.free) vars_[f.o] = f.acc;  // the same at each use, so that sharing of values around it does not count
    if (!f.plan->is_var) {
      if (!f.plan->keeps_level) level_ = f.level;
      // Nodes of graphs are visited once, wherever they are used.
      if (f.o->use_count() > 1 && (graph || !f.plan->leaf)) {
        memo_[f.o] = {f.acc, f.level, graph || !binders, binders, graph};
      }
    }
    frames_.pop_back();
    if (!frames_.empty()) {
      if (binders) frames_.back().binders = true;
      if (graph) frames_.back().graph = true;
    }
  }

  bool map_free_, sharp_;
  uint64_t free_count_ = 0, graph_count_ = 0;
  uint32_t level_ = 0;
  support::PageStack<Frame> frames_;
  std::vector<uint64_t> hashes_;               ///< hashes of keys and values of the maps that are open
  std::vector<std::vector<uint32_t>> orders_;  ///< of the same maps
  PointerMap<Memo> memo_;
  PointerMap<uint64_t> vars_;
  std::vector<const Object*> bound_;  ///< variables with identities
  size_t identities_ = 0;             ///< how many of them are in `by_id_`
  PointerMap<const Object*> by_id_;
};

}  // namespace

uint64_t StructuralHash(const ObjectRef& a, bool map_free_vars) {
  Require(a.get(), "hash");
  return Hasher(map_free_vars, false).Hash(a.get());
}

}  // namespace baton

namespace {
using namespace baton;  // NOLINT
BATON_REGISTER_GLOBAL("node.StructuralHash").set_body([](runtime::Args args, runtime::RetValue* rv) {
  ObjectRef a =
      args[0].type_code() == kBatonObject || args[0].is_null() ? args[0].As<ObjectRef>() : Array<Any>{Any(args[0])};
  Require(a.get(), "hash");
  // A free variable is equal to itself alone, whatever its name.
  *rv = Any(static_cast<int64_t>(Hasher(args.size() > 1 && args[1].As<bool>(), true).Hash(a.get())));
});
}  // namespace
