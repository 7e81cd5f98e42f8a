// SPDX-License-Identifier: Apache-2.0
// Which values must live on one device, and on which: what an annotation fixes first, then the uses at which a copy may
// are, in the order of the program, then the default device.
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/runtime/interrupt.h>
#include <fmt/format.h>
#include <relay/transform/device_plan.h>

#include <algorithm>

namespace baton::relay::transform::devices {

std::string DeviceName(int64_t type) {
  if (type < 0) return "any device";
  std::string name = runtime::Device2String({static_cast<DLDeviceType>(type), 0});
  return fmt::format("{} ({})", type, name.substr(0, name.find('(')));
}

std::string Place(const ExprNode* n) {
  if (!n || !n->span.defined() || !n->span->source_name.defined() || n->span->line == 0) return "";
  return fmt::format("{}:{}:{}", n->span->source_name->name.view(), n->span->line, n->span->column);
}

std::string Brief(const ExprNode* n) {
  if (!n) return "";
  if (n->IsInstance<VarNode>()) return fmt::format("%{}", static_cast<const VarNode*>(n)->name_hint().view());
  if (n->IsInstance<GlobalVarNode>()) return fmt::format("@{}", static_cast<const GlobalVarNode*>(n)->name_hint.view());
  if (n->IsInstance<CallNode>()) {
    const Expr& op = static_cast<const CallNode*>(n)->op;
    if (const auto* o = op.as<OpNode>()) return o->name.str();
    if (const auto* k = op.as<ConstructorNode>()) return k->name_hint.str();
    return op.as<FunctionNode>() ? "call of a function" : fmt::format("call of {}", Brief(op.get()));
  }
  if (n->IsInstance<FunctionNode>()) return "fn";
  std::string key = n->GetTypeKey();
  return key.substr(key.rfind('.') + 1);
}

Type TypeOf(const ExprNode* n) {
  if (n->checked_type_.defined()) return runtime::RefCast<Type>(n->checked_type_);
  if (n->IsInstance<VarNode>()) return static_cast<const VarNode*>(n)->type_annotation;
  return Type();
}

OpKind KindOf(const Expr& op) {
  if (op.same_as(op::on_device)) return OpKind::kOnDevice;
  if (op.same_as(op::device_copy)) return OpKind::kDeviceCopy;
  const OpDef* def = DefOf(op);
  if (op.same_as(op::vm_shape_func)) return OpKind::kShapeFunc;
  if (def && def->traits.shape_only) return OpKind::kShapeOf;
  if (op.same_as(op::memory_alloc_storage)) return OpKind::kAllocStorage;
  if (op.same_as(op::memory_alloc_tensor)) return OpKind::kAllocTensor;
  if (op.same_as(op::vm_reshape_tensor)) return OpKind::kReshapeTensor;
  return op.same_as(op::vm_invoke_tvm_op) ? OpKind::kInvoke : OpKind::kPlain;
}

bool IsFixed(const Expr& e) {
  const auto* c = e.as<CallNode>();
  return c && c->op.same_as(op::on_device) && AttrsAs<OnDeviceAttrs>(c->attrs).is_fixed;
}

bool BodyPlan::Movable(const ExprNode* operand) {
  if (operand->IsInstance<VarNode>() || info_[operand].uses > 1) return true;
  if (!operand->IsInstance<CallNode>()) return false;
  const Expr& op = static_cast<const CallNode*>(operand)->op;
  return !op.as<OpNode>() && !op.as<ConstructorNode>();
}

void BodyPlan::Edge(const ExprNode* by, const Expr& operand, Id want, How how, const char* rule, int index) {
  if (how == How::kApart) {
    const bool leaf = HasDomain(operand.get()) && !DeviceDomains::IsFunction(Dom(operand.get()));
    if (leaf && !DeviceDomains::IsFunction(want)) around_.push_back({Dom(operand.get()), want, by, rule});
    return;
  }
  if (const auto* g = operand.as<GlobalVarNode>()) {
    d_.Unify(Instance(g, by, index), want, by, rule);
  } else if (operand.as<ConstructorNode>() || operand.as<OpNode>()) {
    std::vector<Id> leaves;
    d_.Leaves(want, &leaves);
    for (size_t i = 1; i < leaves.size(); ++i) d_.Unify(leaves[0], leaves[i], by, rule);
  } else if (HasDomain(operand.get())) {
    const Id have = Dom(operand.get());
    const bool function = DeviceDomains::IsFunction(have) || DeviceDomains::IsFunction(want);
    if (!function && (how == How::kSoft || (how == How::kFollow && Movable(operand.get()))))
      soft_.push_back({have, want, by, rule});
    else
      d_.Unify(have, want, by, rule);
  }
}

/// Whether there are devices of this type anywhere; an error if not. -1 stands for none.
bool BodyPlan::Known(int64_t type, const char* what, const ExprNode* by) {
  if (type == kInvalidDeviceType || runtime::IsDeviceType(type)) return true;
  mod_->errors().Error(by->span, fmt::format("{} names device type {}, which is no device", what, type), "",
                       "there are " + runtime::DeviceTypes());
  return false;
}

void BodyPlan::CallOf(const CallNode* c) {
  if (!c->op.as<OpNode>()) {
    if (c->op.as<ConstructorNode>()) return;
    const Id callee = CalleeOf(c);
    d_.Unify(Dom(c), DeviceDomains::IsFunction(callee) ? d_.SignatureOf(callee).back() : callee, c, "result of a call");
    return;
  }
  switch (KindOf(c->op)) {
    case OpKind::kOnDevice: {
      const auto& attrs = AttrsAs<OnDeviceAttrs>(c->attrs);
      Aux(c) = d_.OfType(TypeOf(c));
      if (attrs.device_type == kInvalidDeviceType) {
        if (attrs.is_fixed) {
          mod_->errors().Error(c->span, "an `on_device` with is_fixed=True names no device", "",
                               "give device_type, or leave is_fixed out");
        }
        d_.Unify(Aux(c), Dom(c), c, "on_device without a device");
        break;
      }
      if (!Known(attrs.device_type, "on_device", c)) break;
      d_.Set(Aux(c), attrs.device_type, c, "on_device");
      if (attrs.is_fixed) d_.Set(Dom(c), attrs.device_type, c, "on_device");
      break;
    }
    case OpKind::kDeviceCopy: {
      const auto& attrs = AttrsAs<DeviceCopyAttrs>(c->attrs);
      Aux(c) = d_.OfType(TypeOf(c));
      if (!Known(attrs.src_dev_type, "device_copy", c) || !Known(attrs.dst_dev_type, "device_copy", c)) break;
      if (attrs.src_dev_type != kInvalidDeviceType) d_.Set(Aux(c), attrs.src_dev_type, c, "device_copy");
      if (attrs.dst_dev_type != kInvalidDeviceType) d_.Set(Dom(c), attrs.dst_dev_type, c, "device_copy");
      break;
    }
    case OpKind::kAllocStorage:
      if (!Known(AttrsAs<AllocStorageAttrs>(c->attrs).device_type, "memory.alloc_storage", c)) break;
      d_.Set(Dom(c), AttrsAs<AllocStorageAttrs>(c->attrs).device_type, c, "memory.alloc_storage");
      break;
    case OpKind::kShapeOf:
    case OpKind::kShapeFunc:
      ends_.push_back({Dom(c), host_, c, "shape"});
      break;
    default:
      break;
  }
}

void BodyPlan::FunctionOf(const FunctionNode* fn) {
  const Id own = Dom(fn);
  if (!DeviceDomains::IsFunction(own)) return;
  const std::vector<Id> signature = d_.SignatureOf(own);
  for (size_t i = 0; i < fn->params.size() && i + 1 < signature.size(); ++i)
    d_.Unify(Dom(fn->params[i].get()), signature[i], fn, "parameter");
  if (fn->HasNonzeroAttr(attr::kPrimitive)) {
    std::vector<Id> leaves;
    d_.Leaves(own, &leaves);
    for (size_t i = 1; i < leaves.size(); ++i) d_.Unify(leaves[0], leaves[i], fn, "fusion group");
    return;
  }
  const ExprNode* end = fn->body.get();
  while (end->IsInstance<LetNode>()) end = static_cast<const LetNode*>(end)->body.get();
  if (const auto* c = end->IsInstance<CallNode>() ? static_cast<const CallNode*>(end) : nullptr;
      c && KindOf(c->op) == OpKind::kOnDevice && !DeviceDomains::IsFunction(Dom(c))) {
    ends_.push_back({Dom(c), Aux(c), c, "result of a function"});
  }
  // Annotations of an earlier run.
  auto set = [&](Id of, const Any& said) {
    if (said.type_code() == kBatonInt && Known(said.As<int64_t>(), "an attribute of the function", fn))
      d_.Set(d_.ResultOf(of), said.As<int64_t>(), fn, "attribute of the function");
  };
  if (!fn->attrs.defined()) return;
  for (const auto& e : fn->attrs->dict) {
    if (e.first == kParamDevices) {
      Array<Any> list = e.second.template As<Array<Any>>();
      for (size_t i = 0; i < list.size() && i + 1 < signature.size(); ++i)
        set(signature[i], list[static_cast<int64_t>(i)]);
    } else if (e.first == kResultDevice) {
      // A function that it gives is known by now, with what it gives itself.
      if (DeviceDomains::IsFunction(signature.back()) && HasDomain(fn->body.get()))
        d_.Unify(Dom(fn->body.get()), signature.back(), fn, "result of a function");
      set(signature.back(), e.second);
    }
  }
}

void BodyPlan::LetOf(const LetNode* l) {
  const Id var = Dom(l->var.get());
  if (DeviceDomains::IsFunction(var)) return;
  around_.push_back({var, d_.ResultOf(Dom(l)), l, "value of a let"});
}

void BodyPlan::Node(const ExprNode* n) {
  Dom(n);
  if (n->IsInstance<CallNode>()) {
    CallOf(static_cast<const CallNode*>(n));
  } else if (n->IsInstance<FunctionNode>()) {
    FunctionOf(static_cast<const FunctionNode*>(n));
  } else if (n->IsInstance<LetNode>()) {
    LetOf(static_cast<const LetNode*>(n));
  } else if (n->IsInstance<MatchNode>()) {
    const auto* m = static_cast<const MatchNode*>(n);
    Aux(n) = d_.OfType(TypeOf(m->data.get()));
    ForEachClause(m, [&](const Clause& c) {
      ForEachPatternChild(
          c->lhs.get(), [&](const Var& v) { d_.Unify(Dom(v.get()), Aux(n), n, "part of a matched value"); },
          [](const Constructor&) {});
    });
    around_.push_back({d_.ResultOf(Aux(n)), d_.ResultOf(Dom(n)), n, "matched value"});
  }
  ForEachUse(n, [&](const Expr& operand, Id want, How how, const char* rule, int index) {
    Edge(n, operand, want, how, rule, index);
  });
}

void BodyPlan::Constrain() {
  for (const auto& [var, func] : funcs_) {
    ExprIndex graph(func);
    support::PageStack<uint32_t> uses;
    uses.Fill(graph.size(), 0);
    for (size_t i = 0; i < graph.size(); ++i) {
      baton::runtime::PollInterrupt();
      for (uint32_t operand : graph.Operands(i)) {
        if (operand != ExprIndex::kNone) ++uses[operand];
      }
    }
    size_t i = 0;
    for (const ExprNode* n : graph.nodes()) {
      baton::runtime::PollInterrupt();
      if (HasDomain(n)) InfoOf(n).uses += uses[i];
      ++i;
    }
    orders_.push_back(graph.TakeNodes());
  }
  for (const auto& order : orders_) {
    for (const ExprNode* n : order) {
      baton::runtime::PollInterrupt();
      if (!IsAtom(n)) Node(n);
    }
  }
}

void BodyPlan::Settle(bool use_default) {
  for (const Soft& s : soft_) d_.Try(s.operand, s.want, s.by, s.rule);
  for (const Soft& s : ends_) d_.Try(s.operand, s.want, s.by, s.rule);
  if (use_default) {
    for (const Soft& s : around_) d_.Try(s.operand, s.want, s.by, s.rule);
    d_.Default(mod_->default_device());
  }
  std::set<std::pair<const void*, const void*>> told;
  for (const auto& c : d_.conflicts()) {
    if (!told.insert({c.first.by, c.second.by}).second) continue;
    auto say = [](const DeviceDomains::Source& s) {
      std::string at = Place(s.by);
      return fmt::format("{}{}{} puts it on device {}", s.what, at.empty() ? "" : " at ", at, DeviceName(s.device));
    };
    const ExprNode* by = c.at.by ? c.at.by : c.second.by;
    Span span = by ? by->span : Span();
    mod_->errors().Error(span,
                         fmt::format("`{}` ({}) cannot be on two devices: {}, but {}", Brief(by), c.at.rule,
                                     say(c.first), say(c.second)),
                         "", "leave out is_fixed so that a copy may stand there, or write device_copy");
    for (const auto* s : {&c.first, &c.second}) {
      if (!s->by || !s->by->span.defined()) continue;
      DiagnosticNode note;
      note.level = DiagnosticLevel::kNote;
      note.span = s->by->span;
      note.message = String(fmt::format("device {} is asked for here", DeviceName(s->device)));
      mod_->errors().Add(Diagnostic(std::move(note)));
    }
  }
}

}  // namespace baton::relay::transform::devices
