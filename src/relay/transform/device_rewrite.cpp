// SPDX-License-Identifier: Apache-2.0
// The devices that were found go into the program: copies where a value is used on another device,
// `on_device(..., is_fixed=True)` on what is elsewhere than its surroundings, devices of parameters and results as
// attributes.
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/runtime/interrupt.h>
#include <fmt/format.h>
#include <relay/transform/device_plan.h>

namespace baton::relay::transform::devices {
namespace {

/// The expression of a node that replaces `old`, with its type.
template <class Node>
Expr Typed(const ObjectPtr<Node>& node, const ExprNode* old) {
  Expr out{ObjectPtr<Object>(node)};
  out->checked_type_ = old->checked_type_;
  return out;
}

/// A device, or a list of devices.
bool SameDevices(const Any& a, const Any& b) {
  if (a.type_code() == kBatonInt) return b.type_code() == kBatonInt && a.As<int64_t>() == b.As<int64_t>();
  if (!a.object() || !a.object()->IsInstance<runtime::ArrayObj>() || b.type_code() == kBatonInt) return false;
  const auto x = a.As<Array<Any>>(), y = b.As<Array<Any>>();
  bool same = x.size() == y.size();
  for (size_t i = 0; same && i < x.size(); ++i) {
    const Any &p = x[static_cast<int64_t>(i)], &q = y[static_cast<int64_t>(i)];
    same = p.type_code() == kBatonInt && q.type_code() == kBatonInt && p.As<int64_t>() == q.As<int64_t>();
  }
  return same;
}

}  // namespace

Expr BodyPlan::Fixed(const Expr& e, int64_t device) {
  Expr out = MakeCall<OnDeviceAttrs>(op::on_device, {e}, [&](OnDeviceAttrs* a) {
    a->device_type = device;
    a->is_fixed = true;
  });
  out->span = e->span;
  out->checked_type_ = e->checked_type_;
  return out;
}

Expr BodyPlan::Said(const Expr& value, const CallNode* on, int64_t device) {
  if (value.as<VarNode>() || value.as<FunctionNode>() || IsUnit(TypeOf(value.get()))) return value;
  if (on && on->args[0].same_as(value)) return GetRef<Expr>(on);
  return Fixed(value, device);
}

void BodyPlan::Tell(const ExprNode* value, int64_t from, int64_t to, std::string because) {
  const Type type = TypeOf(value);
  told_.push_back({Brief(value), Place(value), from, to, BytesOfValue(type), BytesFormula(type), std::move(because)});
}

Expr BodyPlan::Moved(const ExprNode* by, const Expr& value, const CallNode* on, int64_t from, int64_t to,
                     const char* rule) {
  Expr out = MakeCall<DeviceCopyAttrs>(op::device_copy, {Said(value, on, from)}, [&](DeviceCopyAttrs* a) {
    a->src_dev_type = from;
    a->dst_dev_type = to;
  });
  out->span = value->span.defined() ? value->span : by->span;
  out->checked_type_ = value->checked_type_;
  if (mod_->report) {
    Tell(value.get(), from, to,
         fmt::format("{} of `{}`{}{} on {}", rule, Brief(by), Place(by).empty() ? "" : " at ", Place(by),
                     DeviceName(to)));
  }
  return out;
}

int64_t BodyPlan::Around(const ExprNode* by, Id want) {
  const auto* c = by->IsInstance<CallNode>() ? static_cast<const CallNode*>(by) : nullptr;
  const bool own = by->IsInstance<FunctionNode>() || (c && c->op.same_as(op::on_device));
  return ResultDevice(own ? want : Dom(by));
}

Expr BodyPlan::Operand(const ExprNode* by, const Expr& child, Id want, How how, const char* rule, int index) {
  if (const auto* g = child.as<GlobalVarNode>()) return mod_->Specialise(g, Resolve(Instance(g, by, index)));
  const int64_t around = Around(by, want);
  if (!HasDomain(child.get())) {
    if (!child.as<ConstantNode>() || how == How::kApart) return child;
    const int64_t device = Device(want);
    const bool placed = mod_->placed && !OfOperator(by) && device != kHost;
    return device >= 0 && (placed || device != around) ? Fixed(child, device) : child;
  }
  const Expr* made = made_.Find(child.get());
  Expr out = made ? *made : child;
  const CallNode* on = nullptr;  // what says the device already
  while (IsFixed(out)) {
    on = out.as<CallNode>();
    out = on->args[0];
  }
  const int64_t have = Device(Dom(child.get()));
  if (have < 0) return out;
  const int64_t to = how == How::kApart || Device(want) < 0 ? have : Device(want);
  if (have == to) return to == around ? out : Said(out, on, to);
  Expr copy;
  for (const Copy& c : copies_[child.get()]) {
    if (c.to == to) copy = c.copy;
  }
  if (!copy.defined()) {
    copy = Moved(by, out, on, have, to, rule);
    copies_[child.get()].push_back({copy, to});
  }
  return to == around ? copy : Fixed(copy, to);
}

bool BodyPlan::OfOperator(const ExprNode* by) {
  const auto* call = by->IsInstance<CallNode>() ? static_cast<const CallNode*>(by) : nullptr;
  if (!call) return false;
  const auto* f = call->op.as<FunctionNode>();
  return call->op.as<OpNode>() || (f && f->HasNonzeroAttr(attr::kPrimitive));
}

Expr BodyPlan::RebuildCall(const CallNode* c, bool changed) {
  if (c->op.same_as(op::on_device) && !IsFixed(GetRef<Expr>(c)) && operands_.size() == 1) {
    const Id inner = Aux(c), outer = Dom(c);
    if (DeviceDomains::IsFunction(inner) || Device(inner) == Device(outer)) return operands_[0];
    // A value that is wanted where it is anyway: what may be elsewhere than the annotation says is not copied twice.
    if (const Expr& value = c->args[0]; HasDomain(value.get()) && Device(Dom(value.get())) == Device(outer)) {
      const Expr* made = made_.Find(value.get());
      return made ? *made : value;
    }
    return Moved(c, operands_[0], nullptr, Device(inner), Device(outer), "value");
  }
  Expr callee = c->op;
  if (const auto* g = c->op.as<GlobalVarNode>()) {
    callee = mod_->Specialise(g, Resolve(Instance(g, c, -1)));
    changed = changed || !callee.same_as(c->op);
  } else if (!c->op.as<OpNode>() && !c->op.as<ConstructorNode>()) {
    callee = operands_[0];
    operands_.erase(operands_.begin());
  }
  if (!changed) return GetRef<Expr>(c);
  auto node = make_object<CallNode>(*c);
  node->op = callee;
  node->args = Array<Expr>(operands_);
  return Typed(node, c);
}

Expr BodyPlan::RebuildFunction(const FunctionNode* fn, bool changed) {
  if (fn->HasNonzeroAttr(attr::kPrimitive)) return GetRef<Expr>(fn);
  const Id own = Dom(fn);
  Array<Any> devices;
  Any result;
  if (DeviceDomains::IsFunction(own)) {
    const std::vector<Id> ids = d_.SignatureOf(own);
    for (size_t i = 0; i + 1 < ids.size(); ++i) devices.push_back(Any(ResultDevice(ids[i])));
    result = Any(ResultDevice(ids.back()));
  }
  Function out = GetRef<Function>(fn);
  if (changed) {
    auto node = make_object<FunctionNode>(*fn);
    node->body = operands_[0];
    node->checked_type_ = fn->checked_type_;
    out = Function(node);
  }
  if (result.is_null()) return out;
  auto put = [&](const char* key, const Any& value) {
    if (out->attrs.defined()) {
      for (const auto& e : out->attrs->dict) {
        if (e.first == key && SameDevices(e.second, value)) return;
      }
    }
    out = WithAttr(out, key, value);
  };
  put(kParamDevices, Any(devices));
  put(kResultDevice, result);
  return out;
}

Expr BodyPlan::Rebuild(const ExprNode* n) {
  Expr old = GetRef<Expr>(n);
  std::vector<Expr>& operands = operands_;
  operands.clear();
  bool changed = false;
  ForEachUse(n, [&](const Expr& child, Id want, How how, const char* rule, int index) {
    operands.push_back(Operand(n, child, want, how, rule, index));
    changed = changed || !operands.back().same_as(child);
  });
  auto done = [&](auto node) { return Typed(node, n); };
  if (n->IsInstance<CallNode>()) return RebuildCall(static_cast<const CallNode*>(n), changed);
  if (n->IsInstance<FunctionNode>()) return RebuildFunction(static_cast<const FunctionNode*>(n), changed);
  if (!changed) return old;
  if (n->IsInstance<TupleNode>()) {
    auto node = make_object<TupleNode>(*static_cast<const TupleNode*>(n));
    node->fields = Array<Expr>(operands);
    return done(node);
  }
  if (n->IsInstance<TupleGetItemNode>()) {
    auto node = make_object<TupleGetItemNode>(*static_cast<const TupleGetItemNode*>(n));
    node->tuple = operands[0];
    return done(node);
  }
  if (n->IsInstance<LetNode>()) {
    auto node = make_object<LetNode>(*static_cast<const LetNode*>(n));
    node->value = operands[0], node->body = operands[1];
    return done(node);
  }
  if (n->IsInstance<IfNode>()) {
    auto node = make_object<IfNode>(*static_cast<const IfNode*>(n));
    node->cond = operands[0], node->true_branch = operands[1], node->false_branch = operands[2];
    return done(node);
  }
  if (n->IsInstance<RefCreateNode>()) {
    auto node = make_object<RefCreateNode>(*static_cast<const RefCreateNode*>(n));
    node->value = operands[0];
    return done(node);
  }
  if (n->IsInstance<RefReadNode>()) {
    auto node = make_object<RefReadNode>(*static_cast<const RefReadNode*>(n));
    node->ref = operands[0];
    return done(node);
  }
  if (n->IsInstance<RefWriteNode>()) {
    auto node = make_object<RefWriteNode>(*static_cast<const RefWriteNode*>(n));
    node->ref = operands[0], node->value = operands[1];
    return done(node);
  }
  ICHECK(n->IsInstance<MatchNode>()) << "planning devices of a " << n->GetTypeKey();
  auto node = make_object<MatchNode>(*static_cast<const MatchNode*>(n));
  node->data = operands[0];
  size_t i = 0;
  ForEachClause(static_cast<const MatchNode*>(n), [&](const Clause& c) {
    if (!operands[i + 1].same_as(c->rhs)) node->clauses.Set(i, Clause(c->lhs, operands[i + 1]));
    ++i;
  });
  return done(node);
}

void BodyPlan::Say(const std::string& function) {
  PlacementReport* report = mod_->report;
  std::vector<DeviceDomains::Cause> causes = d_.Causes();
  auto why = [&](Id leaf) -> std::string {
    const auto& cause = causes[leaf];
    if (cause.source < 0) return "nothing decides: the default device";
    const auto& source = d_.sources()[cause.source];
    std::string at = Place(source.by), out = fmt::format("{}{}{}", source.what, at.empty() ? "" : " at ", at);
    if (cause.edge < 0) return out;
    const auto& edge = d_.edges()[cause.edge];
    std::string there = Place(edge.by);
    return fmt::format("{}, through the {} of `{}`{}{}", out, edge.rule, Brief(edge.by), there.empty() ? "" : " at ",
                       there);
  };
  for (const ExprNode* n : orders_[0]) {
    baton::runtime::PollInterrupt();
    if (!HasDomain(n)) continue;
    const Id dom = Dom(n);
    if (DeviceDomains::IsFunction(dom) || IsUnit(TypeOf(n))) continue;
    report->places.push_back({function, Brief(n), Place(n), d_.DeviceOf(dom), why(dom)});
    const auto* call = n->IsInstance<CallNode>() ? static_cast<const CallNode*>(n) : nullptr;
    if (!call || KindOf(call->op) != OpKind::kDeviceCopy) continue;
    const int64_t from = Device(Dom(call->args[0].get())), to = Device(dom);
    const std::string at = Place(n);
    if (from != to) Tell(call->args[0].get(), from, to, "written as device_copy" + (at.empty() ? "" : " at " + at));
  }
  for (PlacementReport::Copy& c : told_) {
    c.function = function;
    report->copies.push_back(c);
  }
}

Function BodyPlan::Rewrite(const Function& func, const std::string& name) {
  for (const ExprNode* n : orders_[0]) {
    baton::runtime::PollInterrupt();
    if (IsAtom(n)) continue;
    Expr made = Rebuild(n);
    if (made.get() != n) made_[n] = std::move(made);
  }
  if (mod_->report) Say(name);
  if (mod_->placed) {
    for (const ExprNode* n : orders_[0]) {
      const Expr* made = made_.Find(n);
      if (HasDomain(n)) (*mod_->placed)[made ? made->get() : n] = Device(Dom(n));
    }
  }
  const Expr* made = made_.Find(func.get());
  return made ? Downcast<Function>(*made) : func;
}

}  // namespace baton::relay::transform::devices
