// SPDX-License-Identifier: Apache-2.0
// The interpreter: the meaning of Relay, operator by operator. Dataflow and let chains are walked with an explicit
// stack; calls of functions nest, each level on a fresh stack when needed.
#include <baton/relay/device.h>
#include <baton/relay/evaluator.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>
#include <baton/support/stack.h>

#include <atomic>
#include <unordered_set>
#include <utility>
#include <vector>

namespace baton::relay {
namespace {

std::atomic<Evaluator*> g_evaluator{nullptr};

/// Values of the expressions of one function body; a node evaluated once is not evaluated again in the same scope.
struct InterpreterFrame {
  ObjectRef callee;  ///< the closure that runs; null outside of functions
  std::unordered_map<const Object*, ObjectRef> vars;
  std::unordered_map<const Object*, ObjectRef> memo;

  const ObjectRef* Find(const Object* var) const {
    if (auto it = vars.find(var); it != vars.end()) return &it->second;
    const auto* closure = callee.as<ClosureObj>();
    if (!closure) return nullptr;
    if (closure->self.get() == var) return &callee;
    const auto it = closure->captured.find(var);
    return it == closure->captured.end() ? nullptr : &it->second;
  }
};

class Interpreter {
 public:
  explicit Interpreter(IRModule mod, Evaluator* operators = nullptr)
      : mod_(std::move(mod)), operators_(operators ? operators : &Evaluator::Get()) {}

  ObjectRef Eval(const Expr& root, InterpreterFrame* frame) {
    struct Item {
      const Object* node;
      Expr expr;  // keeps the node alive
      bool expanded;
    };
    std::vector<Item> stack{{root.get(), root, false}};
    auto ready = [&](const Expr& e) { return frame->memo.count(e.get()) != 0; };
    auto need = [&](const Expr& e, bool* all) {
      if (!ready(e)) {
        stack.push_back({e.get(), e, false});
        *all = false;
      }
    };
    while (!stack.empty()) {
      runtime::PollInterrupt();
      Expr e = stack.back().expr;
      if (ready(e)) {
        stack.pop_back();
        continue;
      }
      bool all = true;
      if (const auto* c = e.as<CallNode>()) {
        for (size_t i = c->args.size(); i-- > 0;) need(c->args[i], &all);
        if (!c->op.as<OpNode>() && !c->op.as<ConstructorNode>() && !IsPrimitive(c->op)) need(c->op, &all);
        if (all) frame->memo[e.get()] = EvalCall(c, frame);
      } else if (const auto* t = e.as<TupleNode>()) {
        for (size_t i = t->fields.size(); i-- > 0;) need(t->fields[i], &all);
        if (all) {
          Array<ObjectRef> fields;
          for (const Expr& f : t->fields) fields.push_back(frame->memo.at(f.get()));
          frame->memo[e.get()] = fields;
        }
      } else if (const auto* g = e.as<TupleGetItemNode>()) {
        need(g->tuple, &all);
        if (all) frame->memo[e.get()] = Downcast<Array<ObjectRef>>(frame->memo.at(g->tuple.get()))[g->index];
      } else if (const auto* l = e.as<LetNode>()) {
        // A function may call itself: it is bound before it is complete.
        if (l->value.as<FunctionNode>() && !frame->vars.count(l->var.get())) {
          frame->vars[l->var.get()] = MakeClosure(Downcast<Function>(l->value), frame, l->var);
        } else if (!frame->vars.count(l->var.get())) {
          need(l->value, &all);
          if (all) frame->vars[l->var.get()] = frame->memo.at(l->value.get());
          if (all && operators_->MovesValues() && IsLiteral(l->value)) literals_.insert(l->var.get());
        }
        if (all) need(l->body, &all);
        if (all) frame->memo[e.get()] = frame->memo.at(l->body.get());
      } else if (const auto* i = e.as<IfNode>()) {
        need(i->cond, &all);
        if (all) {
          const Expr& branch = Truth(frame->memo.at(i->cond.get())) ? i->true_branch : i->false_branch;
          need(branch, &all);
          if (all) frame->memo[e.get()] = frame->memo.at(branch.get());
        }
      } else if (const auto* r = e.as<RefCreateNode>()) {
        need(r->value, &all);
        if (all) {
          auto o = make_object<RefValueObj>();
          o->value = frame->memo.at(r->value.get());
          frame->memo[e.get()] = ObjectRef(ObjectPtr<Object>(o));
        }
      } else if (const auto* r = e.as<RefReadNode>()) {
        need(r->ref, &all);
        if (all) frame->memo[e.get()] = Downcast<RefValue>(frame->memo.at(r->ref.get()))->value;
      } else if (const auto* w = e.as<RefWriteNode>()) {
        need(w->ref, &all);
        need(w->value, &all);
        if (all) {
          Downcast<RefValue>(frame->memo.at(w->ref.get()))->value = frame->memo.at(w->value.get());
          frame->memo[e.get()] = Array<ObjectRef>();
        }
      } else if (const auto* m = e.as<MatchNode>()) {
        need(m->data, &all);
        if (all) {
          const ObjectRef data = frame->memo.at(m->data.get());
          const Clause* chosen = nullptr;
          for (const Clause& c : m->clauses) {
            if (Matches(c->lhs, data, frame)) {
              chosen = &c;
              break;
            }
          }
          if (!chosen) throw RuntimeError("no clause of the match fits the value");
          need((*chosen)->rhs, &all);
          if (all) frame->memo[e.get()] = frame->memo.at((*chosen)->rhs.get());
        }
      } else {
        frame->memo[e.get()] = EvalLeaf(e, frame);
      }
    }
    return frame->memo.at(root.get());
  }

