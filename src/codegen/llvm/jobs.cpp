// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/jobs.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace baton::codegen {
namespace {

struct Group {
  explicit Group(std::vector<Job> jobs) : jobs(std::move(jobs)), errors(this->jobs.size()), left(this->jobs.size()) {}

  void Run(size_t i) {
    try {
      jobs[i](stop);
    } catch (...) {
      errors[i] = std::current_exception();
    }
    jobs[i] = nullptr;  // what it owns ends on this thread
    std::lock_guard lock(mutex);
    if (--left == 0) done.notify_all();
  }
  bool WaitFor(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    return done.wait_for(lock, time, [this] { return left == 0; });
  }
  /// May end while its last thread still returns from Run: threads share it.
  void Join() {
    for (std::thread& t : threads) {
      if (t.joinable()) t.join();
    }
  }

  std::vector<Job> jobs;
  std::vector<std::exception_ptr> errors;
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable done;
  size_t left;
};

/// Groups that nobody waits for any more, until their threads have ended.
class Abandoned {
 public:
  static Abandoned& Get() {
    static Abandoned a;
    return a;
  }
  ~Abandoned() {
    for (const auto& g : groups_) g->Join();
  }
  void Add(std::shared_ptr<Group> g) {
    std::lock_guard lock(mutex_);
    groups_.push_back(std::move(g));
  }
  void Clear() {
    std::lock_guard lock(mutex_);
    std::erase_if(groups_, [](const std::shared_ptr<Group>& g) {
      if (!g->WaitFor(std::chrono::milliseconds(0))) return false;
      g->Join();
      return true;
    });
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Group>> groups_;
};

}  // namespace

void RunJobs(std::vector<Job> jobs, void (*check)()) {
  if (jobs.empty()) return;
  Abandoned& abandoned = Abandoned::Get();  // before threads run: it must outlive them
  abandoned.Clear();
  auto group = std::make_shared<Group>(std::move(jobs));
  const size_t n = group->jobs.size();
  struct Leave {
    std::shared_ptr<Group> group;
    bool done = false;
    ~Leave() {
      if (done) {
        group->Join();
      } else {
        group->stop = true;
        Abandoned::Get().Add(std::move(group));
      }
    }
  } leave{group};
  // A thread that does not start leaves its job, and those after it, to this one.
  size_t started = check ? 0 : 1;
  try {
    group->threads.reserve(n);
    for (; started < n; ++started) group->threads.emplace_back([g = group, i = started] { g->Run(i); });
  } catch (const std::exception&) {
  }
  if (!check) group->Run(0);
  for (size_t i = started; i < n; ++i) group->Run(i);
  while (!group->WaitFor(std::chrono::milliseconds(20))) {
    if (check) check();
  }
  leave.done = true;
  for (const std::exception_ptr& e : group->errors) {
    if (e) std::rethrow_exception(e);
  }
}

}  // namespace baton::codegen
