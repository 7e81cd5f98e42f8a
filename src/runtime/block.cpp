// SPDX-License-Identifier: Apache-2.0
// Pages of 64 KiB, each cut into blocks of one size and owned by one heap; a heap belongs to one thread at a time. The
// owner takes and gives blocks without locks; another thread hangs the blocks that it frees onto the page's list of
// returns, which the owner collects when it looks for room. Programs are graphs of millions of small nodes that are
// made and dropped together: a general allocator spent a quarter of all time of passes on merging their blocks.
//
// The heap of a thread that ended goes to the next thread that needs one. Pages that are empty serve any size; the
// memory of those beyond kKeptPages, and beyond as many as are in use, is the system's to take when it is short of
// some. Until then it is there: what one pass dropped is what the next one makes, and to fetch and clear an empty page
// costs the system more than a pass spends on filling one (a third of the gradient of a million calls).
#include <baton/runtime/block.h>
#include <baton/runtime/block_watch.h>
#include <baton/support/cells.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizers know malloc alone.
namespace baton::runtime {
void* AllocBlock(size_t bytes) {
  void* p = malloc(bytes ? bytes : 1);
  if (!p) throw std::bad_alloc();
  return p;
}
void FreeBlock(void* block, size_t) noexcept { free(block); }
void WatchBlocks(void (*)(int)) noexcept {}
}  // namespace baton::runtime
#else

