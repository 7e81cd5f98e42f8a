// SPDX-License-Identifier: Apache-2.0
// Constants with the same elements: tied weights that a file holds twice.
#pragma once

#include <baton/runtime/ndarray.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace baton::relay {

/// A hash of type, shape and some of the elements: equal arrays have equal ones, however large they are.
uint64_t SampleHash(const NDArray& data);
/// Whether type, shape and all bytes are the same; both dense and on the CPU.
bool SameElements(const NDArray& a, const NDArray& b);

/// Finds the first of equal arrays.
class EqualArrays {
 public:
  /// `value`, or an equal array that was added before.
  const NDArray& FirstOf(const NDArray& value);

 private:
  std::unordered_map<uint64_t, std::vector<NDArray>> by_hash_;
};

}  // namespace baton::relay
