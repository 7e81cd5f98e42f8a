// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/jobs.h"

#include <baton/runtime/registry.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace baton::codegen {
namespace {

struct Group {
  explicit Group(std::vector<Job> jobs)
      : jobs(std::move(jobs)), errors(this->jobs.size()), process(getpid()), left(this->jobs.size()) {}

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
  pid_t process;  // the one whose threads they are: a forked child has none of them
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable done;
  size_t left;
};

/// Groups whose threads have not ended. In a forked child those threads are not there and never
/// end: it drops its parent's groups without destroying them.
class Running {
 public:
  static Running& Get() {
    static Running r;
    return r;
  }
  ~Running() {
    ForgetParents();
    for (const auto& g : groups_) g->Join();
  }
  /// Whether all of them end within `time`.
  bool WaitFor(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    for (Clear(); !Empty(); Clear()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }
  void Add(std::shared_ptr<Group> g) {
    std::lock_guard lock(mutex_);
    groups_.push_back(std::move(g));
  }
  void Remove(const std::shared_ptr<Group>& g) {
    std::lock_guard lock(mutex_);
    std::erase(groups_, g);
  }
  /// Removes abandoned groups that have ended.
  void Clear() {
    std::lock_guard lock(mutex_);
    ForgetParents();
    std::erase_if(groups_, [](const std::shared_ptr<Group>& g) {
      if (!g->stop || !g->WaitFor(std::chrono::milliseconds(0))) return false;
      g->Join();
      return true;
    });
  }

 private:
  bool Empty() {
    std::lock_guard lock(mutex_);
    return groups_.empty();
  }
  void ForgetParents() {
    static auto* parents =
        new std::vector<std::shared_ptr<Group>>;  // their threads can be neither joined nor destroyed here
    std::erase_if(groups_, [](std::shared_ptr<Group>& g) {
      if (g->process == getpid()) return false;
      parents->push_back(std::move(g));
      return true;
    });
  }

  std::mutex mutex_;
  std::vector<std::shared_ptr<Group>> groups_;
};

}  // namespace

void FinishJobs() {
  if (Running::Get().WaitFor(std::chrono::milliseconds(100))) return;
#ifdef __GLIBC__
  on_exit(
      [](int status, void*) {
        if (Running::Get().WaitFor(std::chrono::milliseconds(0))) return;
        fflush(nullptr);
        _exit(status);
      },
      nullptr);
#else
  while (!Running::Get().WaitFor(std::chrono::milliseconds(1000))) continue;
#endif
}

BATON_REGISTER_GLOBAL("codegen.FinishJobs").set_body_typed(FinishJobs);

void RunJobs(std::vector<Job> jobs, void (*check)()) {
  if (jobs.empty()) return;
  Running& running = Running::Get();  // before threads run: it must outlive them
  running.Clear();
  auto group = std::make_shared<Group>(std::move(jobs));
  running.Add(group);
  const size_t n = group->jobs.size();
  struct Leave {
    std::shared_ptr<Group> group;
    bool done = false;
    ~Leave() {
      if (done) {
        group->Join();
        Running::Get().Remove(group);
      } else {
        group->stop = true;
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
