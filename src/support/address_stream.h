// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace baton::support {

/// Places that are asked for one after the other, by a walk that does not know where it will go: the lines of memory
/// that it will ask for, as far as that can be told, are brought into the cache. A guess that is wrong costs next to
/// nothing.
class AddressStream {
 public:
  /// Where the next but one will be, if the step is a large one.
  const void* At(const void* p) {
    constexpr intptr_t kLine = 64, kNear = 1 << 16, kFar = 4096;
    const auto at = reinterpret_cast<intptr_t>(p), step = at - last_;
    const bool again = step == maybe_;  // a step that is seen twice in a row is believed
    last_ = at;
    maybe_ = step;
    if (again && (step < -kFar || step > kFar)) step_ = step;
    if (step_ && (again || step < -kNear || step > kNear)) {
      __builtin_prefetch(reinterpret_cast<const void*>(at + step_));
      __builtin_prefetch(reinterpret_cast<const void*>(at + 2 * step_));
      return reinterpret_cast<const void*>(at + 2 * step_);
    }
    // Several ways through one stretch of memory, to and fro a little, are one way on the whole.
    if (at - mean_ > kNear || mean_ - at > kNear) mean_ = at;
    mean_ += (at - mean_) >> 8;
    const intptr_t sign = at < mean_ ? -1 : 1, here = sign * at;
    if (front_ < here || front_ > here + kNear) front_ = here;
    for (int i = 0; i < 16 && front_ < here + kFar; ++i) {
      front_ += kLine;
      __builtin_prefetch(reinterpret_cast<const void*>(sign * front_));
    }
    return nullptr;
  }

 private:
  intptr_t last_ = 0, step_ = 0, maybe_ = 0;
  intptr_t mean_ = 0;   ///< of the last places: which side of it says which way it goes
  intptr_t front_ = 0;  ///< up to here, lines have been asked for; counted down, if it goes down
};

}  // namespace baton::support
