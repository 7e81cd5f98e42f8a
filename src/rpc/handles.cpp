// SPDX-License-Identifier: Apache-2.0
#include "rpc/handles.h"

#include <baton/support/text.h>

#include "rpc/errors.h"

namespace baton::rpc {

uint64_t HandleTable::Add(runtime::ObjectRef object, uint32_t flags) {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    if (slots_.size() >= kMost) Throw(kOutOfMemory, support::Cat("the session holds ", kMost, " objects already"));
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  slots_[slot].object = std::move(object);
  slots_[slot].flags = flags;
  return static_cast<uint64_t>(slots_[slot].generation) << 32 | slot;
}

runtime::ObjectRef HandleTable::Get(uint64_t handle, uint32_t* flags) const {
  std::lock_guard lock(mutex_);
  if (!Valid(handle)) return {};
  const Slot& slot = slots_[static_cast<uint32_t>(handle)];
  if (flags) *flags = slot.flags;
  return slot.object;
}

bool HandleTable::Release(uint64_t handle) {
  runtime::ObjectRef object;  // ends without the lock: its deleter may come back here
  std::lock_guard lock(mutex_);
  if (!Valid(handle)) return false;
  const uint32_t slot = static_cast<uint32_t>(handle);
  std::swap(object, slots_[slot].object);
  // A slot whose generations are used up stays empty for ever.
  if (++slots_[slot].generation != 0) free_.push_back(slot);
  return true;
}

size_t HandleTable::size() const {
  std::lock_guard lock(mutex_);
  return slots_.size() - free_.size();
}

}  // namespace baton::rpc
