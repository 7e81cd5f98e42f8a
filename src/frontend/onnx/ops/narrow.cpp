// SPDX-License-Identifier: Apache-2.0
// `onnx.cast`: casts from and to types without arithmetic (float8, float6, float4, integers under a byte), on the host,
// with ONNX's rules for values out of range.
#include <baton/relay/op.h>
#include <baton/runtime/scalar.h>
#include <relay/op/gradient.h>

#include <cmath>
#include <cstring>

#include "common.h"

namespace baton::onnx {
namespace {

struct NarrowCastAttrs : AttrsNode<NarrowCastAttrs> {
  static constexpr const char* _type_key = "relay.attrs.OnnxCastAttrs";
  DataType dtype;
  bool saturate = true;
  String round_mode = "up";
  static constexpr void Describe(auto& d) {
    d(F<&NarrowCastAttrs::dtype>, "Type of the result.", runtime::kRequired);
    d(F<&NarrowCastAttrs::saturate>, "To float8: what is too large becomes the largest value; else infinity or NaN.");
    d(F<&NarrowCastAttrs::round_mode>, "To float8_e8m0fnu: \"up\", \"down\" or \"nearest\".");
  }
};

bool CastRel(const Array<baton::Type>& types, int, const Attrs& attrs, relay::TypeReporter& reporter) {
  const auto* t = relay::AsTensor(types[0]);
  if (t == nullptr) return false;
  const auto& a = relay::AttrsAs<NarrowCastAttrs>(attrs);
  for (DataType of : {t->dtype, a.dtype}) {
    if (of.is_void() || of.is_handle() || of.lanes() != 1)
      throw CompileError("[onnx.cast R1] a cast from " + DataType2String(t->dtype) + " to " + DataType2String(a.dtype) +
                         ", where numbers and bool are wanted");
  }
  if (a.round_mode != "up" && a.round_mode != "down" && a.round_mode != "nearest")
    throw CompileError("[onnx.cast R2] round_mode is \"" + a.round_mode.str() +
                       "\"; it is \"up\", \"down\" or \"nearest\"");
  reporter.Assign(types.back(), TensorType(t->shape, a.dtype));
  return true;
}

double Load(const void* data, DataType t, int64_t i) {
  if (runtime::IsLoadable(t)) return runtime::LoadDouble(data, t, i);
  // Under a byte: an element in the low bits of a byte.
  uint8_t byte = static_cast<const uint8_t*>(data)[i];
  uint32_t bits = byte & ((1u << t.bits()) - 1);
  if (t.is_uint()) return bits;
  if (t.is_int()) return static_cast<double>(static_cast<int>(bits << (32 - t.bits())) >> (32 - t.bits()));
  return runtime::DecodeSmallFloat(t, bits);
}

/// Largest finite value of a narrow float.
double Largest(DataType t) {
  switch (t.code()) {
    case kDLFloat8_e4m3fn:
      return 448;
    case kDLFloat8_e4m3fnuz:
      return 240;
    case kDLFloat8_e5m2:
    case kDLFloat8_e5m2fnuz:
      return 57344;
    default:
      return INFINITY;
  }
}

/// A power of two, its exponent biased by 127; NaN for what is negative or no number.
uint8_t PowerOfTwo(double v, bool saturate, const std::string& mode) {
  if (std::isnan(v) || v < 0) return 255;
  if (std::isinf(v)) return saturate ? 254 : 255;
  if (v == 0) return 0;
  int k = 0;
  double half = std::frexp(v, &k);
  int e = k - 1 + 127;
  if (mode == "up") e += half > 0.5;
  if (mode == "nearest") e += half >= 0.75;
  if (e < 0) return 0;
  return static_cast<uint8_t>(e > 254 ? (saturate ? 254 : 255) : e);
}

Array<NDArray> CastHost(const Attrs& attrs, const Array<NDArray>& in) {
  const auto* a = &relay::AttrsAs<NarrowCastAttrs>(attrs);
  NDArray x = in[0].Contiguous();
  DataType from = x.dtype(), to = a->dtype;
  NDArray y = NDArray::Empty(x.shape(), to);
  int64_t n = x.numel();
  std::string mode(a->round_mode);
  auto* bytes = static_cast<uint8_t*>(y.data());
  double largest = to.is_floating() ? Largest(to) : 0;
  for (int64_t i = 0; i < n; ++i) {
    if (to.code() == kDLFloat8_e8m0fnu) {
      bytes[i] = PowerOfTwo(Load(x.data(), from, i), a->saturate, mode);
    } else if (to.is_integral() && to.bits() < 8) {
      // Wraps, as casts between integers do; floats truncate first.
      double v = Load(x.data(), from, i);
      auto wide = std::fabs(v) < 9e18 ? static_cast<int64_t>(v) : 0;
      uint32_t bits = static_cast<uint32_t>(wide) & ((1u << to.bits()) - 1);
      bool negative = to.is_int() && (bits >> (to.bits() - 1)) != 0;
      bytes[i] = static_cast<uint8_t>(negative ? bits | ~((1u << to.bits()) - 1) : bits);
    } else if (runtime::IsLoadable(to)) {
      double v = Load(x.data(), from, i);
      if (to.is_float8() && a->saturate && std::fabs(v) > largest) v = std::copysign(largest, v);
      runtime::StoreDouble(y.data(), to, i, v);
    } else {
      // Types without a NaN: ONNX makes it -0.
      double v = Load(x.data(), from, i);
      bytes[i] = static_cast<uint8_t>(runtime::EncodeSmallFloat(to, std::isnan(v) ? -0.0 : v));
    }
  }
  return {y};
}

/// A cast back, among the types with arithmetic; integers have no adjoint.
Array<relay::Expr> CastBack(const relay::Call& call, const relay::Expr& grad) {
  relay::gradient::At at(call, grad);
  for (DataType t : {at.dtype(0), at.out()->dtype}) {
    bool plain = t == DataType::Float(64) || t == DataType::Float(32) || t == DataType::Float(16) || t.is_bfloat16();
    if (t.is_floating() && !plain)
      at.Fail("it has a rule for float64, float32, float16 and bfloat16, not for " + DataType2String(t));
  }
  return {at.floating(0) && at.out()->dtype.is_floating() ? relay::Cast(grad, at.dtype(0)) : relay::Expr()};
}
const Op cast = relay::DefineOp({
    .name = "onnx.cast",
    .doc = "Element by element to another type, with ONNX's rules for narrow types.",
    .inputs = {{"data", "Any shape. R1: numbers or bool."}},
    .output = "Shape of `data`, type `dtype`. R1: numbers or bool. R2: a known round_mode.",
    .attrs = relay::TypeOf<NarrowCastAttrs>,
    .type_rel = CastRel,
    .host = CastHost,
    .gradient = CastBack,
    .source = "ONNX Cast-28",
    .traits = {.precision = relay::Precision::kNever},
});

bool Narrow(DataType t) {
  return t.is_float8() || t.is_float4() || (t.is_integral() && t.bits() < 8) || t.code() == kDLFloat6_e2m3fn ||
         t.code() == kDLFloat6_e3m2fn;
}

}  // namespace

Value CastTo(Ctx& c, const Value& v, DataType to, bool saturate, const std::string& round_mode) {
  if (v.dtype == to) return v;
  if (to.is_void()) c.Unsupported("the target type of the cast");
  if (!Narrow(v.dtype) && !Narrow(to)) return c.Cast(v, to);
  return c.Call("onnx.cast", {v}, {{"dtype", to}, {"saturate", saturate}, {"round_mode", round_mode}});
}

}  // namespace baton::onnx
