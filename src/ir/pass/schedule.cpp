// SPDX-License-Identifier: Apache-2.0
// Properties of modules, the scheduler that uses them, and the log of decisions of sequences.
#include <baton/ir/pipeline.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>
#include <baton/support/stack.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "ir/pass/pass_internals.h"

namespace baton::transform {
namespace {

struct PropertyTable {
  std::mutex mutex;
  std::map<std::string, PropertyDef, std::less<>> by_name;
  static PropertyTable& Get() {
    static auto* t = new PropertyTable;
    return *t;
  }
};

bool Has(const Array<String>& names, std::string_view name) {
  for (const String& n : names) {
    if (n.view() == name) return true;
  }
  return false;
}

std::string Join(const Array<String>& names) {
  std::string out;
  for (const String& n : names) out += (out.empty() ? "" : ", ") + n.str();
  return out;
}

/// The state of a running schedule, and the steps that change it.
class Scheduler {
 public:
  explicit Scheduler(const PassContext& ctx) : ctx_(ctx) {}

  IRModule Run(const Pass& pass, IRModule mod, const char* action, const std::string& why) {
    PassInfo info = pass->Info();
    if (AllHold(info)) {
      SkipPass(pass, mod, ctx_, {action, why, &holds_}, "holds already: " + Join(info->establishes));
      return mod;
    }
    if (!path_.Push(info->name.str())) {
      std::string cycle;
      for (const std::string& q : path_.names) cycle += q + " -> ";
      throw runtime::ValueError("passes need each other in a cycle: " + cycle + info->name.str() +
                                "; take a name out of `required`, or a property out of `needs`");
    }
    for (const String& name : info->required) {
      mod = support::WithStack(
          [&] { return Run(GetPass(name), std::move(mod), "inserted", "`" + info->name.str() + "` requires it"); });
    }
    for (const String& need : info->needs) {
      mod = support::WithStack([&] { return Establish(need, std::move(mod), "`" + info->name.str() + "`"); });
    }
    path_.Pop();
    const IRModule before = mod;
    mod = RunPass(pass, std::move(mod), ctx_, {action, why, &holds_});
    Settle(&holds_, info, !mod.same_as(before));
    return mod;
  }

  IRModule Establish(const String& property, IRModule mod, const std::string& for_what) {
    const PropertyDef& def = GetProperty(property);
    if (holds_.count(property.str())) return mod;
    if (!def.establisher) {
      std::string wrong = def.check(mod);
      if (wrong.empty()) {
        holds_.insert(property.str());
        return mod;
      }
      throw runtime::ValueError(for_what + " needs `" + property.str() + "`, which does not hold and which no pass " +
                                "establishes by itself: " + wrong);
    }
    return Run(GetPass(def.establisher), std::move(mod), "inserted", for_what + " needs `" + property.str() + "`");
  }

 private:
  bool AllHold(const PassInfo& info) const {
    if (info->establishes.empty()) return false;
    for (const String& p : info->establishes) {
      if (!holds_.count(p.str())) return false;
    }
    return true;
  }
  const PassContext& ctx_;
  std::set<std::string> holds_;
  RequiredPath path_;
};

/// The instrument behind a log: rows are in the order in which passes begin.
class LogNode : public Node<LogNode, instrument::RunInstrumentNode> {
 public:
  static constexpr const char* _type_key = "instrument.ScheduleLog";
  static constexpr const char* _doc = "Collects why the passes of sequences ran; what `explain` shows.";
  static constexpr bool _type_has_hidden_members = true;  // the log
  static constexpr void Describe(auto&) {}
  schedule::Log* log = nullptr;
  std::shared_ptr<std::vector<std::pair<const PassRun*, size_t>>> open =
      std::make_shared<std::vector<std::pair<const PassRun*, size_t>>>();

  void BeforeRun(const PassRun& run) const final {
    if (!*run.action) return;
    open->push_back({&run, log->decisions.size()});
    log->decisions.push_back({run.depth, run.info->name.str(), run.action, run.why, false, {}});
  }
  void AfterRun(const PassRun& run) const final {
    if (!*run.action || open->empty() || open->back().first != &run) return;
    schedule::Decision& d = log->decisions[open->back().second];
    open->pop_back();
    d.changed = !run.result.same_as(run.module);
    if (!run.holds) return;
    std::set<std::string> holds = *run.holds;
    Settle(&holds, run.info, d.changed);
    d.holds.assign(holds.begin(), holds.end());
  }
  void RunFailed(const PassRun& run, const String&) const final {
    if (!open->empty() && open->back().first == &run) open->pop_back();
  }
  void RunSkipped(const PassRun& run, const String& reason) const final {
    if (!*run.action) return;
    schedule::Decision d{run.depth, run.info->name.str(), "skipped", reason.str(), false, {}};
    if (run.holds) d.holds.assign(run.holds->begin(), run.holds->end());
    log->decisions.push_back(std::move(d));
  }
};

}  // namespace

void AppendJson(std::string_view s, std::string* out) {
  *out += '"';
  for (char c : s) {
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      snprintf(code, sizeof code, "\\u%04x", c);
      *out += code;
    } else {
      *out += c;
    }
  }
  *out += '"';
}

namespace {
const RegisterNodes<ScheduledNode, LogNode> registered_schedule;
}  // namespace

void RegisterProperty(const char* name, PropertyDef def) {
  PropertyTable& t = PropertyTable::Get();
  std::lock_guard lock(t.mutex);
  t.by_name[name] = def;
}

