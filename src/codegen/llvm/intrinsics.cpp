// SPDX-License-Identifier: Apache-2.0
// Calls: functions of the module, intrinsics, C functions. The column of the intrinsics is at the end.
#include <baton/tir/intrin.h>

#include "codegen/llvm/function_emitter.h"

namespace baton::codegen {

using namespace tir;  // NOLINT: every node kind is named below

LLVMValueRef Emitter::CallFunction(const tir::CallNode* op, const GlobalVar& var) {
  BaseFunc callee = mod_->Lookup(var);
  PrimFunc f = Downcast<PrimFunc>(callee);
  LLVMValueRef fn = Declare(SymbolOf(var, callee), f);
  std::vector<LLVMValueRef> args;
  for (const PrimExpr& a : op->args) args.push_back(VisitExpr(a));
  LLVMTypeRef type = LLVMGlobalGetValueType(fn);
  if (LLVMCountParamTypes(type) != args.size()) {
    throw InternalError("`" + var->name_hint.str() + "` takes " + std::to_string(LLVMCountParamTypes(type)) +
                        " arguments, the call has " + std::to_string(args.size()));
  }
  LLVMValueRef code = LLVMBuildCall2(builder_, type, fn, args.data(), static_cast<unsigned>(args.size()), "");
  ReturnIfError(code);
  return code;
}

LLVMValueRef Emitter::Libm(const std::string& base, const tir::CallNode* op) {
  DataType t = op->dtype, compute = t.bits() == 64 ? t.element_of() : DataType::Float(32);
  std::string name = compute.bits() == 64 ? base : base + "f";
  std::vector<LLVMValueRef> args;
  for (const PrimExpr& a : op->args) args.push_back(Convert(VisitExpr(a), a.dtype(), compute.with_lanes(t.lanes())));
  LLVMTypeRef ret = ElementType(ctx_, compute);
  auto call = [&](std::vector<LLVMValueRef> a) { return CallExtern(name.c_str(), ret, std::move(a)); };
  LLVMValueRef out;
  if (t.is_scalar()) {
    out = call(args);
  } else {
    out = LLVMGetPoison(LLVMVectorType(ret, static_cast<unsigned>(t.lanes())));
    for (int i = 0; i < t.lanes(); ++i) {
      std::vector<LLVMValueRef> lane;
      for (LLVMValueRef a : args) lane.push_back(LLVMBuildExtractElement(builder_, a, Int32(i), ""));
      out = LLVMBuildInsertElement(builder_, out, call(lane), Int32(i), "");
    }
  }
  return Convert(out, compute.with_lanes(t.lanes()), t);
}

namespace {
/// A text as a template argument.
template <size_t N>
struct Text {
  char chars[N];
  consteval Text(const char (&s)[N]) {  // NOLINT
    for (size_t i = 0; i < N; ++i) chars[i] = s[i];
  }
};
}  // namespace

/// The column of LLVM: a form for each intrinsic. A form gives null for dtypes that it does not take.
struct Emitter::Forms {
  using Form = LLVMValueRef (*)(Emitter& e, const tir::CallNode* op);
  static const IntrinColumn<Form>& Column();

  static LLVMValueRef Arg(Emitter& e, const tir::CallNode* op, int64_t i) { return e.VisitExpr(op->args[i]); }
  static LLVMTypeRef TypeOf(Emitter& e, DataType t) { return TypeFor(e.ctx_, t); }

  // ---- Mathematics

