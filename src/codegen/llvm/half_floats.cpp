// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/half_floats.h"

#include <vector>

namespace baton::codegen {
namespace {

/// Builds operations on the bits of floats: scalars, or vectors with as many lanes as `like`.
class Bits {
 public:
  Bits(LLVMBuilderRef builder, LLVMValueRef like) : b_(builder), context_(LLVMGetTypeContext(LLVMTypeOf(like))) {
    LLVMTypeRef type = LLVMTypeOf(like);
    lanes_ = LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetVectorSize(type) : 0;
  }
  LLVMTypeRef Of(LLVMTypeRef element) const { return lanes_ ? LLVMVectorType(element, lanes_) : element; }
  LLVMTypeRef i16() const { return Of(LLVMInt16TypeInContext(context_)); }
  LLVMTypeRef i32() const { return Of(LLVMInt32TypeInContext(context_)); }
  LLVMTypeRef f16() const { return Of(LLVMHalfTypeInContext(context_)); }
  LLVMTypeRef f32() const { return Of(LLVMFloatTypeInContext(context_)); }

  LLVMValueRef Const(uint32_t v) const {
    LLVMValueRef one = LLVMConstInt(LLVMInt32TypeInContext(context_), v, 0);
    if (!lanes_) return one;
    std::vector<LLVMValueRef> all(lanes_, one);
    return LLVMConstVector(all.data(), lanes_);
  }
  LLVMValueRef As(LLVMValueRef v, LLVMTypeRef type) const { return LLVMBuildBitCast(b_, v, type, ""); }
  LLVMValueRef Widen(LLVMValueRef v) const { return LLVMBuildZExt(b_, v, i32(), ""); }
  LLVMValueRef Narrow(LLVMValueRef v) const { return LLVMBuildTrunc(b_, v, i16(), ""); }
  LLVMValueRef And(LLVMValueRef v, uint32_t mask) const { return LLVMBuildAnd(b_, v, Const(mask), ""); }
  LLVMValueRef Or(LLVMValueRef v, LLVMValueRef w) const { return LLVMBuildOr(b_, v, w, ""); }
  LLVMValueRef Shl(LLVMValueRef v, uint32_t n) const { return LLVMBuildShl(b_, v, Const(n), ""); }
  LLVMValueRef Shr(LLVMValueRef v, uint32_t n) const { return LLVMBuildLShr(b_, v, Const(n), ""); }
  LLVMValueRef Add(LLVMValueRef v, LLVMValueRef w) const { return LLVMBuildAdd(b_, v, w, ""); }
  LLVMValueRef Sub(LLVMValueRef v, uint32_t n) const { return LLVMBuildSub(b_, v, Const(n), ""); }
  LLVMValueRef Above(LLVMValueRef v, uint32_t n) const { return LLVMBuildICmp(b_, LLVMIntUGT, v, Const(n), ""); }
  LLVMValueRef Select(LLVMValueRef c, LLVMValueRef yes, LLVMValueRef no) const {
    return LLVMBuildSelect(b_, c, yes, no, "");
  }

