// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/transform.h>

#include <algorithm>
#include <string>

namespace baton::tir {
namespace {

/// Memory that loop programs know: of the process, of a block, of a thread.
constexpr const char* kKnown[] = {"", "global", "shared", "local"};

struct Checker : StmtVisitor {
  using StmtVisitor::VisitStmt_;
  void VisitStmt_(const AllocateNode* op) final {
    const std::string scope = op->buffer->scope().str();
    if (std::find(std::begin(kKnown), std::end(kKnown), scope) == std::end(kKnown)) {
      throw UnsupportedError("LowerDeviceStorageAccessInfo: buffer `" + op->buffer->name.str() + "` lies in memory \"" +
                             scope + "\", of which nothing is known; there are \"global\", \"shared\" and \"local\"");
    }
    StmtVisitor::VisitStmt_(op);
  }
};

}  // namespace

namespace transform {
Pass LowerDeviceStorageAccessInfo() {
  return MakePass<LowerDeviceStorageAccessInfo>({
      .doc = "Accesses of a device's special memory as its instructions. There is none but what blocks share "
             "(\"shared\") and what is a thread's own (\"local\"), whose accesses stay as they are: functions are not "
             "changed, and one that allocates in other memory is an error that names it.",
      .run =
          [](PrimFunc f, IRModule, PassContext) {
            Checker().VisitStmt(f->body);
            return f;
          },
  });
}
namespace {
const RegisterPass<LowerDeviceStorageAccessInfo> registered("tir.transform.");
}
}  // namespace transform
}  // namespace baton::tir
