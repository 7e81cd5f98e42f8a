// SPDX-License-Identifier: Apache-2.0
// Calls: of functions of the module, of C, and of functions by name.
#include <baton/runtime/c_backend_api.h>
#include <baton/tir/intrin.h>
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/function.h"

namespace baton::codegen::c {

using namespace tir;  // NOLINT: every node kind is named below

std::string FunctionPrinter::CallFunction(const tir::CallNode* op) {
  const auto var = Downcast<GlobalVar>(op->op);
  const std::string symbol = SymbolOf(var, mod_->Lookup(var));
  out_.calls.insert(symbol);
  std::string args;
  for (const PrimExpr& a : op->args) {
    const std::string v = VisitExpr(a);
    args += (args.empty() ? "" : ", ") + v;
  }
  has_status_ = true;
  ReturnIf(fmt::format("(status = {}({})) != 0", symbols_.at(symbol), args), "status");
  return "0";
}

std::string FunctionPrinter::AddressOf(const tir::CallNode* op) {
  const auto* place = op->args[0].as<BufferLoadNode>();
  PrimExpr at = place->indices.size() == 1 ? place->indices[0] : PrimExpr();
  if (const auto* ramp = at.as<RampNode>()) at = ramp->base;
  const std::string index = Index(place->buffer, {at});
  return fmt::format("(void*)(&{})", Element(place->buffer, index, true));
}

std::string FunctionPrinter::CallExtern(const tir::CallNode* op) {
  const std::string name = op->args[0].as<StringImmNode>()->value.str();
  std::string args, types;
  for (size_t i = 1; i < op->args.size(); ++i) {
    const PrimExpr& a = op->args[static_cast<int64_t>(i)];
    const std::string v = VisitExpr(a), gap = args.empty() ? "" : ", ";
    args += gap + v;
    types += gap + (a.as<StringImmNode>() ? "const char*" : Type(a.dtype()));
  }
  const std::string result = op->dtype.is_void() ? "void" : Type(op->dtype);
  file_->externs[name] = fmt::format("{} {}({});\n", result, name, types.empty() ? "void" : types);
  return fmt::format("{}({})", name, args);
}

std::string FunctionPrinter::StackTensor(const tir::CallNode* op) {
  const DataType t = op->args[1].dtype();
  const auto ndim = static_cast<int64_t>(op->args.size()) - 2;
  const std::string shape = Fresh("shape"), tensor = Fresh("tensor");
  Line(fmt::format("int64_t {}[{}];", shape, std::max<int64_t>(ndim, 1)));
  Line(fmt::format("struct baton_tensor {};", tensor));
  if (ndim == 0) Line(fmt::format("{}[0] = 0;", shape));
  for (int64_t d = 0; d < ndim; ++d) {
    const std::string n = VisitExpr(op->args[d + 2]);
    Line(fmt::format("{}[{}] = (int64_t){};", shape, d, n));
  }
  const std::string data = VisitExpr(op->args[0]);
  file_->tensors = true;
  Line(fmt::format("baton_set_tensor(&{}, {}, {}, {}, {}, {}, {});", tensor, data, ndim, static_cast<int>(t.code()),
                   t.bits(), t.lanes(), shape));
  return "&" + tensor;
}

std::string FunctionPrinter::CallPacked(const tir::CallNode* op, bool traced) {
  file_->packed = true;
  const std::string callee = op->args[0].as<StringImmNode>()->value.str();
  const std::string slot =
      file_->slots.try_emplace(callee, fmt::format("baton_slot_{}", file_->slots.size())).first->second;
  const auto n = static_cast<int64_t>(op->args.size()) - 1;
  const std::string values = Fresh("args");
  Line(fmt::format("struct baton_value {}[{}];", values, n + 1));
  for (int64_t i = 0; i < n; ++i) {
    const PrimExpr& a = op->args[i + 1];
    const DataType t = a.dtype();
    const auto* call = a.as<tir::CallNode>();
    int code = t.is_bool() ? kBatonBool : kBatonInt;
    std::string member = "i", v;
    if (call && IsStackTensor(call)) {
      code = kBatonTensor, v = "(int64_t)(intptr_t)" + StackTensor(call);
    } else if (a.as<StringImmNode>() || t.is_handle()) {
      code = a.as<StringImmNode>() ? kBatonStr : kBatonHandle;
      v = "(int64_t)(intptr_t)" + VisitExpr(a);
    } else if (t.is_floating()) {
      code = kBatonFloat, member = "f";
      v = Convert(VisitExpr(a), t, DataType::Float(64));
    } else {
      v = "(int64_t)" + VisitExpr(a);
    }
    Line(fmt::format("{}[{}].type = {}, {}[{}].pad = 0, {}[{}].v.{} = {};", values, i, code, values, i, values, i,
                     member, v));
  }
  Line(fmt::format("{}[{}].type = {}, {}[{}].pad = 0, {}[{}].v.i = 0;", values, n, static_cast<int>(kBatonNull), values,
                   n, values, n));
  has_status_ = true;
  ReturnIf(fmt::format("(status = baton_call(&{}, {}, {}, {})) != 0", slot, Quoted(callee), values, n), "status");
  const DataType t = op->dtype;
  if (t.is_void()) return "0";
  std::string result = fmt::format("{}[{}]", values, n);
  if (traced && n > 0) {
    result = fmt::format("{}[{}[{}].type == {} ? {} : {}]", values, values, n, static_cast<int>(kBatonNull), n - 1, n);
  }
  if (t.is_handle()) return fmt::format("(void*)(intptr_t){}.v.i", result);
  return fmt::format("({}.type == {} ? {} : {})", result, static_cast<int>(kBatonFloat),
                     Convert(result + ".v.f", DataType::Float(64), t), Convert(result + ".v.i", DataType::Int(64), t));
}

}  // namespace baton::codegen::c
