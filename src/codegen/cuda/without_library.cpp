// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <fmt/format.h>

#include "codegen/cuda/cuda.h"
#include "tir/intrin/float32_math.h"

namespace baton::codegen::cuda {

using namespace tir;  // NOLINT: node kinds are named below

namespace {

class Writer final : public StmtExprMutator {
 public:
  explicit Writer(const std::string& function) : function_(function) {}
  using StmtExprMutator::VisitExpr_;

  PrimExpr VisitExpr_(const CallNode* op) final {
    const IntrinDef* row = IntrinOf(op);
    if (const source::IntrinText* text = OwnText(row); text && text->refused) {
      throw UnsupportedError(fmt::format("`{}` cannot be compiled for CUDA: {}", function_, text->refused));
    }
    PrimExpr e = StmtExprMutator::VisitExpr_(op);
    const auto* call = e.as<CallNode>();
    const Float64Fn fn = call && call->dtype.is_float() ? Float64Of(row) : nullptr;
    if (!fn) return e;
    if (call->dtype.is_scalar()) return Written(fn, call->dtype, call->args);
    float32::Names n;
    Array<PrimExpr> args, values;
    Array<int64_t> order;
    for (const PrimExpr& a : call->args) args.push_back(n("v", a));
    for (int64_t lane = 0; lane < call->dtype.lanes(); ++lane) {
      Array<PrimExpr> scalars;
      for (const PrimExpr& a : args) scalars.push_back(Shuffle({a}, {lane}));
      values.push_back(Written(fn, call->dtype.element_of(), scalars));
      order.push_back(lane);
    }
    return n.Close(Shuffle(values, order));
  }
  PrimExpr VisitExpr_(const ModNode* op) final {
    PrimExpr e = StmtExprMutator::VisitExpr_(op);
    const auto* mod = e.as<ModNode>();
    return mod && mod->dtype.is_float() ? RemainderCall(mod->a, mod->b) : e;
  }
  PrimExpr VisitExpr_(const FloorModNode* op) final {
    PrimExpr e = StmtExprMutator::VisitExpr_(op);
    const auto* mod = e.as<FloorModNode>();
    if (!mod || !mod->dtype.is_float()) return e;
    float32::Names n;
    const PrimExpr zero = make_const(mod->dtype, 0), b = n("b", mod->b), r = n("r", RemainderCall(mod->a, b));
    const PrimExpr other_sign = (r < zero && b > zero) || (r > zero && b < zero);
    return n.Close(Select(other_sign, r + b, r));
  }

 private:
  static PrimExpr Written(Float64Fn fn, DataType t, const Array<PrimExpr>& args) {
    if (t.bits() == 64) return fn(args, false);
    Array<PrimExpr> wide;
    for (const PrimExpr& a : args) wide.push_back(cast(DataType::Float(64), a));
    return cast(t, fn(wide, true));
  }

  const std::string& function_;
};

}  // namespace

kernels::KernelBody WithoutLibrary(const kernels::KernelBody& kernel, const std::string& function) {
  Writer writer(function);
  kernels::KernelBody out = kernel;
  for (auto& [var, value] : out.lets) value = writer(value);
  out.body = writer(out.body);
  return out;
}

}  // namespace baton::codegen::cuda
