// SPDX-License-Identifier: Apache-2.0
// Programs are run as far as they are known. Each value has a part that is known (a tensor, the fields of a tuple or of
// data, a closure, a reference's contents) and a variable or constant that stands for it in what is left to compute.
// Effects stay where they were: reads and writes of references that are not known, and calls of functions that are not,
// are left in their order.
#include <baton/relay/evaluator.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/runtime/interrupt.h>
#include <baton/support/pointer_map.h>
#include <baton/support/stack.h>
#include <relay/expr/call_graph.h>
#include <relay/expr/captured_vars.h>
#include <relay/types/type_solver.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "relay/transform/let_inserter.h"

namespace baton::relay::transform {
namespace {

/// A constant larger than this is computed when the program runs.
constexpr size_t kLargestConstant = 1 << 16;
/// What may be left of a program of n nodes: kGrowth * n + kSlack bindings; calls are not unfolded beyond.
constexpr int64_t kGrowth = 8, kSlack = 10000;
constexpr int64_t kNoMeasure = -1;

struct Value;
using PValue = std::shared_ptr<const Value>;
/// What a few variables stand for.
using Bindings = std::vector<std::pair<const Object*, PValue>>;

/// Types that stand for type parameters.
using Types = std::vector<std::pair<const Object*, Type>>;

struct Closure {
  Function func;
  std::shared_ptr<const Bindings> captured;
  const Object* self = nullptr;  ///< variable by which the function calls itself
  bool recursive = false;
  bool typed = true;  ///< what the type parameters around it stand for is known: `types`
  Types types;
};

struct Value {
  enum Kind { kUnknown, kTensor, kTuple, kData, kClosure, kRef } kind = kUnknown;
  Expr left;  ///< stands for the value in what is left
  ObjectRef tensor;
  std::vector<PValue> fields;  ///< of a tuple or of data
  Constructor constructor;
  std::shared_ptr<Closure> closure;
  int64_t ref = -1;
  int64_t size = 0;  ///< number of constructors that are known

  Value() = default;
  Value(const Value&) = default;
  Value& operator=(const Value&) = default;
  /// Values are as deep as the program: what only this one holds ends one after the other, not one within the other.
  ~Value() {
    PValue list;
    GiveUp(&list);
    while (list) {
      const PValue v = std::move(list);
      auto* last = const_cast<Value*>(v.get());  // nobody else sees it
      list = std::move(last->next);
      last->GiveUp(&list);
    }
  }

