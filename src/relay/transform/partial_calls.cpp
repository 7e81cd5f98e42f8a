// SPDX-License-Identifier: Apache-2.0
// Functions and calls: closures, which calls are unfolded, operators on known values.
#include <baton/relay/evaluator.h>
#include <baton/relay/transform.h>
#include <baton/support/stack.h>
#include <relay/transform/partial_evaluation.h>
#include <relay/types/type_solver.h>

#include <algorithm>
#include <string_view>

namespace baton::relay::transform::partial {
namespace {

/// A constant larger than this is computed when the program runs.
constexpr size_t kMaxConstantBytes = 1 << 16;
constexpr int64_t kNoMeasure = -1;

}  // namespace

void Evaluation::Solve(const Type& pattern, const Type& type, Types* out) {
  std::vector<std::pair<Type, Type>> work{{pattern, type}};
  auto both = [&](const Array<Type>& a, const Array<Type>& b) {
    for (size_t i = 0; i < a.size() && i < b.size(); ++i)
      work.emplace_back(a[static_cast<int64_t>(i)], b[static_cast<int64_t>(i)]);
  };
  while (!work.empty()) {
    baton::runtime::PollInterrupt();
    auto [p, t] = work.back();
    work.pop_back();
    if (!p.defined() || !t.defined()) continue;
    if (p.as<TypeVarNode>()) {
      bool known = false;
      for (const auto& [v, is] : *out) known = known || v == p.get();
      if (!known) out->emplace_back(p.get(), t);
    } else if (const auto* f = p.as<FuncTypeNode>(); f && t.as<FuncTypeNode>()) {
      // Parameters of a function that is itself polymorphic are its own: what they stand for here it does not say.
      if (!t.as<FuncTypeNode>()->type_params.empty()) continue;
      both(f->arg_types, t.as<FuncTypeNode>()->arg_types);
      work.emplace_back(f->ret_type, t.as<FuncTypeNode>()->ret_type);
    } else if (const auto* u = p.as<TupleTypeNode>(); u && t.as<TupleTypeNode>()) {
      both(u->fields, t.as<TupleTypeNode>()->fields);
    } else if (const auto* c = p.as<TypeCallNode>(); c && t.as<TypeCallNode>()) {
      both(c->args, t.as<TypeCallNode>()->args);
    } else if (const auto* r = p.as<RelayRefTypeNode>(); r && t.as<RelayRefTypeNode>()) {
      work.emplace_back(r->value, t.as<RelayRefTypeNode>()->value);
    }
  }
}

PValue Evaluation::MakeClosure(const Function& f, const Var& self, EvalFrame* frame, LetBlock* block) {
  auto env = std::make_shared<Bindings>();
  bool recursive = false;
  for (const Var& x : captured_.Of(f.get())) {
    if (x.same_as(self)) {
      recursive = true;
    } else if (const PValue* known = frame->env.Find(x.get())) {
      env->emplace_back(x.get(), *known);
    }
  }
  auto v = std::make_shared<PartialValue>();
  Var name(self.defined() ? self->name_hint() : String("f"), TypeFor(f.get(), frame));
  v->left = name;
  if (!Opaque(f.get())) {
    v->kind = PartialValue::kClosure;
    v->closure = std::make_shared<Closure>();
    v->closure->func = f;
    v->closure->captured = env;
    v->closure->self = self.get();
    v->closure->recursive = recursive;
    v->closure->typed = frame->typed;
    v->closure->types = frame->types;
  }
  Bindings inner = *env;
  if (recursive) inner.emplace_back(self.get(), v);
  // The contents of references are unknown when it runs.
  Store now = std::move(store_);
  store_.clear();
  Expr left = Opaque(f.get()) ? Expr(f) : Expr(Residual(f, inner, *frame));
  store_ = std::move(now);
  --budget_;
  block->Bind(name, left);
  return v;
}

Function Evaluation::Residual(const Function& f, const Bindings& captured, const EvalFrame& around) {
  return support::WithStack([&] {
    EvalFrame frame;
    for (const auto& [var, value] : captured) frame.env.Set(var, value);
    frame.typed = around.typed;
    frame.types = around.types;
    Array<Var> params;
    for (const Var& p : f->params) {
      Type type = In(p->type_annotation, &frame);
      if (!type.defined()) type = TypeFor(p.get(), &frame);
      Var own(p->name_hint(), type);
      own->span = p->span;
      params.push_back(own);
      frame.env.Set(p.get(), Unknown(own));
    }
    LetBlock block(&uses_, name_);
    PValue result = Eval(f->body, &frame, &block);
    auto n = make_object<FunctionNode>(*f.get());
    n->params = params;
    n->body = block.Close(result->left);
    n->checked_type_ = ObjectRef();
    n->ret_type = In(f->ret_type, &frame);
    if (!frame.typed) n->type_params = Array<TypeVar>();
    frame.env.Clear();
    return Function(n);
  });
}

int64_t Evaluation::Measure(const PValue& v) {
  if (v->kind == PartialValue::kData || v->kind == PartialValue::kTuple) return v->size > 0 ? v->size : kNoMeasure;
  if (v->kind != PartialValue::kTensor || !v->tensor.as<runtime::NDArrayObj>()) return kNoMeasure;
  NDArray a = Downcast<NDArray>(v->tensor);
  if (a.numel() != 1 || !(a.dtype().is_int() || a.dtype().is_uint())) return kNoMeasure;
  int64_t n = a.GetInt(0);
  return n >= 0 ? n : kNoMeasure;
}

bool Evaluation::Unfolds(const Closure& c, const std::vector<PValue>& args, std::vector<int64_t>* least) {
  if (budget_ <= 0) return false;
  std::vector<int64_t> now;
  for (const PValue& a : args) now.push_back(Measure(a));
  auto running = running_.find(c.func.get());
  if (running == running_.end() || running->second.empty()) {
    *least = now;
    return !c.recursive || std::any_of(now.begin(), now.end(), [](int64_t m) { return m != kNoMeasure; });
  }
  *least = running->second.back();
  bool less = false;
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i] == kNoMeasure || ((*least)[i] != kNoMeasure && now[i] >= (*least)[i])) continue;
    less = less || (*least)[i] != kNoMeasure;
    if ((*least)[i] != kNoMeasure) (*least)[i] = now[i];
  }
  return less;
}

