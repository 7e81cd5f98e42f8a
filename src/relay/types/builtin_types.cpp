// SPDX-License-Identifier: Apache-2.0
#include <relay/types/builtin_types.h>

namespace baton::relay {

namespace {

GlobalTypeVar Named(const char* name) {
  GlobalTypeVarNode n;
  n.name_hint = String(name);
  return GlobalTypeVar(std::move(n));
}

}  // namespace

Type StorageType() {
  static const GlobalTypeVar storage = Named("Storage");
  return TypeCall(storage, Array<Type>());
}

Type HostValueType() {
  static const GlobalTypeVar value = Named("HostValue");
  return TypeCall(value, Array<Type>());
}

bool IsBuiltinType(std::string_view name) { return name == "Storage" || name == "HostValue"; }

}  // namespace baton::relay
