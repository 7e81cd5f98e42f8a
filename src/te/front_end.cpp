// SPDX-License-Identifier: Apache-2.0
// Tensor expressions, for front ends.
#include <baton/runtime/registry.h>
#include <baton/te/lower.h>
#include <baton/tir/functor.h>

namespace baton::te {
namespace {

/// Replaces each element of a tensor by `f(tensor, indices)`.
class LoadReplacer : public tir::ExprMutator {
 public:
  explicit LoadReplacer(const runtime::PackedFunc& f) : f_(f) {}

 private:
  using ExprMutator::VisitExpr_;
  PrimExpr VisitExpr_(const tir::ProducerLoadNode* op) final {
    return f_(Downcast<Tensor>(op->producer), VisitExprs(op->indices)).As<PrimExpr>();
  }
  const runtime::PackedFunc& f_;
};
BATON_REGISTER_GLOBAL("te.ReplaceLoads").set_body_typed([](PrimExpr e, runtime::PackedFunc f) {
  return LoadReplacer(f)(e);
});

BATON_REGISTER_GLOBAL("te.placeholder").set_body_typed([](Array<PrimExpr> shape, DataType t, String name) {
  return placeholder(shape, t, name);
});
BATON_REGISTER_GLOBAL("te.MakeIndexVars").set_body_typed([](int64_t n) {
  return MakeIndexVars(static_cast<size_t>(n));
});
BATON_REGISTER_GLOBAL("te.compute")
    .set_body_typed([](Array<PrimExpr> shape, Array<Var> vars, Array<PrimExpr> bodies, String name, String tag) {
      if (bodies.size() == 1) return Array<Tensor>{ComputeImpl(shape, vars, bodies[0], name, tag)};
      return ComputeMany(shape, vars, bodies, name, tag);
    });
BATON_REGISTER_GLOBAL("te.Load").set_body_typed([](Tensor t, Array<PrimExpr> indices) { return t(indices); });
/// An output of an existing operation, as a tensor.
BATON_REGISTER_GLOBAL("te.OutputOf").set_body([](runtime::Args args, runtime::RetValue* rv) {
  const auto op = args[0].As<Operation>();
  const int64_t index = args.size() > 1 ? args[1].As<int64_t>() : 0;
  if (const auto* p = op.as<PlaceholderOpNode>(); p && index == 0) {
    *rv = Tensor(TensorNode{{}, p->shape, p->dtype, op, index});
    return;
  }
  const auto* c = op.as<ComputeOpNode>();
  if (!c || index < 0 || index >= static_cast<int64_t>(c->body.size()))
    throw runtime::ValueError("operation `" + op->name.str() + "` has no output " + std::to_string(index));
  Array<PrimExpr> shape;
  for (const IterVar& a : c->axis) {  // loops run over int64, the size is what the program gave
    const auto* wide = a->dom->extent.as<tir::CastNode>();
    shape.push_back(wide && wide->value.dtype().is_integral() ? wide->value : a->dom->extent);
  }
  *rv = Tensor(TensorNode{{}, shape, c->body[index].dtype(), op, index});
});
BATON_REGISTER_GLOBAL("te.reduce_axis").set_body_typed([](PrimExpr min, PrimExpr extent, String name) {
  return ReduceAxis(min, extent, name);
});
BATON_REGISTER_GLOBAL("te.sum").set_body_typed([](PrimExpr e, Array<IterVar> axis) { return Sum(e, axis); });
BATON_REGISTER_GLOBAL("te.prod").set_body_typed([](PrimExpr e, Array<IterVar> axis) { return Prod(e, axis); });
BATON_REGISTER_GLOBAL("te.max").set_body_typed([](PrimExpr e, Array<IterVar> axis) { return MaxOf(e, axis); });
BATON_REGISTER_GLOBAL("te.min").set_body_typed([](PrimExpr e, Array<IterVar> axis) { return MinOf(e, axis); });
BATON_REGISTER_GLOBAL("te.any").set_body_typed([](PrimExpr e, Array<IterVar> axis) { return AnyOf(e, axis); });
BATON_REGISTER_GLOBAL("te.all").set_body_typed([](PrimExpr e, Array<IterVar> axis) { return AllOf(e, axis); });
BATON_REGISTER_GLOBAL("te.create_prim_func")
    .set_body_typed([](Array<Tensor> inputs, Array<Tensor> outputs, String name, Target target) {
      return LowerToPrimFunc(inputs, outputs, name, target.defined() ? target : Target::Current());
    });

}  // namespace
}  // namespace baton::te