  ObjectRef Apply(const ObjectRef& callee, const Array<ObjectRef>& args) {
    if (const auto* ctor = callee.as<ConstructorNode>()) return Construct(ctor, args);
    const auto* closure = callee.as<ClosureObj>();
    if (!closure)
      throw RuntimeError("a value of type " + (callee.defined() ? callee.get()->GetTypeKey() : "null") + " was called");
    const Function& func = closure->func;
    operators_->OnCall();
    if (func->HasNonzeroAttr(attr::kPrimitive)) return operators_->EvalPrimitive(func, args);
    if (args.size() != func->params.size()) {
      throw RuntimeError("a function of " + std::to_string(func->params.size()) + " parameters was called with " +
                         std::to_string(args.size()));
    }
    if (depth_ == kMaxDepth) TooDeep(closure);
    struct Level {
      int64_t* depth;
      explicit Level(int64_t* d) : depth(d) { ++*depth; }
      ~Level() { --*depth; }
    } level(&depth_);
    return support::WithStack([&] {
      InterpreterFrame frame{callee, {}, {}};
      for (size_t i = 0; i < args.size(); ++i) frame.vars[func->params[i].get()] = args[i];
      return Eval(func->body, &frame);
    });
  }

  /// `frame`: of the scope that it is made in; null: a global function, which closes over nothing.
  ObjectRef MakeClosure(const Function& f, const InterpreterFrame* frame, const Var& self = Var()) {
    auto o = make_object<ClosureObj>();
    o->func = f;
    o->self = self;
    if (frame) {
      auto [known, fresh] = free_vars_.try_emplace(f);
      if (fresh) known->second = FreeVars(f);
      for (const Var& v : known->second) {
        // One without a value is an error where it is used.
        const ObjectRef* value = v.same_as(self) ? nullptr : frame->Find(v.get());
        if (value) o->captured[v.get()] = *value;
      }
    }
    return ObjectRef(ObjectPtr<Object>(o));
  }

 private:
  /// A level takes about 2 KiB. Lists of a million elements are within it; recursion without an end is found in
  /// seconds.
  static constexpr int64_t kMaxDepth = 1'250'000;

  [[noreturn]] void TooDeep(const ClosureObj* closure) const {
    std::string name = closure->self.defined() ? "%" + closure->self->name_hint().str() : "fn";
    if (mod_.defined()) {
      for (const auto& [var, func] : mod_->functions) {
        if (func.same_as(closure->func)) name = var->name_hint.str();
      }
    }
    throw RuntimeError("`" + name + "` is called " + std::to_string(kMaxDepth) +
                       " levels deep, which is more than the interpreter takes; does the recursion have a base case? "
                       "(The virtual machine takes more levels.)");
  }

  static bool IsPrimitive(const Expr& op) {
    const auto* f = op.as<FunctionNode>();
    return f && f->HasNonzeroAttr(attr::kPrimitive);
  }

  static ObjectRef Construct(const ConstructorNode* ctor, const Array<ObjectRef>& args) {
    if (args.size() != ctor->inputs.size()) {
      throw RuntimeError("the constructor `" + ctor->name_hint.str() + "` has " + std::to_string(ctor->inputs.size()) +
                         " fields, got " + std::to_string(args.size()));
    }
    return ConstructorValue(ctor->tag, args, GetRef<Constructor>(ctor));
  }

  static bool Truth(const ObjectRef& v) {
    NDArray a = Downcast<NDArray>(v);
    if (a.numel() != 1)
      throw RuntimeError("the condition of an if has " + std::to_string(a.numel()) + " elements, must have one");
    return a.GetInt(0) != 0;
  }

