// SPDX-License-Identifier: Apache-2.0
#include <baton/support/cells.h>

#include <atomic>

namespace baton::support {
namespace {

// A bit for each 256 KiB of what a process may address. The system gives memory to the few bytes that are written.
constexpr int kAddressBits = sizeof(void*) > 4 ? 47 : 32, kByteBits = 21, kBitBits = 18;
std::atomic<uint8_t> marks[size_t{1} << (kAddressBits - kByteBits)];
bool IsBeyond(uintptr_t at) { return uint64_t{at} >> kAddressBits; }

}  // namespace

void MarkCellPages(void* p, size_t bytes) noexcept {
  auto at = reinterpret_cast<uintptr_t>(p);
  if (IsBeyond(at)) return;  // then it is not a cell page: nothing depends on it
  for (const uintptr_t end = at + bytes; at < end; at += uintptr_t{1} << kBitBits)
    marks[at >> kByteBits].fetch_or(static_cast<uint8_t>(1 << ((at >> kBitBits) & 7)), std::memory_order_relaxed);
}

uint32_t CellBytes(const void* p) noexcept {
  const auto at = reinterpret_cast<uintptr_t>(p);
  if (IsBeyond(at)) return 0;
  if (!(marks[at >> kByteBits].load(std::memory_order_relaxed) >> ((at >> kBitBits) & 7) & 1)) return 0;
  return reinterpret_cast<const CellPage*>(at & ~(kCellPage - 1))->bytes;
}

}  // namespace baton::support
