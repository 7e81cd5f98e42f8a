// SPDX-License-Identifier: Apache-2.0
// Passes whose work has another place here, or whose subject PrimFuncs do not have. Each can be made and run: it
// leaves functions as they are, and says what to use instead where a program asks for more than there is.
#include <baton/tir/transform.h>
#include <tir/any_stmt.h>

#include <string>
#include <vector>

namespace baton::tir::transform {
namespace {

struct Elsewhere {
  const char* name;
  const char* doc;
  std::vector<const char*> marks;  ///< keys of tir.AttrStmt that would need the pass
  const char* instead = "";
  const char* scope = nullptr;  ///< of memory that would need it
};

constexpr const char* kThreads =
    "PrimFuncs know neither warps nor tensor cores; threads of a block share memory of scope \"shared\"";
constexpr const char* kCoprocessors =
    "PrimFuncs have no scopes for co-processors; call an external function (tir.call_extern) instead";

const std::vector<Elsewhere>& Table() {
  static const std::vector<Elsewhere> table = {
      {"LowerWarpMemory", "Memory that the threads of a warp share. There is none.", {}, kThreads, "warp"},
      {"InferFragment", "Layouts of tensor cores' fragments. There are none.", {"fragment_shape"}, kThreads},
      {"MergeDynamicSharedMemoryAllocations",
       "One allocation of the memory of a block whose size a launch says (\"shared.dyn\"). There is none: sizes of "
       "allocations are said where they stand.",
       {},
       kThreads,
       "shared.dyn"},
      {"DecorateDeviceScope",
       "Marks a function as code of a device. The target, of the function or current, says that here.",
       {"device_scope"},
       "give baton.build the device's target"},
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
      {"InjectPrefetch", "Prefetches where a schedule asks for them. Processors prefetch by themselves.", {}, ""},
      {"TextureFlatten",
       "Memory of textures. There is none.",
       {},
       "memory has the scopes \"global\", \"local\" and \"shared\"",
       "global.texture"},
      {"InjectRollingBuffer", "Buffers that keep the last rows. Schedules do not ask for them.", {}, ""},
      {"LowerCustomDatatypes", "Dtypes of a program's own. There are none, so functions stay as they are.", {}, ""},
      {"LowerCrossThreadReduction",
       "Reductions over threads of blocks. PrimFuncs have no blocks, so functions stay as they are.",
       {},
       ""},
      {"LowerInitBlock", "Initial values of blocks. PrimFuncs have no blocks, so functions stay as they are.", {}, ""},
      {"ConvertBlocksToOpaque",
       "Blocks without bindings. PrimFuncs have no blocks, so functions stay as they are.",
       {},
       ""},
      {"LowerMatchBuffer",
       "Views of parts of buffers within blocks. PrimFuncs have no blocks, so functions stay as they are.",
       {},
       ""},
      {"PlanAndUpdateBufferAllocationLocation",
       "Allocations where their buffers are used. PrimFuncs write allocations where they hold, so functions stay "
       "as they are.",
       {},
       ""},
  };
  return table;
}

/// The first thing in a body that would need the pass; "" if it has none.
std::string NeedIn(const Stmt& body, const Elsewhere& e) {
  std::string found;
  if (e.marks.empty() && !e.scope) return found;
  AnyStmt(body, [&](const Object* s) {
    if (s->IsInstance<AttrStmtNode>()) {
      for (const char* m : e.marks) {
        if (static_cast<const AttrStmtNode*>(s)->attr_key == m) found = std::string("a scope marked \"") + m + "\"";
      }
    } else if (e.scope && s->IsInstance<AllocateNode>() &&
               static_cast<const AllocateNode*>(s)->buffer->scope() == e.scope) {
      found = std::string("memory of scope \"") + e.scope + "\"";
    }
    return !found.empty();
  });
  return found;
}

Pass Make(const Elsewhere& e) {
  Pass pass = CreatePrimFuncPass(
      TypedPackedFunc<PrimFunc(PrimFunc, IRModule, PassContext)>([&e](PrimFunc f, IRModule, PassContext) {
        if (const std::string need = NeedIn(f->body, e); !need.empty())
          throw UnsupportedError(std::string(e.name) + ": the program has " + need + "; " + e.instead);
        return f;
      }),
      0, e.name, {});
  return baton::transform::Described(pass, {.doc = e.doc});
}

const bool registered_passes_without_subject = [] {
  for (const Elsewhere& e : Table()) {
    // Arguments of other compilers are taken and mean nothing.
    baton::transform::PutPass({.prefix = "tir.transform.",
                               .name = e.name,
                               .make = runtime::MakeTyped([&e](Attrs) { return Make(e); }, e.name),
                               .takes_anything = true});
  }
  return true;
}();

}  // namespace
}  // namespace baton::tir::transform
