// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/te/lower.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace baton::relay {
namespace {

struct GeneratorTable {
  std::mutex mutex;
  std::map<std::string, std::vector<KernelGenerator>, std::less<>> by_op;
  static GeneratorTable& Get() {
    static auto* t = new GeneratorTable;
    return *t;
  }
};

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

}  // namespace

void RegisterKernelGenerator(const char* op_name, KernelGenerator generator) {
  GeneratorTable& t = GeneratorTable::Get();
  std::lock_guard lock(t.mutex);
  t.by_op[op_name].push_back(generator);
}

bool IsView(const ObjectRef& op) {
  static const std::unordered_set<std::string_view> views = {"reshape",
                                                             "squeeze",
                                                             "expand_dims",
                                                             "nn.batch_flatten",
                                                             "reshape_like",
                                                             "reverse_reshape",
                                                             "contrib_reverse_reshape"};
  const auto* n = op.as<OpNode>();
  return n && views.count(n->name.view());
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
  std::unordered_map<const Object*, Expr> bound;  // by lets, which somebody wrote: fusing makes none
  PostOrder(func->body, [&](const Expr& e) {
    if (const auto* let = e.as<LetNode>()) bound[let->var.get()] = let->value;
  });
  auto of = [&](Expr e) -> const Array<te::Tensor>& {
    for (auto it = bound.find(e.get()); it != bound.end(); it = bound.find(e.get())) e = it->second;
    return value.at(e.get());
  };
  for (const Var& p : func->params) {
    const auto* t = TensorOf(p);
    te::Tensor x = te::placeholder(t->shape, t->dtype, p->name_hint());
    inputs->push_back(x);
    value[p.get()] = {x};
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

tir::PrimFunc LowerPrimitive(const Function& func, const String& name, const Target& target) {
  Call anchor = AnchorOf(func);
  // Generators write for a processor's registers and caches.
  if (anchor.defined() && !(target.defined() && target->kind == "opencl")) {
    std::vector<KernelGenerator> generators;
    {
      GeneratorTable& t = GeneratorTable::Get();
      std::lock_guard lock(t.mutex);
      if (const auto* op = anchor->op.as<OpNode>()) {
        auto it = t.by_op.find(op->name.view());
        if (it != t.by_op.end()) generators = it->second;
      }
    }
    for (KernelGenerator g : generators) {
      tir::PrimFunc f = g(func, anchor, name, target);
      if (f.defined()) return f;
    }
  }
  Array<te::Tensor> inputs;
  Array<te::Tensor> outputs = ToTensorExpressions(func, &inputs);
  return te::LowerToPrimFunc(inputs, outputs, name, target);
}

}  // namespace baton::relay
