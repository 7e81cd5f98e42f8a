// SPDX-License-Identifier: Apache-2.0
// The timing instrument: a tree of passes for each thread, with budgets.
#include <baton/ir/pass_run.h>
#include <baton/runtime/registry.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "ir/pass/pass_internals.h"
#include "ir/thread_state.h"

namespace baton::instrument {

using runtime::Registry;
using transform::PassRun;

namespace {

using Clock = std::chrono::steady_clock;

double Ms(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

double ThreadCpuMs() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}
int64_t HeapBytes() {
  auto m = mallinfo2();
  return static_cast<int64_t>(m.uordblks + m.hblkhd);
}
int64_t PeakBytes() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return static_cast<int64_t>(u.ru_maxrss) * 1024;
}
/// Relay nodes of all functions; a function of another kind counts as one.
int64_t Nodes(const IRModule& mod) {
  const PackedFunc* count = Registry::Get("relay.analysis.count_nodes");
  static const uint32_t relay_function = Object::TypeKey2Index("relay.Function");
  int64_t n = 0;
  for (const auto& [var, func] : mod->functions) {
    n += count && func.get()->type_index() == relay_function ? (*count)(func).As<int64_t>() : 1;
  }
  return n;
}

struct Profile {
  std::string name;
  std::string status;  ///< "", "failed: ..." or "skipped: ..."
  Clock::time_point start;
  double start_ms = 0, ms = 0, cpu_ms = 0;
  int64_t allocated = 0, peak = 0;
  int64_t nodes_before = -1, nodes_after = -1;
  bool changed = false, open = true;
  const PassRun* run = nullptr;  ///< while it is open
  std::vector<std::unique_ptr<Profile>> children;
};

/// The passes of one thread.
struct Tree {
  int thread = 0;
  Profile root;
  std::vector<Profile*> open{&root};
};

/// Budgets of a pass; negative is unlimited.
struct Budget {
  double ms = -1, growth = -1;
  int64_t bytes = -1;
};

/// A copy of an instrument measures on its own.
struct Mutex : std::mutex {
  Mutex() = default;
  Mutex(const Mutex&) : std::mutex() {}
};

class TimingNode : public Node<TimingNode, RunInstrumentNode> {
 public:
  static constexpr const char* _type_key = "instrument.PassTimingInstrument";
  static constexpr bool _type_has_hidden_members = true;  // what it measures
  bool detail = false;
  bool strict = false;
  Map<String, Any> budgets;
  static constexpr void Describe(auto& d) {
    d(F<&TimingNode::detail>, "Counts nodes and memory too, which takes time itself.");
    d(F<&TimingNode::strict>, "A pass above its budget is an error; else it is noted.");
    d(F<&TimingNode::budgets>,
      "By pass (\"*\": all): a map of `time` in seconds, `memory` in bytes, `growth`, a factor.");
  }

  void EnterPassContext() const final {
    std::lock_guard lock(mutex_);
    trees_.erase(gettid());
    if (trees_.empty()) epoch_ = Clock::now(), notes_.clear();
  }

  void BeforeRun(const PassRun& run) const final {
    int64_t nodes = Wants() ? Nodes(run.module) : -1;
    std::lock_guard lock(mutex_);
    Tree& t = Mine();
    auto p = std::make_unique<Profile>();
    p->run = &run;
    p->name = run.info->name.str();
    p->nodes_before = nodes;
    if (Wants()) p->allocated = HeapBytes(), p->peak = PeakBytes();
    Profile* raw = p.get();
    t.open.back()->children.push_back(std::move(p));
    t.open.push_back(raw);
    raw->cpu_ms = ThreadCpuMs();
    raw->start = Clock::now();
    raw->start_ms = Ms(raw->start - epoch_);
  }
  void AfterRun(const PassRun& run) const final { Close(run, run.result, ""); }
  void RunFailed(const PassRun& run, const String& error) const final {
    Close(run, run.module, "failed: " + error.str());
  }
  void RunSkipped(const PassRun& run, const String& reason) const final {
    std::lock_guard lock(mutex_);
    auto p = std::make_unique<Profile>();
    p->name = run.info->name.str();
    p->status = "skipped: " + reason.str();
    p->start_ms = Ms(Clock::now() - epoch_);
    p->open = false;
    Mine().open.back()->children.push_back(std::move(p));
  }