  /// Values made on the host for any device: constants, operators without arguments, shapes, and variables
  /// that are bound to them.
  bool IsLiteral(const Expr& e) const {
    if (e.as<ConstantNode>()) return true;
    if (e.as<VarNode>()) return literals_.count(e.get()) != 0;
    if (const auto* t = e.as<TupleNode>()) {
      for (const Expr& f : t->fields) {
        if (!IsLiteral(f)) return false;
      }
      return true;
    }
    const auto* c = e.as<CallNode>();
    if (!c || !c->op.as<OpNode>()) return false;
    const OpDef* def = DefOf(c->op);
    return c->args.empty() || (def && def->traits.shape_only);
  }
  /// In a program for several devices, literals go where what they are used with is.
  void PlaceLiterals(const CallNode* c, Array<ObjectRef>* args) {
    if (!operators_->MovesValues()) return;
    int64_t device = c->op.as<OpNode>() ? operators_->WantedDevice(Downcast<Op>(c->op), c->attrs) : -1;
    if (device < 0) {
      for (const ObjectRef& a : *args) {
        const auto* array = a.as<runtime::NDArrayObj>();
        if (array && array->dl_tensor.device.device_type != kDLCPU) device = array->dl_tensor.device.device_type;
      }
    }
    if (device == kDLCPU || device < 0) return;
    for (size_t i = 0; i < args->size(); ++i) {
      if (IsLiteral(c->args[i])) args->Set(i, MoveValue((*args)[i], device));
    }
  }

  ObjectRef EvalCall(const CallNode* c, InterpreterFrame* frame) {
    Array<ObjectRef> args;
    for (const Expr& a : c->args) args.push_back(frame->memo.at(a.get()));
    if (c->op.as<OpNode>() || c->op.as<ConstructorNode>() || IsPrimitive(c->op)) {
      PlaceLiterals(c, &args);
    } else if (const auto* callee = frame->memo.at(c->op.get()).as<ClosureObj>();
               callee && callee->func->attrs.defined() && operators_->MovesValues()) {
      Array<Any> devices = callee->func->GetAttr<Array<Any>>("param_device_types", Array<Any>());
      for (size_t i = 0; i < devices.size() && i < args.size(); ++i) {
        if (devices[i].type_code() == kBatonInt && IsLiteral(c->args[i]))
          args.Set(i, MoveValue(args[i], devices[i].As<int64_t>()));
      }
    }
    if (const auto* op = c->op.as<OpNode>()) return operators_->EvalOp(GetRef<Op>(op), c->attrs, args);
    if (IsPrimitive(c->op)) return operators_->EvalPrimitive(Downcast<Function>(c->op), args);
    if (const auto* ctor = c->op.as<ConstructorNode>()) return Construct(ctor, args);
    return Apply(frame->memo.at(c->op.get()), args);
  }

  ObjectRef EvalLeaf(const Expr& e, InterpreterFrame* frame) {
    if (const auto* c = e.as<ConstantNode>()) return c->data;
    if (e.as<VarNode>()) {
      if (const ObjectRef* v = frame->Find(e.get())) return *v;
      throw RuntimeError("variable %" + e.as<VarNode>()->name_hint().str() + " has no value");
    }
    if (const auto* f = e.as<FunctionNode>()) return MakeClosure(GetRef<Function>(f), frame);
    if (const auto* g = e.as<GlobalVarNode>()) {
      return MakeClosure(Downcast<Function>(mod_->Lookup(GetRef<GlobalVar>(g))), nullptr);
    }
    if (e.as<ConstructorNode>()) return e;  // called later
    if (e.as<OpNode>()) {
      throw UnsupportedError("the interpreter does not take an operator as a value; wrap it in a function");
    }
    throw InternalError("the interpreter does not know expressions of type " + e.get()->GetTypeKey());
  }

  bool Matches(const Pattern& pattern, const ObjectRef& value, InterpreterFrame* frame) {
    std::vector<std::pair<Pattern, ObjectRef>> work{{pattern, value}};
    while (!work.empty()) {
      auto [p, v] = work.back();
      work.pop_back();
      if (const auto* var = p.as<PatternVarNode>()) {
        frame->vars[var->var.get()] = v;
      } else if (const auto* c = p.as<PatternConstructorNode>()) {
        const auto* data = v.as<ConstructorValueObj>();
        if (!data) throw RuntimeError("a value of type " + v.get()->GetTypeKey() + " was matched with a constructor");
        bool same = data->constructor.same_as(c->constructor) ||
                    (data->constructor->name_hint == c->constructor->name_hint &&
                     data->constructor->belong_to->name_hint == c->constructor->belong_to->name_hint);
        if (!same) return false;
        for (size_t i = 0; i < c->patterns.size(); ++i) work.push_back({c->patterns[i], data->fields[i]});
      } else if (const auto* t = p.as<PatternTupleNode>()) {
        Array<ObjectRef> fields = Downcast<Array<ObjectRef>>(v);
        for (size_t i = 0; i < t->patterns.size(); ++i) work.push_back({t->patterns[i], fields[i]});
      }
    }
    return true;
  }

