// SPDX-License-Identifier: Apache-2.0
#include "driver/vm/function_builder.h"

#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>

#include <set>

#include "driver/debug_source.h"
#include "driver/lower_graph.h"

namespace baton::driver {

using relay::CallNode;
using relay::ConstantNode;
using relay::Expr;
using relay::ExprNode;
using relay::Function;
using relay::FunctionNode;
using relay::IfNode;
using relay::LetNode;
using relay::MatchNode;
using relay::Pattern;
using relay::TupleGetItemNode;
using relay::TupleNode;
using relay::Var;
using relay::VarNode;
using vm::Opcode;

FunctionBuilder::FunctionBuilder(ProgramBuilder* program, const VmLambda& lambda)
    : program_(program), lambda_(lambda), values_(program, lambda), former_(&values_) {
  for (const ExprNode* c : lambda.captured) registers_[c] = NewRegister();
  for (const Var& p : lambda.func->params) registers_[p.get()] = NewRegister();
}

vm::Function FunctionBuilder::Build() {
  const int32_t params = next_register_;
  Block(0, lambda_.func->body, -1, true);
  while (!work_.empty()) {
    std::function<void()> next = std::move(work_.back());
    work_.pop_back();
    next();
  }
  for (size_t j : jumps_) code_[j] = static_cast<int32_t>(labels_[static_cast<size_t>(code_[j])]);
  vm::Function out{lambda_.name, params, 0, std::move(code_)};
  out.registers = AssignRegisters(&out.code, params);
  return out;
}

void FunctionBuilder::Emit(Opcode op, std::initializer_list<int32_t> operands, const std::vector<int32_t>& more) {
  code_.push_back(static_cast<int32_t>(op));
  code_.insert(code_.end(), operands.begin(), operands.end());
  code_.insert(code_.end(), more.begin(), more.end());
}

void FunctionBuilder::EmitJump(Opcode op, std::initializer_list<int32_t> operands, Label label) {
  Emit(op, operands);
  jumps_.push_back(code_.size());
  code_.push_back(static_cast<int32_t>(label));
}

/// The register that holds a value; atoms and closures are made on the spot.
int32_t FunctionBuilder::Use(const Expr& expr) {
  const Expr e = Resolve(expr);
  if (const int32_t* r = registers_.Find(e.get())) return *r;
  const int32_t d = NewRegister();
  if (const auto* c = e.as<ConstantNode>()) {
    Emit(Opcode::kConst, {d, program_->Constant(c->data)});
  } else if (const ConstantNode* placed = values_.PlacedConstant(e.get())) {
    const auto* call = e.as<CallNode>();
    const relay::DeviceCopyAttrs* copy = relay::AsDeviceCopy(call->op, call->attrs);
    const int64_t device = copy ? copy->dst_dev_type : relay::AttrsAs<relay::OnDeviceAttrs>(call->attrs).device_type;
    Emit(Opcode::kConst, {d, program_->Constant(placed->data, program_->DeviceIndex(device))});
  } else if (e.as<GlobalVarNode>()) {
    Emit(Opcode::kClosure, {d, program_->FunctionOf(Downcast<GlobalVar>(e)), 0});
  } else if (e.get() == lambda_.self) {
    std::vector<int32_t> captured;
    for (const ExprNode* c : lambda_.captured) captured.push_back(registers_[c]);
    Emit(Opcode::kClosure, {d, lambda_.index, static_cast<int32_t>(captured.size())}, captured);
  } else if (const auto* f = e.as<FunctionNode>()) {
    if (f->HasNonzeroAttr(attr::kPrimitive)) throw CompileError("a fused group of operators is used as a value");
    const VmLambda& l = LambdaOf(f);
    std::vector<int32_t> captured;
    for (const ExprNode* c : l.captured) captured.push_back(Use(GetRef<Expr>(c)));
    Emit(Opcode::kClosure, {d, l.index, static_cast<int32_t>(captured.size())}, captured);
  } else if (const auto* t = e.as<TupleNode>(); t && t->fields.empty()) {
    Emit(Opcode::kTuple, {d, 0});
  } else if (e.as<ConstructorNode>()) {
    Emit(Opcode::kClosure, {d, program_->ConstructorFunction(Downcast<Constructor>(e)), 0});
  } else if (const auto* op = e.as<OpNode>()) {
    throw CompileError("operator `" + op->name.str() + "` is used as a value; wrap it: fn (%x) { " + op->name.str() +
                       "(%x) }");
  } else if (const auto* v = e.as<VarNode>()) {
    throw CompileError("variable %" + v->name_hint().str() + " has no value in @" + lambda_.name);
  } else {
    const auto* call = e.as<CallNode>();
    const auto* op = call ? call->op.as<OpNode>() : nullptr;
    throw InternalError("no value yet for " + (op ? "a call of `" + op->name.str() + "`" : e.get()->GetTypeKey()) +
                        " in @" + lambda_.name);
  }
  return d;
}

std::vector<int32_t> FunctionBuilder::Uses(const Array<Expr>& exprs) {
  std::vector<int32_t> out;
  for (const Expr& e : exprs) out.push_back(Use(e));
  return out;
}

/// The captured values of a closure, in order of first use; `elsewhere`: values that it only names.
std::vector<const ExprNode*> FunctionBuilder::CapturesOf(const FunctionNode* f,
                                                         std::vector<const ExprNode*>* elsewhere) const {
  const int32_t own = values_.index().placement(f).own_scope;
  std::vector<const ExprNode*> captured;
  PointerSet seen, bound;
  // Variables are only known to be free at the end.
  std::vector<const ExprNode*> candidates;
  // The value of a let is evaluated even if the variable is unused. But if it is only an alias of an existing value,
  // nothing is evaluated, and only readers of the variable take it.
  struct Item {
    const ExprNode* node;
    bool name;
  };
  std::vector<Item> stack{{f->body.get(), false}};
  for (const Var& p : f->params) bound.Add(p.get());
  while (!stack.empty()) {
    const bool name = stack.back().name;
    const ExprNode* n = stack.back().node;
    stack.pop_back();
    if (!registers_.Has(n)) n = Bare(n);
    if (const auto* l = As<LetNode>(n); l && !registers_.Has(n)) {
      stack.push_back({l->body.get(), name});
      stack.push_back({l->value.get(), true});
      continue;
    }
    if (name) {
      const ExprNode* value = Resolve(n);
      const uint32_t id = registers_.Has(value) ? relay::ExprIndex::kNone : values_.index().IdOf(value);
      if (relay::IsAtom(value) || IsPlacedConstant(value)) continue;
      if (id == relay::ExprIndex::kNone || !values_.index().Within(values_.index().placement(id).scope, own) ||
          values_.IsElsewhere(value)) {
        elsewhere->push_back(value);
        continue;
      }
    }
    n = Resolve(n);
    if (n == f || !seen.Add(n)) continue;
    if (n->IsInstance<VarNode>() || registers_.Has(n)) {
      candidates.push_back(n);
      continue;
    }
    if (n == lambda_.self) {
      candidates.push_back(n);
      continue;
    }
    if (relay::IsAtom(n) || IsPlacedConstant(n)) continue;
    if (!values_.index().Within(values_.index().placement(n).scope, own)) {
      candidates.push_back(n);
      continue;
    }
    if (const auto* inner = As<FunctionNode>(n)) {
      for (const Var& p : inner->params) bound.Add(p.get());
      if (inner->HasNonzeroAttr(attr::kPrimitive)) continue;
    }
    relay::ForEachBoundVar(n, [&](const Var& v) { bound.Add(v.get()); });
    std::vector<const ExprNode*> children;
    const auto* call = As<CallNode>(n);
    if (call && IsPrimitive(call->op)) {
      for (const Expr& a : call->args) children.push_back(a.get());
    } else if (const auto* m = As<MatchNode>(n)) {
      children.push_back(m->data.get());
      for (const relay::Clause& c : m->clauses) children.push_back(c->rhs.get());
    } else {
      relay::ForEachChild(n, [&](const ExprNode* p) { children.push_back(p); });
    }
    for (size_t i = children.size(); i-- > 0;) stack.push_back({children[i], false});
  }
  for (const ExprNode* c : candidates) {
    if (!bound.Has(c)) captured.push_back(c);
  }
  return captured;
}

const VmLambda& FunctionBuilder::LambdaOf(const FunctionNode* f) {
  std::shared_ptr<VmLambda>& l = lambdas_[f];
  if (!l) {
    auto made = std::make_shared<VmLambda>();
    made->name = lambda_.name + ".fn" + std::to_string(lambdas_.size());
    made->func = GetRef<Function>(f);
    made->captured = CapturesOf(f, &made->elsewhere);
    for (const ExprNode* c : made->captured) {
      made->captured_types.push_back(former_.IsOpenTensors(c) ? former_.OpenType(GetRef<Expr>(c)) : Type());
    }
    made->self = f;
    made->alias = lambda_.alias;
    made->index = program_->AddLambda(*made);
    l = made;
  }
  return *l;
}

// ---- Blocks.

void FunctionBuilder::Block(int32_t block, const Expr& value, int32_t dst, bool tail) {
  work_.push_back([=, this] { Step(block, 0, value, dst, tail); });
}

void FunctionBuilder::Step(int32_t block, size_t at, Expr value, int32_t dst, bool tail) {
  const std::vector<Node*>& list = values_.block(block);
  const Expr result = Resolve(value);
  while (at < list.size()) {
    Node* n = list[at];
    if (registers_.Has(n)) {
      ++at;
      continue;
    }
    if (const size_t next = EmitRegion(list, at); next != at) {
      at = next;
      continue;
    }
    ++at;
    // A value may be followed by what is done after it: `let %t = (%x, %y); let %_ = ref_write(%r, %x); %t`.
    const bool last = tail && at == list.size() && result.get() == n;
    const auto* branch = As<IfNode>(n);
    const auto* match = As<MatchNode>(n);
    if (branch || match) {
      const int32_t d = last ? -1 : NewRegister();
      if (!last) work_.push_back([=, this] { Step(block, at, value, dst, tail); });
      if (branch) {
        EmitIf(branch, d, last);
      } else {
        EmitMatch(match, d, last);
      }
      if (!last) registers_[n] = d;
      return;
    }
    EmitNode(n, last);
    if (last) return;
  }
  const int32_t r = Use(result);
  if (tail) {
    Emit(Opcode::kReturn, {r});
  } else {
    Emit(Opcode::kMove, {dst, r});
  }
}

void FunctionBuilder::EmitNode(Node* n, bool tail) {
  if (const auto* call = As<CallNode>(n)) return EmitCall(call, tail);
  int32_t d = -1;
  if (const auto* t = As<TupleNode>(n)) {
    const std::vector<int32_t> fields = Uses(t->fields);
    Emit(Opcode::kTuple, {d = NewRegister(), static_cast<int32_t>(fields.size())}, fields);
  } else if (const auto* g = As<TupleGetItemNode>(n)) {
    const int32_t tuple = Use(g->tuple);
    Emit(Opcode::kField, {d = NewRegister(), tuple, static_cast<int32_t>(g->index)});
  } else if (const auto* r = As<relay::RefCreateNode>(n)) {
    const int32_t value = Use(r->value);
    Emit(Opcode::kRefNew, {d = NewRegister(), value});
  } else if (const auto* r = As<relay::RefReadNode>(n)) {
    const int32_t ref = Use(r->ref);
    Emit(Opcode::kRefRead, {d = NewRegister(), ref});
  } else if (const auto* w = As<relay::RefWriteNode>(n)) {
    const int32_t ref = Use(w->ref), value = Use(w->value);
    Emit(Opcode::kRefWrite, {ref, value});
    Emit(Opcode::kTuple, {d = NewRegister(), 0});
  } else {
    throw InternalError("no code for an expression of type " + n->GetTypeKey());
  }
  registers_[n] = d;
  if (tail) Emit(Opcode::kReturn, {d});
}

void FunctionBuilder::EmitCall(const CallNode* call, bool tail) {
  const Expr op = IsPrimitive(call->op) ? call->op : Resolve(call->op);
  const auto n = static_cast<int32_t>(call->args.size());
  int32_t d = -1;
  if (op.as<OpNode>() || IsPrimitive(op)) {
    if (const auto* copy = relay::AsDeviceCopy(op, call->attrs); copy && program_->several()) {
      EmitCopy(call, *copy);
      d = registers_[call];
    } else if (relay::IsView(op) && former_.IsStaticKernel(call)) {
      const int32_t from = Use(call->args[0]);
      Emit(Opcode::kView, {d = NewRegister(), from, program_->View(Downcast<TensorType>(call->checked_type()))});
    } else {
      const int32_t slot = program_->Packed(call);
      const std::vector<int32_t> args = Uses(call->args);
      if (program_->several()) NotePackedCopies(call, program_->PackedAt(slot));
      program_->NoteHost({lambda_.index, static_cast<int32_t>(code_.size()), SpanText(call->span)});
      Emit(Opcode::kPacked, {slot, d = NewRegister(), n}, args);
    }
  } else if (const auto* ctor = op.as<ConstructorNode>()) {
    const std::vector<int32_t> args = Uses(call->args);
    Emit(Opcode::kData, {d = NewRegister(), static_cast<int32_t>(ctor->tag), n}, args);
  } else {
    // Calls of functions that are known need no closure.
    int32_t index = -1;
    std::vector<int32_t> args;
    const auto* f = registers_.Has(op.get()) ? nullptr : op.as<FunctionNode>();
    if (op.get() == lambda_.self && !registers_.Has(op.get())) {
      index = lambda_.index;
      for (const ExprNode* c : lambda_.captured) args.push_back(registers_[c]);
    } else if (op.as<GlobalVarNode>()) {
      index = program_->FunctionOf(Downcast<GlobalVar>(op));
    } else if (f) {
      const VmLambda& l = LambdaOf(f);
      index = l.index;
      for (const ExprNode* c : l.captured) args.push_back(Use(GetRef<Expr>(c)));
    }
    const int32_t closure = index < 0 ? Use(op) : -1;
    for (const Expr& a : call->args) args.push_back(Use(a));
    const auto count = static_cast<int32_t>(args.size());
    if (index >= 0) {
      if (tail) return Emit(Opcode::kTailCall, {index, count}, args);
      Emit(Opcode::kCall, {index, d = NewRegister(), count}, args);
    } else {
      if (tail) return Emit(Opcode::kTailClosure, {closure, count}, args);
      Emit(Opcode::kCallClosure, {closure, d = NewRegister(), count}, args);
    }
  }
  registers_[call] = d;
  if (tail) Emit(Opcode::kReturn, {d});
}

/// A value is copied to a device once, and what is there already is not copied at all.
void FunctionBuilder::EmitCopy(const CallNode* call, const relay::DeviceCopyAttrs& copy) {
  const int32_t to = program_->DeviceOf(call);
  Expr value = Resolve(call->args[0]);
  const auto* inner = value.as<CallNode>();
  if (inner && relay::AsDeviceCopy(inner->op, inner->attrs) && !IsPlacedConstant(inner)) {
    const Expr origin = Resolve(inner->args[0]);
    if (program_->DeviceOf(origin.get()) == to && registers_.Has(origin.get())) {
      registers_[call] = Use(origin);
      return;
    }
  }
  std::vector<Node*>& made = copies_[value.get()];
  for (Node* other : made) {
    if (program_->DeviceOf(other) != to ||
        !values_.index().Within(values_.index().placement(call).scope, values_.index().placement(other).scope))
      continue;
    registers_[call] = registers_[other];
    return;
  }
  const int32_t from = Use(value), d = NewRegister();
  NoteCopy(call, value.get(), Downcast<Type>(call->checked_type_),
           copy.src_dev_type > 0 ? program_->DeviceIndex(copy.src_dev_type) : program_->DeviceOf(value.get()), to,
           "for " + ReadersOf(call));
  Emit(Opcode::kCopy, {d, from, to});
  registers_[call] = d;
  made.push_back(call);
}

// ---- Notes on copies.

/// A value, as the report on placement calls it.
std::string FunctionBuilder::Describe(Node* n) const {
  n = Bare(n);
  if (const auto* v = As<VarNode>(n)) return "%" + v->name_hint().str();
  if (const auto* call = As<CallNode>(n)) {
    if (IsPrimitive(call->op)) return OperatorsOf(Downcast<Function>(call->op), kNameChars);
    if (const auto* op = call->op.as<OpNode>()) return op->name.str();
    if (const auto* c = call->op.as<ConstructorNode>()) return c->name_hint.str();
    if (const auto* g = call->op.as<GlobalVarNode>()) return "a call of @" + g->name_hint.str();
    return "a call";
  }
  return n->IsInstance<IfNode>()             ? "an if"
         : n->IsInstance<MatchNode>()        ? "a match"
         : n->IsInstance<TupleNode>()        ? "a tuple"
         : n->IsInstance<TupleGetItemNode>() ? "a field of a tuple"
         : n->IsInstance<ConstantNode>()     ? "a constant"
         : n->IsInstance<FunctionNode>()     ? "a closure"
                                             : "a reference";
}

/// The readers of a value within the function itself.
std::string FunctionBuilder::ReadersOf(Node* n) const {
  constexpr size_t kTold = 8;
  std::set<std::string> told;
  std::string out;
  auto tell = [&](const std::string& reader) {
    if (told.size() < kTold && told.insert(reader).second) out += (out.empty() ? "" : ", ") + reader;
  };
  if (const std::vector<Node*>* users = values_.UsersOf(n)) {
    for (Node* u : *users) {
      const auto* branch = As<IfNode>(u);
      tell(!branch ? Describe(u) : Resolve(branch->cond).get() == n ? "the condition of an if" : "the result of an if");
      if (told.size() == kTold) return out + ", ...";
    }
  }
  if (Resolve(lambda_.func->body).get() == n) tell("the result of @" + lambda_.name);
  return out.empty() ? "a branch or closure of @" + lambda_.name : out;
}

void FunctionBuilder::NoteCopy(Node* by, Node* value, const Type& type, int32_t from, int32_t to, std::string because) {
  const std::string place = SpanText(by->span);
  program_->NoteCopy(
      {lambda_.index, static_cast<int32_t>(code_.size()), Describe(value), place, from, to, -1, "", std::move(because)},
      type);
}

/// Host functions run on the CPU.
void FunctionBuilder::NotePackedCopies(const CallNode* call, const vm::PackedSlot& slot) {
  const std::string why = slot.name + ", which runs on the CPU";
  for (const Expr& a : call->args) {
    const Expr value = Resolve(a);
    // Constants are where they are read, or said to be elsewhere.
    if (!a->checked_type_.defined() || value.as<ConstantNode>()) continue;
    NoteCopy(call, value.get(), Downcast<Type>(a->checked_type_), program_->DeviceOf(value.get()), 0, "for " + why);
  }
  if (call->checked_type_.defined())
    NoteCopy(call, call, Downcast<Type>(call->checked_type_), 0, slot.device, "the result of " + why);
}

void FunctionBuilder::EmitIf(const IfNode* n, int32_t dst, bool tail) {
  const int32_t first = values_.index().placement(n).own_scope;
  const Label else_label = NewLabel(), end = NewLabel();
  EmitJump(Opcode::kJumpIfFalse, {Use(n->cond)}, else_label);
  // The stack is last in, first out.
  if (!tail) work_.push_back([=, this] { Place(end); });
  Block(first + 1, n->false_branch, dst, tail);
  work_.push_back([=, this] {
    if (!tail) EmitJump(Opcode::kJump, {}, end);
    Place(else_label);
  });
  Block(first, n->true_branch, dst, tail);
}

void FunctionBuilder::EmitMatch(const MatchNode* n, int32_t dst, bool tail) {
  const int32_t first = values_.index().placement(n).own_scope;
  const int32_t data = Use(n->data);
  const Label end = NewLabel();
  work_.push_back([=, this] {
    const std::string at = n->span.defined() && n->span->source_name.defined()
                               ? " (" + n->span->source_name->name.str() + ":" + std::to_string(n->span->line) + ")"
                               : "";
    Emit(Opcode::kFail, {program_->Message("no clause of the match fits the value" + at)});
    if (!tail) Place(end);
  });
  for (size_t i = n->clauses.size(); i-- > 0;) {
    const relay::Clause clause = n->clauses[static_cast<int64_t>(i)];
    const Label next = NewLabel();
    work_.push_back([=, this] {
      if (!tail) EmitJump(Opcode::kJump, {}, end);
      Place(next);
    });
    Block(first + static_cast<int32_t>(i), clause->rhs, dst, tail);
    work_.push_back([=, this] { EmitPattern(clause->lhs, data, next); });
  }
}

void FunctionBuilder::EmitPattern(const Pattern& pattern, int32_t data, Label else_label) {
  std::vector<std::pair<Pattern, int32_t>> work{{pattern, data}};
  while (!work.empty()) {
    const auto [p, v] = work.back();
    work.pop_back();
    const Array<Pattern>* children = nullptr;
    if (const auto* var = p.as<relay::PatternVarNode>()) {
      registers_[var->var.get()] = v;
    } else if (const auto* c = p.as<relay::PatternConstructorNode>()) {
      EmitJump(Opcode::kJumpIfTagNot, {v, static_cast<int32_t>(c->constructor->tag)}, else_label);
      children = &c->patterns;
    } else if (const auto* t = p.as<relay::PatternTupleNode>()) {
      children = &t->patterns;
    }
    if (!children) continue;
    for (size_t i = 0; i < children->size(); ++i) {
      const Pattern child = (*children)[static_cast<int64_t>(i)];
      if (child.as<relay::PatternWildcardNode>()) continue;
      const int32_t field = NewRegister();
      Emit(Opcode::kField, {field, v, static_cast<int32_t>(i)});
      work.push_back({child, field});
    }
  }
}

}  // namespace baton::driver