 private:
  /// Hangs what only this value holds onto `list`.
  void GiveUp(PValue* list) {
    const auto give = [list](PValue& v) {
      if (!v || v.use_count() != 1) return;
      const_cast<Value*>(v.get())->next = std::move(*list);
      *list = std::move(v);
    };
    for (PValue& f : fields) give(f);
    if (!closure || closure.use_count() != 1 || !closure->captured || closure->captured.use_count() != 1) return;
    for (auto& [name, v] : const_cast<Bindings&>(*closure->captured)) give(v);
  }
  PValue next;  ///< while it ends
};

PValue Unknown(Expr left) {
  auto v = std::make_shared<Value>();
  v->left = std::move(left);
  return v;
}

using Uses = PointerMap<int64_t>;

/// Adds `by` to the uses of what a value that is left names itself; blocks within it count their own.
void Count(const Expr& value, int64_t by, Uses* uses) {
  auto one = [&](const Expr& e) {
    if (e->IsInstance<VarNode>()) (*uses)[e.get()] += by;
  };
  if (const auto* c = value.as<CallNode>()) {
    one(c->op);
    for (const Expr& a : c->args) one(a);
  } else if (const auto* t = value.as<TupleNode>()) {
    for (const Expr& f : t->fields) one(f);
  } else if (const auto* g = value.as<TupleGetItemNode>()) {
    one(g->tuple);
  } else if (const auto* i = value.as<IfNode>()) {
    one(i->cond);
  } else if (const auto* m = value.as<MatchNode>()) {
    one(m->data);
  } else if (const auto* r = value.as<RefCreateNode>()) {
    one(r->value);
  } else if (const auto* r = value.as<RefReadNode>()) {
    one(r->ref);
  } else if (const auto* w = value.as<RefWriteNode>()) {
    one(w->ref), one(w->value);
  } else {
    one(value);
  }
}

/// Whether nothing is missed where nobody uses the value.
bool WithoutEffect(const Expr& value) {
  if (const auto* c = value.as<CallNode>()) {
    if (c->op->IsInstance<ConstructorNode>()) return true;
    const OpDef* def = c->op->IsInstance<OpNode>() ? DefOf(c->op) : nullptr;
    return def && !def->stateful;
  }
  return value->IsInstance<TupleNode>() || value->IsInstance<TupleGetItemNode>() || value->IsInstance<FunctionNode>() ||
         value->IsInstance<RefCreateNode>() || value->IsInstance<RefReadNode>();
}

/// Bindings of one block, in order.
class Block {
 public:
  Block(Uses* uses, const String& name) : uses_(uses), name_(name) {}
  Expr Push(Expr value, const Type& type, const Span& span) {
    Var v(name_, type);
    v->span = span;
    return Bind(v, std::move(value));
  }
  Expr Bind(const Var& v, Expr value) {
    Count(value, 1, uses_);
    bindings_.emplace_back(v, std::move(value));
    return v;
  }
  /// The block as an expression. What was only needed to know more is not bound: nothing would say its type.
  Expr Close(Expr result) {
    Count(result, 1, uses_);
    for (size_t i = bindings_.size(); i-- > 0;) {
      baton::runtime::PollInterrupt();
      const auto [var, value] = std::move(bindings_[i]);
      const int64_t* used = uses_->Find(var.get());
      if ((!used || *used == 0) && WithoutEffect(value)) {
        Count(value, -1, uses_);
        continue;
      }
      result = Let(var, value, result);
      result->span = value->span;
    }
    bindings_.clear();
    return result;
  }

 private:
  Uses* uses_;
  const String& name_;  ///< of what had none
  std::vector<std::pair<Var, Expr>> bindings_;
};

/// What references are known to hold.
using Store = std::unordered_map<int64_t, PValue>;

/// What the variables of a function stand for; as many as the program has.
class Env {
 public:
  Env() = default;
  Env(Env&&) = default;
  Env& operator=(Env&&) = default;
  /// One by one, so that a user who wants to stop does not wait for the last.
  void Clear() {
    for (; !values_.empty(); values_.pop_back()) baton::runtime::PollInterrupt();
    places_.Clear();
  }
  const PValue* Find(const Object* var) const {
    const uint32_t* at = places_.Find(var);
    return at ? &values_[*at] : nullptr;
  }
  void Set(const Object* var, PValue value) {
    bool fresh = false;
    uint32_t& at = places_.Insert(var, &fresh);
    if (!fresh) {
      values_[at] = std::move(value);
      return;
    }
    at = static_cast<uint32_t>(values_.size());
    values_.push_back(std::move(value));
  }