  /// An intrinsic of LLVM that processors have as an instruction.
  template <Text kName>
  static LLVMValueRef Direct(Emitter& e, const tir::CallNode* op) {
    return e.Intrinsic(kName.chars, {TypeOf(e, op->dtype)}, {Arg(e, op, 0)});
  }
  /// The C function of the row's name.
  static LLVMValueRef OfLibm(Emitter& e, const tir::CallNode* op) {
    return op->dtype.is_floating() ? e.Libm(IntrinOf(op)->name, op) : nullptr;
  }
  static LLVMValueRef Fma(Emitter& e, const tir::CallNode* op) {
    LLVMValueRef a = Arg(e, op, 0), b = Arg(e, op, 1), c = Arg(e, op, 2);
    return e.MultiplyAdd(a, b, c, op->dtype);
  }
  static LLVMValueRef OfDot4(Emitter& e, const tir::CallNode* op) {
    LLVMValueRef a = Arg(e, op, 0), b = Arg(e, op, 1), sum = Arg(e, op, 2);
    return e.Dot4(a, b, sum, op->dtype.lanes());
  }
  static LLVMValueRef OfDot2(Emitter& e, const tir::CallNode* op) {
    LLVMValueRef a = Arg(e, op, 0), b = Arg(e, op, 1), sum = Arg(e, op, 2);
    return e.Dot2(a, b, sum, op->dtype.lanes());
  }
  static LLVMValueRef OfLdexp(Emitter& e, const tir::CallNode* op) {
    if (op->dtype.element_of() != DataType::Float(32)) return nullptr;
    LLVMValueRef x = Arg(e, op, 0), k = Arg(e, op, 1);
    return e.Ldexp(x, k, op->dtype);
  }
  static LLVMValueRef Rsqrt(Emitter& e, const tir::CallNode* op) {
    const DataType t = op->dtype;
    LLVMValueRef one = LLVMConstReal(ElementType(e.ctx_, t), 1);
    return LLVMBuildFDiv(e.builder_, t.lanes() > 1 ? e.Splat(one, t.lanes()) : one, Direct<"llvm.sqrt">(e, op), "");
  }
  static LLVMValueRef Abs(Emitter& e, const tir::CallNode* op) {
    const DataType t = op->dtype;
    if (t.is_floating()) return Direct<"llvm.fabs">(e, op);
    LLVMValueRef x = Arg(e, op, 0);
    if (t.is_uint() || t.is_bool()) return x;
    return e.Intrinsic("llvm.abs", {TypeOf(e, t)}, {x, LLVMConstInt(LLVMInt1TypeInContext(e.ctx_), 0, 0)});
  }
  static LLVMValueRef IsNan(Emitter& e, const tir::CallNode* op) {
    LLVMValueRef x = Arg(e, op, 0);
    return LLVMBuildFCmp(e.builder_, LLVMRealUNO, x, x, "");
  }
  /// Compares the magnitude with infinity.
  template <LLVMRealPredicate kPredicate>
  static LLVMValueRef WithInfinity(Emitter& e, const tir::CallNode* op) {
    const DataType t = op->args[0].dtype();
    LLVMValueRef inf = LLVMConstReal(ElementType(e.ctx_, t), __builtin_inf());
    if (t.lanes() > 1) inf = e.Splat(inf, t.lanes());
    return LLVMBuildFCmp(e.builder_, kPredicate, e.Intrinsic("llvm.fabs", {TypeOf(e, t)}, {Arg(e, op, 0)}), inf, "");
  }

  // ---- Bits

  template <LLVMValueRef (*kBuild)(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, const char*)>
  static LLVMValueRef OfTwo(Emitter& e, const tir::CallNode* op) {
    LLVMValueRef a = Arg(e, op, 0), b = Arg(e, op, 1);
    return kBuild(e.builder_, a, b, "");
  }
  static LLVMValueRef Not(Emitter& e, const tir::CallNode* op) { return LLVMBuildNot(e.builder_, Arg(e, op, 0), ""); }
  /// A shift by the width or more gives 0 (or the sign), as NumPy has it.
  template <bool kLeft>
  static LLVMValueRef Shift(Emitter& e, const tir::CallNode* op) {
    const DataType t = op->dtype;
    LLVMValueRef a = Arg(e, op, 0), n = Arg(e, op, 1);
    LLVMValueRef big = LLVMBuildICmp(e.builder_, LLVMIntUGE, n, e.ConstLike(t.bits(), t), "");
    LLVMValueRef safe = LLVMBuildSelect(e.builder_, big, e.ConstLike(t.bits() - 1, t), n, "");
    if (!kLeft && t.is_int()) return LLVMBuildAShr(e.builder_, a, safe, "");
    LLVMValueRef r = kLeft ? LLVMBuildShl(e.builder_, a, safe, "") : LLVMBuildLShr(e.builder_, a, safe, "");
    return LLVMBuildSelect(e.builder_, big, LLVMConstNull(TypeOf(e, t)), r, "");
  }
  static LLVMValueRef Reinterpret(Emitter& e, const tir::CallNode* op) {
    return LLVMBuildBitCast(e.builder_, Arg(e, op, 0), TypeOf(e, op->dtype), "");
  }

  // ---- Memory

