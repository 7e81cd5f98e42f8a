// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/failure.h>
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>
#include <fcntl.h>
#include <unistd.h>

#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "ir/pass/pass_internals.h"

namespace baton::transform::failure {

std::atomic<int> journaling{0};

namespace {

std::atomic<int> recording{0};

/// Recorded failures of each thread, innermost first: ("rejected", pass, error), ("import", function,
/// arguments, context, error) or (function, module, target, argument, context).
struct Failures {
  std::mutex mutex;
  std::map<std::thread::id, std::vector<Array<Any>>> by_thread;
  static Failures& Get() {
    static auto* f = new Failures;
    return *f;
  }
  void Add(Array<Any> one) {
    std::lock_guard lock(mutex);
    by_thread[std::this_thread::get_id()].push_back(std::move(one));
  }
  /// Returns the records of this thread and clears them.
  std::vector<Array<Any>> Take() {
    std::lock_guard lock(mutex);
    auto found = by_thread.extract(std::this_thread::get_id());
    return found ? std::move(found.mapped()) : std::vector<Array<Any>>();
  }
};

struct Journal {
  std::mutex mutex;
  int file = -1;
  std::map<std::string, int, std::less<>> counts;
  std::string stop;
  int stop_at = -1;
  std::map<pid_t, int> depth;  ///< by thread: what has begun and not ended
  static Journal& Get() {
    static auto* j = new Journal;
    return *j;
  }
};
}  // namespace

void Begin(std::string_view what, std::string_view name) {
  Journal& j = Journal::Get();
  std::string key = std::string(what) + " " + std::string(name);
  std::lock_guard lock(j.mutex);
  const int level = j.depth[gettid()]++;
  int count = j.counts[key]++;
  if (j.file >= 0) {
    std::string line =
        "+ " + std::to_string(gettid()) + " " + std::to_string(level) + " " + std::to_string(count) + " " + key + "\n";
    // One write per line, so that written lines survive a crash of the process.
    if (write(j.file, line.data(), line.size()) < 0) close(j.file), j.file = -1;
  }
  if (j.stop_at == count && j.stop == key) {
    --j.depth[gettid()];
    throw Error("CapsuleStop", "stopped before " + key);
  }
}

namespace {
/// The level of what ends; call with the lock.
int Leave(Journal& j) {
  auto it = j.depth.find(gettid());
  if (it == j.depth.end()) return 0;
  const int level = --it->second;
  if (level == 0) j.depth.erase(it);
  return level;
}
}  // namespace

void End() {
  if (std::uncaught_exceptions() > 0) return LeaveOpen();
  Journal& j = Journal::Get();
  std::lock_guard lock(j.mutex);
  const int level = Leave(j);
  if (j.file < 0) return;
  std::string line = "- " + std::to_string(gettid()) + " " + std::to_string(level) + "\n";
  if (write(j.file, line.data(), line.size()) < 0) close(j.file), j.file = -1;
}

void LeaveOpen() {
  Journal& j = Journal::Get();
  std::lock_guard lock(j.mutex);
  Leave(j);
}

Entry::Entry(const char* function, IRModule mod, ObjectRef target, std::string argument)
    : function_(function),
      target_(std::move(target)),
      argument_(std::move(argument)),
      uncaught_(std::uncaught_exceptions()),
      journaled_(journaling.load(std::memory_order_relaxed) != 0) {
  if (recording.load(std::memory_order_relaxed) != 0) mod_ = std::move(mod), context_ = PassContext::Current();
  if (!journaled_) return;
  try {
    Begin("entry", function);
  } catch (...) {
    if (mod_.defined()) {
      Failures::Get().Add({Any(String(function_)), Any(mod_), Any(target_), Any(String(argument_)), Any(context_)});
    }
    throw;
  }
}
Entry::~Entry() {
  bool failed = std::uncaught_exceptions() > uncaught_;
  if (journaled_) End();
  if (!failed || !mod_.defined()) return;
  try {
    Failures::Get().Add({Any(String(function_)), Any(mod_), Any(target_), Any(String(argument_)), Any(context_)});
  } catch (...) {  // no memory: then without
  }
}

void NoteRejected(const PassInfo& info) {
  if (recording.load(std::memory_order_relaxed) == 0) return;
  Failures::Get().Add({Any(String("rejected")), Any(info->name), Any(String(DescribeException()))});
}

void NoteImport(const char* function, Array<Any> arguments) {
  if (recording.load(std::memory_order_relaxed) == 0) return;
  Failures::Get().Add({Any(String("import")), Any(String(function)), Any(std::move(arguments)),
                       Any(PassContext::Current()), Any(String(DescribeException()))});
}

/// Counts active recorders; earlier records of this thread are discarded.
BATON_REGISTER_GLOBAL("failure.Record").set_body_typed([](bool on) {
  recording.fetch_add(on ? 1 : -1);
  if (on) Failures::Get().Take();
});
BATON_REGISTER_GLOBAL("failure.Take").set_body_typed([] {
  Array<Any> out;
  for (const Array<Any>& one : Failures::Get().Take()) out.push_back(Any(one));
  return out;
});
/// Passes and entries are written to this file as they begin and end; "" ends that.
BATON_REGISTER_GLOBAL("failure.Journal").set_body_typed([](String path) {
  Journal& j = Journal::Get();
  std::lock_guard lock(j.mutex);
  if (j.file >= 0) close(j.file);
  j.file = -1;
  j.counts.clear();
  if (!path.empty()) {
    j.file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (j.file < 0) throw runtime::RuntimeError("cannot write the journal `" + path.str() + "`");
  }
  journaling = j.file >= 0 || j.stop_at >= 0;
});
/// The n-th beginning (from 0) of "pass NAME" or "entry FUNCTION" is an error; n below 0: none is.
BATON_REGISTER_GLOBAL("failure.StopBefore").set_body_typed([](String what, int n) {
  Journal& j = Journal::Get();
  std::lock_guard lock(j.mutex);
  j.stop = what.str();
  j.stop_at = n;
  j.counts.clear();
  journaling = j.file >= 0 || n >= 0;
});

}  // namespace baton::transform::failure
