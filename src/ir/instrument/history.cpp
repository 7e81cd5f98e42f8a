// SPDX-License-Identifier: Apache-2.0
// The recording instrument: every step of the passes, with the modules before and after. IR is immutable, so steps
// share unchanged nodes.
#include <baton/ir/pass_run.h>
#include <baton/ir/progress.h>
#include <baton/ir/target.h>
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "ir/pass/pass_internals.h"

namespace baton::instrument {

using transform::InstrumentsAround;
using transform::Pass;
using transform::PassContext;
using transform::PassRun;

namespace {

using Clock = std::chrono::steady_clock;

/// A pass that ran, failed or was skipped.
struct HistoryStepNode : Node<HistoryStepNode, Object> {
  static constexpr const char* _type_key = "instrument.HistoryStep";
  String pass_name;
  int64_t parent = -1;
  int32_t depth = 0;
  String scope;
  String function;
  String action;
  String why;
  String status;
  String error;
  double start_ms = 0, wall_ms = 0;
  IRModule before, after;
  Pass pass_object;
  PassContext context;
  Target target;
  Array<PassInstrument> watchers;
  static constexpr void Describe(auto& d) {
    d(F<&HistoryStepNode::pass_name>, "Name of the pass.");
    d(F<&HistoryStepNode::parent>, "Index of the step that it ran in; -1: none.");
    d(F<&HistoryStepNode::depth>, "Number of steps around it.");
    d(F<&HistoryStepNode::scope>, "What the pass is over: \"module\", \"function\" or \"sequence\"; \"\" if unknown.");
    d(F<&HistoryStepNode::function>, "The function that the step around it was rewriting; \"\": none.");
    d(F<&HistoryStepNode::action>, "\"ran\", \"inserted\" or \"skipped\".");
    d(F<&HistoryStepNode::why>, "Why.");
    d(F<&HistoryStepNode::status>, "\"ok\", \"failed\", \"skipped\", or \"open\" while it runs.");
    d(F<&HistoryStepNode::error>, "\"Kind: message\" of what it threw.");
    d(F<&HistoryStepNode::start_ms>, "When it began, since the first step.");
    d(F<&HistoryStepNode::wall_ms>, "How long it took, steps within included.");
    d(F<&HistoryStepNode::before>, "What it was given.", kNullable);
    d(F<&HistoryStepNode::after>, "What it made; null where it failed.", kNullable);
    d(F<&HistoryStepNode::pass_object>, "The pass; null for skipped ones.", kNullable);
    d(F<&HistoryStepNode::context>, "Its context, without instruments.", kNullable);
    d(F<&HistoryStepNode::target>, "The target that was current.", kNullable);
    d(F<&HistoryStepNode::watchers>, "The instruments around it, other recorders excepted; only without `keep`.");
  }
};
class HistoryStep : public RefTo<HistoryStepNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// "module", "function" or "sequence"; a pass with options is what it holds.
const char* ScopeOf(const transform::PassNode* pass) {
  for (ObjectRef p = GetRef<Pass>(pass); p.defined();) {
    if (p.as<transform::ModulePassNode>()) return "module";
    if (p.as<transform::FunctionPassNode>()) return "function";
    const auto* info = runtime::TypeInfo::Get(p.get()->type_index());
    if (info && info->Find("passes")) return "sequence";
    const auto* inner = info ? info->Find("inner") : nullptr;
    if (!inner) return "";
    p = inner->Ref(p.get());
  }
  return "";
}

/// State of a recorder, shared by copies of the instrument.
struct Record {
  struct Step {
    HistoryStep shown;
    int64_t parent = -1;
    int64_t function_index = -1;  ///< of the parent's function, where the parent is over functions
    Clock::time_point start;
  };
  std::mutex mutex;
  std::deque<Step> steps;
  std::unordered_map<const PassRun*, size_t> open;
  Clock::time_point epoch;
  transform::progress::Watched watched;  // functions are noted in runs
};

class HistoryNode : public Node<HistoryNode, RunInstrumentNode> {
 public:
  static constexpr const char* _type_key = "instrument.History";
  static constexpr bool _type_has_hidden_members = true;  // what it records
  bool keep = true;
  static constexpr void Describe(auto& d) {
    d(F<&HistoryNode::keep>, "Keeps the modules of all steps; else of those that are open, failed, or the last.");
  }

