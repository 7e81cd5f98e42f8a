// SPDX-License-Identifier: Apache-2.0
#include "flops.h"

#include <baton/runtime/reflection.h>

#include <algorithm>

namespace baton::relay {
namespace {

PrimExpr Number(double value) { return FloatImm(DataType::Float(64), value); }

/// Product of the dimensions of a weight that stand for `axis` in its layout, as "OIHW4i16o".
PrimExpr LayoutSize(const CallNode* call, const char* usual, char axis) {
  const Expr& weight = call->args[1];
  const String layout =
      call->attrs.defined() ? runtime::GetField(call->attrs.get(), "kernel_layout").As<String>() : String(usual);
  const auto* t = AsTensor(weight->checked_type());
  double n = 1;
  int64_t dim = 0;
  for (char c : layout.view()) {
    if (!isalpha(static_cast<unsigned char>(c))) continue;
    if (!t || dim >= static_cast<int64_t>(t->shape.size())) break;
    if (toupper(c) == axis) n *= static_cast<double>(DimOf(t->shape[dim]));
    ++dim;
  }
  return Number(std::max(n, 1.0));
}

}  // namespace

PrimExpr MatmulFlops(const CallNode* call) {
  const auto* t = AsTensor(call->checked_type());
  const PrimExpr one = Number(1);
  const PrimExpr out = ElementsFormula(call->checked_type()), in = ElementsFormula(call->args[0]->checked_type());
  const PrimExpr columns = t && t->shape.size() ? cast(one->dtype, t->shape[t->shape.size() - 1]) : one;
  const PrimExpr rows = out / max(columns, one);
  return Number(2) * out * (in / max(rows, one));
}

PrimExpr ConvFlops(const CallNode* call) {
  return Number(2) * ElementsFormula(call->checked_type()) * ElementsFormula(call->args[1]->checked_type()) /
         LayoutSize(call, "OIHW", 'O');
}

PrimExpr ConvTransposeFlops(const CallNode* call) {
  return Number(2) * ElementsFormula(call->args[0]->checked_type()) * ElementsFormula(call->args[1]->checked_type()) /
         LayoutSize(call, "IOHW", 'I');
}

}  // namespace baton::relay