namespace baton::runtime {
namespace {

constexpr size_t kPageBytes = support::kCellPage;
constexpr size_t kChunkBytes = 2 << 20;
constexpr size_t kFirstChunk = 256 << 10;  // of a thread that makes few objects
constexpr size_t kMaxBlock = 256;
constexpr size_t kClasses = kMaxBlock / 16 + 1;
constexpr size_t kKeptPages = 1024;  // 64 MiB a heap, whatever is in use
constexpr int kScan = 8;             // pages looked through for returns before a new one is taken

struct FreeCell {
  FreeCell* next;
};
struct Heap;

struct Page : support::CellPage {  // cells are blocks
  uint32_t used;
  FreeCell* free;  // owner's
  char* fresh;     // behind the last block that was ever taken
  char* end;
  Heap* heap;
  bool listed;                                  // among the pages with room
  alignas(64) std::atomic<FreeCell*> returned;  // by other threads
  Page *next, *prev;                            // pages of its size, in a ring
  Page *next_room, *prev_room;                  // pages with room, in a list
};
constexpr size_t kHeader = support::kCellPageHead;
static_assert(sizeof(Page) <= kHeader);

struct Heap {
  Page* current[kClasses] = {};  // blocks are taken here
  Page* ring[kClasses] = {};     // all pages of the size
  Page* room[kClasses] = {};     // those that the owner gave blocks back to
  Page* empty = nullptr;         // with their memory
  Page* bare = nullptr;          // empty, without
  size_t empties = 0;            // those with their memory
  size_t in_use = 0;
  char* chunk = nullptr;
  char* chunk_end = nullptr;
  bool first = true;
  Heap* next_idle = nullptr;
};

std::mutex& Mutex() {
  static auto* m = new std::mutex;  // outlives every thread
  return *m;
}
Heap* idle_heaps = nullptr;

/// The thread's part of the allocator. Read at each call: the address is known at load time, no call is made for it.
struct ThreadHeap {
  Heap* heap;
  bool ended;          // the thread's variables are destroyed
  void (*watch)(int);  // of a test; then the thread keeps no heap
};
constinit thread_local ThreadHeap tls __attribute__((tls_model("initial-exec"))) = {};

void TakeHeap() {
  static const int forks = pthread_atfork([] { Mutex().lock(); }, [] { Mutex().unlock(); }, [] { Mutex().unlock(); });
  (void)forks;
  std::lock_guard<std::mutex> lock(Mutex());
  if (idle_heaps) {
    tls.heap = idle_heaps;
    idle_heaps = tls.heap->next_idle;
  } else {
    tls.heap = new Heap;
  }
}
void HandOn() {
  std::lock_guard<std::mutex> lock(Mutex());
  if (!tls.heap) return;
  tls.heap->next_idle = idle_heaps;
  idle_heaps = tls.heap;
  tls.heap = nullptr;
}
/// Hands the thread's heap on when the thread ends.
struct Lease {
  ~Lease() {
    HandOn();
    tls.ended = true;
  }
};

Page* PageOf(void* p) { return reinterpret_cast<Page*>(reinterpret_cast<uintptr_t>(p) & ~(kPageBytes - 1)); }

/// Blocks that other threads gave back become the owner's.
bool Collect(Page* page) {
  if (!page->returned.load(std::memory_order_relaxed)) return false;
  FreeCell* b = page->returned.exchange(nullptr, std::memory_order_acquire);
  while (b) {
    FreeCell* next = b->next;
    b->next = page->free;
    page->free = b;
    --page->used;
    b = next;
  }
  return true;
}

Page* TakeEmpty(Heap* heap) {
  Page* page = heap->empty;
  if (!page) return nullptr;
  heap->empty = page->next;
  --heap->empties;
  return page;
}

Page* NewPage(Heap* heap, size_t c) {
  Page* page = TakeEmpty(heap);
  if (page) {
  } else if (heap->bare) {
    page = heap->bare;
    heap->bare = page->next;
  } else {
    if (heap->chunk == heap->chunk_end) {
      // Twice as much, to cut an aligned piece out; the rest goes back.
      const size_t n = heap->first ? kFirstChunk : kChunkBytes;
      void* m = mmap(nullptr, 2 * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (m == MAP_FAILED) throw std::bad_alloc();
      const auto begin = reinterpret_cast<uintptr_t>(m), at = (begin + n - 1) & ~(n - 1);
      if (at != begin) munmap(m, at - begin);
      if (at != begin + n) munmap(reinterpret_cast<void*>(at + n), begin + n - at);
      support::MarkCellPages(reinterpret_cast<void*>(at), n);
      heap->chunk = reinterpret_cast<char*>(at);
      heap->chunk_end = heap->chunk + n;
      // A heap that fills its first chunk will fill more: fewer and larger pages of the system's.
      if (!heap->first) madvise(heap->chunk, n, MADV_HUGEPAGE);
      heap->first = false;
    }
    page = reinterpret_cast<Page*>(heap->chunk);
    heap->chunk += kPageBytes;
  }
  ++heap->in_use;
  page->free = nullptr;
  page->used = 0;
  page->bytes = static_cast<uint32_t>(c * 16);
  page->fresh = reinterpret_cast<char*>(page) + kHeader;
  page->end = page->fresh + (kPageBytes - kHeader) / (c * 16) * (c * 16);
  page->listed = false;
  page->heap = heap;
  page->returned.store(nullptr, std::memory_order_relaxed);
  if (Page* r = heap->ring[c]) {
    page->next = r;
    page->prev = r->prev;
    r->prev->next = page;
    r->prev = page;
  } else {
    page->next = page->prev = page;
    heap->ring[c] = page;
  }
  return page;
}

void List(Heap* heap, Page* page, size_t c) {
  page->listed = true;
  page->prev_room = nullptr;
  page->next_room = heap->room[c];
  if (page->next_room) page->next_room->prev_room = page;
  heap->room[c] = page;
}
void Unlist(Heap* heap, Page* page, size_t c) {
  page->listed = false;
  if (page->next_room) page->next_room->prev_room = page->prev_room;
  (page->prev_room ? page->prev_room->next_room : heap->room[c]) = page->next_room;
}

/// No block of `page` is in use: it may serve another size.
void Retire(Heap* heap, Page* page) {
  const size_t c = page->bytes / 16;
  if (page->listed) Unlist(heap, page, c);
  if (page->next == page) {
    heap->ring[c] = nullptr;
  } else {
    page->prev->next = page->next;
    page->next->prev = page->prev;
    if (heap->ring[c] == page) heap->ring[c] = page->next;
  }
  page->bytes = 0;
  page->next = heap->empty;
  heap->empty = page;
  ++heap->empties;
  --heap->in_use;
  // Two for one: when all that was in use is dropped, what was kept for its sake goes too.
  for (int i = 0; i < 2 && heap->empties > kKeptPages && heap->empties > heap->in_use; ++i) {
    constexpr size_t kSystemPage = 4096;
    Page* gone = TakeEmpty(heap);
    gone->next = heap->bare;
    heap->bare = gone;
    madvise(reinterpret_cast<char*>(gone) + kSystemPage, kPageBytes - kSystemPage, MADV_FREE);
  }
}

Page* FindRoom(Heap* heap, size_t c) {
  if (Page* page = heap->room[c]) {
    Unlist(heap, page, c);
    return page;
  }
  for (int i = 0; i < kScan && heap->ring[c]; ++i) {
    Page* page = heap->ring[c];
    heap->ring[c] = page->next;
    if (Collect(page)) return page;  // it was full, so it is not listed
  }
  return NewPage(heap, c);
}

void* Take(Page* page) {
  if (FreeCell* b = page->free) {
    page->free = b->next;
    ++page->used;
    return b;
  }
  if (page->fresh != page->end) {
    void* b = page->fresh;
    page->fresh += page->bytes;
    ++page->used;
    return b;
  }
  return nullptr;
}

__attribute__((noinline)) void* TakeSlow(size_t c) {
  if (!tls.heap) {
    if (tls.watch) tls.watch(1);
    TakeHeap();
    if (!tls.ended) {
      static thread_local Lease lease;
      (void)&lease;
    }
  }
  Heap* heap = tls.heap;
  void* b = nullptr;
  for (;;) {
    if (Page* page = heap->current[c]) {
      b = Take(page);
      if (b) break;
      if (Collect(page)) continue;
    }
    heap->current[c] = FindRoom(heap, c);
  }
  // Destructors of the thread's variables still run, or a test watches blocks: use a heap for this one block.
  if (tls.ended || tls.watch) HandOn();
  return b;
}

__attribute__((noinline)) void GiveSlow(Page* page, FreeCell* b) {
  if (Heap* heap = tls.heap; heap == page->heap && heap) {
    const size_t c = page->bytes / 16;
    if (heap->current[c] == page) return;
    if (page->used == 0) {
      Retire(heap, page);
    } else if (!page->listed) {
      List(heap, page, c);
    }
    return;
  }
  if (tls.watch) tls.watch(-1);
  FreeCell* head = page->returned.load(std::memory_order_relaxed);
  do {
    b->next = head;
  } while (!page->returned.compare_exchange_weak(head, b, std::memory_order_release, std::memory_order_relaxed));
}

}  // namespace

void* AllocBlock(size_t bytes) {
  if (bytes > kMaxBlock) {
    void* p = malloc(bytes);
    if (!p) throw std::bad_alloc();
    return p;
  }
  const size_t c = bytes ? (bytes + 15) / 16 : 1;
  if (Heap* heap = tls.heap) {
    if (Page* page = heap->current[c]) {
      if (void* b = Take(page)) return b;
    }
  }
  return TakeSlow(c);
}

void FreeBlock(void* block, size_t bytes) noexcept {
  if (bytes > kMaxBlock) return free(block);
  if (!block) return;
  Page* page = PageOf(block);
  auto* b = static_cast<FreeCell*>(block);
  if (tls.heap && page->heap == tls.heap) {
    b->next = page->free;
    page->free = b;
    if (--page->used != 0 && page->listed) return;
  }
  GiveSlow(page, b);
}

void WatchBlocks(void (*watch)(int)) noexcept {
  HandOn();
  tls.watch = watch;
}

}  // namespace baton::runtime
#endif
