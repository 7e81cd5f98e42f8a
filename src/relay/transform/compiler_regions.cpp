// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/diagnostic.h>
#include <baton/ir/transform.h>
#include <baton/relay/functor.h>
#include <baton/relay/op/annotation.h>
#include <relay/expr/children.h>
#include <relay/transform/compiler_regions.h>

#include <algorithm>
#include <string>
#include <utility>

namespace baton::relay {
namespace {

std::string_view CompilerOf(const ExprNode* e, const Op& op) {
  if (!e->IsInstance<CallNode>()) return {};
  const auto* c = static_cast<const CallNode*>(e);
  if (!c->op.same_as(op) || c->args.size() != 1) return {};
  const auto* attrs = c->attrs.as<CompilerAttrs>();
  return attrs ? attrs->compiler.view() : std::string_view();
}

[[noreturn]] void RegionError(const ExprNode* at, const std::string& message, const std::string& help = "") {
  DiagnosticList errors;
  errors.Error(at->span, message, "", help);
  errors.ThrowIfAny(baton::transform::PassContext::Current()->diag_ctx);
  throw InternalError("an error did not end the pass");
}

}  // namespace

bool IsOpaqueFunction(const FunctionNode* f) {
  return f->HasNonzeroAttr(attr::kPrimitive) ||
         (f->attrs.defined() && (f->attrs->dict.count("Composite") || f->attrs->dict.count(attr::kCompiler)));
}
std::string_view BeginsRegion(const ExprNode* e) { return CompilerOf(e, op::compiler_begin); }
std::string_view EndsRegion(const ExprNode* e) { return CompilerOf(e, op::compiler_end); }

CompilerRegions::CompilerRegions(const Function& f) {
  if (!AnyNode(f, [](const ExprNode* n) { return !EndsRegion(n).empty(); })) return;
  nodes_ = PostOrderNodes(f);
  for (const ExprNode* n : nodes_) {
    const std::string_view compiler = EndsRegion(n);
    if (compiler.empty()) continue;
    const int id = static_cast<int>(regions_.size());
    regions_.push_back({compiler, {}, {static_cast<const CallNode*>(n)}});
    parent_.push_back(id);
    std::vector<const ExprNode*> stack{n};
    while (!stack.empty()) {
      const ExprNode* e = stack.back();
      stack.pop_back();
      if (!e || e->IsInstance<VarNode>() || e->IsInstance<ConstantNode>() || e->IsInstance<OpNode>() ||
          e->IsInstance<GlobalVarNode>() || e->IsInstance<ConstructorNode>() || e->IsInstance<FunctionNode>())
        continue;
      if (const std::string_view other = BeginsRegion(e); !other.empty()) {
        if (other != compiler) {
          RegionError(e, "a region that ends for the compiler `" + std::string(compiler) + "` begins for `" +
                             std::string(other) + "`");
        }
        bool fresh = false;
        int& of = begin_of_.Insert(e, &fresh);
        if (fresh) of = id;
        Union(of, id);
        continue;
      }
      if (const int* of = number_.Find(e)) {
        Union(*of, id);
        continue;
      }
      number_[e] = id;
      ForEachChild(e, [&](const ExprNode* operand) { stack.push_back(operand); });
    }
  }
  Collect();
}

int CompilerRegions::Find(int id) const {
  while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
  return id;
}

void CompilerRegions::Union(int a, int b) {
  a = Find(a), b = Find(b);
  if (a == b) return;
  if (regions_[a].compiler != regions_[b].compiler) {
    RegionError(regions_[a].ends[0], "a region for the compiler `" + std::string(regions_[a].compiler) +
                                         "` stands within one for `" + std::string(regions_[b].compiler) + "`");
  }
  parent_[std::max(a, b)] = std::min(a, b);
}

void CompilerRegions::Collect() {
  for (Region& r : regions_) r.begins.clear(), r.ends.clear();
  for (const ExprNode* n : nodes_) {
    const auto* call = static_cast<const CallNode*>(n);
    if (const int* of = begin_of_.Find(n)) {
      regions_[Find(*of)].begins.push_back(call);
    } else if (!EndsRegion(n).empty()) {
      regions_[Find(number_[n])].ends.push_back(call);
    }
  }
}

bool CompilerRegions::IsInner(const CallNode* begin) const {
  const int* of = begin_of_.Find(begin);
  const ExprNode* arg = begin->args[0].get();
  return of && !EndsRegion(arg).empty() && Find(*number_.Find(arg)) == Find(*of);
}

/// The program with each region as one unit, in an order in which a unit comes after what it needs.
struct CompilerRegions::Units {
  std::vector<int> order;                ///< units; regions come first, by number
  std::vector<std::vector<int>> inputs;  ///< of each unit
  std::vector<const ExprNode*> lone;     ///< what unit regions + i is
  bool cyclic = false;

