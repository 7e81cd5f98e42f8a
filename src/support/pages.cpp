// SPDX-License-Identifier: Apache-2.0
#include <baton/support/pages.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
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

/// Mappings that were given back and wait for the next table: passes make and drop the same tables again and again, and
/// the system takes longer to hand out an empty page than it takes to fill one. The system may take their memory when
/// it is short of it.
class Kept {
 public:
  static Kept& Get() {
    static auto* k = new Kept;  // outlives every thread
    return *k;
  }
  /// `bytes` with any content, or null. A lock that is taken, be it for ever by a thread that fork left behind, is no
  /// reason to wait.
  void* Take(size_t bytes) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return nullptr;
    Run* best = nullptr;
    for (Run& r : runs_) {
      if (r.bytes >= bytes && (!best || r.bytes < best->bytes)) best = &r;
    }
    if (!best) return nullptr;
    char* p = best->at;
    best->at += bytes;
    best->bytes -= bytes;
    total_ -= bytes;
    return p;
  }
  /// False if it is not wanted.
  bool Put(void* p, size_t bytes) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || bytes > kMax - total_) return false;
    char* at = static_cast<char*>(p);
    total_ += bytes;
    Run *grown = nullptr, *free = nullptr;
    for (Run& r : runs_) {
      if (!r.bytes) {
        free = &r;
      } else if (!grown && (r.at + r.bytes == at || at + bytes == r.at)) {
        if (at + bytes == r.at) r.at = at;
        r.bytes += bytes;
        grown = &r;
      }
    }
    if (!grown && !free) {
      total_ -= bytes;
      return false;
    }
    if (!grown) {
      *free = {at, bytes};
    } else {
      for (Run& r : runs_) {  // it may have closed a gap
        if (&r == grown || !r.bytes) continue;
        if (grown->at + grown->bytes != r.at && r.at + r.bytes != grown->at) continue;
        if (r.at < grown->at) grown->at = r.at;
        grown->bytes += r.bytes;
        r.bytes = 0;
      }
    }
    madvise(p, bytes, MADV_FREE);
    return true;
  }

 private:
  struct Run {
    char* at = nullptr;
    size_t bytes = 0;
  };
  static constexpr size_t kMax = 256 << 20;
  std::mutex mutex_;
  Run runs_[32];
  size_t total_ = 0;
};

size_t Whole(size_t bytes) {
  constexpr size_t kSystemPage = 4096;
  return (bytes + kSystemPage - 1) & ~(kSystemPage - 1);
}
void* Map(size_t bytes) {
  void* p = Checked(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  madvise(p, bytes, MADV_HUGEPAGE);
  return p;
}
void Unmap(void* p, size_t bytes) {
  if (!Kept::Get().Put(p, Whole(bytes))) munmap(p, Whole(bytes));
}

}  // namespace

void* NewPages(size_t bytes) {
  if (bytes < kMapped) return Checked(calloc(1, bytes));
  if (bytes > PTRDIFF_MAX) throw std::bad_alloc();
  if (void* p = Kept::Get().Take(Whole(bytes))) {
    __builtin_memset(p, 0, bytes);
    return p;
  }
  return Map(Whole(bytes));
}

void DeletePages(void* p, size_t bytes) noexcept {
  if (bytes < kMapped)
    free(p);
  else
    Unmap(p, bytes);
}

void* EnlargePages(void* p, size_t old_bytes, size_t bytes) {
  if (bytes < kMapped) return Checked(realloc(p, bytes));
  void* q = Kept::Get().Take(Whole(bytes));
  if (!q && old_bytes >= kMapped) {
    // Fails where the system sees several mappings, as in what was put together here.
    q = mremap(p, Whole(old_bytes), Whole(bytes), MREMAP_MAYMOVE);
    if (q != MAP_FAILED) {
      madvise(q, bytes, MADV_HUGEPAGE);
      return q;
    }
    q = nullptr;
  }
  if (!q) q = Map(Whole(bytes));
  if (old_bytes) __builtin_memcpy(q, p, old_bytes);
  DeletePages(p, old_bytes);
  return q;
}

void AdviseLarge(void* p, size_t bytes) noexcept {
  constexpr size_t kLargePage = 2 << 20;
  const auto at = reinterpret_cast<size_t>(p);
  const size_t begin = (at + kLargePage - 1) & ~(kLargePage - 1), end = (at + bytes) & ~(kLargePage - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace baton::support
