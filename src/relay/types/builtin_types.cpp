// SPDX-License-Identifier: Apache-2.0
#include <relay/types/builtin_types.h>

namespace baton::relay {

Type StorageType() {
  static const GlobalTypeVar storage = [] {
    GlobalTypeVarNode n;
    n.name_hint = String("Storage");
    return GlobalTypeVar(std::move(n));
  }();
  return TypeCall(storage, Array<Type>());
}

bool IsBuiltinType(std::string_view name) { return name == "Storage"; }

}  // namespace baton::relay
