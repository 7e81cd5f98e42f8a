// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <baton/te/lower.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace baton::relay {
namespace {

PrimExpr ScalarLiteral(const Constant& c) {
  DataType t = c->data.dtype();
  if (t.is_floating()) return FloatImm(t, c->data.GetDouble(0));
  return IntImm(t, c->data.GetInt(0));
}

/// Marks what an operator's lowering made, down to its arguments, with the span of the call.
void MarkTensors(const Array<te::Tensor>& results, const Array<te::Tensor>& args, const Span& span) {
  if (!span.defined()) return;
  std::unordered_set<const Object*> seen;
  for (const te::Tensor& t : args) seen.insert(t->op.get());
  std::vector<te::Operation> work;
  auto push = [&](const te::Operation& op) {
    if (seen.insert(op.get()).second) work.push_back(op);
  };
  for (const te::Tensor& t : results) push(t->op);
  while (!work.empty()) {
    te::Operation op = work.back();
    work.pop_back();
    if (const auto* c = op.as<te::ComputeOpNode>()) {
      for (const PrimExpr& b : c->body) {
        tir::MarkSpan(b, span);
        auto visit = [&](const PrimExpr& e) {
          if (!e.defined()) return;
          tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
            if (const auto* l = x.as<tir::ProducerLoadNode>()) push(Downcast<te::Tensor>(l->producer)->op);
          });
        };
        if (const auto* r = b.as<tir::ReduceNode>()) {
          for (const PrimExpr& e : r->source) {
            tir::MarkSpan(e, span);
            visit(e);
          }
          visit(r->condition);
        } else {
          visit(b);
        }
      }
    } else if (const auto* e = op.as<te::ExternOpNode>()) {
      tir::Stmt body = Downcast<tir::Stmt>(e->body);
      if (!body->span.defined()) body->span = span;
      for (const te::Tensor& t : e->inputs) push(t->op);
    }
  }
}

const TensorTypeNode* TensorOf(const Expr& e) {
  const auto* t = e->checked_type_.as<TensorTypeNode>();
  if (!t)
    throw InternalError("a tensor was expected in a primitive function, not " +
                        (e->checked_type_.defined() ? e->checked_type_.get()->GetTypeKey() : "an untyped expression"));
  return t;
}

/// Whether a value is a tensor, or tensors in a tuple.
bool TensorsOnly(const ObjectRef& type) {
  const auto* tuple = type.as<TupleTypeNode>();
  if (!tuple) return type.as<TensorTypeNode>();
  for (const Type& f : tuple->fields) {
    if (!f.as<TensorTypeNode>()) return false;
  }
  return true;
}

}  // namespace

bool IsView(const ObjectRef& op) {
  const OpDef* def = DefOf(op);
  return def && def->traits.values == Values::kView;
}

bool IsAppend(const ObjectRef& op) {
  const OpDef* def = DefOf(op);
  return def && def->traits.appends;
}

Call AnchorOf(const Function& func) {
  Call last, heavy;
  PostOrder(func->body, [&](const Expr& e) {
    const auto* call = e.as<CallNode>();
    if (!call) return;
    last = GetRef<Call>(call);
    const OpDef* def = DefOf(call->op);
    if (def && def->pattern == OpPattern::kOutEWiseFusable && !heavy.defined()) heavy = last;
  });
  return heavy.defined() ? heavy : last;
}

Array<te::Tensor> ToTensorExpressions(const Function& func, Array<te::Tensor>* inputs) {
  return ToTensorExpressions(func, inputs, Call(), nullptr);
}

