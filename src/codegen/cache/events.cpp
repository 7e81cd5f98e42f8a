// SPDX-License-Identifier: Apache-2.0
#include "codegen/cache/events.h"

#include <baton/support/json.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <mutex>

#include "codegen/cache/entry.h"

namespace baton::codegen::cache {
namespace {

constexpr size_t kMostEvents = 1024;

struct Here {
  std::mutex mutex;
  std::deque<std::string> lines;
  static Here& Get() {
    static auto* here = new Here;
    // A fork waits until no thread writes, so that a child does not wait for one of its parent.
    static const int forks =
        pthread_atfork([] { here->mutex.lock(); }, [] { here->mutex.unlock(); }, [] { here->mutex.unlock(); });
    (void)forks;
    return *here;
  }
};

/// The text, cut where it is long, with ? for each byte that is not UTF-8, which names of folders may have.
std::string Readable(std::string_view text) {
  std::string out;
  text = text.substr(0, kMostLine / 4);
  for (size_t at = 0; at < text.size();) {
    const size_t n = support::Utf8Sequence(text.substr(at));
    out += n ? text.substr(at, n) : "?";
    at += n ? n : 1;
  }
  return out;
}

std::string LineOf(const Event& event) {
  std::string out;
  support::JsonWriter w(&out);
  w.BeginObject();
  w.Key("what");
  w.String(event.what);
  w.Key("name");
  w.String(event.name);
  if (!event.reason.empty()) {
    w.Key("reason");
    w.String(event.reason);
  }
  if (!event.why.empty()) {
    w.Key("why");
    w.String(Readable(event.why));
  }
  w.Key("functions");
  w.Int(event.functions.empty() ? 0 : 1 + std::count(event.functions.begin(), event.functions.end(), ' '));
  w.Key("first");
  w.String(Readable(std::string_view(event.functions).substr(0, event.functions.find(' '))));
  w.Key("time");
  w.Int(static_cast<int64_t>(time(nullptr)));
  w.Key("process");
  w.Int(getpid());
  w.EndObject();
  return out + "\n";
}

}  // namespace

void Note(const Event& event, const Directory* folder, uint64_t most) {
  const std::string line = LineOf(event);
  {
    Here& here = Here::Get();
    const std::lock_guard lock(here.mutex);
    here.lines.push_back(line);
    if (here.lines.size() > kMostEvents) here.lines.pop_front();
  }
  if (folder) folder->Append(kLog, line, most);
}

std::vector<std::string> Events() {
  Here& here = Here::Get();
  const std::lock_guard lock(here.mutex);
  return {here.lines.begin(), here.lines.end()};
}

std::vector<std::string> LogLines(const Directory& folder) {
  std::vector<std::string> out;
  for (const std::string& file : {std::string(kLog) + ".old", std::string(kLog)}) {
    Directory::Problem problem;
    const std::string text = folder.Read(file, kMostBytes, &problem).value_or("");
    for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      out.push_back(text.substr(at, end - at));
    }
  }
  return out;
}

bool WasEvicted(const Directory& folder, std::string_view name) {
  const std::vector<std::string> lines = LogLines(folder);
  const auto last = std::find_if(lines.rbegin(), lines.rend(), [&](const std::string& line) {
    return line.find(name) != std::string::npos && line.find("\"what\":\"miss\"") == std::string::npos;
  });
  return last != lines.rend() && last->find("\"what\":\"evicted\"") != std::string::npos;
}

}  // namespace baton::codegen::cache
