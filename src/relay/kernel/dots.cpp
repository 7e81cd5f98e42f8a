// SPDX-License-Identifier: Apache-2.0
#include "dots.h"

#include <baton/relay/op.h>
#include <baton/relay/op/nn.h>

namespace baton::relay::kernel {

namespace {
constexpr int64_t kTerms = 4;

template <int N>
bool HasConvKernel(const ConvAttrs<N>& a, const TensorTypeNode* data, const TensorTypeNode* weight, int64_t lanes) {
  if (a.data_layout != ForSpace<N>("NCW", "NCHW", "NCDHW") || a.kernel_layout != ForSpace<N>("OIW", "OIHW", "OIDHW") ||
      (!a.out_layout.empty() && a.out_layout != a.data_layout))
    return false;
  if (data->shape.size() != N + 2 || weight->shape.size() != N + 2 || a.groups < 1) return false;
  bool open = false;  // sides of images
  for (int64_t d = 1; d < N + 2; ++d) {
    const int64_t side = DimOf(data->shape[d]);
    if (side == 0 || (side < 0 && (d == 1 || N == 3)) || DimOf(weight->shape[d]) <= 0) return false;
    open |= side < 0;
  }
  const int64_t in = DimOf(data->shape[1]) / a.groups, out = DimOf(weight->shape[0]) / a.groups;
  if (DimOf(data->shape[1]) % a.groups || DimOf(weight->shape[0]) % a.groups || DimOf(weight->shape[1]) != in)
    return false;
  if (a.groups > 1 && in == 1 && out == 1) return N < 3 && BlockOf(a.groups, lanes) > 0;
  if (open && a.groups > 1) return false;
  const int64_t of_out = BlockOf(out, lanes);
  // Groups that leave lanes empty are not worth another order.
  return BlockOf(in, lanes) > 0 && of_out > 0 && (a.groups == 1 || of_out == lanes);
}
}  // namespace

int64_t BlockOf(int64_t channels, int64_t lanes) {
  for (int64_t b = lanes; b >= 4; b /= 2) {
    if (channels % b == 0) return b;
  }
  return 0;
}

bool AddsFourProducts(const Target& target) {
  if (!target->traits().vector_kernels) return false;
  if (target->Has("avx512vnni") || target->Has("avxvnni")) return true;
  return target->Has(target->Has("avx512f") ? "avx512bw" : target->Has("avx") ? "avx2" : "sse4.1");
}

bool HasDotKernel(const Op& op, const Attrs& attrs, const TensorTypeNode* data, const TensorTypeNode* weight,
                  const Target& target) {
  if (!AddsFourProducts(target) || !data || !weight || data->dtype != DataType::UInt(8) ||
      weight->dtype != DataType::Int(8))
    return false;
  const int64_t lanes = target->Lanes(DataType::Int(32));
  switch (ConvDims(op)) {
    case 1:
      return HasConvKernel(*attrs.as<ConvAttrs<1>>(), data, weight, lanes);
    case 2:
      return HasConvKernel(*attrs.as<ConvAttrs<2>>(), data, weight, lanes);
    case 3:
      return HasConvKernel(*attrs.as<ConvAttrs<3>>(), data, weight, lanes);
    default:
      break;
  }
  if (op != op::dense || weight->shape.size() != 2 || data->shape.empty()) return false;
  const int64_t k = DimOf(weight->shape[1]);
  return k > 0 && k % kTerms == 0 && DimOf(weight->shape[0]) > 0;
}

bool HasDotKernel(const CallNode* call, const Target& target) {
  const auto* op = call->op.as<OpNode>();
  const auto* out = call->checked_type_.as<TensorTypeNode>();
  if (!op || !out || out->dtype != DataType::Int(32) || call->args.size() != 2 || !call->args[1].as<ConstantNode>())
    return false;
  return HasDotKernel(GetRef<Op>(op), call->attrs, call->args[0]->checked_type_.as<TensorTypeNode>(),
                      call->args[1]->checked_type_.as<TensorTypeNode>(), target);
}

}  // namespace baton::relay::kernel
