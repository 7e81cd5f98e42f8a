// SPDX-License-Identifier: Apache-2.0
// Further contents of field tables (beyond names, types and defaults), for stubs and reference pages.
#include <baton/ir/attrs.h>
#include <baton/runtime/registry.h>

namespace baton {
namespace {

using runtime::FieldInfo;
using runtime::TypeInfo;

/// Field -> [smallest, largest] value allowed, None where there is no bound; only of fields that have one.
Map<String, Array<Any>> FieldBounds(const std::string& key) {
  const TypeInfo* info = TypeInfo::FindKey(key);
  if (!info) throw runtime::ValueError("no described type has the key `" + key + "`");
  Map<String, Array<Any>> out;
  for (const FieldInfo& f : info->fields) {
    if (!f.has_lower && !f.has_upper) continue;
    out.Set(f.name, Array<Any>{f.has_lower ? Any(f.lower) : Any(), f.has_upper ? Any(f.upper) : Any()});
  }
  return out;
}

BATON_REGISTER_GLOBAL("node.FieldBounds").set_body_typed(FieldBounds);

}  // namespace
}  // namespace baton
