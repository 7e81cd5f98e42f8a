// SPDX-License-Identifier: Apache-2.0
#include "rpc/places.h"

#include <baton/support/sha256.h>
#include <baton/support/text.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "rpc/errors.h"

namespace baton::rpc {
using support::Cat;
namespace {

/// How much of a key's id is that of the key: a token has its caveats behind it.
size_t KeyIdBytes(std::string_view id) {
  constexpr size_t kDigits = 16;
  return id.rfind("certificate ", 0) == 0 ? id.size() : kDigits;
}

int SessionsOfKey(const Places& places, const Place& own) {
  int same = 0;
  for (int i = 0; i < places.count; ++i) {
    const Place& other = places.at[i];
    same += other.work == Place::kSession && std::memcmp(other.key, own.key, sizeof own.key) == 0;
  }
  return same;
}

}  // namespace

void* SharedMemory(size_t bytes) {
  void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) ThrowSystem("MemoryError", "no memory for the table of sessions");
  return shared;
}

void TakePlace(const ServerOptions& options, const Channel& channel, std::string_view name) {
  Places* places = options.places;
  if (!places) return;
  Place& own = places->at[options.place];
  const std::string_view base = std::string_view(channel.key_id).substr(0, KeyIdBytes(channel.key_id));
  const auto key = support::Sha256Of(base.data(), base.size());
  std::memcpy(own.key, key.data(), sizeof own.key);
  for (int i = 0;; ++i) {  // one that ended may not be counted off yet
    const int taken = places->taken.fetch_add(1);
    own.work = Place::kSession;
    const bool crowded = taken >= options.max_sessions;
    const int same = options.key_sessions > 0 ? SessionsOfKey(*places, own) : 0;
    if (!crowded && same <= options.key_sessions) break;
    own.work = Place::kUnknown;
    places->taken.fetch_sub(1);
    if (i < 50) {
      usleep(20000);
      continue;
    }
    if (crowded)
      Throw(kSessionLost, Cat("the server has ", options.max_sessions, " sessions already; try again later"));
    Throw(kSessionLost, Cat("this key has ", options.key_sessions, " of the server's ", options.max_sessions,
                            " sessions already, and may have no more; close one of them"));
  }
  if (!name.empty()) {
    std::memcpy(own.name, SessionName(name, channel).data(), sizeof own.name);
    own.resumable = 1;
  }
  if (options.census) options.census->active.fetch_add(1);
}

SessionPulse* LeaveSharedMemory(const ServerOptions& options) {
  if (options.census) {
    options.census->begun.fetch_add(1);
    munmap(options.census, sizeof(Census));
  }
  if (!options.places) return nullptr;
  const int count = options.places->count;
  munmap(options.places, PlacesBytes(count));
  if (!options.pulses) return nullptr;
  const auto pulses = reinterpret_cast<char*>(options.pulses);
  const size_t before = static_cast<size_t>(options.place) * kPulseBytes;
  const size_t behind = static_cast<size_t>(count - options.place - 1) * kPulseBytes;
  if (before) munmap(pulses, before);
  if (behind) munmap(pulses + before + kPulseBytes, behind);
  return PulseOf(options.pulses, options.place);
}

}  // namespace baton::rpc