  std::string Text() const;
  std::string Json() const;
  std::string ChromeTrace() const;
  std::vector<std::string> Notes() const {
    std::lock_guard lock(mutex_);
    return notes_;
  }
  void SetBudgets(const Map<String, Any>& given);

 private:
  bool Wants() const { return detail || needs_detail_; }
  Tree& Mine() const {
    auto& t = trees_[gettid()];
    if (!t) t = std::make_shared<Tree>(), t->thread = static_cast<int>(trees_.size()) - 1;
    return *t;
  }
  void Close(const PassRun& run, const IRModule& mod, const std::string& status) const {
    Clock::time_point now = Clock::now();
    double cpu = ThreadCpuMs();
    int64_t heap = Wants() ? HeapBytes() : 0, peak = Wants() ? PeakBytes() : 0, nodes = Wants() ? Nodes(mod) : -1;
    std::string over;
    {
      std::lock_guard lock(mutex_);
      Tree& t = Mine();
      bool mine = false;
      for (size_t i = 1; i < t.open.size(); ++i) mine |= t.open[i]->run == &run;
      if (!mine) return;  // it began before this instrument was entered
      while (t.open.size() > 1) {
        // A pass left open by an exception of another instrument ends with the enclosing pass.
        Profile* p = t.open.back();
        t.open.pop_back();
        p->ms = Ms(now - p->start);
        p->cpu_ms = cpu - p->cpu_ms;
        p->open = false;
        bool last = p->run == &run;
        if (Wants()) {
          p->allocated = heap - p->allocated;
          p->peak = peak - p->peak;
        }
        if (last) {
          p->changed = status.empty() && !mod.same_as(run.module);
          p->nodes_after = status.empty() ? nodes : p->nodes_before;
          p->status = status;
        }
        p->run = nullptr;
        if (!last) continue;
        over = status.empty() ? OverBudget(*p) : "";
        if (!over.empty()) notes_.push_back(over);
        break;
      }
    }
    if (!over.empty() && strict) throw Error("RuntimeError", over);
  }
  std::string OverBudget(const Profile& p) const {
    auto it = limits_.find(p.name);
    if (it == limits_.end()) it = limits_.find("*");
    if (it == limits_.end()) return "";
    const Budget& b = it->second;
    char line[256];
    if (b.ms >= 0 && p.ms > b.ms) {
      snprintf(line, sizeof line, "took %.3f s, its budget is %.3f s", p.ms / 1e3, b.ms / 1e3);
    } else if (b.bytes >= 0 && p.allocated > b.bytes) {
      snprintf(line, sizeof line, "holds %lld bytes more than before, its budget is %lld",
               static_cast<long long>(p.allocated), static_cast<long long>(b.bytes));
    } else if (b.growth >= 0 && static_cast<double>(p.nodes_after) > b.growth * static_cast<double>(p.nodes_before)) {
      snprintf(line, sizeof line, "made %lld nodes of %lld, its budget is %g times",
               static_cast<long long>(p.nodes_after), static_cast<long long>(p.nodes_before), b.growth);
    } else {
      return "";
    }
    return "pass `" + p.name + "` " + line;
  }

