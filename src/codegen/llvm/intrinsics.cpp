// SPDX-License-Identifier: Apache-2.0
// Calls: functions of the module, intrinsics, C functions.
#include <unordered_map>
#include <unordered_set>

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

LLVMValueRef Emitter::MathIntrinsic(const std::string& name, const tir::CallNode* op) {
  DataType t = op->dtype;
  LLVMTypeRef type = t.is_void() ? nullptr : TypeFor(ctx_, t);
  auto arg = [&](int i) { return VisitExpr(op->args[i]); };
  // Intrinsics that processors have as instructions.
  static const std::unordered_map<std::string, const char*> direct = {
      {"sqrt", "llvm.sqrt"}, {"floor", "llvm.floor"}, {"ceil", "llvm.ceil"},           {"trunc", "llvm.trunc"},
      {"fabs", "llvm.fabs"}, {"round", "llvm.round"}, {"nearbyint", "llvm.nearbyint"}, {"popcount", "llvm.ctpop"}};
  if (auto it = direct.find(name); it != direct.end()) return Intrinsic(it->second, {type}, {arg(0)});
  static const std::unordered_set<std::string> libm = {
      "exp",  "exp2", "log",  "log2", "log10", "log1p", "sin",   "cos", "tan", "sinh", "cosh",
      "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "pow", "fmod", "atan2"};
  if (libm.count(name) && t.is_floating()) return Libm(name, op);
  if (name == "fma") return MultiplyAdd(arg(0), arg(1), arg(2), op->dtype);
  if (name == "dot4") return Dot4(arg(0), arg(1), arg(2), t.lanes());
  if (name == "ldexp" && t.is_float() && t.bits() == 32) return Ldexp(arg(0), arg(1), t);
  if (name == "rsqrt") {
    LLVMValueRef one = LLVMConstReal(ElementType(ctx_, t), 1);
    return LLVMBuildFDiv(builder_, t.lanes() > 1 ? Splat(one, t.lanes()) : one,
                         Intrinsic("llvm.sqrt", {type}, {arg(0)}), "");
  }
  if (name == "abs") {
    if (t.is_floating()) return Intrinsic("llvm.fabs", {type}, {arg(0)});
    if (t.is_uint() || t.is_bool()) return arg(0);
    return Intrinsic("llvm.abs", {type}, {arg(0), LLVMConstInt(LLVMInt1TypeInContext(ctx_), 0, 0)});
  }
  if (name == "isnan") {
    LLVMValueRef x = arg(0);
    return LLVMBuildFCmp(builder_, LLVMRealUNO, x, x, "");
  }
  if (name == "isinf" || name == "isfinite") {
    DataType ft = op->args[0].dtype();
    LLVMTypeRef ftype = TypeFor(ctx_, ft);
    LLVMValueRef inf = LLVMConstReal(ElementType(ctx_, ft), __builtin_inf());
    if (ft.lanes() > 1) inf = Splat(inf, ft.lanes());
    return LLVMBuildFCmp(builder_, name == "isinf" ? LLVMRealOEQ : LLVMRealONE,
                         Intrinsic("llvm.fabs", {ftype}, {arg(0)}), inf, "");
  }
  return nullptr;
}

LLVMValueRef Emitter::BitIntrinsic(const std::string& name, const tir::CallNode* op) {
  DataType t = op->dtype;
  LLVMTypeRef type = t.is_void() ? nullptr : TypeFor(ctx_, t);
  auto arg = [&](int i) { return VisitExpr(op->args[i]); };
  if (name == "bitwise_not") return LLVMBuildNot(builder_, arg(0), "");
  if (name == "bitwise_and") return LLVMBuildAnd(builder_, arg(0), arg(1), "");
  if (name == "bitwise_or") return LLVMBuildOr(builder_, arg(0), arg(1), "");
  if (name == "bitwise_xor") return LLVMBuildXor(builder_, arg(0), arg(1), "");
  if (name == "shift_left" || name == "shift_right") {
    // A shift by the width or more gives 0 (or the sign), as NumPy has it.
    LLVMValueRef a = arg(0), n = arg(1), width = ConstLike(t.bits(), t);
    LLVMValueRef big = LLVMBuildICmp(builder_, LLVMIntUGE, n, width, "");
    bool arithmetic = name == "shift_right" && t.is_int();
    LLVMValueRef safe = LLVMBuildSelect(builder_, big, ConstLike(t.bits() - 1, t), n, "");
    if (arithmetic) return LLVMBuildAShr(builder_, a, safe, "");
    LLVMValueRef r = name == "shift_left" ? LLVMBuildShl(builder_, a, safe, "") : LLVMBuildLShr(builder_, a, safe, "");
    return LLVMBuildSelect(builder_, big, LLVMConstNull(type), r, "");
  }
  if (name == "reinterpret") {
    LLVMValueRef x = arg(0);
    return LLVMBuildBitCast(builder_, x, type, "");
  }
  return nullptr;
}

LLVMValueRef Emitter::MemoryIntrinsic(const std::string& name, const tir::CallNode* op) {
  auto arg = [&](int i) { return VisitExpr(op->args[i]); };
  if (name == "masked_load") return MaskedLoad(op);
  if (name == "masked_store") return MaskedStore(op);
  if (name == "prefetch") {
    const auto* l = op->args[0].as<BufferLoadNode>();
    PrimExpr flat = Flat(l->buffer, l->indices);
    if (const auto* r = flat.as<RampNode>()) flat = r->base;
    LLVMValueRef at = Address(l->buffer, VisitExpr(flat));
    const int64_t* locality = as_const_int(op->args[1]);
    Intrinsic("llvm.prefetch", {ptr_}, {at, Int32(0), Int32(locality ? *locality : 3), Int32(1)});
    return Int32(0);
  }
  if (name == "address_of") {
    const auto* l = op->args[0].as<BufferLoadNode>();
    PrimExpr flat = Flat(l->buffer, l->indices);
    if (const auto* r = flat.as<RampNode>()) flat = r->base;
    return Address(l->buffer, VisitExpr(flat));
  }
  if (name == "ptr_offset") {
    LLVMValueRef base = arg(0), off = arg(1);
    return LLVMBuildInBoundsGEP2(builder_, LLVMInt8TypeInContext(ctx_), base, &off, 1, "");
  }
  if (name == "load_handle") {
    LLVMValueRef base = arg(0), i = arg(1);
    return LLVMBuildLoad2(builder_, ptr_, LLVMBuildInBoundsGEP2(builder_, ptr_, base, &i, 1, ""), "");
  }
  if (name == "memcpy") {
    LLVMBuildMemCpy(builder_, arg(0), 1, arg(1), 1, arg(2));
    return Int32(0);
  }
  return nullptr;
}

LLVMValueRef Emitter::ReduceLanes(const std::string& name, const tir::CallNode* op) {
  DataType t = op->dtype;
  LLVMValueRef v = VisitExpr(op->args[0]);
  int lanes = op->args[0].dtype().lanes();
  bool f = t.is_floating();
  if (name == "vector_sum")
    return Halves(v, lanes, [&](LLVMValueRef a, LLVMValueRef b) {
      return f ? LLVMBuildFAdd(builder_, a, b, "") : LLVMBuildAdd(builder_, a, b, "");
    });
  if (name == "vector_prod")
    return Halves(v, lanes, [&](LLVMValueRef a, LLVMValueRef b) {
      return f ? LLVMBuildFMul(builder_, a, b, "") : LLVMBuildMul(builder_, a, b, "");
    });
  bool max = name == "vector_max";
  return Halves(v, lanes, [&](LLVMValueRef a, LLVMValueRef b) {
    if (!f) {
      LLVMIntPredicate p = max ? (t.is_int() ? LLVMIntSGT : LLVMIntUGT) : (t.is_int() ? LLVMIntSLT : LLVMIntULT);
      return LLVMBuildSelect(builder_, LLVMBuildICmp(builder_, p, a, b, ""), a, b, "");
    }
    LLVMValueRef r =
        LLVMBuildSelect(builder_, LLVMBuildFCmp(builder_, max ? LLVMRealUGT : LLVMRealULT, a, b, ""), a, b, "");
    return LLVMBuildSelect(builder_, LLVMBuildFCmp(builder_, LLVMRealUNO, b, b, ""), b, r, "");
  });
}

LLVMValueRef Emitter::VisitExpr_(const tir::CallNode* op) {
  if (const auto* gv = op->op.as<GlobalVarNode>()) return CallFunction(op, GetRef<GlobalVar>(gv));
  std::string name(IntrinName(op));
  if (name.rfind("tir.", 0) == 0) name = name.substr(4);
  if (name == "if_then_else") return IfThenElseExpr(op);
  if (name == "likely") return VisitExpr(op->args[0]);
  if (LLVMValueRef v = MathIntrinsic(name, op)) return v;
  if (LLVMValueRef v = BitIntrinsic(name, op)) return v;
  if (LLVMValueRef v = MemoryIntrinsic(name, op)) return v;
  if (name.rfind("vector_", 0) == 0) return ReduceLanes(name, op);
  DataType t = op->dtype;
  if (name == "call_packed" || name == "tvm_call_trace_packed") return CallPacked(op);
  if (name == "call_extern") {
    std::vector<LLVMValueRef> args;
    for (size_t i = 1; i < op->args.size(); ++i) args.push_back(VisitExpr(op->args[static_cast<int64_t>(i)]));
    return CallExtern(op->args[0].as<StringImmNode>()->value.c_str(),
                      t.is_void() ? LLVMVoidTypeInContext(ctx_) : TypeFor(ctx_, t), args);
  }
  throw CompileError("the code generator does not know the intrinsic tir." + name + " for " + DataType2String(t) +
                     " (in `" + symbol_ + "`)");
}

}  // namespace baton::codegen
