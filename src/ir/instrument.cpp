// SPDX-License-Identifier: Apache-2.0
// Instruments made of functions, and the built-in timing instrument.
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

namespace baton::instrument {

using transform::PassInfo;

class FunctionInstrumentNode : public Node<FunctionInstrumentNode, PassInstrumentNode> {
 public:
  static constexpr const char* _type_key = "instrument.FunctionInstrument";
  PackedFunc enter, exit, should_run, run_before, run_after;
  static constexpr void Describe(auto& d) {
    d(F<&FunctionInstrumentNode::enter>, "Called with nothing when the context is entered; may be null.");
    d(F<&FunctionInstrumentNode::exit>, "Called when it is left.");
    d(F<&FunctionInstrumentNode::should_run>, "(module, info) -> bool.");
    d(F<&FunctionInstrumentNode::run_before>, "(module, info).");
    d(F<&FunctionInstrumentNode::run_after>, "(module, info).");
  }
  void EnterPassContext() const final {
    if (enter.defined()) enter();
  }
  void ExitPassContext() const final {
    if (exit.defined()) exit();
  }
  bool ShouldRun(const IRModule& mod, const PassInfo& info) const final {
    if (!should_run.defined()) return true;
    return should_run(mod, info).As<bool>();
  }
  void RunBeforePass(const IRModule& mod, const PassInfo& info) const final {
    if (run_before.defined()) run_before(mod, info);
  }
  void RunAfterPass(const IRModule& mod, const PassInfo& info) const final {
    if (run_after.defined()) run_after(mod, info);
  }
};

PassInstrument MakePassInstrument(String name, PackedFunc enter, PackedFunc exit, PackedFunc should_run,
                                  PackedFunc run_before, PackedFunc run_after) {
  auto n = make_object<FunctionInstrumentNode>();
  n->name = name;
  n->enter = enter, n->exit = exit, n->should_run = should_run, n->run_before = run_before, n->run_after = run_after;
  return PassInstrument(ObjectPtr<Object>(n));
}

namespace {

using Clock = std::chrono::steady_clock;

struct Profile {
  std::string name;
  Clock::time_point start;
  double ms = 0;
  std::vector<std::unique_ptr<Profile>> children;
};
/// Times of this thread's passes, as they nest.
struct ProfileTree {
  Profile root;
  std::vector<Profile*> open{&root};
  void Clear() {
    root.children.clear();
    open.assign(1, &root);
  }
};
ProfileTree& Tree() {
  static thread_local ProfileTree t;
  return t;
}

void Render(const Profile& p, int depth, double total, std::string* out) {
  for (const auto& c : p.children) {
    double inner = 0;
    for (const auto& g : c->children) inner += g->ms;
    char line[64];
    out->append(static_cast<size_t>(depth) * 2, ' ').append(c->name);
    snprintf(line, sizeof line, ": %.3fms [%.3fms] (%.2f%%)\n", c->ms, c->ms - inner,
             total > 0 ? c->ms / total * 100 : 0);
    *out += line;
    Render(*c, depth + 1, total, out);
  }
}

const RegisterNodes<FunctionInstrumentNode> registered;

}  // namespace

BATON_REGISTER_GLOBAL("instrument.PassInstrument")
    .set_body_typed([](String name, PackedFunc enter, PackedFunc exit, PackedFunc should_run, PackedFunc before,
                       PackedFunc after) { return MakePassInstrument(name, enter, exit, should_run, before, after); });
BATON_REGISTER_GLOBAL("instrument.MakePassTimingInstrument").set_body_typed([] {
  auto body = [](auto f) { return runtime::MakeTyped(f, "PassTimingInstrument"); };
  return MakePassInstrument("PassTimingInstrument", body([] { Tree().Clear(); }), body([] { Tree().Clear(); }), nullptr,
                            body([](IRModule, PassInfo info) {
                              ProfileTree& t = Tree();
                              t.open.back()->children.push_back(std::make_unique<Profile>());
                              Profile* p = t.open.back()->children.back().get();
                              p->name = info->name;
                              t.open.push_back(p);
                              p->start = Clock::now();
                            }),
                            body([](IRModule, PassInfo info) {
                              ProfileTree& t = Tree();
                              // A pass that threw leaves its entry open: close down to the one that ended.
                              while (t.open.size() > 1) {
                                Profile* p = t.open.back();
                                t.open.pop_back();
                                p->ms = std::chrono::duration<double, std::milli>(Clock::now() - p->start).count();
                                if (info->name == p->name) break;
                              }
                            }));
});
BATON_REGISTER_GLOBAL("instrument.RenderTimePassProfiles").set_body_typed([] {
  std::string out;
  double total = 0;
  for (const auto& c : Tree().root.children) total += c->ms;
  Render(Tree().root, 0, total, &out);
  char line[64];
  snprintf(line, sizeof line, "Total: %.3fms\n", total);
  return String(out + line);
});

}  // namespace baton::instrument