  explicit Units(const CompilerRegions& all) {
    const int regions = static_cast<int>(all.regions_.size());
    PointerMap<int> of;
    for (const ExprNode* n : all.nodes_) {
      // A begin is outside of its region, unless it takes a value of the very region.
      const bool begin = !BeginsRegion(n).empty();
      const int* r =
          begin && all.IsInner(static_cast<const CallNode*>(n)) ? all.begin_of_.Find(n) : all.number_.Find(n);
      if (r) {
        of[n] = all.Find(*r);
      } else {
        of[n] = regions + static_cast<int>(lone.size());
        lone.push_back(n);
      }
    }
    const size_t count = regions + lone.size();
    inputs.resize(count);
    std::vector<std::vector<int>> users(count);
    std::vector<int> open(count);
    auto needs = [&](const ExprNode* n, const ExprNode* operand) {
      const int* found = operand ? of.Find(operand) : nullptr;
      if (!found) return;
      const int v = *found, u = of[n];
      if (v == u) return;
      inputs[u].push_back(v);
      users[v].push_back(u);
      ++open[u];
    };
    for (const ExprNode* n : all.nodes_) {
      ForEachChild(n, [&](const ExprNode* operand) { needs(n, operand); });
      // A function may use the variable that it is bound to; any other value is there before.
      const auto* let = n->IsInstance<LetNode>() ? static_cast<const LetNode*>(n) : nullptr;
      if (let && !let->value.as<FunctionNode>()) needs(let->var.get(), let->value.get());
    }
    for (size_t u = 0; u < count; ++u) {
      if (!open[u]) order.push_back(static_cast<int>(u));
    }
    for (size_t i = 0; i < order.size(); ++i) {
      for (int u : users[order[i]]) {
        if (!--open[u]) order.push_back(u);
      }
    }
    cyclic = order.size() < count;
  }
};

void CompilerRegions::CheckOrder() const {
  const Units units(*this);
  if (!units.cyclic) return;
  std::vector<bool> ordered(units.inputs.size());
  for (int u : units.order) ordered[u] = true;
  for (const Region& r : regions_) {
    if (r.ends.empty() || ordered[Of(r.ends.back())]) continue;
    RegionError(
        r.ends.back(),
        "the region for `" + std::string(r.compiler) + "` that ends here needs a value computed of a result of its own",
        "begin another region behind that value");
  }
  throw InternalError("a program needs its own result");
}

void CompilerRegions::Merge() {
  std::vector<std::string_view> compilers;
  for (const Region& r : regions_) {
    if (std::find(compilers.begin(), compilers.end(), r.compiler) == compilers.end()) compilers.push_back(r.compiler);
  }
  const int regions = static_cast<int>(regions_.size());
  for (std::string_view compiler : compilers) {
    // How often a value on the way to a unit has left regions of this compiler. Those where it is the same cannot need
    // each other by way of something else.
    const Units units(*this);
    if (units.cyclic) CheckOrder();
    auto own = [&](int u) {
      return u < regions ? regions_[u].compiler == compiler : BeginsRegion(units.lone[u - regions]) == compiler;
    };
    std::vector<int> left(units.inputs.size());
    for (int u : units.order) {
      for (int v : units.inputs[u]) left[u] = std::max(left[u], left[v] + (own(v) && !own(u)));
    }
    std::vector<std::pair<int, int>> joined;
    for (int r = 0; r < regions; ++r) {
      if (Find(r) != r || regions_[r].compiler != compiler) continue;
      for (const CallNode* begin : regions_[r].begins) {
        const ExprNode* arg = begin->args[0].get();
        if (EndsRegion(arg) != compiler) continue;
        const int from = *number_.Find(arg);
        if (left[Find(from)] == left[r]) joined.push_back({r, from});
      }
    }
    for (auto [a, b] : joined) Union(a, b);
    Collect();
  }
}

}  // namespace baton::relay