const PropertyDef& GetProperty(const String& name) {
  PropertyTable& t = PropertyTable::Get();
  std::lock_guard lock(t.mutex);
  auto it = t.by_name.find(name.view());
  if (it != t.by_name.end()) return it->second;
  std::vector<std::string> known;
  for (const auto& [n, d] : t.by_name) known.push_back(n);
  std::string near = support::DidYouMean(name.view(), known), all;
  for (const std::string& n : known) all += (all.empty() ? "" : ", ") + n;
  throw runtime::ValueError("there is no property `" + name.str() + "`" + (near.empty() ? "; there are " + all : near));
}

Array<String> ListProperties() {
  PropertyTable& t = PropertyTable::Get();
  std::lock_guard lock(t.mutex);
  Array<String> out;
  for (const auto& [n, d] : t.by_name) out.push_back(String(n));
  return out;
}

IRModule ScheduledNode::operator()(IRModule mod, const PassContext& ctx) const {
  Scheduler scheduler(ctx);
  for (const Pass& pass : passes) {
    if (!pass.defined()) throw runtime::ValueError("Found undefined pass for optimization.");
    PassInfo info = pass->Info();
    if (!ctx.PassEnabled(info)) {
      SkipPass(pass, mod, ctx, {"ran", "in the list"}, ctx.WhyDisabled(info));
      continue;
    }
    mod = scheduler.Run(pass, std::move(mod), "ran", "in the list");
  }
  for (const String& p : ends_with) {
    mod = scheduler.Establish(p, std::move(mod), "the end of `" + pass_info->name.str() + "`");
  }
  return mod;
}

Scheduled::Scheduled(Array<Pass> passes, String name, Array<String> ends_with) {
  auto n = make_object<ScheduledNode>();
  n->pass_info = WithTraitsOf(passes, PassInfo(0, name, {}));
  n->passes = std::move(passes);
  n->ends_with = std::move(ends_with);
  data_ = std::move(n);
}

void Settle(std::set<std::string>* holds, const PassInfo& info, bool changed) {
  if (changed) {
    const bool others = Has(info->keeps, "*") || (info->keeps.empty() && !info->destroys.empty());
    std::erase_if(*holds,
                  [&](const std::string& p) { return Has(info->destroys, p) || !(others || Has(info->keeps, p)); });
  }
  for (const String& p : info->establishes) holds->insert(p.str());
}

namespace schedule {

Log::Log() : context_(PassContext::Current()) {
  auto n = make_object<LogNode>();
  n->name = "ScheduleLog";
  n->log = this;
  instrument_ = instrument::PassInstrument(ObjectPtr<Object>(n));
  context_->instruments.push_back(instrument_);
}
Log::~Log() {
  Array<instrument::PassInstrument> left;
  for (const instrument::PassInstrument& i : context_->instruments) {
    if (!i.same_as(instrument_)) left.push_back(i);
  }
  context_->instruments = left;
}

std::string Render(const std::vector<Decision>& decisions, bool json) {
  std::string out;
  if (json) {
    out = "[";
    for (const Decision& d : decisions) {
      out += out.size() > 1 ? ",\n " : "\n ";
      out += "{\"pass\": ";
      AppendJson(d.pass, &out);
      out += ", \"depth\": " + std::to_string(d.depth) + ", \"action\": ";
      AppendJson(d.action, &out);
      out += ", \"why\": ";
      AppendJson(d.why, &out);
      out += std::string(", \"changed\": ") + (d.changed ? "true" : "false") + ", \"holds\": [";
      for (size_t i = 0; i < d.holds.size(); ++i) {
        if (i) out += ", ";
        AppendJson(d.holds[i], &out);
      }
      out += "]}";
    }
    return out + "\n]\n";
  }
  size_t width = 4;
  for (const Decision& d : decisions) width = std::max(width, d.pass.size() + 2 * static_cast<size_t>(d.depth));
  for (const Decision& d : decisions) {
    std::string row(2 * static_cast<size_t>(d.depth), ' ');
    row += d.pass;
    row.resize(width + 2, ' ');
    std::string action = d.action;
    action.resize(10, ' ');
    row += action + (d.action == "skipped" ? "           " : d.changed ? "changed    " : "unchanged  ") + d.why;
    out += row + "\n";
  }
  return out;
}

}  // namespace schedule

BATON_REGISTER_GLOBAL("transform.Scheduled")
    .set_body_typed([](Array<Pass> passes, String name, Array<String> ends_with) -> Pass {
      for (const String& p : ends_with) GetProperty(p);
      return Scheduled(passes, name, ends_with);
    });
BATON_REGISTER_GLOBAL("transform.ListProperties").set_body_typed([] { return ListProperties(); });
BATON_REGISTER_GLOBAL("transform.PropertyDoc").set_body_typed([](String name) {
  return String(GetProperty(name).doc);
});
/// Why a property does not hold; "" if it holds.
BATON_REGISTER_GLOBAL("transform.CheckProperty").set_body_typed([](String name, IRModule mod) {
  return String(GetProperty(name).check(mod));
});
/// Runs a pass and says why each pass in it ran: (module, text or JSON).
BATON_REGISTER_GLOBAL("transform.ExplainPipeline").set_body_typed([](Pass pass, IRModule mod, bool json) {
  schedule::Log log;
  IRModule out = pass(std::move(mod));
  return Array<Any>{Any(out), Any(String(schedule::Render(log.decisions, json)))};
});

}  // namespace baton::transform
