// SPDX-License-Identifier: Apache-2.0
// Device planning. One walk over a function writes down which values must live on one device (DeviceDomains); what an
// annotation fixes is settled first, then the uses that may have a copy, in the order of the program; the rest
// goes to the default device. A second walk writes the result into the program: copies where a value is used on another
// device, `on_device(..., is_fixed=True)` on what is elsewhere than the expression around it (the argument of a copy,
// the value of a let on another device), devices of parameters and results as attributes. An `on_device` at the end of
// a function says where its result is.
//
// Places of copies: at the result of on_device, at uses of variables and of values with several uses, at
// arguments and results of calls of functions, at conditions of `if`. Arguments and result of an operator share their
// device.
#include <baton/relay/op.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>
#include <fmt/format.h>
#include <relay/expr/call_graph.h>
#include <relay/expr/expr_index.h>
#include <relay/transform/device_plan.h>
#include <relay/transform/type_keeper.h>

#include <limits>

namespace baton::relay::transform {
namespace devices {

namespace {

/// `on_device(t).i` becomes `on_device(t.i)`: fields are copied, not tuples of which most is not used there.
class ProjectionsFirst : public TypeKeeper {
 public:
  using TypeKeeper::Rewrite_;
  Expr Rewrite_(const TupleGetItemNode* pre, const Expr& post) override {
    const auto* get = post.as<TupleGetItemNode>();
    const auto* on = get->tuple.as<CallNode>();
    if (!on || KindOf(on->op) != OpKind::kOnDevice || IsFixed(get->tuple)) return post;
    Expr field = TupleGetItem(on->args[0], static_cast<int>(get->index));
    auto node = make_object<CallNode>(*on);
    node->args = {field};
    for (const Expr& e : {field, Expr(ObjectPtr<Object>(node))}) {
      e->checked_type_ = pre->checked_type_;
      e->span = pre->span;
    }
    return Expr(ObjectPtr<Object>(node));
  }
};

Function WithProjectionsFirst(const Function& func) {
  const bool any = AnyNode(func, [](const ExprNode* n) {
    const auto* get = n->IsInstance<TupleGetItemNode>() ? static_cast<const TupleGetItemNode*>(n) : nullptr;
    const auto* on = get ? get->tuple.as<CallNode>() : nullptr;
    return on && KindOf(on->op) == OpKind::kOnDevice && !IsFixed(get->tuple);
  });
  return any ? Downcast<Function>(ProjectionsFirst().Mutate(func)) : func;
}

}  // namespace

ModulePlan::ModulePlan(const IRModule& mod, int64_t default_device, PlacementReport* told)
    : report(told), mod_(mod), out_(mod), default_(default_device) {
  for (const auto& [var, func] : mod->functions) {
    numbers_.push_back(func.as<FunctionNode>() ? entries_.size() : kNone);
    if (!func.as<FunctionNode>()) continue;
    entries_.push_back({var, WithProjectionsFirst(Downcast<Function>(func))});
  }
  std::vector<std::vector<size_t>> calls(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    baton::runtime::PollInterrupt();
    AnyNode(entries_[i].func, [&](const ExprNode* n) {
      if (!n->IsInstance<GlobalVarNode>()) return false;
      const size_t callee = IndexOf(static_cast<const GlobalVarNode*>(n)->name_hint.view());
      if (callee == kNone) return false;
      calls[i].push_back(callee);
      if (callee != i) entries_[callee].called = true;
      return false;
    });
  }
  groups_ = CallGroups(calls);
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (size_t i : groups_[g]) entries_[i].group = g;
  }
}

Id ModulePlan::Instantiate(const GlobalVarNode* var, const ExprNode* by, DeviceDomains* domains) {
  const size_t index = IndexOf(var->name_hint.view());
  if (index == kNone) {
    // A function of another IR: all on one device, as an operator.
    const Id id = domains->OfType(TypeOf(var));
    std::vector<Id> leaves;
    domains->Leaves(id, &leaves);
    for (size_t i = 1; i < leaves.size(); ++i) domains->Unify(leaves[0], leaves[i], by, "compiled function");
    return id;
  }
  Entry& e = entries_[index];
  if (!e.has_scheme) FindScheme(index);
  const Id id = domains->OfType(TypeOf(e.func.get()));
  std::vector<Id> leaves;
  domains->Leaves(id, &leaves);
  std::map<int64_t, Id> classes;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (e.scheme[i] >= 0) {
      domains->Set(leaves[i], e.scheme[i], by, "the function that is called");
    } else {
      auto [at, fresh] = classes.try_emplace(e.scheme[i], leaves[i]);
      if (!fresh) domains->Unify(at->second, leaves[i], by, "parameters and result of a function");
    }
  }
  return id;
}