  static LLVMValueRef OfMaskedLoad(Emitter& e, const tir::CallNode* op) { return e.MaskedLoad(op); }
  static LLVMValueRef OfMaskedStore(Emitter& e, const tir::CallNode* op) { return e.MaskedStore(op); }
  static LLVMValueRef AddressOf(Emitter& e, const tir::CallNode* op) {
    const auto* l = op->args[0].as<BufferLoadNode>();
    PrimExpr flat = e.Flat(l->buffer, l->indices);
    if (const auto* r = flat.as<RampNode>()) flat = r->base;
    return e.Address(l->buffer, e.VisitExpr(flat));
  }
  static LLVMValueRef Prefetch(Emitter& e, const tir::CallNode* op) {
    LLVMValueRef at = AddressOf(e, op);
    const int64_t* locality = as_const_int(op->args[1]);
    e.Intrinsic("llvm.prefetch", {e.ptr_}, {at, e.Int32(0), e.Int32(locality ? *locality : 3), e.Int32(1)});
    return e.Int32(0);
  }
  static LLVMValueRef PtrOffset(Emitter& e, const tir::CallNode* op) {
    LLVMValueRef base = Arg(e, op, 0), off = Arg(e, op, 1);
    return LLVMBuildInBoundsGEP2(e.builder_, LLVMInt8TypeInContext(e.ctx_), base, &off, 1, "");
  }
  static LLVMValueRef LoadHandle(Emitter& e, const tir::CallNode* op) {
    LLVMValueRef base = Arg(e, op, 0), i = Arg(e, op, 1);
    return LLVMBuildLoad2(e.builder_, e.ptr_, LLVMBuildInBoundsGEP2(e.builder_, e.ptr_, base, &i, 1, ""), "");
  }
  static LLVMValueRef Memcpy(Emitter& e, const tir::CallNode* op) {
    LLVMValueRef to = Arg(e, op, 0), from = Arg(e, op, 1), bytes = Arg(e, op, 2);
    LLVMBuildMemCpy(e.builder_, to, 1, from, 1, bytes);
    return e.Int32(0);
  }

  // ---- All lanes of a vector to one

  using Build = LLVMValueRef (*)(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, const char*);
  template <Build kFloat, Build kInt>
  static LLVMValueRef Reduce(Emitter& e, const tir::CallNode* op) {
    const Build build = op->dtype.is_floating() ? kFloat : kInt;
    return e.Halves(Arg(e, op, 0), op->args[0].dtype().lanes(),
                    [&](LLVMValueRef a, LLVMValueRef b) { return build(e.builder_, a, b, ""); });
  }
  template <bool kMost>
  static LLVMValueRef ReduceToExtreme(Emitter& e, const tir::CallNode* op) {
    const DataType t = op->dtype;
    return e.Halves(Arg(e, op, 0), op->args[0].dtype().lanes(), [&](LLVMValueRef a, LLVMValueRef b) {
      LLVMBuilderRef builder = e.builder_;
      if (!t.is_floating()) {
        const LLVMIntPredicate p =
            kMost ? (t.is_int() ? LLVMIntSGT : LLVMIntUGT) : (t.is_int() ? LLVMIntSLT : LLVMIntULT);
        return LLVMBuildSelect(builder, LLVMBuildICmp(builder, p, a, b, ""), a, b, "");
      }
      const LLVMRealPredicate p = kMost ? LLVMRealUGT : LLVMRealULT;
      LLVMValueRef r = LLVMBuildSelect(builder, LLVMBuildFCmp(builder, p, a, b, ""), a, b, "");
      return LLVMBuildSelect(builder, LLVMBuildFCmp(builder, LLVMRealUNO, b, b, ""), b, r, "");
    });
  }

  // ---- Choices and calls