 private:
  PointerMap<uint32_t> places_;  ///< in `values_`
  std::vector<PValue> values_;
};

struct Frame {
  Env env;
  bool typed = true;  ///< what type parameters stand for is known: `types`
  Types types;
};

/// The functions of a module that call themselves, also by way of others; adds how many nodes there are to `nodes`.
std::unordered_set<const Object*> FindRecursive(const IRModule& mod, int64_t* nodes) {
  std::unordered_set<const Object*> recursive;
  std::vector<const Object*> names;
  std::unordered_map<std::string_view, size_t> number;
  for (const auto& [var, func] : mod->functions) {
    number[var->name_hint.view()] = names.size();
    names.push_back(func.get());
  }
  std::vector<std::vector<size_t>> calls(names.size());
  size_t i = 0;
  for (const auto& [var, func] : mod->functions) {
    if (Expr(func)->IsInstance<FunctionNode>()) {
      for (const ExprNode* n : PostOrderNodes(func)) {
        ++*nodes;
        if (!n->IsInstance<GlobalVarNode>()) continue;
        auto it = number.find(static_cast<const GlobalVarNode*>(n)->name_hint.view());
        if (it == number.end()) continue;
        calls[i].push_back(it->second);
        if (it->second == i) recursive.insert(names[i]);
      }
    }
    ++i;
  }
  for (const auto& group : CallGroups(calls)) {
    if (group.size() < 2) continue;
    for (size_t g : group) recursive.insert(names[g]);
  }
  return recursive;
}

class Evaluation {
 public:
  Evaluation(const IRModule& mod, int64_t nodes, const std::unordered_set<const Object*>& recursive)
      : mod_(mod), budget_(kGrowth * nodes + kSlack), recursive_(recursive) {}

  Function Run(const Function& f) { return Residual(f, Bindings(), Frame()); }

 private:
  // ---- Blocks

  /// Evaluates a chain of lets; what is left goes into `block`.
  PValue Eval(const Expr& expr, Frame* frame, Block* block) {
    return support::WithStack([&] {
      Expr e = expr;
      while (const auto* let = e.as<LetNode>()) {
        baton::runtime::PollInterrupt();
        PValue v;
        if (const auto* f = let->value.as<FunctionNode>()) {
          v = MakeClosure(GetRef<Function>(f), let->var, frame, block);
        } else {
          v = EvalValue(let->value, frame, block);
        }
        frame->env.Set(let->var.get(), v);
        e = let->body;
      }
      return EvalValue(e, frame, block);
    });
  }

  PValue Atom(const Expr& e, Frame* frame) {
    if (e->IsInstance<VarNode>()) {
      const PValue* known = frame->env.Find(e.get());
      if (!known) throw CompileError("`%" + Downcast<Var>(e)->name_hint().str() + "` has no value here");
      return *known;
    }
    if (const auto* c = e.as<ConstantNode>()) return Tensor(c->data, e);
    if (const auto* g = e.as<GlobalVarNode>()) {
      auto v = std::make_shared<Value>();
      v->left = e;
      const GlobalVar name = GetRef<GlobalVar>(g);
      if (mod_->functions.count(name) || mod_->ContainGlobalVar(g->name_hint.view())) {
        BaseFunc f = mod_->Lookup(name);
        const auto* fn = Expr(f).as<FunctionNode>();
        if (fn && !Opaque(fn)) {
          v->kind = Value::kClosure;
          v->closure = std::make_shared<Closure>();
          v->closure->func = GetRef<Function>(fn);
          v->closure->recursive = recursive_.count(fn) != 0;
        }
      }
      return v;
    }
    return Unknown(e);  // operators, constructors
  }

  static PValue Tensor(const NDArray& data, const Expr& left) {
    auto v = std::make_shared<Value>();
    v->kind = Value::kTensor;
    v->tensor = data;
    v->left = left;
    return v;
  }

  static bool Opaque(const FunctionNode* f) {
    return f->HasNonzeroAttr(attr::kPrimitive) || f->HasNonzeroAttr("SkipOptimization") ||
           (f->attrs.defined() && f->attrs->dict.count("Compiler"));
  }