void ModulePlan::FindScheme(size_t entry) {
  // Callees first, without recursion: groups come in that order.
  while (schemed_ <= entries_[entry].group) {
    const size_t g = schemed_++;
    std::vector<std::pair<GlobalVar, Function>> funcs;
    bool wanted = false;
    for (size_t i : groups_[g]) {
      funcs.push_back({entries_[i].var, entries_[i].func});
      wanted = wanted || (entries_[i].called && !entries_[i].has_scheme);
    }
    if (!wanted) continue;
    PlacementReport* kept = report;
    report = nullptr;
    BodyPlan plan(this, funcs);
    plan.Constrain();
    plan.Settle(false);
    report = kept;
    for (size_t k = 0; k < funcs.size(); ++k) {
      Entry& e = entries_[groups_[g][k]];
      std::vector<Id> leaves;
      plan.domains().Leaves(plan.Root(k), &leaves);
      for (Id leaf : leaves) {
        const int64_t device = plan.domains().DeviceOf(leaf);
        e.scheme.push_back(device >= 0 ? device : -1 - static_cast<int64_t>(plan.domains().Find(leaf)));
      }
      e.has_scheme = true;
    }
  }
}

GlobalVar ModulePlan::Specialise(const GlobalVarNode* var, const Signature& signature) {
  const size_t index = IndexOf(var->name_hint.view());
  if (index == kNone) return GetRef<GlobalVar>(var);
  Entry& e = entries_[index];
  auto [at, fresh] = e.versions.try_emplace(signature);
  if (!fresh) return at->second;
  if (!e.planned) {
    e.planned = true;
    at->second = GetRef<GlobalVar>(var);
  } else {
    std::string name = e.var->name_hint.str() + "_on";
    for (int64_t d : signature) name += "_" + std::to_string(d);
    while (mod_->ContainGlobalVar(name) || !names_.insert(name).second) name += "_";
    at->second = GlobalVar(name.c_str());
    at->second->checked_type_ = e.var->checked_type_;
  }
  work_.push_back({index, signature, false, at->second});
  return at->second;
}

namespace {

/// A copy with new variables, and the types of the original.
class Renewer : public TypeKeeper {
 public:
  explicit Renewer(const Expr& e) {
    for (const Var& v : BoundVars(e)) {
      Var fresh(v->vid, v->type_annotation);
      fresh->checked_type_ = v->checked_type_;
      fresh->span = v->span;
      Put(v, fresh);
    }
  }
};

}  // namespace

void ModulePlan::Plan(const Demand& demand) {
  Entry& e = entries_[demand.entry];
  std::vector<std::pair<GlobalVar, Function>> funcs{{e.var, e.func}};
  if (!demand.var.same_as(e.var) && !(demand.var->name_hint == e.var->name_hint)) {
    // Planned once more under another name.
    funcs[0].second = Downcast<Function>(Renewer(e.func).Mutate(e.func));
  }
  for (size_t i : groups_[e.group]) {
    if (i != demand.entry) funcs.push_back({entries_[i].var, entries_[i].func});
  }
  BodyPlan plan(this, funcs);
  if (!demand.open) {
    std::vector<Id> leaves;
    plan.domains().Leaves(plan.Root(0), &leaves);
    for (size_t i = 0; i < leaves.size(); ++i)
      plan.domains().Set(leaves[i], demand.signature[i], funcs[0].second.get(), "the call of the function");
  }
  plan.Constrain();
  plan.Settle(true);
  if (!errors_.empty()) return;
  if (demand.open) e.versions[plan.Resolve(plan.Root(0))] = demand.var;
  Function func = plan.Rewrite(funcs[0].second, demand.var->name_hint.str());
  if (demand.var.same_as(e.var) && func.same_as(e.func)) return;
  out_.CopyOnWrite()->Add(demand.var, func, true);
}

