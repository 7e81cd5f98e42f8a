// SPDX-License-Identifier: Apache-2.0
// Memory that grows where it is: address space is reserved, pages come when they are touched.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace baton::support {

class GrowingMemory {
 public:
  GrowingMemory() = default;
  GrowingMemory(GrowingMemory&& o) noexcept { Swap(&o); }
  GrowingMemory& operator=(GrowingMemory&& o) noexcept {
    Swap(&o);
    return *this;
  }
  ~GrowingMemory() { Release(); }

  uint8_t* data() const { return data_; }
  size_t reserved() const { return reserved_; }

  /// Makes room for `bytes`; what is there stays, and is not copied: pages move at most. `most` is how large it can
  /// become at all, 0 where nothing says: then the room doubles. False where the system has no such room.
  bool Reserve(size_t bytes, size_t most) {
    if (bytes <= reserved_) return true;
    constexpr size_t kPage = 4096, kLeast = size_t{1} << 16;
    size_t room = bytes;
    for (const size_t n : {most, most ? 0 : 2 * reserved_, most ? 0 : kLeast}) room = n > room ? n : room;
    room = (room + kPage - 1) / kPage * kPage;
    void* p = data_ ? mremap(data_, reserved_, room, MREMAP_MAYMOVE)
                    : mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    data_ = static_cast<uint8_t*>(p), reserved_ = room;
    return true;
  }
  void Release() {
    if (data_) munmap(data_, reserved_);
    data_ = nullptr, reserved_ = 0;
  }

 private:
  void Swap(GrowingMemory* o) {
    std::swap(data_, o->data_);
    std::swap(reserved_, o->reserved_);
  }

  uint8_t* data_ = nullptr;
  size_t reserved_ = 0;
};

}  // namespace baton::support