  static Type In(const Type& type, const Frame* frame) {
    if (!frame->typed || !type.defined()) return Type();
    return frame->types.empty() ? type : TypeSolver::Substitute(type, frame->types);
  }
  static Type TypeFor(const ExprNode* e, const Frame* frame) {
    return e->checked_type_.defined() ? In(Downcast<Type>(e->checked_type_), frame) : Type();
  }
  /// What the type parameters in `pattern` stand for, where `type` is what the pattern is.
  static void Solve(const Type& pattern, const Type& type, Types* out) {
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
  Expr Push(const ExprNode* original, Expr value, Frame* frame, Block* block) {
    --budget_;
    value->span = original->span;
    return block->Push(std::move(value), TypeFor(original, frame), original->span);
  }

  PValue EvalValue(const Expr& e, Frame* frame, Block* block) {
    if (const auto* c = e.as<CallNode>()) return EvalCall(c, frame, block);
    if (const auto* t = e.as<TupleNode>()) {
      auto v = std::make_shared<Value>();
      v->kind = Value::kTuple;
      Array<Expr> left;
      for (const Expr& f : t->fields) {
        v->fields.push_back(Atom(f, frame));
        v->size += v->fields.back()->size;
        left.push_back(v->fields.back()->left);
      }
      v->left = Push(t, Tuple(left), frame, block);
      return v;
    }
    if (const auto* g = e.as<TupleGetItemNode>()) {
      PValue tuple = Atom(g->tuple, frame);
      if (tuple->kind == Value::kTuple) return tuple->fields[static_cast<size_t>(g->index)];
      return Unknown(Push(g, TupleGetItem(tuple->left, g->index), frame, block));
    }
    if (const auto* i = e.as<IfNode>()) return EvalIf(i, frame, block);
    if (const auto* m = e.as<MatchNode>()) return EvalMatch(m, frame, block);
    if (const auto* f = e.as<FunctionNode>()) return MakeClosure(GetRef<Function>(f), Var(), frame, block);
    if (const auto* r = e.as<RefCreateNode>()) {
      PValue held = Atom(r->value, frame);
      auto v = std::make_shared<Value>();
      v->kind = Value::kRef;
      v->ref = next_ref_++;
      v->left = Push(r, RefCreate(held->left), frame, block);
      store_[v->ref] = held;
      return v;
    }
    if (const auto* r = e.as<RefReadNode>()) {
      PValue ref = Atom(r->ref, frame);
      if (ref->kind == Value::kRef) {
        if (auto it = store_.find(ref->ref); it != store_.end()) return it->second;
      }
      PValue v = Unknown(Push(r, RefRead(ref->left), frame, block));
      if (ref->kind == Value::kRef) store_[ref->ref] = v;
      return v;
    }
    if (const auto* w = e.as<RefWriteNode>()) {
      PValue ref = Atom(w->ref, frame), held = Atom(w->value, frame);
      // A reference that is not known may be any.
      if (ref->kind == Value::kRef) {
        store_[ref->ref] = held;
      } else {
        store_.clear();
      }
      auto v = std::make_shared<Value>();
      v->kind = Value::kTuple;
      v->left = Push(w, RefWrite(ref->left, held->left), frame, block);
      return v;
    }
    return Atom(e, frame);
  }

  // ---- Functions

  PValue MakeClosure(const Function& f, const Var& self, Frame* frame, Block* block) {
    auto env = std::make_shared<Bindings>();
    bool recursive = false;
    for (const Var& x : captured_.Of(f.get())) {
      if (x.same_as(self)) {
        recursive = true;
      } else if (const PValue* known = frame->env.Find(x.get())) {
        env->emplace_back(x.get(), *known);
      }
    }
    auto v = std::make_shared<Value>();
    Var name(self.defined() ? self->name_hint() : String("f"), TypeFor(f.get(), frame));
    v->left = name;
    if (!Opaque(f.get())) {
      v->kind = Value::kClosure;
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
    // When it runs nobody knows what references hold.
    Store now = std::move(store_);
    store_.clear();
    Expr left = Opaque(f.get()) ? Expr(f) : Expr(Residual(f, inner, *frame));
    store_ = std::move(now);
    --budget_;
    block->Bind(name, left);
    return v;
  }

  /// The function with what is known in it computed; its parameters are not known.
  Function Residual(const Function& f, const Bindings& captured, const Frame& around) {
    return support::WithStack([&] {
      Frame frame;
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
      Block block(&uses_, name_);
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

  // ---- Calls

  /// A number of a value that recursion can count down: a whole number, or how much of data is known.
  static int64_t Measure(const PValue& v) {
    if (v->kind == Value::kData || v->kind == Value::kTuple) return v->size > 0 ? v->size : kNoMeasure;
    if (v->kind != Value::kTensor || !v->tensor.as<runtime::NDArrayObj>()) return kNoMeasure;
    NDArray a = Downcast<NDArray>(v->tensor);
    if (a.numel() != 1 || !(a.dtype().is_int() || a.dtype().is_uint())) return kNoMeasure;
    int64_t n = a.GetInt(0);
    return n >= 0 ? n : kNoMeasure;
  }

  /// Whether a call is unfolded. A function that is running already must count down an argument below all that it had
  /// there: each place can do so only finitely often.
  bool Unfolds(const Closure& c, const std::vector<PValue>& args, std::vector<int64_t>* least) {
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

  PValue EvalCall(const CallNode* call, Frame* frame, Block* block) {
    std::vector<PValue> args;
    for (const Expr& a : call->args) args.push_back(Atom(a, frame));
    if (const auto* op = call->op.as<OpNode>()) {
      if (PValue v = EvalOp(call, op, args)) return v;
      return Unknown(PushCall(call, call->op, args, frame, block));
    }
    if (const auto* k = call->op.as<ConstructorNode>()) {
      auto v = std::make_shared<Value>();
      v->kind = Value::kData;
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
      // A function that is called where it stands.
      const auto* f = call->op.as<FunctionNode>();
      if (!f || Opaque(f)) {
        store_.clear();
        return Unknown(PushCall(call, call->op, args, frame, block));
      }
      callee = MakeClosure(GetRef<Function>(f), Var(), frame, block);
    }
    std::vector<int64_t> least;
    if (callee->kind == Value::kClosure && callee->closure->func->params.size() == args.size() &&
        Unfolds(*callee->closure, args, &least)) {
      Frame inner;
      inner.typed = callee->closure->typed;
      inner.types = callee->closure->types;
      Instantiate(callee->closure->func, call, frame, &inner);
      return support::WithStack([&] { return Unfold(callee, args, std::move(least), std::move(inner), block); });
    }
    store_.clear();
    return Unknown(PushCall(call, callee->left, args, frame, block));
  }

  Expr PushCall(const CallNode* call, const Expr& callee, const std::vector<PValue>& args, Frame* frame, Block* block) {
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

  /// What the type parameters of a function stand for in a call of it.
  static void Instantiate(const Function& f, const CallNode* call, const Frame* caller, Frame* inner) {
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

  PValue Unfold(const PValue& callee, const std::vector<PValue>& args, std::vector<int64_t> least, Frame frame,
                Block* block) {
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

  /// The value of an operator whose arguments are known; null to leave the call.
  PValue EvalOp(const CallNode* call, const OpNode* op, const std::vector<PValue>& args) {
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

  static bool Small(const Type& type) {
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
    return n <= kLargestConstant;
  }

  /// A tensor, or a tuple of such; null if something in it is not known.
  static ObjectRef Known(const PValue& v) {
    if (v->kind == Value::kTensor) return v->tensor;
    if (v->kind != Value::kTuple) return ObjectRef();
    Array<ObjectRef> fields;
    for (const PValue& f : v->fields) {
      if (f->kind != Value::kTensor) return ObjectRef();
      fields.push_back(f->tensor);
    }
    return fields;
  }
  static PValue FromValue(const ObjectRef& value, const Span& span) {
    Expr left = ValueToExpr(value);
    if (!left.defined()) return nullptr;
    left->span = span;
    if (value.as<runtime::NDArrayObj>()) return Tensor(Downcast<NDArray>(value), left);
    auto v = std::make_shared<Value>();
    v->kind = Value::kTuple;
    v->left = left;
    for (const ObjectRef& f : Downcast<Array<ObjectRef>>(value)) {
      v->fields.push_back(FromValue(f, span));
      if (!v->fields.back()) return nullptr;
    }
    return v;
  }

  // ---- Branches

  /// Evaluates one of several blocks of which one runs: each starts with what is known now.
  Expr Branch(const Expr& body, Frame* frame, const Store& before, std::vector<Store>* after) {
    store_ = before;
    Block inner(&uses_, name_);
    PValue v = Eval(body, frame, &inner);
    after->push_back(std::move(store_));
    return inner.Close(v->left);
  }
  /// What references hold behind: what all branches agree upon.
  void Join(const Store& before, const std::vector<Store>& after) {
    store_.clear();
    for (const auto& [ref, value] : before) {
      bool same = true;
      for (const Store& s : after) {
        auto it = s.find(ref);
        same = same && it != s.end() && it->second == value;
      }
      if (same) store_[ref] = value;
    }
  }

  PValue EvalIf(const IfNode* i, Frame* frame, Block* block) {
    PValue cond = Atom(i->cond, frame);
    if (cond->kind == Value::kTensor) {
      NDArray c = Downcast<NDArray>(cond->tensor);
      if (c.numel() == 1) return Eval(c.GetInt(0) ? i->true_branch : i->false_branch, frame, block);
    }
    const Store before = std::move(store_);
    std::vector<Store> after;
    Expr t = Branch(i->true_branch, frame, before, &after);
    Expr f = Branch(i->false_branch, frame, before, &after);
    Join(before, after);
    return Unknown(Push(i, If(cond->left, t, f), frame, block));
  }

  enum Answer { kNo, kYes, kMaybe };
  /// Whether a value fits; variables of the pattern get what they stand for.
  Answer Matches(const Pattern& pattern, const PValue& value, Bindings* bound) {
    std::vector<std::pair<Pattern, PValue>> work{{pattern, value}};
    Answer answer = kYes;
    while (!work.empty()) {
      baton::runtime::PollInterrupt();
      auto [p, v] = work.back();
      work.pop_back();
      if (p.as<PatternWildcardNode>()) continue;
      if (const auto* var = p.as<PatternVarNode>()) {
        bound->emplace_back(var->var.get(), v);
      } else if (const auto* t = p.as<PatternTupleNode>()) {
        if (v->kind != Value::kTuple) {
          answer = kMaybe;
          continue;
        }
        for (size_t i = 0; i < t->patterns.size(); ++i)
          work.push_back({t->patterns[static_cast<int64_t>(i)], v->fields[i]});
      } else if (const auto* k = p.as<PatternConstructorNode>()) {
        if (v->kind != Value::kData) {
          answer = kMaybe;
          continue;
        }
        if (!v->constructor.same_as(k->constructor) && !(v->constructor->name_hint == k->constructor->name_hint))
          return kNo;
        for (size_t i = 0; i < k->patterns.size(); ++i)
          work.push_back({k->patterns[static_cast<int64_t>(i)], v->fields[i]});
      }
    }
    return answer;
  }

  /// The pattern with variables of its own, which are not known.
  Pattern Fresh(const Pattern& p, Frame* frame) {
    return support::WithStack([&]() -> Pattern {
      if (const auto* var = p.as<PatternVarNode>()) {
        Var own(var->var->name_hint(), In(var->var->type_annotation, frame));
        own->span = var->var->span;
        frame->env.Set(var->var.get(), Unknown(own));
        PatternVarNode n;
        n.span = p->span, n.var = own;
        return PatternVar(std::move(n));
      }
      if (const auto* t = p.as<PatternTupleNode>()) {
        PatternTupleNode n;
        n.span = p->span;
        for (const Pattern& part : t->patterns) n.patterns.push_back(Fresh(part, frame));
        return PatternTuple(std::move(n));
      }
      if (const auto* k = p.as<PatternConstructorNode>()) {
        PatternConstructorNode n;
        n.span = p->span, n.constructor = k->constructor;
        for (const Pattern& part : k->patterns) n.patterns.push_back(Fresh(part, frame));
        return PatternConstructor(std::move(n));
      }
      return p;
    });
  }

  PValue EvalMatch(const MatchNode* m, Frame* frame, Block* block) {
    PValue data = Atom(m->data, frame);
    for (const Clause& c : m->clauses) {
      Bindings bound;
      const Answer answer = Matches(c->lhs, data, &bound);
      if (answer == kNo) continue;
      if (answer == kMaybe) break;
      for (const auto& [var, value] : bound) frame->env.Set(var, value);
      return Eval(c->rhs, frame, block);
    }
    auto fits = [&](const Clause& c) {
      Bindings bound;
      return Matches(c->lhs, data, &bound) != kNo;
    };
    // Where none fits all stay: the program says so when it runs.
    const bool some = std::any_of(m->clauses.begin(), m->clauses.end(), fits);
    const Store before = std::move(store_);
    std::vector<Store> after;
    MatchNode n;
    n.data = data->left, n.complete = m->complete;
    for (const Clause& c : m->clauses) {
      if (some && !fits(c)) continue;
      Pattern own = Fresh(c->lhs, frame);
      n.clauses.push_back(Clause(own, Branch(c->rhs, frame, before, &after)));
    }
    // Clauses that cannot be are gone, so what is left need not cover all.
    if (n.clauses.size() != m->clauses.size()) n.complete = false;
    Join(before, after);
    return Unknown(Push(m, Match(std::move(n)), frame, block));
  }

  const IRModule& mod_;
  int64_t budget_;
  const std::unordered_set<const Object*>& recursive_;
  CapturedVars captured_;
  std::unordered_map<const Object*, std::vector<std::vector<int64_t>>> running_;
  Uses uses_;
  const String name_{"x"};
  Store store_;
  int64_t next_ref_ = 0;
};

/// Gives up a module whose functions nobody else may hold: bindings end one by one, so that a user who wants to stop
/// does not wait for the last.
void Release(IRModule mod) {
  std::vector<Expr> chain;
  for (const auto& [var, func] : mod->functions) {
    if (const auto* f = Expr(func).as<FunctionNode>()) {
      for (Expr e = f->body; e.as<LetNode>(); e = e.as<LetNode>()->body) chain.push_back(e);
    }
  }
  mod = IRModule();
  for (Expr& e : chain) {
    baton::runtime::PollInterrupt();
    e = Expr();
  }
}

IRModule Evaluated(IRModule mod) {
  {
    IRModule normal = ToANormalForm()(mod);
    mod = InferType()(normal);
    Release(std::move(normal));
  }
  IRModule out = mod;
  int64_t nodes = 0;
  const std::unordered_set<const Object*> recursive = FindRecursive(mod, &nodes);
  for (const auto& [var, func] : mod->functions) {
    const auto* f = Expr(func).as<FunctionNode>();
    if (!f || f->HasNonzeroAttr(attr::kPrimitive) || f->HasNonzeroAttr("SkipOptimization")) continue;
    out.CopyOnWrite()->Update(var, Evaluation(mod, nodes, recursive).Run(GetRef<Function>(f)));
  }
  Release(std::move(mod));
  return out;
}

}  // namespace

Pass PartialEvaluate() {
  return MakePass<PartialEvaluate>({
      .doc = "Runs the program as far as it is known: calls of known functions, branches, matches, references and "
             "operators on constants. Bindings that are no longer used stay; DeadCodeElimination drops them. Recursion "
             "is followed while an argument that is known counts down.",
      .opt_level = 1,
      .required = {"InferType"},
      .run = [](IRModule mod, PassContext) { return Evaluated(mod); },
  });
}

namespace {
const RegisterPass<PartialEvaluate> registered_partial_evaluate;
}

}  // namespace baton::relay::transform
