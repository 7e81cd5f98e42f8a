// SPDX-License-Identifier: Apache-2.0
// The watchdog: reports the current pass, function and expression when a pass exceeds its time limit.
#include <baton/ir/pass_run.h>
#include <baton/ir/progress.h>
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ir/pass/pass_internals.h"

namespace baton::instrument {

using transform::PassRun;
namespace progress = transform::progress;

namespace {

using Clock = std::chrono::steady_clock;

/// Watches the passes of one thread from another, from the first pass to the last that is open.
class Dog {
 public:
  explicit Dog(double seconds) : limit_(seconds), thread_([this] { Run(); }) {}
  ~Dog() { Stop(); }
  /// Ends the watch and returns its reports.
  std::vector<std::string> Stop() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
    return std::move(reports_);
  }
  void Push(const std::string& pass) {
    std::lock_guard lock(mutex_);
    open_.push_back({pass, Clock::now(), limit_});
    wake_.notify_all();
  }
  /// Closes passes down to this one; true when none is open any more.
  bool Pop(const std::string& pass) {
    std::lock_guard lock(mutex_);
    for (size_t i = open_.size(); i-- > 0;) {
      if (open_[i].pass != pass) continue;
      open_.resize(i);
      break;
    }
    wake_.notify_all();
    return open_.empty();
  }

 private:
  struct Open {
    std::string pass;
    Clock::time_point start;
    double next;  ///< seconds after which the next report is due
  };
  void Run() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (open_.empty()) {
        wake_.wait(lock);
        continue;
      }
      // Reports concern the innermost pass.
      Clock::time_point due = open_.back().start + std::chrono::duration_cast<Clock::duration>(
                                                       std::chrono::duration<double>(open_.back().next));
      if (Clock::now() < due) {
        wake_.wait_until(lock, due);
        continue;
      }
      Open slow = open_.back();
      open_.back().next *= 2;
      watch_.Ask();
      // The thread answers at the next expression that it visits; a body that visits none does not.
      std::string expr;
      for (int i = 0; i < 20 && expr.empty() && !stop_ && !open_.empty(); ++i) {
        wake_.wait_for(lock, std::chrono::milliseconds(5));
        expr = watch_.Expr();
      }
      char seconds[32];
      snprintf(seconds, sizeof seconds, "%.2f", std::chrono::duration<double>(Clock::now() - slow.start).count());
      std::string function = watch_.Function();
      std::string report = "pass `" + slow.pass + "` has run for " + seconds + " s" +
                           (function.empty() ? "" : ", now in " + function) + (expr.empty() ? "" : ", at " + expr);
      fputs(("warning: " + report + "\n").c_str(), stderr);
      reports_.push_back(report);
    }
  }

  double limit_;
  progress::Watch watch_;  // made on the thread that is watched
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Open> open_;
  std::vector<std::string> reports_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all others
};

class WatchdogNode : public Node<WatchdogNode, RunInstrumentNode> {
 public:
  static constexpr const char* _type_key = "instrument.PassWatchdog";
  static constexpr bool _type_has_hidden_members = true;  // the reports
  double seconds = 1;
  static constexpr void Describe(auto& d) {
    d(F<&WatchdogNode::seconds>,
      "Seconds after which a pass is slow; reports come then, and at twice that, and so on.");
  }
  struct Shared {
    std::mutex mutex;
    std::vector<std::string> reports;
    std::map<std::thread::id, std::unique_ptr<Dog>> dogs;  ///< of threads with open passes
  };
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();

  void ExitPassContext() const final { Finish(); }
  void BeforeRun(const PassRun& run) const final {
    Dog* dog;
    {
      std::lock_guard lock(shared->mutex);
      auto& mine = shared->dogs[std::this_thread::get_id()];
      if (!mine) mine = std::make_unique<Dog>(seconds);
      dog = mine.get();
    }
    dog->Push(run.info->name.str());
  }
  void AfterRun(const PassRun& run) const final { Pop(run); }
  void RunFailed(const PassRun& run, const String&) const final { Pop(run); }

 private:
  void Pop(const PassRun& run) const {
    Dog* dog = nullptr;
    {
      std::lock_guard lock(shared->mutex);
      auto it = shared->dogs.find(std::this_thread::get_id());
      if (it != shared->dogs.end()) dog = it->second.get();
    }
    if (dog && dog->Pop(run.info->name.str())) Finish();
  }
  /// Ends the watch of this thread.
  void Finish() const {
    std::unique_ptr<Dog> dog;
    {
      std::lock_guard lock(shared->mutex);
      auto found = shared->dogs.extract(std::this_thread::get_id());
      if (found) dog = std::move(found.mapped());
    }
    if (!dog) return;
    std::vector<std::string> said = dog->Stop();
    std::lock_guard lock(shared->mutex);
    shared->reports.insert(shared->reports.end(), said.begin(), said.end());
  }
};

const RegisterNodes<WatchdogNode> registered_watch;

}  // namespace

BATON_REGISTER_GLOBAL("instrument.PassWatchdog").set_body_typed([](double seconds) {
  if (!(seconds > 0)) throw runtime::ValueError("a watchdog needs a time above 0 s, got " + std::to_string(seconds));
  auto n = make_object<WatchdogNode>();
  n->name = "PassWatchdog";
  n->observes = true;
  n->seconds = seconds;
  return PassInstrument(ObjectPtr<Object>(n));
});
BATON_REGISTER_GLOBAL("instrument.WatchdogReports").set_body_typed([](ObjectRef dog) {
  const auto* n = dog.as<WatchdogNode>();
  if (!n) throw runtime::TypeError("a PassWatchdog is needed");
  std::lock_guard lock(n->shared->mutex);
  Array<String> out;
  for (const std::string& r : n->shared->reports) out.push_back(String(r));
  return out;
});

}  // namespace baton::instrument
