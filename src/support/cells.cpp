// SPDX-License-Identifier: Apache-2.0
#include <baton/support/cells.h>
#include <sys/mman.h>

#include <atomic>
#include <new>

namespace baton::support {
namespace {

// A bit for each 256 KiB of what a process may address. The system gives memory to the few bytes that are written.
constexpr int kAddressBits = 47, kByteBits = 21, kBitBits = 18;
std::atomic<std::atomic<uint8_t>*> marks{nullptr};

std::atomic<uint8_t>* NewMarks() {
  constexpr size_t kBytes = size_t{1} << (kAddressBits - kByteBits);
  void* p = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  auto* mine = static_cast<std::atomic<uint8_t>*>(p);
  std::atomic<uint8_t>* first = nullptr;
  if (marks.compare_exchange_strong(first, mine)) return mine;
  munmap(p, kBytes);
  return first;
}

}  // namespace

void MarkCellPages(void* p, size_t bytes) {
  auto at = reinterpret_cast<uintptr_t>(p);
  if (at >> kAddressBits) return;  // then it is no cell page: nothing depends on it
  std::atomic<uint8_t>* m = marks.load(std::memory_order_acquire);
  if (!m) m = NewMarks();
  for (const uintptr_t end = at + bytes; at < end; at += uintptr_t{1} << kBitBits)
    m[at >> kByteBits].fetch_or(static_cast<uint8_t>(1 << ((at >> kBitBits) & 7)), std::memory_order_relaxed);
}

uint32_t CellBytes(const void* p) noexcept {
  const auto at = reinterpret_cast<uintptr_t>(p);
  const std::atomic<uint8_t>* m = marks.load(std::memory_order_acquire);
  if (!m || at >> kAddressBits) return 0;
  if (!(m[at >> kByteBits].load(std::memory_order_relaxed) >> ((at >> kBitBits) & 7) & 1)) return 0;
  return reinterpret_cast<const CellPage*>(at & ~(kCellPage - 1))->bytes;
}

}  // namespace baton::support
