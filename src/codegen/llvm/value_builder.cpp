// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/value_builder.h"

#include <cstring>
#include <limits>

#include "codegen/llvm/half_floats.h"

namespace baton::codegen {

LLVMTypeRef ElementType(LLVMContextRef c, DataType t) {
  if (t.is_handle()) return LLVMPointerTypeInContext(c, 0);
  if (t.is_bool()) return LLVMInt1TypeInContext(c);
  if (t.is_integral()) return LLVMIntTypeInContext(c, t.bits());
  if (IsHalf(t)) return LLVMInt16TypeInContext(c);
  if (t.is_float()) {
    switch (t.bits()) {
      case 32:
        return LLVMFloatTypeInContext(c);
      case 64:
        return LLVMDoubleTypeInContext(c);
    }
  }
  throw UnsupportedError("the code generator does not take values of dtype " + DataType2String(t));
}

LLVMTypeRef TypeFor(LLVMContextRef c, DataType t) {
  LLVMTypeRef e = ElementType(c, t);
  return t.lanes() > 1 ? LLVMVectorType(e, t.lanes()) : e;
}

namespace {

/// Whether an element has fewer bits than the byte that it takes in memory. Vectors of LLVM's have no such padding.
bool Padded(DataType t) { return t.is_bool() || (t.is_integral() && t.bits() < 8); }

}  // namespace

LLVMTypeRef MemoryType(LLVMContextRef c, DataType t) {
  LLVMTypeRef e = Padded(t) ? LLVMInt8TypeInContext(c) : ElementType(c, t);
  return t.lanes() > 1 ? LLVMVectorType(e, t.lanes()) : e;
}

LLVMValueRef ValueBuilder::Alloca(LLVMTypeRef type, int64_t count, unsigned align) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(builder_);
  LLVMPositionBuilderBefore(builder_, LLVMGetBasicBlockTerminator(entry_));
  LLVMValueRef a = LLVMBuildAlloca(builder_, LLVMArrayType2(type, static_cast<uint64_t>(count)), "");
  LLVMSetAlignment(a, align);
  LLVMPositionBuilderAtEnd(builder_, here);
  return a;
}

LLVMValueRef ValueBuilder::Intrinsic(const char* name, std::vector<LLVMTypeRef> overload,
                                     std::vector<LLVMValueRef> args) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  if (id == 0) throw InternalError(std::string("LLVM has no intrinsic ") + name);
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(module_, id, overload.data(), overload.size());
  LLVMTypeRef type = LLVMIntrinsicGetType(ctx_, id, overload.data(), overload.size());
  return LLVMBuildCall2(builder_, type, f, args.data(), static_cast<unsigned>(args.size()), "");
}

LLVMValueRef ValueBuilder::CallExtern(const char* name, LLVMTypeRef ret, std::vector<LLVMValueRef> args) {
  std::vector<LLVMTypeRef> types;
  for (LLVMValueRef a : args) types.push_back(LLVMTypeOf(a));
  LLVMTypeRef type = LLVMFunctionType(ret, types.data(), static_cast<unsigned>(types.size()), 0);
  LLVMValueRef f = LLVMGetNamedFunction(module_, name);
  if (!f) f = LLVMAddFunction(module_, name, type);
  return LLVMBuildCall2(builder_, type, f, args.data(), static_cast<unsigned>(args.size()), "");
}

LLVMValueRef ValueBuilder::FromMemory(LLVMValueRef v, DataType t) {
  if (t.is_bool()) return LLVMBuildICmp(builder_, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
  return Padded(t) ? LLVMBuildTrunc(builder_, v, TypeFor(ctx_, t), "") : v;
}

LLVMValueRef ValueBuilder::ToMemory(LLVMValueRef v, DataType t) {
  if (!Padded(t)) return v;
  LLVMTypeRef type = MemoryType(ctx_, t);
  return t.is_int() ? LLVMBuildSExt(builder_, v, type, "") : LLVMBuildZExt(builder_, v, type, "");
}

LLVMValueRef ValueBuilder::Splat(LLVMValueRef v, int lanes) {
  if (LLVMIsConstant(v) && !LLVMIsUndef(v)) {
    std::vector<LLVMValueRef> all(static_cast<size_t>(lanes), v);
    return LLVMConstVector(all.data(), static_cast<unsigned>(lanes));
  }
  LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(v), static_cast<unsigned>(lanes));
  LLVMValueRef one = LLVMBuildInsertElement(builder_, LLVMGetPoison(type), v, Int32(0), "");
  LLVMValueRef mask = LLVMConstNull(LLVMVectorType(i32_, static_cast<unsigned>(lanes)));
  return LLVMBuildShuffleVector(builder_, one, LLVMGetPoison(type), mask, "");
}