 private:
  LLVMBuilderRef b_;
  LLVMContextRef context_;
  unsigned lanes_;
};

constexpr uint32_t kInfinity = 0x7f800000;  // of float32, as are the next two
constexpr uint32_t kQuiet = 0x00400000;
constexpr uint32_t kSign = 0x80000000;

/// The upper half of a float32, rounded.
LLVMValueRef ToBFloat16(const Bits& b, LLVMValueRef v) {
  LLVMValueRef bits = b.As(v, b.i32()), high = b.Shr(bits, 16);
  LLVMValueRef rounded = b.Shr(b.Add(bits, b.Add(b.And(high, 1), b.Const(0x7fff))), 16);
  LLVMValueRef nan = b.Above(b.And(bits, ~kSign), kInfinity);
  return b.Narrow(b.Select(nan, b.Or(high, b.Const(kQuiet >> 16)), rounded));
}

/// A float16 whose exponent and mantissa are put in float32's places is 2^-112 of its value, subnormal or not.
LLVMValueRef FromFloat16(const Bits& b, LLVMBuilderRef builder, LLVMValueRef v) {
  constexpr uint32_t kTwoTo112 = (112 + 127) << 23;
  LLVMValueRef bits = b.Widen(v), magnitude = b.And(bits, 0x7fff);
  LLVMValueRef scaled =
      LLVMBuildFMul(builder, b.As(b.Shl(magnitude, 13), b.f32()), b.As(b.Const(kTwoTo112), b.f32()), "");
  LLVMValueRef finite = b.As(scaled, b.i32());
  LLVMValueRef special = b.Or(finite, b.Const(kInfinity));
  LLVMValueRef nan = b.Or(special, b.Const(kQuiet));
  LLVMValueRef out = b.Select(b.Above(magnitude, 0x7c00), nan, b.Select(b.Above(magnitude, 0x7bff), special, finite));
  return b.As(b.Or(out, b.Shl(b.And(bits, 0x8000), 16)), b.f32());
}

/// Normal results are rounded in integers. Subnormal ones are rounded by a float32 addition of 0.5, whose last bit is
/// worth as much as that of a subnormal float16.
LLVMValueRef ToFloat16(const Bits& b, LLVMBuilderRef builder, LLVMValueRef v) {
  constexpr uint32_t kSmallestNormal = (127 - 14) << 23, kTooLarge = (127 + 16) << 23, kHalf = 126u << 23;
  LLVMValueRef bits = b.As(v, b.i32()), magnitude = b.And(bits, ~kSign);
  LLVMValueRef odd = b.And(b.Shr(magnitude, 13), 1);
  LLVMValueRef normal = b.Shr(b.Add(magnitude, b.Add(odd, b.Const(0xfff - ((127 - 15) << 23)))), 13);
  LLVMValueRef shifted = LLVMBuildFAdd(builder, b.As(magnitude, b.f32()), b.As(b.Const(kHalf), b.f32()), "");
  LLVMValueRef subnormal = b.Sub(b.As(shifted, b.i32()), kHalf);
  LLVMValueRef nan = b.Or(b.And(b.Shr(magnitude, 13), 0x3ff), b.Const(0x7e00));
  LLVMValueRef special = b.Select(b.Above(magnitude, kInfinity), nan, b.Const(0x7c00));
  LLVMValueRef out = b.Select(b.Above(magnitude, kTooLarge - 1), special,
                              b.Select(b.Above(magnitude, kSmallestNormal - 1), normal, subnormal));
  return b.Narrow(b.Or(out, b.Shr(b.And(bits, kSign), 16)));
}

}  // namespace

LLVMValueRef HalfToFloat32(LLVMBuilderRef builder, LLVMValueRef v, runtime::DataType from, bool has_float16) {
  Bits b(builder, v);
  if (from.is_bfloat16()) return b.As(b.Shl(b.Widen(v), 16), b.f32());
  if (has_float16) return LLVMBuildFPExt(builder, b.As(v, b.f16()), b.f32(), "");
  return FromFloat16(b, builder, v);
}

LLVMValueRef Float32ToHalf(LLVMBuilderRef builder, LLVMValueRef v, runtime::DataType to, bool has_float16) {
  Bits b(builder, v);
  if (to.is_bfloat16()) return ToBFloat16(b, v);
  if (has_float16) return b.As(LLVMBuildFPTrunc(builder, v, b.f16(), ""), b.i16());
  return ToFloat16(b, builder, v);
}

LLVMValueRef HalfConstant(LLVMContextRef context, double value, runtime::DataType t) {
  LLVMTypeRef type = t.is_bfloat16() ? LLVMBFloatTypeInContext(context) : LLVMHalfTypeInContext(context);
  LLVMValueRef bits = LLVMConstBitCast(LLVMConstReal(type, value), LLVMInt16TypeInContext(context));
  if (t.is_scalar()) return bits;
  std::vector<LLVMValueRef> all(static_cast<size_t>(t.lanes()), bits);
  return LLVMConstVector(all.data(), static_cast<unsigned>(t.lanes()));
}

}  // namespace baton::codegen
