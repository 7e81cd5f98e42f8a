// SPDX-License-Identifier: Apache-2.0
#include "dots.h"

#include <baton/relay/op.h>
#include <baton/relay/op/nn.h>
#include <baton/runtime/registry.h>

namespace baton::relay::kernel {

namespace {
template <int N>
bool HasConvKernel(const ConvAttrs<N>& a, const TensorTypeNode* data, const TensorTypeNode* weight, int64_t lanes,
                   const DotFormat& format) {
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
  if (a.groups > 1 && in == 1 && out == 1) return format.depthwise && N < 3 && BlockOf(a.groups, lanes) > 0;
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

bool AddsTwoProducts(const Target& target) {
  return target->traits().vector_kernels && target->Has("avx512bf16") && target->Has("avx512f");
}

const DotFormat* DotFormatOf(DataType data, DataType weight, const Target& target) {
  static const DotFormat formats[] = {
      {DataType::UInt(8), DataType::Int(8), DataType::Int(32), 4, true, AddsFourProducts},
      {DataType::BFloat16(), DataType::BFloat16(), DataType::Float(32), 2, false, AddsTwoProducts},
  };
  for (const DotFormat& f : formats) {
    if (f.data == data && f.weight == weight && f.taken(target)) return &f;
  }
  return nullptr;
}

bool HasDotKernel(const Op& op, const Attrs& attrs, const TensorTypeNode* data, const TensorTypeNode* weight,
                  const Target& target) {
  const DotFormat* format = data && weight ? DotFormatOf(data->dtype, weight->dtype, target) : nullptr;
  if (!format) return false;
  const int64_t lanes = target->Lanes(format->sum);
  switch (ConvDims(op)) {
    case 1:
      return HasConvKernel(*attrs.as<ConvAttrs<1>>(), data, weight, lanes, *format);
    case 2:
      return HasConvKernel(*attrs.as<ConvAttrs<2>>(), data, weight, lanes, *format);
    case 3:
      return HasConvKernel(*attrs.as<ConvAttrs<3>>(), data, weight, lanes, *format);
    default:
      break;
  }
  if (op != op::dense || weight->shape.size() != 2 || data->shape.empty()) return false;
  const int64_t k = DimOf(weight->shape[1]);
  return k > 0 && k % format->terms == 0 && DimOf(weight->shape[0]) > 0;
}

bool HasDotKernel(const CallNode* call, const Target& target) {
  const auto* op = call->op.as<OpNode>();
  const auto* out = call->checked_type_.as<TensorTypeNode>();
  if (!op || !out || call->args.size() != 2 || !call->args[1].as<ConstantNode>()) return false;
  const auto* data = call->args[0]->checked_type_.as<TensorTypeNode>();
  const auto* weight = call->args[1]->checked_type_.as<TensorTypeNode>();
  const DotFormat* format = data && weight ? DotFormatOf(data->dtype, weight->dtype, target) : nullptr;
  return format && out->dtype == format->sum && HasDotKernel(GetRef<Op>(op), call->attrs, data, weight, target);
}

/// [the precision whose products the target adds faster than those of float32, how it does], or [].
BATON_REGISTER_GLOBAL("relay.kernel.FastPrecision").set_body_typed([](Target target) {
  return AddsTwoProducts(target) ? Array<String>{"bf16", "dot products"} : Array<String>{};
});

}  // namespace baton::relay::kernel
