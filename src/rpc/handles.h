// SPDX-License-Identifier: Apache-2.0
// What a peer may refer to: objects under numbers that mean nothing elsewhere, and nothing after their release.
#pragma once

#include <baton/runtime/object.h>

#include <cstdint>
#include <mutex>
#include <vector>

namespace baton::rpc {

/// A handle is a generation (the upper 32 bits, never 0) and a slot. Safe to use from several threads.
class HandleTable {
 public:
  /// Throws OutOfMemory beyond `kMost` objects.
  uint64_t Add(runtime::ObjectRef object, uint32_t flags = 0);
  /// The object; null for a number that is none, or no more.
  runtime::ObjectRef Get(uint64_t handle, uint32_t* flags = nullptr) const;
  /// False for a number that is none.
  bool Release(uint64_t handle);
  size_t size() const;

  static constexpr size_t kMost = size_t(1) << 20;

 private:
  struct Slot {
    runtime::ObjectRef object;
    uint32_t generation = 1;
    uint32_t flags = 0;
  };
  bool Valid(uint64_t handle) const {
    const uint32_t slot = static_cast<uint32_t>(handle);
    return slot < slots_.size() && slots_[slot].generation == handle >> 32 && slots_[slot].object.defined();
  }
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace baton::rpc