Array<te::Tensor> ToTensorExpressions(const Function& func, Array<te::Tensor>* inputs, const Call& cut,
                                      te::Tensor* result) {
  std::unordered_map<const Object*, Array<te::Tensor>> value;
  std::unordered_map<const Object*, Expr> bound;  // by lets of the input; fusion makes none
  PostOrder(func->body, [&](const Expr& e) {
    if (const auto* let = e.as<LetNode>()) bound[let->var.get()] = let->value;
  });
  auto of = [&](Expr e) -> const Array<te::Tensor>& {
    for (auto it = bound.find(e.get()); it != bound.end(); it = bound.find(e.get())) e = it->second;
    return value.at(e.get());
  };
  const bool given = inputs->size() > 0;
  for (size_t i = 0; i < func->params.size(); ++i) {
    const Var& p = func->params[i];
    if (!given) {
      const auto* t = TensorOf(p);
      inputs->push_back(te::placeholder(t->shape, t->dtype, p->name_hint()));
    }
    value[p.get()] = {(*inputs)[i]};
  }
  PostOrder(func->body, [&](const Expr& e) {
    if (const auto* c = e.as<ConstantNode>()) {
      PrimExpr literal = ScalarLiteral(GetRef<Constant>(c));
      if (!c->is_scalar()) throw InternalError("a primitive function holds a constant that is not a scalar");
      value[e.get()] = {te::Compute(Array<PrimExpr>(), [&](te::Indices) { return literal; }, "literal")};
    } else if (const auto* t = e.as<TupleNode>()) {
      Array<te::Tensor> all;
      for (const Expr& f : t->fields) {
        for (const te::Tensor& x : of(f)) all.push_back(x);
      }
      value[e.get()] = all;
    } else if (const auto* g = e.as<TupleGetItemNode>()) {
      value[e.get()] = {of(g->tuple)[g->index]};
    } else if (const auto* let = e.as<LetNode>()) {
      value[e.get()] = Array<te::Tensor>(of(let->body));
    } else if (const auto* call = e.as<CallNode>()) {
      if (e.same_as(cut)) {
        const auto* t = TensorOf(e);
        *result = te::placeholder(t->shape, t->dtype, "result");
        value[e.get()] = {*result};
        return;
      }
      const OpDef* def = DefOf(call->op);
      if (!def || !def->lower) throw InternalError("no lowering for an operator of a primitive function");
      Array<te::Tensor> args;
      for (const Expr& a : call->args) {
        for (const te::Tensor& x : of(a)) args.push_back(x);
      }
      Array<te::Tensor> made = def->lower(call->attrs, args, Downcast<Type>(e->checked_type_));
      MarkTensors(made, args, call->span);
      value[e.get()] = made;
    }
  });
  return of(func->body);
}

namespace {

/// For front ends: the results of a program of operators on tensors.
Array<te::Tensor> OnTensors(const Function& func, const Array<te::Tensor>& args) {
  if (args.size() != func->params.size()) throw runtime::ValueError("a tensor for each parameter is wanted");
  IRModule mod = IRModule::FromExpr(func);
  baton::transform::Pass infer = transform::InferType(), decompose = transform::DecomposeOps();
  for (IRModule before;;) {
    before = mod = infer(mod);
    mod = decompose(mod);
    if (mod.same_as(before)) break;
  }
  const Function f = Downcast<Function>(mod->Lookup("main"));
  PostOrder(f->body, [](const Expr& e) {
    if (const auto* c = e.as<ConstantNode>(); c && !c->is_scalar())
      throw UnsupportedError("an array is no tensor of a tensor expression; make it a te.placeholder");
    const auto* call = e.as<CallNode>();
    if (!call) return;
    const OpDef* def = DefOf(call->op);
    if (def && def->lower && TensorsOnly(e->checked_type_)) return;
    const auto* op = call->op.as<OpNode>();
    throw UnsupportedError("`" + (op ? op->name.str() : std::string("what is called")) +
                           "` has no loops that a tensor expression could say; use relay." +
                           (op ? op->name.str() : std::string("build")));
  });
  Array<te::Tensor> inputs = args;
  return ToTensorExpressions(f, &inputs);
}

}  // namespace

BATON_REGISTER_GLOBAL("relay.OnTensors").set_body_typed([](Function f, Array<te::Tensor> args) {
  return OnTensors(f, args);
});

tir::PrimFunc LowerPrimitive(const Function& func, const String& name, const Target& target) {
  Call anchor = AnchorOf(func);
  // Generators write for a processor's registers and caches.
  const OpDef* def = anchor.defined() ? DefOf(anchor->op) : nullptr;
  if (def && def->traits.kernel && (!target.defined() || target->traits().vector_kernels)) {
    tir::PrimFunc f = def->traits.kernel(func, anchor, name, target);
    if (f.defined()) return f;
  }
  Array<te::Tensor> inputs;
  Array<te::Tensor> outputs = ToTensorExpressions(func, &inputs);
  return te::LowerToPrimFunc(inputs, outputs, name, target);
}

BATON_REGISTER_GLOBAL("relay.LowerPrimitive").set_body_typed([](Function func, String name, Target target) {
  return LowerPrimitive(func, name, target);
});

}  // namespace baton::relay
