// SPDX-License-Identifier: Apache-2.0
// Properties of modules, the scheduler that acts upon them, and the log of what sequences decide.
#include <baton/ir/pipeline.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>
#include <baton/support/stack.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>

#include "ir/pass/internal.h"

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

/// What holds while a schedule runs, and the steps that change it.
class Scheduler {
 public:
  explicit Scheduler(const PassContext& ctx) : ctx_(ctx) {}

  IRModule Run(const Pass& pass, IRModule mod, const char* action, const std::string& why) {
    PassInfo info = pass->Info();
    if (AllHold(info)) {
      std::string reason = "holds already: " + Join(info->establishes);
      Because because(action, why);
      ctx_.InstrumentPassSkipped(mod, info, String(reason));
      Say(schedule::Mark(), info, "skipped", reason, false);
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
    size_t mark = schedule::Mark();
    IRModule before = mod;
    {
      Because because(action, why);
      mod = pass(std::move(mod), ctx_);
    }
    bool changed = !mod.same_as(before);
    if (changed) Forget(info);
    for (const String& p : info->establishes) holds_.insert(p.str());
    Say(mark, info, action, why, changed);
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
  void Forget(const PassInfo& info) {
    bool others = Has(info->keeps, "*") || (info->keeps.empty() && !info->destroys.empty());
    std::erase_if(holds_,
                  [&](const std::string& p) { return Has(info->destroys, p) || !(others || Has(info->keeps, p)); });
  }
  void Say(size_t mark, const PassInfo& info, const char* action, std::string why, bool changed) {
    schedule::Say(mark, info, action, std::move(why), changed, {holds_.begin(), holds_.end()});
  }

  const PassContext& ctx_;
  std::set<std::string> holds_;
  RequiredPath path_;
};

thread_local schedule::Log* current_log = nullptr;
thread_local int depth = -1;

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
const RegisterNodes<ScheduledNode> registered_schedule;
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
  Deeper deeper;
  Scheduler scheduler(ctx);
  for (const Pass& pass : passes) {
    if (!pass.defined()) throw runtime::ValueError("Found undefined pass for optimization.");
    PassInfo info = pass->Info();
    if (!ctx.PassEnabled(info)) {
      std::string why = ctx.WhyDisabled(info);
      Because because("ran", "in the list");
      ctx.InstrumentPassSkipped(mod, info, String(why));
      schedule::Say(schedule::Mark(), info, "skipped", why, false);
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

Deeper::Deeper() { ++depth; }
Deeper::~Deeper() { --depth; }

namespace schedule {

Log::Log() : outer_(current_log), contexts_(EnteredContexts()) { current_log = this; }
bool Log::Takes() const { return EnteredContexts() == contexts_; }
Log::~Log() { current_log = outer_; }

size_t Mark() { return current_log ? current_log->decisions.size() : 0; }

void Say(size_t at, const PassInfo& info, const char* action, std::string why, bool changed,
         std::vector<std::string> holds) {
  if (!current_log || !current_log->Takes()) return;
  auto& all = current_log->decisions;
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(std::min(at, all.size())),
             {depth, info->name.str(), action, std::move(why), changed, std::move(holds)});
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
/// What of a property does not hold; "" where it holds.
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