LLVMValueRef ValueBuilder::Convert(LLVMValueRef v, DataType from, DataType to) {
  LLVMTypeRef type = TypeFor(ctx_, to);
  if (from == to) return v;
  const DataType f32 = DataType::Float(32, to.lanes());
  if (IsHalf(from)) return Convert(HalfToFloat32(builder_, v, from, has_float16_), f32, to);
  if (IsHalf(to)) return Float32ToHalf(builder_, Convert(v, from, f32), to, has_float16_);
  bool ff = from.is_floating(), tf = to.is_floating();
  if (to.is_bool()) {
    if (ff) return LLVMBuildFCmp(builder_, LLVMRealUNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
    return LLVMBuildICmp(builder_, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
  }
  if (from.is_handle() || to.is_handle()) {
    return from.is_handle() ? LLVMBuildPtrToInt(builder_, v, type, "") : LLVMBuildIntToPtr(builder_, v, type, "");
  }
  bool from_signed = from.is_int();
  if (!ff && !tf) {
    if (to.bits() < (from.is_bool() ? 1 : from.bits())) return LLVMBuildTrunc(builder_, v, type, "");
    if (!from.is_bool() && to.bits() == from.bits()) return v;
    return from_signed ? LLVMBuildSExt(builder_, v, type, "") : LLVMBuildZExt(builder_, v, type, "");
  }
  if (!ff) return from_signed ? LLVMBuildSIToFP(builder_, v, type, "") : LLVMBuildUIToFP(builder_, v, type, "");
  if (!tf) {
    // Out of range gives the nearest limit and NaN gives 0: never undefined. NumPy wraps narrow types through wider
    // ones.
    LLVMTypeRef wide = type;
    DataType via = to;
    if (to.bits() < 32) {
      via = DataType::Int(32, to.lanes());
      wide = TypeFor(ctx_, via);
    }
    const bool vectors = to.lanes() > 1 && via.is_int() && via.bits() == 32;
    LLVMValueRef r = vectors
                         ? FloatsToInt32(v, from, wide)
                         : Intrinsic(via.is_int() ? "llvm.fptosi.sat" : "llvm.fptoui.sat", {wide, LLVMTypeOf(v)}, {v});
    return via == to ? r : LLVMBuildTrunc(builder_, r, type, "");
  }
  return from.bits() < to.bits() ? LLVMBuildFPExt(builder_, v, type, "") : LLVMBuildFPTrunc(builder_, v, type, "");
}

/// LLVM would do the same lane by lane.
LLVMValueRef ValueBuilder::FloatsToInt32(LLVMValueRef v, DataType from, LLVMTypeRef ints) {
  const DataType to = DataType::Int(32, from.lanes());
  auto limit = [&](double x) { return Splat(LLVMConstReal(ElementType(ctx_, from), x), from.lanes()); };
  LLVMValueRef high = LLVMBuildFCmp(builder_, LLVMRealOGE, v, limit(0x1p31), "");
  LLVMValueRef low = LLVMBuildFCmp(builder_, LLVMRealOLE, v, limit(-0x1p31), "");
  LLVMValueRef between = LLVMBuildAnd(builder_, LLVMBuildFCmp(builder_, LLVMRealOGT, v, limit(-0x1p31), ""),
                                      LLVMBuildFCmp(builder_, LLVMRealOLT, v, limit(0x1p31), ""), "");
  LLVMValueRef safe = LLVMBuildSelect(builder_, between, v, LLVMConstNull(LLVMTypeOf(v)), "");
  LLVMValueRef r = LLVMBuildFPToSI(builder_, safe, ints, "");
  r = LLVMBuildSelect(builder_, high, ConstLike(std::numeric_limits<int32_t>::max(), to), r, "");
  return LLVMBuildSelect(builder_, low, ConstLike(std::numeric_limits<int32_t>::min(), to), r, "");
}

LLVMValueRef ValueBuilder::ClippedToInt(LLVMValueRef v, DataType to) {
  const unsigned lanes = static_cast<unsigned>(to.lanes());
  if (to.bits() <= 16 && LLVMGetTypeKind(LLVMGetElementType(LLVMTypeOf(v))) == LLVMFloatTypeKind) {
    // These give -2^31 for NaN, whose last bits are those of 0.
    LLVMTypeRef ints = TypeFor(ctx_, DataType::Int(32, to.lanes()));
    LLVMValueRef r = nullptr;
    if (lanes == 16 && target_->Has("avx512f")) {
      r = Intrinsic("llvm.x86.avx512.mask.cvttps2dq.512", {},
                    {v, LLVMConstNull(ints), LLVMConstAllOnes(LLVMIntTypeInContext(ctx_, 16)), Int32(4)});
    } else if (lanes == 8 && target_->Has("avx2")) {
      r = Intrinsic("llvm.x86.avx.cvtt.ps2dq.256", {}, {v});
    } else if (lanes == 4 && (target_->Has("avx2") || target_->Has("sse4.1"))) {
      r = Intrinsic("llvm.x86.sse2.cvttps2dq", {}, {v});
    }
    if (r) return LLVMBuildTrunc(builder_, r, TypeFor(ctx_, to), "");
  }
  LLVMValueRef number = LLVMBuildFCmp(builder_, LLVMRealORD, v, v, "");
  LLVMValueRef safe = LLVMBuildSelect(builder_, number, v, LLVMConstNull(LLVMTypeOf(v)), "");
  LLVMValueRef r = LLVMBuildFPToSI(builder_, safe, TypeFor(ctx_, DataType::Int(32, to.lanes())), "");
  return to.bits() == 32 ? r : LLVMBuildTrunc(builder_, r, TypeFor(ctx_, to), "");
}

LLVMValueRef ValueBuilder::MultiplyAdd(LLVMValueRef a, LLVMValueRef b, LLVMValueRef c, DataType t) {
  LLVMTypeRef type = TypeFor(ctx_, t);
  if (has_fma_ || !(t.is_float() && t.bits() == 32)) return Intrinsic("llvm.fma", {type}, {a, b, c});
  // Without an instruction a call of a function for each lane. In float64 the product is exact, and the sum is rounded
  // twice, which matters for one in 2^29 of results, by less than a unit in the last place.
  LLVMTypeRef wide = TypeFor(ctx_, DataType::Float(64, t.lanes()));
  auto widen = [&](LLVMValueRef v) { return LLVMBuildFPExt(builder_, v, wide, ""); };
  LLVMValueRef product = LLVMBuildFMul(builder_, widen(a), widen(b), "");
  return LLVMBuildFPTrunc(builder_, LLVMBuildFAdd(builder_, product, widen(c), ""), type, "");
}

LLVMValueRef ValueBuilder::Dot4(LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum, int lanes) {
  LLVMTypeRef type = LLVMTypeOf(sum);
  const bool wide = lanes == 16 && target_->Has("avx512vnni"),
             narrow = (lanes == 8 || lanes == 4) &&
                      (target_->Has("avxvnni") || (target_->Has("avx512vnni") && target_->Has("avx512vl")));
  if (wide || narrow) {
    const std::string name = "llvm.x86.avx512.vpdpbusd." + std::to_string(lanes * 32);
    auto words = [&](LLVMValueRef v) { return LLVMBuildBitCast(builder_, v, type, ""); };
    return Intrinsic(name.c_str(), {}, {sum, words(a), words(b)});
  }
  if (LLVMValueRef pairs = DotOfPairs(a, b, lanes)) return LLVMBuildAdd(builder_, sum, pairs, "");
  LLVMTypeRef words = LLVMVectorType(i32_, static_cast<unsigned>(4 * lanes));
  LLVMValueRef v =
      LLVMBuildMul(builder_, LLVMBuildZExt(builder_, a, words, ""), LLVMBuildSExt(builder_, b, words, ""), "");
  for (int count = 2 * lanes; count >= lanes; count /= 2) {
    std::vector<LLVMValueRef> even, odd;
    for (int i = 0; i < count; ++i) even.push_back(Int32(2 * i)), odd.push_back(Int32(2 * i + 1));
    auto pick = [&](std::vector<LLVMValueRef>& index) {
      LLVMValueRef mask = LLVMConstVector(index.data(), static_cast<unsigned>(index.size()));
      return LLVMBuildShuffleVector(builder_, v, LLVMGetPoison(LLVMTypeOf(v)), mask, "");
    };
    v = LLVMBuildAdd(builder_, pick(even), pick(odd), "");
  }
  if (lanes == 1) v = LLVMBuildExtractElement(builder_, v, Int32(0), "");
  return LLVMBuildAdd(builder_, sum, v, "");
}

LLVMValueRef ValueBuilder::Dot2(LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum, int lanes) {
  LLVMTypeRef type = LLVMTypeOf(sum);
  const bool one =
      target_->Has("avx512bf16") && (lanes == 16 || ((lanes == 8 || lanes == 4) && target_->Has("avx512vl")));
  if (one) {
    const std::string name = "llvm.x86.avx512bf16.dpbf16ps." + std::to_string(lanes * 32);
    LLVMTypeRef pairs = LLVMVectorType(LLVMBFloatTypeInContext(ctx_), static_cast<unsigned>(2 * lanes));
    auto halves = [&](LLVMValueRef v) { return LLVMBuildBitCast(builder_, v, pairs, ""); };
    return Intrinsic(name.c_str(), {}, {sum, halves(a), halves(b)});
  }
  // Two halves are the parts of a word: the upper one is a float32 once the lower one is cleared.
  const DataType words = DataType::Int(32, lanes), floats = DataType::Float(32, lanes);
  auto odd = [&](LLVMValueRef v) {
    LLVMValueRef w = LLVMBuildBitCast(builder_, v, TypeFor(ctx_, words), "");
    return LLVMBuildBitCast(builder_, LLVMBuildAnd(builder_, w, ConstLike(-65536, words), ""), type, "");
  };
  auto even = [&](LLVMValueRef v) {
    LLVMValueRef w = LLVMBuildBitCast(builder_, v, TypeFor(ctx_, words), "");
    return LLVMBuildBitCast(builder_, LLVMBuildShl(builder_, w, ConstLike(16, words), ""), type, "");
  };
  auto add = [&](LLVMValueRef x, LLVMValueRef y, LLVMValueRef s) {
    return has_fma_ ? MultiplyAdd(x, y, s, floats) : LLVMBuildFAdd(builder_, LLVMBuildFMul(builder_, x, y, ""), s, "");
  };
  return add(even(a), even(b), add(odd(a), odd(b), sum));
}

LLVMValueRef ValueBuilder::DotOfPairs(LLVMValueRef a, LLVMValueRef b, int lanes) {
  const char* pairs = lanes == 16 && target_->Has("avx512bw")                          ? "llvm.x86.avx512.pmaddw.d.512"
                      : lanes == 8 && target_->Has("avx2")                             ? "llvm.x86.avx2.pmadd.wd"
                      : lanes == 4 && (target_->Has("avx2") || target_->Has("sse4.1")) ? "llvm.x86.sse2.pmadd.wd"
                                                                                       : nullptr;
  if (!pairs) return nullptr;
  const DataType words = DataType::Int(16, 2 * lanes);
  LLVMValueRef x = LLVMBuildBitCast(builder_, a, TypeFor(ctx_, words), ""), eight = ConstLike(8, words);
  LLVMValueRef w = LLVMBuildBitCast(builder_, b, TypeFor(ctx_, words), "");
  LLVMValueRef even = Intrinsic(pairs, {},
                                {LLVMBuildAnd(builder_, x, ConstLike(0xFF, words), ""),
                                 LLVMBuildAShr(builder_, LLVMBuildShl(builder_, w, eight, ""), eight, "")});
  LLVMValueRef odd =
      Intrinsic(pairs, {}, {LLVMBuildLShr(builder_, x, eight, ""), LLVMBuildAShr(builder_, w, eight, "")});
  return LLVMBuildAdd(builder_, even, odd, "");
}

LLVMValueRef ValueBuilder::ConstLike(int64_t v, DataType t) {
  LLVMValueRef k = LLVMConstInt(ElementType(ctx_, t), static_cast<uint64_t>(v), 1);
  return t.lanes() > 1 ? Splat(k, t.lanes()) : k;
}

LLVMValueRef ValueBuilder::Ldexp(LLVMValueRef x, LLVMValueRef k, DataType t) {
  int lanes = t.lanes();
  LLVMTypeRef type = TypeFor(ctx_, t);
  if ((lanes == 16 && target_->Has("avx512f")) || ((lanes == 8 || lanes == 4) && target_->Has("avx512vl"))) {
    std::string name = "llvm.x86.avx512.mask.scalef.ps." + std::to_string(lanes * 32);
    LLVMTypeRef mask = LLVMIntTypeInContext(ctx_, lanes == 16 ? 16 : 8);
    std::vector<LLVMValueRef> args{x, k, LLVMConstNull(type), LLVMConstAllOnes(mask)};
    if (lanes == 16) args.push_back(Int32(4));  // the rounding mode there is
    return Intrinsic(name.c_str(), {}, args);
  }
  // In two halves, so that results below the smallest normal number are rounded once and those above overflow. The
  // integer comes from the bits of 1.5 * 2^23 + k: a conversion of NaN would have no value.
  DataType it = DataType::Int(32, lanes);
  LLVMTypeRef itype = TypeFor(ctx_, it);
  LLVMValueRef magic = LLVMConstReal(ElementType(ctx_, t), 12582912);
  if (lanes > 1) magic = Splat(magic, lanes);
  LLVMValueRef n = LLVMBuildSub(builder_, LLVMBuildBitCast(builder_, LLVMBuildFAdd(builder_, k, magic, ""), itype, ""),
                                ConstLike(0x4B400000, it), "");
  LLVMValueRef half = LLVMBuildAShr(builder_, n, ConstLike(1, it), "");
  auto scale = [&](LLVMValueRef e) {
    LLVMValueRef bits =
        LLVMBuildShl(builder_, LLVMBuildAdd(builder_, e, ConstLike(127, it), ""), ConstLike(23, it), "");
    return LLVMBuildBitCast(builder_, bits, type, "");
  };
  LLVMValueRef r = LLVMBuildFMul(builder_, x, scale(half), "");
  return LLVMBuildFMul(builder_, r, scale(LLVMBuildSub(builder_, n, half, "")), "");
}

bool ValueBuilder::IsWiderThanRegister(LLVMTypeRef element, int lanes) const {
  LLVMTargetDataRef layout = LLVMGetModuleDataLayout(module_);
  return lanes % 2 == 0 && static_cast<int64_t>(LLVMSizeOfTypeInBits(layout, element)) * lanes > target_->vector_bits();
}

LLVMValueRef ValueBuilder::LanesOf(LLVMValueRef v, int first, int count) {
  std::vector<LLVMValueRef> index;
  for (int i = 0; i < count; ++i) index.push_back(Int32(first + i));
  LLVMValueRef mask = LLVMConstVector(index.data(), static_cast<unsigned>(count));
  return LLVMBuildShuffleVector(builder_, v, LLVMGetPoison(LLVMTypeOf(v)), mask, "");
}

LLVMValueRef ValueBuilder::After(LLVMValueRef at, LLVMTypeRef element, int lanes) {
  LLVMValueRef index = Int64(lanes);
  return LLVMBuildGEP2(builder_, element, at, &index, 1, "");
}

LLVMValueRef ValueBuilder::MaskedRow(LLVMValueRef at, LLVMValueRef mask, LLVMTypeRef element, int lanes,
                                     LLVMValueRef align) {
  LLVMTypeRef type = LLVMVectorType(element, static_cast<unsigned>(lanes));
  if (!IsWiderThanRegister(element, lanes)) {
    return Intrinsic("llvm.masked.load", {type, LLVMTypeOf(at)}, {at, align, mask, LLVMConstNull(type)});
  }
  const int half = lanes / 2;
  LLVMValueRef low = MaskedRow(at, LanesOf(mask, 0, half), element, half, align);
  LLVMValueRef high = MaskedRow(After(at, element, half), LanesOf(mask, half, half), element, half, align);
  std::vector<LLVMValueRef> index;
  for (int i = 0; i < lanes; ++i) index.push_back(Int32(i));
  LLVMValueRef all = LLVMConstVector(index.data(), static_cast<unsigned>(lanes));
  return LLVMBuildShuffleVector(builder_, low, high, all, "");
}

void ValueBuilder::StoreMaskedRow(LLVMValueRef value, LLVMValueRef at, LLVMValueRef mask, LLVMTypeRef element,
                                  int lanes, LLVMValueRef align) {
  if (!IsWiderThanRegister(element, lanes)) {
    Intrinsic("llvm.masked.store", {LLVMTypeOf(value), LLVMTypeOf(at)}, {value, at, align, mask});
    return;
  }
  const int half = lanes / 2;
  StoreMaskedRow(LanesOf(value, 0, half), at, LanesOf(mask, 0, half), element, half, align);
  StoreMaskedRow(LanesOf(value, half, half), After(at, element, half), LanesOf(mask, half, half), element, half, align);
}

}  // namespace baton::codegen