  static LLVMValueRef Choice(Emitter& e, const tir::CallNode* op) { return e.IfThenElseExpr(op); }
  static LLVMValueRef First(Emitter& e, const tir::CallNode* op) { return Arg(e, op, 0); }
  static LLVMValueRef Packed(Emitter& e, const tir::CallNode* op) { return e.CallPacked(op); }
  static LLVMValueRef Extern(Emitter& e, const tir::CallNode* op) {
    const DataType t = op->dtype;
    std::vector<LLVMValueRef> args;
    for (size_t i = 1; i < op->args.size(); ++i) args.push_back(Arg(e, op, static_cast<int64_t>(i)));
    return e.CallExtern(op->args[0].as<StringImmNode>()->value.c_str(),
                        t.is_void() ? LLVMVoidTypeInContext(e.ctx_) : TypeOf(e, t), args);
  }
};

const IntrinColumn<Emitter::Forms::Form>& Emitter::Forms::Column() {
  static const IntrinColumn<Form> column = {
      {intrin::exp, OfLibm},
      {intrin::exp2, OfLibm},
      {intrin::log, OfLibm},
      {intrin::log2, OfLibm},
      {intrin::log10, OfLibm},
      {intrin::log1p, OfLibm},
      {intrin::sin, OfLibm},
      {intrin::cos, OfLibm},
      {intrin::tan, OfLibm},
      {intrin::sinh, OfLibm},
      {intrin::cosh, OfLibm},
      {intrin::tanh, OfLibm},
      {intrin::asin, OfLibm},
      {intrin::acos, OfLibm},
      {intrin::atan, OfLibm},
      {intrin::asinh, OfLibm},
      {intrin::acosh, OfLibm},
      {intrin::atanh, OfLibm},
      {intrin::erf, OfLibm},
      {intrin::pow, OfLibm},
      {intrin::fmod, OfLibm},
      {intrin::atan2, OfLibm},
      {intrin::sqrt, Direct<"llvm.sqrt">},
      {intrin::floor, Direct<"llvm.floor">},
      {intrin::ceil, Direct<"llvm.ceil">},
      {intrin::trunc, Direct<"llvm.trunc">},
      {intrin::fabs, Direct<"llvm.fabs">},
      {intrin::round, Direct<"llvm.round">},
      {intrin::nearbyint, Direct<"llvm.nearbyint">},
      {intrin::popcount, Direct<"llvm.ctpop">},
      {intrin::rsqrt, Rsqrt},
      {intrin::fma, Fma},
      {intrin::ldexp, OfLdexp},
      {intrin::abs, Abs},
      {intrin::isnan, IsNan},
      {intrin::isinf, WithInfinity<LLVMRealOEQ>},
      {intrin::isfinite, WithInfinity<LLVMRealONE>},
      {intrin::bitwise_not, Not},
      {intrin::bitwise_and, OfTwo<LLVMBuildAnd>},
      {intrin::bitwise_or, OfTwo<LLVMBuildOr>},
      {intrin::bitwise_xor, OfTwo<LLVMBuildXor>},
      {intrin::shift_left, Shift<true>},
      {intrin::shift_right, Shift<false>},
      {intrin::reinterpret, Reinterpret},
      {intrin::masked_load, OfMaskedLoad},
      {intrin::masked_store, OfMaskedStore},
      {intrin::prefetch, Prefetch},
      {intrin::address_of, AddressOf},
      {intrin::ptr_offset, PtrOffset},
      {intrin::load_handle, LoadHandle},
      {intrin::memcpy, Memcpy},
      {intrin::vector_sum, Reduce<LLVMBuildFAdd, LLVMBuildAdd>},
      {intrin::vector_prod, Reduce<LLVMBuildFMul, LLVMBuildMul>},
      {intrin::vector_min, ReduceToExtreme<false>},
      {intrin::vector_max, ReduceToExtreme<true>},
      {intrin::dot4, OfDot4},
      {intrin::dot2, OfDot2},
      {intrin::if_then_else, Choice},
      {intrin::likely, First},
      {intrin::call_extern, Extern},
      {intrin::call_packed, Packed},
      {intrin::tvm_call_trace_packed, Packed},
  };
  return column;
}

std::vector<Op> Emitter::IntrinsicsWithCode() { return Forms::Column().intrins(); }
namespace {
const bool registered_column = (RegisterIntrinColumn("llvm", Emitter::IntrinsicsWithCode), true);
}  // namespace

LLVMValueRef Emitter::VisitExpr_(const tir::CallNode* op) {
  if (const auto* gv = op->op.as<GlobalVarNode>()) return CallFunction(op, GetRef<GlobalVar>(gv));
  const Forms::Form* form = Forms::Column().Find(IntrinOf(op));
  if (LLVMValueRef v = form ? (*form)(*this, op) : nullptr) return v;
  throw CompileError("the code generator does not know the intrinsic " + std::string(IntrinName(op)) + " for " +
                     DataType2String(op->dtype) + " (in `" + symbol_ + "`)");
}

}  // namespace baton::codegen
