// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/any.h>
#include <baton/runtime/object.h>
#include <baton/runtime/reflection.h>

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace baton::runtime {
namespace {

struct TypeEntry {
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
  std::deque<TypeEntry> entries{TypeIndex::kStaticEnd};
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
  TypeEntry& parent = t.entries[parent_tindex];
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
// Releases nest a few levels deep; what comes then waits in a list, the latest first. A dead object needs its type and
// count no more: the link to the next one is there, so that chains of any length need no memory and no stack.
constexpr unsigned kMaxNested = 16;
struct ReleaseState {
  Object* latest = nullptr;
  unsigned depth = 0;
};
thread_local ReleaseState* tls_release = nullptr;
}  // namespace

void Object::Release(Object* obj) noexcept {
  static_assert(offsetof(Object, deleter_) >= sizeof(Object*));
  if (ReleaseState* state = tls_release) {
    if (state->depth < kMaxNested) {
      ++state->depth;
      obj->deleter_(obj);
      --state->depth;
    } else {
      __builtin_memcpy(static_cast<void*>(obj), &state->latest, sizeof(Object*));
      state->latest = obj;
    }
    return;
  }
  // The state lives on the stack of the outermost release, so that thread exit needs no destructor.
  ReleaseState state;
  tls_release = &state;
  obj->deleter_(obj);
  while (Object* next = state.latest) {
    __builtin_memcpy(&state.latest, static_cast<void*>(next), sizeof(Object*));
    next->deleter_(next);
  }
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