  mutable Mutex mutex_;
  mutable std::map<pid_t, std::shared_ptr<Tree>> trees_;
  mutable Clock::time_point epoch_ = Clock::now();
  mutable std::vector<std::string> notes_;
  std::map<std::string, Budget> limits_;
  bool needs_detail_ = false;
};

void TimingNode::SetBudgets(const Map<String, Any>& given) {
  budgets = given;
  for (const auto& [pass, value] : given) {
    if (!value.Is<Map<String, Any>>()) {
      throw runtime::TypeError("the budget of `" + pass.str() + "` is a map of time (s), memory (bytes), growth");
    }
    Budget& b = limits_[pass.str()];
    for (const auto& [what, limit] : value.As<Map<String, Any>>()) {
      if (what == "time") {
        b.ms = limit.As<double>() * 1e3;
      } else if (what == "memory") {
        b.bytes = static_cast<int64_t>(limit.As<double>());
      } else if (what == "growth") {
        b.growth = limit.As<double>();
      } else {
        throw runtime::ValueError("the budget of `" + pass.str() + "` has `" + what.str() +
                                  "`; there are time (s), memory (bytes), growth (a factor)");
      }
      needs_detail_ |= what != "time";
    }
  }
}

void AppendText(const Profile& p, int depth, double total, bool detail, std::string* out) {
  for (const auto& c : p.children) {
    double inner = 0;
    for (const auto& g : c->children) inner += g->ms;
    char line[192];
    out->append(static_cast<size_t>(depth) * 2, ' ').append(c->name);
    if (c->status.starts_with("skipped")) {
      *out += ": " + c->status + "\n";
      continue;
    }
    snprintf(line, sizeof line, ": %.3fms [%.3fms] (%.2f%%)", c->ms, c->ms - inner,
             total > 0 ? c->ms / total * 100 : 0);
    *out += line;
    if (detail) {
      snprintf(line, sizeof line, " cpu %.3fms, heap %+lld B, peak %+lld B, nodes %lld -> %lld", c->cpu_ms,
               static_cast<long long>(c->allocated), static_cast<long long>(c->peak),
               static_cast<long long>(c->nodes_before), static_cast<long long>(c->nodes_after));
      *out += line;
    }
    if (!c->status.empty()) {
      *out += " " + c->status;
    } else if (!c->changed) {
      *out += " unchanged";
    }
    *out += '\n';
    AppendText(*c, depth + 1, total, detail, out);
  }
}

std::string TimingNode::Text() const {
  std::lock_guard lock(mutex_);
  std::string out;
  double total = 0;
  for (const auto& [tid, t] : trees_) {
    for (const auto& c : t->root.children) total += c->ms;
  }
  for (const auto& [tid, t] : trees_) {
    if (trees_.size() > 1) out += "thread " + std::to_string(t->thread) + ":\n";
    AppendText(t->root, trees_.size() > 1 ? 1 : 0, total, Wants(), &out);
  }
  if (out.empty()) return {};  // no pass has run
  char line[64];
  snprintf(line, sizeof line, "Total: %.3fms\n", total);
  out += line;
  for (const std::string& n : notes_) out += "over budget: " + n + "\n";
  return out;
}

std::string Quoted(const std::string& s) {
  std::string out;
  transform::AppendJson(s, &out);
  return out;
}

void AppendJson(const Profile& p, std::string* out) {
  *out += '[';
  for (const auto& c : p.children) {
    if (&c != &p.children.front()) *out += ',';
    char line[384];
    snprintf(line, sizeof line,
             "\"start_ms\": %.6f, \"wall_ms\": %.6f, \"cpu_ms\": %.6f, \"allocated_bytes\": %lld, "
             "\"peak_growth_bytes\": %lld, \"nodes_before\": %lld, \"nodes_after\": %lld, \"changed\": %s",
             c->start_ms, c->ms, c->cpu_ms, static_cast<long long>(c->allocated), static_cast<long long>(c->peak),
             static_cast<long long>(c->nodes_before), static_cast<long long>(c->nodes_after),
             c->changed ? "true" : "false");
    *out += "{\"pass\": " + Quoted(c->name) + ", " + line + ", \"status\": " + Quoted(c->status) + ", \"passes\": ";
    AppendJson(*c, out);
    *out += '}';
  }
  *out += ']';
}

std::string TimingNode::Json() const {
  std::lock_guard lock(mutex_);
  std::string out = "{\"threads\": [";
  bool first = true;
  for (const auto& [tid, t] : trees_) {
    out += std::string(first ? "" : ", ") + "{\"thread\": " + std::to_string(t->thread) + ", \"passes\": ";
    AppendJson(t->root, &out);
    out += "}";
    first = false;
  }
  out += "], \"over_budget\": [";
  for (size_t i = 0; i < notes_.size(); ++i) out += (i ? ", " : "") + Quoted(notes_[i]);
  return out + "]}\n";
}

void AppendEvents(const Profile& p, int thread, std::string* out) {
  for (const auto& c : p.children) {
    char line[384];
    bool skipped = c->status.starts_with("skipped");
    snprintf(line, sizeof line,
             "\"cat\": \"pass\", \"ph\": \"%s\", \"ts\": %.3f, \"dur\": %.3f, \"pid\": 1, \"tid\": %d, \"args\": "
             "{\"cpu_ms\": %.3f, \"nodes_before\": %lld, \"nodes_after\": %lld, \"changed\": %s, \"status\": ",
             skipped ? "i" : "X", c->start_ms * 1e3, c->ms * 1e3, thread, c->cpu_ms,
             static_cast<long long>(c->nodes_before), static_cast<long long>(c->nodes_after),
             c->changed ? "true" : "false");
    *out += std::string(out->ends_with("[") ? "\n" : ",\n") + "{\"name\": " + Quoted(c->name) + ", " + line +
            Quoted(c->status) + "}}";
    AppendEvents(*c, thread, out);
  }
}

std::string TimingNode::ChromeTrace() const {
  std::lock_guard lock(mutex_);
  std::string out = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  for (const auto& [tid, t] : trees_) AppendEvents(t->root, t->thread, &out);
  return out + "\n]}\n";
}

const TimingNode* AsTiming(const ObjectRef& r) {
  const auto* t = r.as<TimingNode>();
  if (!t) throw runtime::TypeError("a PassTimingInstrument is needed");
  return t;
}

const RegisterNodes<TimingNode> registered_timing;

}  // namespace

