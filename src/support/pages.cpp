// SPDX-License-Identifier: Apache-2.0
#include <baton/support/pages.h>
#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace baton::support {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kMapped = static_cast<size_t>(-1);  // the sanitizers look for references in malloc's memory alone
#else
constexpr size_t kMapped = 1 << 20;
#endif

void* Checked(void* p) {
  if (!p || p == MAP_FAILED) throw std::bad_alloc();
  return p;
}
void* Map(size_t bytes) {
  void* p = Checked(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  madvise(p, bytes, MADV_HUGEPAGE);
  return p;
}

}  // namespace

void* NewPages(size_t bytes) { return bytes < kMapped ? Checked(calloc(1, bytes)) : Map(bytes); }

void DeletePages(void* p, size_t bytes) noexcept {
  if (bytes < kMapped)
    free(p);
  else
    munmap(p, bytes);
}

void* EnlargePages(void* p, size_t old_bytes, size_t bytes) {
  if (bytes < kMapped) return Checked(realloc(p, bytes));
  if (old_bytes >= kMapped) {
    p = Checked(mremap(p, old_bytes, bytes, MREMAP_MAYMOVE));
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
  }
  void* q = Map(bytes);
  if (old_bytes) __builtin_memcpy(q, p, old_bytes);
  free(p);
  return q;
}

void AdviseLarge(void* p, size_t bytes) noexcept {
  constexpr size_t kLargePage = 2 << 20;
  const auto at = reinterpret_cast<size_t>(p);
  const size_t begin = (at + kLargePage - 1) & ~(kLargePage - 1), end = (at + bytes) & ~(kLargePage - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace baton::support