  IRModule mod_;
  int64_t depth_ = 0;  ///< calls of functions that run now
  Evaluator* operators_;
  std::unordered_set<const Object*> literals_;  ///< variables of lets
  std::unordered_map<Function, Array<Var>, ObjectHash, ObjectEqual>
      free_vars_;  ///< of functions that closures were made of
};

const RegisterNodes<ConstructorValueObj> registered_interpreter;

}  // namespace

Evaluator& Evaluator::Get() {
  Evaluator* e = g_evaluator.load();
  if (!e) throw RuntimeError("this build has no evaluator of operators");
  return *e;
}
void Evaluator::Set(Evaluator* e) { g_evaluator.store(e); }

ObjectRef Interpret(const Expr& expr, const IRModule& mod) {
  Interpreter in(mod);
  InterpreterFrame frame;
  if (!expr.defined()) return in.Apply(in.MakeClosure(Downcast<Function>(mod->Lookup("main")), nullptr), {});
  return in.Eval(expr, &frame);
}

ObjectRef InterpretCall(const Expr& func, const Array<ObjectRef>& args, const IRModule& mod) {
  return InterpretCall(func, args, mod, Evaluator::Get());
}

ObjectRef InterpretApply(const ObjectRef& callee, const Array<ObjectRef>& args, const IRModule& mod,
                         Evaluator& operators) {
  return Interpreter(mod, &operators).Apply(callee, args);
}

ObjectRef InterpretCall(const Expr& func, const Array<ObjectRef>& args, const IRModule& mod, Evaluator& operators) {
  Interpreter in(mod, &operators);
  Function f =
      func.as<GlobalVarNode>() ? Downcast<Function>(mod->Lookup(Downcast<GlobalVar>(func))) : Downcast<Function>(func);
  if (!f->attrs.defined() || args.size() != f->params.size() || !operators.MovesValues())
    return in.Apply(in.MakeClosure(f, nullptr), args);
  // A planned function says where it wants its parameters.
  Array<Any> devices = f->GetAttr<Array<Any>>("param_device_types", Array<Any>());
  Array<ObjectRef> placed = args;
  for (size_t i = 0; i < devices.size() && i < args.size(); ++i) {
    if (devices[i].type_code() == kBatonInt) placed.Set(i, MoveValue(args[i], devices[i].As<int64_t>()));
  }
  return in.Apply(in.MakeClosure(f, nullptr), placed);
}

Expr ValueToExpr(const ObjectRef& value) {
  struct Item {
    Array<ObjectRef> values;
    Array<Expr> done;
  };
  if (value.as<runtime::NDArrayObj>()) {
    Constant c(Downcast<NDArray>(value));
    c->checked_type_ = c->tensor_type();
    return c;
  }
  if (!value.as<runtime::ArrayObj>()) return Expr();
  std::vector<Item> stack{{Downcast<Array<ObjectRef>>(value), {}}};
  while (true) {
    Item& top = stack.back();
    if (top.done.size() == top.values.size()) {
      Expr tuple = Tuple(top.done);
      stack.pop_back();
      if (stack.empty()) return tuple;
      stack.back().done.push_back(tuple);
      continue;
    }
    ObjectRef v = top.values[static_cast<int64_t>(top.done.size())];
    if (v.as<runtime::ArrayObj>()) {
      stack.push_back({Downcast<Array<ObjectRef>>(v), {}});
    } else if (v.as<runtime::NDArrayObj>()) {
      Constant c(Downcast<NDArray>(v));
      c->checked_type_ = c->tensor_type();
      top.done.push_back(c);
    } else {
      return Expr();
    }
  }
}

BATON_REGISTER_GLOBAL("relay.backend.MakeRefValue").set_body_typed([](ObjectRef value) {
  auto o = make_object<RefValueObj>();
  o->value = std::move(value);
  return RefValue(ObjectPtr<Object>(o));
});
BATON_REGISTER_GLOBAL("relay.backend.ReadRefValue").set_body_typed([](RefValue ref) { return ref->value; });
BATON_REGISTER_GLOBAL("relay.backend.Interpret").set_body_typed([](Expr e, IRModule mod) { return Interpret(e, mod); });
BATON_REGISTER_GLOBAL("relay.backend.InterpretCall").set_body_typed([](Expr f, Array<ObjectRef> args, IRModule mod) {
  return InterpretCall(f, args, mod);
});

}  // namespace baton::relay
