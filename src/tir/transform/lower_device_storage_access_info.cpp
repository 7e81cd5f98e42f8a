// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/transform.h>
#include <tir/any_stmt.h>

#include <algorithm>
#include <string>

namespace baton::tir {
namespace {

/// Memory that PrimFuncs know: of the process, of a block, of a thread.
constexpr const char* kKnown[] = {"", "global", "shared", "local"};

bool Check(const Object* s) {
  if (!s->IsInstance<AllocateNode>()) return false;
  const Buffer& buffer = static_cast<const AllocateNode*>(s)->buffer;
  const std::string scope = buffer->scope().str();
  if (std::find(std::begin(kKnown), std::end(kKnown), scope) == std::end(kKnown)) {
    throw UnsupportedError("LowerDeviceStorageAccessInfo: buffer `" + buffer->name.str() + "` lies in memory \"" +
                           scope + "\", of which nothing is known; there are \"global\", \"shared\" and \"local\"");
  }
  return false;
}

}  // namespace

namespace transform {
Pass LowerDeviceStorageAccessInfo() {
  return MakePass<LowerDeviceStorageAccessInfo>({
      .doc = "Accesses of a device's special memory as its instructions. There is none but what blocks share "
             "(\"shared\") and what is a thread's own (\"local\"), whose accesses stay as they are: functions are not "
             "changed, and one that allocates in other memory is an error that names it.",
      .run =
          [](PrimFunc f, IRModule, PassContext) {
            AnyStmt(f->body, Check);
            return f;
          },
  });
}
namespace {
const RegisterPass<LowerDeviceStorageAccessInfo> registered_lower_device_storage_access_info("tir.transform.");
}
}  // namespace transform
}  // namespace baton::tir
