// SPDX-License-Identifier: Apache-2.0
// The constant that tells the runtime how a function is called (BatonFunctionSpec in c_backend_api.h).
#include <baton/runtime/c_backend_api.h>
#include <baton/runtime/module.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>

#include <vector>

#include "codegen/llvm/emitter.h"

namespace baton::codegen {

void EmitFunctionSpec(LLVMModuleRef module, const std::string& symbol, const tir::PrimFunc& caller) {
  auto func = caller->GetAttr<tir::PrimFunc>(tir::attr::kPackedOf);
  LLVMContextRef ctx = LLVMGetModuleContext(module);
  LLVMTypeRef ptr = LLVMPointerTypeInContext(ctx, 0), i8 = LLVMInt8TypeInContext(ctx),
              i16 = LLVMInt16TypeInContext(ctx), i32 = LLVMInt32TypeInContext(ctx), i64 = LLVMInt64TypeInContext(ctx);
  auto number = [](LLVMTypeRef t, int64_t v) { return LLVMConstInt(t, static_cast<uint64_t>(v), 1); };
  auto global = [&](LLVMValueRef value) {
    LLVMValueRef g = LLVMAddGlobal(module, LLVMTypeOf(value), "");
    LLVMSetInitializer(g, value);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(g, 1);
    return g;
  };
  auto text = [&](const std::string& s) {
    return global(LLVMConstStringInContext(ctx, s.c_str(), static_cast<unsigned>(s.size()), 0));
  };
  LLVMTypeRef param_fields[] = {ptr, i8, i8, i16, i32, i32, ptr};
  LLVMTypeRef param_type = LLVMStructTypeInContext(ctx, param_fields, 7, 0);
  std::vector<LLVMValueRef> params;
  for (const tir::Var& p : func->params) {
    DataType t = p->dtype;
    int64_t ndim = 0;
    LLVMValueRef shape = LLVMConstNull(ptr);
    int kind = t.is_floating() ? kBatonParamFloat : t.is_handle() ? kBatonParamPointer : kBatonParamInt;
    std::string name = p->name_hint.str();
    if (func->buffer_map.count(p)) {
      const tir::Buffer& b = func->buffer_map.at(p);
      kind = kBatonParamTensor;
      t = b->dtype;
      name = b->name.str();
      ndim = static_cast<int64_t>(b->shape.size());
      std::vector<LLVMValueRef> dims;
      for (const PrimExpr& d : b->shape) {
        const int64_t* c = tir::as_const_int(d);
        dims.push_back(number(i64, c ? *c : -1));
      }
      if (ndim) shape = global(LLVMConstArray2(i64, dims.data(), dims.size()));
    }
    LLVMValueRef fields[] = {text(name),
                             number(i8, t.code()),
                             number(i8, t.bits()),
                             number(i16, t.lanes()),
                             number(i32, kind),
                             number(i32, ndim),
                             shape};
    params.push_back(LLVMConstNamedStruct(param_type, fields, 7));
  }
  std::string name = symbol.substr(std::string(tir::kPackedCallPrefix).size());
  LLVMValueRef list =
      params.empty() ? LLVMConstNull(ptr) : global(LLVMConstArray2(param_type, params.data(), params.size()));
  LLVMValueRef fields[] = {number(i32, kBatonFunctionSpecVersion),
                           number(i32, static_cast<int64_t>(params.size())),
                           number(i32, caller->GetAttr<int64_t>(tir::attr::kNumRequired)),
                           number(i32, caller->GetAttr<int64_t>(tir::attr::kResultKind, 0)),
                           text(name),
                           list,
                           LLVMGetNamedFunction(module, symbol.c_str())};
  LLVMValueRef spec = LLVMConstStructInContext(ctx, fields, 7, 0);
  LLVMValueRef g = LLVMAddGlobal(module, LLVMTypeOf(spec), (runtime::kFunctionSpecPrefix + name).c_str());
  LLVMSetInitializer(g, spec);
  LLVMSetGlobalConstant(g, 1);
}

}  // namespace baton::codegen
