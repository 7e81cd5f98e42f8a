// SPDX-License-Identifier: Apache-2.0
#include "flops.h"

#include <baton/runtime/reflection.h>

#include <algorithm>

namespace baton::relay {
namespace {

/// Product of the dimensions of a weight that stand for `axis` in its layout, as "OIHW4i16o".
double LayoutSize(const CallNode* call, const char* usual, char axis) {
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
  return std::max(n, 1.0);
}

}  // namespace

double MatmulFlops(const CallNode* call) {
  const auto* t = AsTensor(call->checked_type());
  const double out = ElementsOf(call->checked_type()), in = ElementsOf(call->args[0]->checked_type());
  const double columns = t && t->shape.size() ? static_cast<double>(DimOf(t->shape[t->shape.size() - 1])) : 1;
  const double rows = out / std::max(columns, 1.0);
  return 2 * out * (in / std::max(rows, 1.0));
}

double ConvFlops(const CallNode* call) {
  return 2 * ElementsOf(call->checked_type()) * ElementsOf(call->args[1]->checked_type()) /
         LayoutSize(call, "OIHW", 'O');
}

double ConvTransposeFlops(const CallNode* call) {
  return 2 * ElementsOf(call->args[0]->checked_type()) * ElementsOf(call->args[1]->checked_type()) /
         LayoutSize(call, "IOHW", 'I');
}

}  // namespace baton::relay
