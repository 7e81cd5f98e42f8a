// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>
#include <baton/tir/functor.h>
#include <baton/tir/transform.h>
#include <baton/tir/verify.h>

#include <string>
#include <vector>

#include "tir/thread_axes.h"

namespace baton::tir {
namespace {

const std::vector<std::string>& Limits() {
  static const std::vector<std::string> all = {"max_local_memory_per_block",
                                               "max_shared_memory_per_block",
                                               "max_threads_per_block",
                                               "max_thread_x",
                                               "max_thread_y",
                                               "max_thread_z",
                                               "max_vthread",
                                               "max_vector_bytes",
                                               "max_kernels"};
  return all;
}

/// The resources that kernels need; finds the first beyond a limit.
class Checker : public StmtExprVisitor {
 public:
  explicit Checker(const Map<String, int64_t>& limits) : limits_(limits) {
    for (const auto& [name, limit] : limits) {
      bool known = false;
      for (const std::string& l : Limits()) known = known || name == l;
      if (!known)
        throw runtime::ValueError("there is no limit `" + name.str() + "`" +
                                  support::DidYouMean(name.view(), Limits()));
    }
  }
  std::string found;

  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;
  // Vectors are values; indices of several elements are addresses.
  void VisitExpr_(const BufferLoadNode* op) final {
    Vector(op->dtype);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const CastNode* op) final {
    Vector(op->dtype);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Vector(op->value.dtype());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    const VarNode* var = BoundThreadVar(op);
    if (var && op->attr_key != kThreadExtent) {
      Times(&virtual_, op->value);
      Check("max_vthread", virtual_, "virtual threads", "threads");
    } else if (var && !in_kernel_) {
      in_kernel_ = true;
      Check("max_kernels", ++kernels_, "the function", "kernels");
      threads_ = virtual_ = 1, shared_ = local_ = 0;
      for (const KernelAxis& a : AxesOf(GetRef<Stmt>(op))) Axis(a);
      StmtExprVisitor::VisitStmt_(op);
      in_kernel_ = false;
      return;
    }
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AllocateNode* op) final {
    const std::string scope = op->buffer->scope().str();
    if (in_kernel_ && (scope == kShared || scope == "local")) {
      int64_t bytes = op->buffer->dtype.bytes();
      for (const PrimExpr& d : op->buffer->shape) Times(&bytes, d);
      int64_t& all = scope == kShared ? shared_ : local_;
      all = bytes < 0 || all < 0 ? -1 : all + bytes;
      Check(scope == kShared ? "max_shared_memory_per_block" : "max_local_memory_per_block", all,
            "memory \"" + scope + "\" of a kernel", "bytes");
    }
    StmtExprVisitor::VisitStmt_(op);
  }

 private:
  /// -1: not known before it runs.
  static void Times(int64_t* n, const PrimExpr& by) {
    const int64_t* factor = as_const_int(by);
    *n = factor && *n >= 0 ? *n * *factor : -1;
  }
  void Vector(DataType t) {
    if (t.lanes() > 1) Check("max_vector_bytes", t.bytes(), "a vector", "bytes");
  }
  void Axis(const KernelAxis& a) {
    if (IsBlockAxis(a.axis)) return;
    int64_t extent = 1;
    Times(&extent, a.extent);
    static constexpr const char* kEach[] = {"max_thread_x", "max_thread_y", "max_thread_z"};
    Check(kEach[a.axis - 3], extent, "`" + std::string(ThreadAxisName(a.axis)) + "`", "threads");
    Times(&threads_, a.extent);
    Check("max_threads_per_block", threads_, "a block", "threads");
  }
  void Check(const char* limit, int64_t value, const std::string& what, const char* unit) {
    if (!found.empty() || !limits_.count(limit)) return;
    const int64_t most = limits_.at(limit);
    if (value < 0) {
      found =
          what + " has a number of " + unit + " that is known when it runs, " + limit + " is " + std::to_string(most);
    } else if (value > most) {
      found = what + " has " + std::to_string(value) + " " + unit + ", " + limit + " is " + std::to_string(most);
    }
  }

  const Map<String, int64_t>& limits_;
  bool in_kernel_ = false;
  int64_t kernels_ = 0, threads_ = 1, virtual_ = 1, shared_ = 0, local_ = 0;
};

std::string CheckGPUCode(const PrimFunc& f, const Map<String, int64_t>& limits) {
  Checker checker(limits);
  checker.VisitStmt(f->body);
  return checker.found;
}

}  // namespace

namespace transform {
struct VerifyGPUCodeOptions : PassOptions<VerifyGPUCodeOptions> {
  static constexpr auto _type_key = "tir.transform.VerifyGPUCodeOptions";
  Map<String, int64_t> constraints;
  static constexpr void Describe(auto& d) {
    d(F<&VerifyGPUCodeOptions::constraints>,
      "Limits by name: max_threads_per_block, max_shared_memory_per_block (bytes), ...");
  }
};

Pass VerifyGPUCode(const VerifyGPUCodeOptions& options) {
  return MakePass<VerifyGPUCode>(
      options,
      {
          .doc = "Throws where a kernel asks for more than a device has: max_threads_per_block, max_thread_x to "
                 "max_thread_z, max_vthread (threads), max_shared_memory_per_block, max_local_memory_per_block, "
                 "max_vector_bytes (bytes), max_kernels. What is not among the constraints is not asked for.",
          .run =
              [constraints = options.constraints](PrimFunc f, IRModule, PassContext) {
                if (const std::string what = CheckGPUCode(f, constraints); !what.empty()) {
                  throw CompileError("`" + f->GetAttr<String>(baton::attr::kGlobalSymbol, String("prim_func")).str() +
                                     "`: " + what);
                }
                return f;
              },
      });
}
namespace {
const RegisterPass<VerifyGPUCode> registered_verify_gpu_code("tir.transform.");
}  // namespace
}  // namespace transform

namespace {
BATON_REGISTER_GLOBAL("tir.analysis.verify_gpu_code").set_body_typed([](PrimFunc f, Map<String, int64_t> constraints) {
  return CheckGPUCode(f, constraints).empty();
});
}  // namespace
}  // namespace baton::tir
