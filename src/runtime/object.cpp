// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/any.h>
#include <baton/runtime/object.h>
#include <baton/runtime/reflection.h>
#include <baton/support/cells.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace baton::runtime {
namespace {

struct Entry {
  std::string key;
  uint32_t parent = 0;
  uint32_t slots = 0;  // reserved indices behind the type's own
  uint32_t used = 0;   // of those
  bool can_overflow = true;
  bool taken = false;
};

/// Index to key, parent and reserved range. Entries are never removed.
struct TypeTable {
  std::shared_mutex mutex;
  std::deque<Entry> entries{TypeIndex::kStaticEnd};
  std::map<std::string, uint32_t, std::less<>> by_key;
  static TypeTable& Get() {
    static auto* table = new TypeTable;  // outlives every object
    return *table;
  }
  TypeTable() {
    entries[0] = {Object::_type_key, 0, 0, 0, true, true};
    by_key[Object::_type_key] = 0;
  }
};

}  // namespace

uint32_t Object::GetOrAllocRuntimeTypeIndex(const std::string& key, uint32_t static_tindex, uint32_t parent_tindex,
                                            uint32_t slots, bool can_overflow) {
  TypeTable& t = TypeTable::Get();
  std::unique_lock lock(t.mutex);
  if (auto it = t.by_key.find(key); it != t.by_key.end()) return it->second;
  if (parent_tindex >= t.entries.size() || !t.entries[parent_tindex].taken) {
    throw InternalError("type `" + key + "` names a parent that is not registered");
  }
  uint32_t index;
  Entry& parent = t.entries[parent_tindex];
  if (static_tindex < TypeIndex::kStaticEnd) {
    index = static_tindex;
    if (t.entries[index].taken) {
      throw InternalError("types `" + key + "` and `" + t.entries[index].key + "` claim one static index");
    }
  } else if (parent_tindex != 0 && parent.used + slots + 1 <= parent.slots) {
    index = parent_tindex + 1 + parent.used;
    parent.used += slots + 1;
  } else {
    if (parent_tindex != 0 && !parent.can_overflow) {
      throw InternalError("type `" + parent.key + "` has no child slot left for `" + key + "` and may not overflow");
    }
    index = static_cast<uint32_t>(t.entries.size());
    t.entries.resize(t.entries.size() + slots + 1);
  }
  t.entries[index] = {key, parent_tindex, slots, 0, can_overflow, true};
  t.by_key[key] = index;
  return index;
}

bool Object::DerivedFrom(uint32_t parent_tindex) const {
  TypeTable& t = TypeTable::Get();
  std::shared_lock lock(t.mutex);
  uint32_t i = type_index_;
  // A child's index is larger than its parent's, but for types with a static one.
  while (i != 0 && i != parent_tindex) i = t.entries[i].parent;
  return i == parent_tindex;
}

std::string Object::TypeIndex2Key(uint32_t tindex) {
  const char* key = BatonTypeIndex2Key(tindex);
  if (!key) throw InternalError("unknown type index " + std::to_string(tindex));
  return key;
}

size_t Object::TypeIndex2KeyHash(uint32_t tindex) { return std::hash<std::string>()(TypeIndex2Key(tindex)); }

uint32_t Object::TypeKey2Index(const std::string& key) {
  const int64_t index = FindTypeKey(key);
  if (index < 0) throw InternalError("unknown type key `" + key + "`");
  return static_cast<uint32_t>(index);
}

int64_t Object::FindTypeKey(std::string_view key) {
  TypeTable& t = TypeTable::Get();
  std::shared_lock lock(t.mutex);
  auto it = t.by_key.find(key);
  return it == t.by_key.end() ? -1 : int64_t{it->second};
}

uint32_t Object::TypeIndex2Parent(uint32_t tindex) {
  TypeTable& t = TypeTable::Get();
  std::shared_lock lock(t.mutex);
  if (tindex >= t.entries.size() || !t.entries[tindex].taken) {
    throw InternalError("unknown type index " + std::to_string(tindex));
  }
  return t.entries[tindex].parent;
}

namespace {
// What is to be released waits in a ring, so that chains of any length need no memory and no stack. Who waits has its
// parts fetched meanwhile: those of large programs are far apart in memory. Beside a full ring releases recurse, so
// deep; what comes then waits in a list, and without memory for that it recurses after all.
constexpr unsigned kWaiting = 32, kMaxNested = 16;
struct ReleaseState {
  unsigned first = 0, count = 0, depth = 0;
  Object* ring[kWaiting];
  Object** list = nullptr;
  size_t size = 0, room = 0;
};
thread_local ReleaseState* tls_release = nullptr;

void PartsSoon(const Object* obj) {
  // Some are members of what lies in the cell, so this may go on into the next one, not beyond the page.
  const size_t bytes = support::CellBytes(obj), left = -reinterpret_cast<uintptr_t>(obj) & (support::kCellPage - 1);
  auto* word = reinterpret_cast<void* const*>(obj);
  for (size_t i = sizeof(Object) / sizeof(void*); i < std::min(bytes, left) / sizeof(void*); ++i) {
    __builtin_prefetch(word[i], 1);
  }
  __builtin_prefetch(reinterpret_cast<const char*>(obj) - 8 * bytes, 1);  // users come first, and were made last
}
}  // namespace

void Object::Release(Object* obj) noexcept {
  // The state lives on the stack of the outermost release, so that thread exit needs no destructor.
  if (ReleaseState* s = tls_release) {
    if (s->count < kWaiting) {
      s->ring[(s->first + s->count++) % kWaiting] = obj;
      return PartsSoon(obj);
    }
    if (s->depth < kMaxNested) {
      ++s->depth;
      obj->deleter_(obj);
      --s->depth;
      return;
    }
    if (s->size == s->room) {
      const size_t room = s->room * 2 + kWaiting;
      void* list = realloc(s->list, room * sizeof(Object*));
      if (!list) return obj->deleter_(obj);
      s->list = static_cast<Object**>(list);
      s->room = room;
    }
    s->list[s->size++] = obj;
    return;
  }
  ReleaseState state;
  tls_release = &state;
  obj->deleter_(obj);
  for (;;) {
    Object* next;
    if (state.count) {
      next = state.ring[state.first];
      state.first = (state.first + 1) % kWaiting;
      --state.count;
    } else if (state.size) {
      next = state.list[--state.size];
    } else {
      break;
    }
    next->deleter_(next);
  }
  free(state.list);
  tls_release = nullptr;
}

void ThrowDowncast(const char* want, const Object* got) {
  throw TypeError(std::string("expected ") + want + ", got " + got->GetTypeKey());
}

}  // namespace baton::runtime

using namespace baton::runtime;  // NOLINT: the C functions below

extern "C" {

int BatonAbiVersion(void) { return BATON_ABI_VERSION; }

void BatonObjectRetain(BatonObject* obj) {
  if (obj) ObjectAccess::IncRef(reinterpret_cast<Object*>(obj));
}
void BatonObjectRelease(BatonObject* obj) {
  if (obj) ObjectAccess::DecRef(reinterpret_cast<Object*>(obj));
}
uint32_t BatonObjectTypeIndex(const BatonObject* obj) {
  return obj ? reinterpret_cast<const Object*>(obj)->type_index() : 0;
}
const char* BatonTypeIndex2Key(uint32_t index) {
  TypeTable& t = TypeTable::Get();
  std::shared_lock lock(t.mutex);
  return index < t.entries.size() && t.entries[index].taken ? t.entries[index].key.c_str() : nullptr;
}
}
