// SPDX-License-Identifier: Apache-2.0
// `onnx.cast`: casts from and to types without arithmetic (float8, float6, float4, integers under a byte), on the host,
// with ONNX's rules for values out of range.
#include <baton/relay/op.h>
#include <host/functions.h>
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
    .host = host::OnnxCast,
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