  void BeforeRun(const PassRun& run) const final {
    if (!run.pass) return;
    auto n = Begin(run);
    n->action = *run.action ? run.action : "ran";
    n->why = !run.why.empty() ? String(run.why) : Caller(run.parent);
    n->status = "open";
    n->scope = ScopeOf(run.pass);
    n->pass_object = GetRef<Pass>(run.pass);
    std::lock_guard lock(record->mutex);
    record->open[&run] = Append(std::move(n), run.parent);
  }
  void AfterRun(const PassRun& run) const final { Close(run, ""); }
  void RunFailed(const PassRun& run, const String& error) const final { Close(run, error.str()); }
  void RunSkipped(const PassRun& run, const String& reason) const final {
    auto n = Begin(run);
    n->action = "skipped";
    n->why = reason;
    n->status = "skipped";
    n->after = run.module;
    n->scope = std::string_view(run.action) == "inserted" ? "inserted" : "";  // tells rerun what was in the list
    std::lock_guard lock(record->mutex);
    Append(std::move(n), run.parent);
  }

  /// All steps so far, each after the step that contains it; steps of functions that ran in parallel are in module
  /// order.
  Array<HistoryStep> Steps() const {
    std::lock_guard lock(record->mutex);
    const auto& steps = record->steps;
    std::vector<std::vector<size_t>> children(steps.size() + 1);  // the last: of none
    for (size_t i = 0; i < steps.size(); ++i) {
      children[steps[i].parent < 0 ? steps.size() : static_cast<size_t>(steps[i].parent)].push_back(i);
    }
    for (auto& c : children) {
      std::stable_sort(c.begin(), c.end(),
                       [&](size_t a, size_t b) { return steps[a].function_index < steps[b].function_index; });
    }
    Array<HistoryStep> out;
    struct Level {
      int64_t parent;
      const std::vector<size_t>* list;
      size_t next = 0;
    };
    std::vector<Level> stack{{-1, &children.back()}};
    while (!stack.empty()) {
      Level& l = stack.back();
      if (l.next == l.list->size()) {
        stack.pop_back();
        continue;
      }
      size_t i = (*l.list)[l.next++];
      HistoryStepNode shown = *steps[i].shown.get();
      shown.parent = l.parent;
      shown.depth = static_cast<int32_t>(stack.size()) - 1;
      stack.push_back({static_cast<int64_t>(out.size()), &children[i]});
      out.push_back(HistoryStep(std::move(shown)));
    }
    return out;
  }
  void Clear() const {
    std::lock_guard lock(record->mutex);
    record->steps.clear();
    record->open.clear();
  }

  std::shared_ptr<Record> record = std::make_shared<Record>();

