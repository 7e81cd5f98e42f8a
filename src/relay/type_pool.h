// SPDX-License-Identifier: Apache-2.0
// Equal types as one object: a program has a type a node, and few that differ.
#pragma once

#include <baton/ir/type.h>

#include <cstdint>
#include <vector>

namespace baton::relay {

class TypePool {
 public:
  /// The type that was handed in first of all that are equal to `t`. Tensors are equal by their extents, of which those
  /// that are no literals are taken by identity; tuples and functions by the identity of their parts, so that a deep
  /// type costs no more than a flat one, holes in them are allowed, and the parts are to be shared first. Any other
  /// kind of type stays itself.
  Type Share(Type t) {
    if (t.get() != Recent(t)) {
      t = Find(t);
      Recent(t) = t.get();
    }
    return t;
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    Type type;
  };
  const Object*& Recent(const Type& t) { return recent_[(reinterpret_cast<uintptr_t>(t.get()) >> 5) % kRecent]; }
  const Type& Find(const Type& t);
  static bool Hash(const Type& t, uint64_t* hash);
  static bool Same(const Type& a, const Type& b);
  void Grow();
  std::vector<Slot> slots_;  ///< open addressing; a power of two, at most half full
  size_t size_ = 0;
  static constexpr size_t kRecent = 16;
  const Object* recent_[kRecent] = {};  ///< types that were given: most come again
};

}  // namespace baton::relay
