// SPDX-License-Identifier: Apache-2.0
// Passes whose work has another place here, or whose subject loop programs do not have. Each can be made and run: it
// leaves functions as they are, and says what to use instead where a program asks for more than there is.
#include <baton/tir/functor.h>
#include <baton/tir/transform.h>

#include <string>
#include <vector>

namespace baton::tir::transform {
namespace {

struct Elsewhere {
  const char* name;
  const char* doc;
  std::vector<const char*> marks;  ///< keys of tir.AttrStmt that would need the pass
  const char* instead = "";
};

constexpr const char* kThreads =
    "loop programs have no thread axes: mark loops parallel; code generators for devices make work-items of them";
constexpr const char* kCoprocessors =
    "loop programs have no scopes for co-processors; call an external function (tir.call_extern) instead";

const std::vector<Elsewhere>& Table() {
  static const std::vector<Elsewhere> table = {
      {"ThreadSync",
       "Barriers between the threads of a block. Work-items of a parallel loop share no memory but what loops around "
       "them order, so there is nothing to wait for.",
       {"thread_extent"},
       kThreads},
      {"UnifyThreadBinding",
       "One variable for each thread axis. Parallel loops have their own variables.",
       {"thread_extent"},
       kThreads},
      {"LowerThreadAllreduce",
       "Reductions across the threads of a block. Reductions are loops within a work-item here.",
       {"thread_extent", "reduce_scope"},
       kThreads},
      {"LowerWarpMemory", "Memory that the threads of a warp share. There is none.", {"thread_extent"}, kThreads},
      {"InferFragment", "Layouts of tensor cores' fragments. There are none.", {"fragment_shape"}, kThreads},
      {"MergeDynamicSharedMemoryAllocations",
       "One allocation of the shared memory of a block. Workspaces are joined by StorageRewrite.",
       {"thread_extent"},
       kThreads},
      {"DecorateDeviceScope",
       "Marks a function as code of a device. The target, of the function or current, says that here.",
       {"device_scope"},
       "give baton.build the device's target"},
      {"SplitHostDevice",
       "Parts of a function for the device as functions of their own. baton.build does so for a device's target.",
       {"thread_extent"},
       kThreads},
      {"LowerDeviceStorageAccessInfo",
       "Accesses of a device's special memory. There is none.",
       {"storage_scope"},
       kThreads},
      {"LowerTVMBuiltin",
       "Builtins (calls of packed functions, tensors on the stack) as plain calls. The code generators do so "
       "themselves, so functions stay as they are.",
       {},
       ""},
      {"LegalizePackedCalls",
       "Arguments of packed functions wrapped. The code generators do so themselves, so functions stay as they are.",
       {},
       ""},
      {"CombineContextCall",
       "One call for a device's context. Contexts belong to the executors here, so functions stay as they are.",
       {},
       ""},
      {"CoProcSync",
       "Synchronisation with co-processors. There are none.",
       {"coproc_scope", "coproc_uop_scope"},
       kCoprocessors},
      {"LowerInitBlock",
       "Initial values of blocks. Loop programs have no blocks, so functions stay as they are.",
       {},
       ""},
      {"ConvertBlocksToOpaque",
       "Blocks without bindings. Loop programs have no blocks, so functions stay as they are.",
       {},
       ""},
      {"LowerMatchBuffer",
       "Views of parts of buffers within blocks. Loop programs have no blocks, so functions stay as they are.",
       {},
       ""},
      {"PlanAndUpdateBufferAllocationLocation",
       "Allocations where their buffers are used. Loop programs write allocations where they hold, so functions stay "
       "as they are.",
       {},
       ""},
  };
  return table;
}

/// The first of these marks in a body; "" if it has none.
std::string MarkIn(const Stmt& body, const std::vector<const char*>& marks) {
  struct Finder : StmtVisitor {
    const std::vector<const char*>& marks;
    std::string found;
    explicit Finder(const std::vector<const char*>& m) : marks(m) {}
    using StmtVisitor::VisitStmt_;
    void VisitStmt_(const AttrStmtNode* op) final {
      for (const char* m : marks) {
        if (found.empty() && op->attr_key == m) found = m;
      }
      StmtVisitor::VisitStmt_(op);
    }
  } finder(marks);
  if (!marks.empty()) finder.VisitStmt(body);
  return finder.found;
}

Pass Make(const Elsewhere& e) {
  return CreatePrimFuncPass(
      TypedPackedFunc<PrimFunc(PrimFunc, IRModule, PassContext)>([&e](PrimFunc f, IRModule, PassContext) {
        if (const std::string mark = MarkIn(f->body, e.marks); !mark.empty()) {
          throw UnsupportedError(std::string(e.name) + ": the program has a scope marked \"" + mark + "\"; " +
                                 e.instead);
        }
        return f;
      }),
      0, e.name, {});
}

const bool registered = [] {
  for (const Elsewhere& e : Table()) {
    baton::transform::RegisterPassDoc(e.name, e.doc);
    // Arguments of other compilers, as the storage scope of ThreadSync, are taken and mean nothing.
    baton::transform::RegisterPassGlobal(std::string("tir.transform.") + e.name,
                                         PackedFunc([&e](runtime::Args, runtime::RetValue* rv) { *rv = Make(e); }));
  }
  return true;
}();

}  // namespace
}  // namespace baton::tir::transform
