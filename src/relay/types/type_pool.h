// SPDX-License-Identifier: Apache-2.0
// Hash-consing of types: every node of a program has a type, and few of them differ.
#pragma once

#include <baton/ir/type.h>
#include <baton/support/pointer_map.h>
#include <relay/types/type_children.h>

#include <cstdint>
#include <vector>

namespace baton::relay {

inline bool HasTypeChildren(const Object* t) {
  return t->IsInstance<TupleTypeNode>() || t->IsInstance<FuncTypeNode>() || t->IsInstance<RelayRefTypeNode>() ||
         t->IsInstance<TypeCallNode>();
}

/// Counts of inference on a thread so far. A caller that infers for its own check sets the counts back.
struct InferenceWork {
  int64_t types = 0;        ///< looked at by inference and its solver, at any depth of other types
  int64_t expressions = 0;  ///< visited
  static InferenceWork& OfThread();
};

class TypePool {
 public:
  TypePool() = default;
  TypePool(const TypePool&) = delete;
  ~TypePool();
  /// The type that was handed in first of all that are equal to `t`. Tensors are equal by their extents, of which those
  /// that are not literals are taken by identity; tuples and functions by the identity of their parts, so that a deep
  /// type costs no more than a flat one, type variables in them are allowed, and the parts are to be shared first. Any
  /// other kind of type stays itself.
  Type Share(Type t) {
    if (t.get() != Recent(t)) {
      t = Find(t);
      Recent(t) = t.get();
    }
    return t;
  }
  /// Whether `t` has children and no type variables, bound or unbound. Like Equal, it looks at each object once while
  /// the pool lives, so all the types of nested functions together, each a part of the next, cost what the outermost
  /// does.
  bool Plain(const Type& t) {
    if (!t.defined()) return false;
    if (t.get() == recent_plain_) return true;  // mostly
    if (!HasTypeChildren(t.get()) || !Look(t).one.defined()) return false;
    recent_plain_ = t.get();
    return true;
  }
  /// StructuralEqual, for types without type variables.
  bool Equal(const Type& a, const Type& b);
  /// Counts a type that a user of this pool has visited.
  void CountStep() { ++steps_; }

 private:
  struct Slot {
    uint64_t hash = 0;
    Type type;
  };
  /// Open addressing; a power of two, at most half full.
  struct Table {
    std::vector<Slot> slots;
    size_t size = 0;
    /// The one of the table that has this hash and for which `match(const Type&)` holds, else `t`, which it has then.
    template <class Match>
    const Type& Find(uint64_t hash, const Type& t, Match match);
    void Grow();
  };
  const Object*& Recent(const Type& t) { return recent_[(reinterpret_cast<uintptr_t>(t.get()) >> 5) % kRecent]; }
  const Type& Find(const Type& t);
  static bool Hash(const Type& t, uint64_t* hash);
  static bool Same(const Type& a, const Type& b);
  /// Cached data of a type that has children.
  struct Known {
    Type type;           ///< itself: its address is not to be another's
    Type one;            ///< the same object for equal types, up to names of type parameters; null with type variables
    bool binds = false;  ///< type parameters, somewhere in it
  };
  const Known& Look(const Type& t);
  /// `one` of a type of which at least the parts are known.
  Type One(const Type& t);
  int64_t steps_ = 0;
  Table shared_, ones_;
  PointerMap<Known> known_;
  const Object* recent_plain_ = nullptr;
  static constexpr size_t kRecent = 16;
  const Object* recent_[kRecent] = {};  ///< types that were given: most come again
};

}  // namespace baton::relay