PValue Evaluation::EvalCall(const CallNode* call, EvalFrame* frame, LetBlock* block) {
  std::vector<PValue> args;
  for (const Expr& a : call->args) args.push_back(Atom(a, frame));
  if (const auto* op = call->op.as<OpNode>()) {
    if (PValue v = EvalOp(call, op, args)) return v;
    return Unknown(PushCall(call, call->op, args, frame, block));
  }
  if (const auto* k = call->op.as<ConstructorNode>()) {
    auto v = std::make_shared<PartialValue>();
    v->kind = PartialValue::kData;
    v->constructor = GetRef<Constructor>(k);
    v->fields = args;
    v->size = 1;
    for (const PValue& a : args) v->size += a->size;
    v->left = PushCall(call, call->op, args, frame, block);
    return v;
  }
  PValue callee =
      call->op->IsInstance<VarNode>() || call->op->IsInstance<GlobalVarNode>() ? Atom(call->op, frame) : nullptr;
  if (!callee) {
    // A function that is called in place.
    const auto* f = call->op.as<FunctionNode>();
    if (!f || Opaque(f)) {
      store_.clear();
      return Unknown(PushCall(call, call->op, args, frame, block));
    }
    callee = MakeClosure(GetRef<Function>(f), Var(), frame, block);
  }
  std::vector<int64_t> least;
  if (callee->kind == PartialValue::kClosure && callee->closure->func->params.size() == args.size() &&
      Unfolds(*callee->closure, args, &least)) {
    EvalFrame inner;
    inner.typed = callee->closure->typed;
    inner.types = callee->closure->types;
    Instantiate(callee->closure->func, call, frame, &inner);
    return support::WithStack([&] { return Unfold(callee, args, std::move(least), std::move(inner), block); });
  }
  store_.clear();
  return Unknown(PushCall(call, callee->left, args, frame, block));
}

Expr Evaluation::PushCall(const CallNode* call, const Expr& callee, const std::vector<PValue>& args, EvalFrame* frame,
                          LetBlock* block) {
  auto n = make_object<CallNode>(*call);
  n->op = callee;
  Array<Expr> left;
  for (const PValue& a : args) left.push_back(a->left);
  n->args = left;
  n->type_args = Array<Type>();
  if (frame->typed) {
    for (const Type& t : call->type_args) n->type_args.push_back(In(t, frame));
  }
  n->checked_type_ = ObjectRef();
  return Push(call, Call(n), frame, block);
}