 private:
  static String Caller(const PassRun* outer) {
    return outer && outer->pass ? String("called by `" + outer->info->name.str() + "`") : String("called");
  }
  ObjectPtr<HistoryStepNode> Begin(const PassRun& run) const {
    auto n = make_object<HistoryStepNode>();
    for (const PassInstrument& i : keep ? std::vector<PassInstrument>() : InstrumentsAround(PassContext::Current())) {
      if (!i.as<HistoryNode>()) n->watchers.push_back(i);
    }
    n->pass_name = run.info->name;
    n->before = run.module;
    transform::PassContextNode c = *PassContext::Current().get();
    c.instruments = Array<PassInstrument>();  // this instrument is among them: it must not hold itself
    c.instrument_errors = Array<String>();
    n->context = PassContext(std::move(c));
    n->target = Target::Current();
    if (run.parent && run.parent->function.defined()) n->function = run.parent->function->name_hint;
    return n;
  }
  size_t Append(ObjectPtr<HistoryStepNode> n, const PassRun* around) const {
    Record& r = *record;
    Record::Step s;
    s.start = Clock::now();
    if (r.steps.empty()) r.epoch = s.start;
    n->start_ms = Ms(s.start - r.epoch);
    for (const PassRun* f = around; f; f = f->whole->parent) {
      auto it = r.open.find(f->whole);
      if (it == r.open.end()) continue;
      s.parent = static_cast<int64_t>(it->second);
      if (f->function.defined()) s.function_index = IndexOf(f->module, f->function);
      break;
    }
    s.shown = HistoryStep(ObjectPtr<Object>(std::move(n)));
    r.steps.push_back(std::move(s));
    return r.steps.size() - 1;
  }
  static int64_t IndexOf(const IRModule& mod, const GlobalVar& var) {
    int64_t i = 0;
    for (const auto& [v, f] : mod->functions) {
      if (v.same_as(var)) return i;
      ++i;
    }
    return -1;
  }
  static double Ms(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

  void Close(const PassRun& run, const std::string& error) const {
    Clock::time_point now = Clock::now();
    std::vector<IRModule> dropped;  // outside of the lock: may take a while
    std::lock_guard lock(record->mutex);
    auto it = record->open.find(&run);
    if (it == record->open.end()) return;  // it began before this instrument was entered
    size_t index = it->second;
    record->open.erase(it);
    // Inner steps left open by an exception of another instrument.
    for (size_t i = index + 1; i < record->steps.size(); ++i) {
      auto* n = Mutable(i);
      if (n->status.view() != "open" || !Within(i, index)) continue;
      n->status = "failed";
      n->error = error;
      n->wall_ms = Ms(now - record->steps[i].start);
      std::erase_if(record->open, [&](const auto& e) { return e.second == i; });
    }
    auto* n = Mutable(index);
    n->wall_ms = Ms(now - record->steps[index].start);
    n->status = error.empty() ? "ok" : "failed";
    n->error = error;
    n->after = run.result;
    if (keep || !error.empty()) return;
    // Successful steps are dropped, except the last: the next step may fail.
    for (size_t i = 0; i < record->steps.size(); ++i) {
      if (i == index || record->steps[i].shown->status.view() == "open") continue;
      auto* old = Mutable(i);
      if (i > index || old->status.view() != "failed") {
        dropped.push_back(old->before);
        dropped.push_back(old->after);
        old->before = old->after = IRModule();
      }
    }
  }
  bool Within(size_t i, size_t around) const {
    for (int64_t p = record->steps[i].parent; p >= 0; p = record->steps[static_cast<size_t>(p)].parent) {
      if (p == static_cast<int64_t>(around)) return true;
    }
    return false;
  }
  HistoryStepNode* Mutable(size_t i) const { return const_cast<HistoryStepNode*>(record->steps[i].shown.get()); }
};

const HistoryNode* Get(const PassInstrument& i) {
  const auto* n = i.as<HistoryNode>();
  if (!n) throw runtime::TypeError("this instrument is no History");
  return n;
}

const RegisterNodes<HistoryStepNode, HistoryNode> registered_history;

}  // namespace

BATON_REGISTER_GLOBAL("instrument.History").set_body_typed([](String name, bool keep) {
  auto n = make_object<HistoryNode>();
  n->name = name;
  n->observes = true;
  n->keep = keep;
  return PassInstrument(ObjectPtr<Object>(n));
});
BATON_REGISTER_GLOBAL("instrument.HistorySteps").set_body_typed([](PassInstrument i) { return Get(i)->Steps(); });
BATON_REGISTER_GLOBAL("instrument.HistoryClear").set_body_typed([](PassInstrument i) { Get(i)->Clear(); });

}  // namespace baton::instrument