IRModule ModulePlan::Run() {
  auto drain = [&] {
    while (done_ < work_.size() && errors_.empty()) {
      baton::runtime::PollInterrupt();
      Demand d = work_[done_++];
      Plan(d);
    }
  };
  auto open = [&](size_t i) {
    entries_[i].planned = true;
    work_.push_back({i, {}, true, entries_[i].var});
    drain();
  };
  for (size_t i = 0; i < entries_.size(); ++i) {
    baton::runtime::PollInterrupt();
    if (!entries_[i].called || entries_[i].var->name_hint == "main") open(i);
  }
  for (size_t i = 0; i < entries_.size() && errors_.empty(); ++i) {
    baton::runtime::PollInterrupt();
    if (!entries_[i].planned) open(i);
  }
  errors_.ThrowIfAny(PassContext::Current()->diag_ctx);
  return out_;
}

}  // namespace devices

IRModule PlanModuleDevices(const IRModule& mod, int64_t default_device, PlacementReport* report) {
  if (default_device <= 0)
    throw CompileError(fmt::format("the default device has type {}, must be positive", default_device));
  if (!runtime::IsDeviceType(default_device)) {
    throw CompileError(fmt::format("the default device has type {}, which is no device; there are {}", default_device,
                                   runtime::DeviceTypes()));
  }
  return devices::ModulePlan(mod, default_device, report).Run();
}

PlacedModule PlaceModule(const IRModule& planned, int64_t default_device) {
  PlacedModule out;
  devices::ModulePlan plan(planned, default_device, nullptr);
  plan.placed = &out.device;
  out.mod = plan.Run();
  return out;
}

BATON_REGISTER_PASS_CONFIG_OPTION(
    "relay.fallback_device_type", int64_t,
    "Device, as DLPack numbers them, of what no annotation decides; 1 (CPU) if not given.");

namespace {
constexpr int64_t kDeviceOfContext = -1;
}

Pass PlanDevices(const PlanDevicesOptions& options) {
  return MakePass<PlanDevices>(
      options, {
                   .doc = "Decides on which device each expression runs, from on_device and device_copy, and writes "
                          "that down: copies "
                          "where a value changes device, fixed annotations on bindings, attributes on functions.",
                   .opt_level = 0,
                   .required = {"InferType"},
                   .run =
                       [default_device = options.default_device](IRModule mod, PassContext ctx) {
                         int64_t device = default_device != kDeviceOfContext
                                              ? default_device
                                              : ctx->GetConfig<int64_t>("relay.fallback_device_type", 1);
                         return PlanModuleDevices(mod, device, nullptr);
                       },
               });
}

namespace {
const RegisterPass<PlanDevices> registered_plan_devices;

BATON_REGISTER_GLOBAL("relay.analysis.Placement").set_body_typed([](IRModule mod, int64_t default_device) {
  PlacementReport report;
  IRModule planned = PlanModuleDevices(InferType()(mod), default_device, &report);
  Array<Any> places, copies;
  for (const auto& p : report.places) {
    places.push_back(Any(Map<String, Any>{{"function", Any(String(p.function))},
                                          {"expression", Any(String(p.expression))},
                                          {"place", Any(String(p.place))},
                                          {"device_type", Any(p.device)},
                                          {"because", Any(String(p.because))}}));
  }
  for (const auto& c : report.copies) {
    copies.push_back(Any(Map<String, Any>{{"function", Any(String(c.function))},
                                          {"expression", Any(String(c.expression))},
                                          {"place", Any(String(c.place))},
                                          {"src_dev_type", Any(c.from)},
                                          {"dst_dev_type", Any(c.to)},
                                          {"bytes", Any(c.bytes)},
                                          {"formula", Any(String(c.formula))},
                                          {"because", Any(String(c.because))}}));
  }
  return Map<String, Any>{{"places", Any(places)}, {"copies", Any(copies)}, {"module", Any(planned)}};
});
}  // namespace

}  // namespace baton::relay::transform
