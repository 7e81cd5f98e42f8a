// SPDX-License-Identifier: Apache-2.0
#include "driver/c_functions.h"

#include <baton/runtime/error.h>
#include <baton/tir/expr.h>
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <dlfcn.h>

namespace baton::driver {
namespace {

class CFunctionFinder : public tir::StmtExprVisitor {
 public:
  std::string absent;

 private:
  using tir::StmtExprVisitor::VisitExpr_;
  void VisitExpr_(const tir::CallNode* op) final {
    const tir::IntrinDef* row = tir::IntrinOf(op);
    if (absent.empty() && row && row->calls_c) {
      const std::string name = op->args[0].as<tir::StringImmNode>()->value.str();
      if (!dlsym(RTLD_DEFAULT, name.c_str())) absent = name;
    }
    tir::StmtExprVisitor::VisitExpr_(op);
  }
};

}  // namespace

std::string AbsentCFunction(const IRModule& tir) {
  CFunctionFinder finder;
  for (const auto& [var, func] : tir->functions) {
    if (const auto* f = func.as<tir::PrimFuncNode>()) finder(f->body);
  }
  return finder.absent;
}

void ThrowIfAbsent(const std::string& function) {
  if (function.empty()) return;
  throw runtime::RuntimeError("the compiled code calls `" + function +
                              "`, which no library of this process has; load one that has it (ctypes.CDLL(path, "
                              "mode=ctypes.RTLD_GLOBAL)), here or where the saved model runs");
}

}  // namespace baton::driver