BATON_REGISTER_GLOBAL("instrument.MakePassTimingInstrument").set_body([](runtime::Args args, runtime::RetValue* rv) {
  // (detail, budgets, strict), all optional.
  auto n = make_object<TimingNode>();
  n->name = "PassTimingInstrument";
  n->observes = true;
  if (args.size() > 0) n->detail = args[0].As<bool>();
  if (args.size() > 1 && !args[1].is_null()) n->SetBudgets(args[1].As<Map<String, Any>>());
  if (args.size() > 2) n->strict = args[2].As<bool>();
  PassInstrument made{ObjectPtr<Object>(n)};
  transform::ThreadState::Get().timing = made;  // what the static form of `render` shows
  *rv = made;
});
BATON_REGISTER_GLOBAL("instrument.RenderTimePassProfiles").set_body([](runtime::Args args, runtime::RetValue* rv) {
  ObjectRef of = args.size() > 0 ? args[0].As<ObjectRef>() : transform::ThreadState::Get().timing;
  *rv = String(of.defined() ? AsTiming(of)->Text() : "");
});
BATON_REGISTER_GLOBAL("instrument.TimingJson").set_body_typed([](ObjectRef t) { return String(AsTiming(t)->Json()); });
BATON_REGISTER_GLOBAL("instrument.TimingChromeTrace").set_body_typed([](ObjectRef t) {
  return String(AsTiming(t)->ChromeTrace());
});
BATON_REGISTER_GLOBAL("instrument.TimingNotes").set_body_typed([](ObjectRef t) {
  Array<String> out;
  for (const std::string& n : AsTiming(t)->Notes()) out.push_back(String(n));
  return out;
});

}  // namespace baton::instrument