void Evaluation::Instantiate(const Function& f, const CallNode* call, const EvalFrame* caller, EvalFrame* inner) {
  if (!inner->typed || f->type_params.empty()) return;
  const auto* sig = f->checked_type_.as<FuncTypeNode>();
  Types found;
  if (caller->typed && sig) {
    for (size_t i = 0; i < call->args.size() && i < sig->arg_types.size(); ++i) {
      const int64_t k = static_cast<int64_t>(i);
      Solve(sig->arg_types[k], TypeFor(call->args[k].get(), caller), &found);
    }
    Solve(sig->ret_type, TypeFor(call, caller), &found);
  }
  for (const TypeVar& v : f->type_params) {
    auto it = std::find_if(found.begin(), found.end(), [&](const auto& pair) { return pair.first == v.get(); });
    if (it == found.end()) {
      inner->typed = false;
      return;
    }
    inner->types.push_back(*it);
  }
}

PValue Evaluation::Unfold(const PValue& callee, const std::vector<PValue>& args, std::vector<int64_t> least,
                          EvalFrame frame, LetBlock* block) {
  const Closure& c = *callee->closure;
  if (c.captured) {
    for (const auto& [var, value] : *c.captured) frame.env.Set(var, value);
  }
  if (c.self && c.recursive) frame.env.Set(c.self, callee);
  for (size_t i = 0; i < args.size(); ++i) frame.env.Set(c.func->params[static_cast<int64_t>(i)].get(), args[i]);
  --budget_;
  running_[c.func.get()].push_back(std::move(least));
  PValue out = Eval(c.func->body, &frame, block);
  running_[c.func.get()].pop_back();
  return out;
}

PValue Evaluation::EvalOp(const CallNode* call, const OpNode* op, const std::vector<PValue>& args) {
  const OpDef* def = DefOf(call->op);
  if (!def || def->stateful || def->fold == Fold::kNever || args.empty()) return nullptr;
  if (call->checked_type_.defined() && !Small(Downcast<Type>(call->checked_type_))) return nullptr;
  Array<ObjectRef> values;
  for (const PValue& a : args) {
    ObjectRef v = Known(a);
    if (!v.defined()) return nullptr;
    values.push_back(v);
  }
  ObjectRef out;
  try {
    With<PassContext> scope(PassContext::Create());
    out = Evaluator::Get().EvalOp(GetRef<Op>(op), call->attrs, values);
  } catch (const runtime::InternalError&) {
    throw;
  } catch (const runtime::Error& e) {
    if (e.ends_work()) throw;
    return nullptr;  // if it runs at all, it says so then
  }
  return FromValue(out, call->span);
}

bool Evaluation::Small(const Type& type) {
  if (const auto* tuple = type.as<TupleTypeNode>()) {
    for (const Type& f : tuple->fields) {
      if (!Small(f)) return false;
    }
    return true;
  }
  const auto* t = type.as<TensorTypeNode>();
  std::vector<int64_t> shape;
  if (!t) return false;
  if (!StaticShape(t->shape, &shape)) return true;  // its arguments are known, and small
  size_t n = static_cast<size_t>(t->dtype.bytes());
  for (int64_t d : shape) n *= static_cast<size_t>(std::max<int64_t>(d, 0));
  return n <= kMaxConstantBytes;
}

ObjectRef Evaluation::Known(const PValue& v) {
  if (v->kind == PartialValue::kTensor) return v->tensor;
  if (v->kind != PartialValue::kTuple) return ObjectRef();
  Array<ObjectRef> fields;
  for (const PValue& f : v->fields) {
    if (f->kind != PartialValue::kTensor) return ObjectRef();
    fields.push_back(f->tensor);
  }
  return fields;
}

PValue Evaluation::FromValue(const ObjectRef& value, const Span& span) {
  Expr left = ValueToExpr(value);
  if (!left.defined()) return nullptr;
  left->span = span;
  if (value.as<runtime::NDArrayObj>()) return Tensor(Downcast<NDArray>(value), left);
  auto v = std::make_shared<PartialValue>();
  v->kind = PartialValue::kTuple;
  v->left = left;
  for (const ObjectRef& f : Downcast<Array<ObjectRef>>(value)) {
    v->fields.push_back(FromValue(f, span));
    if (!v->fields.back()) return nullptr;
  }
  return v;
}

}  // namespace baton::relay::transform::partial
