// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/backend.h>

#include <algorithm>
#include <map>
#include <utility>

namespace baton::codegen {
namespace {

std::map<std::string, Backend, std::less<>>& Backends() {
  static auto* backends = new std::map<std::string, Backend, std::less<>>();
  return *backends;
}

}  // namespace

void RegisterBackend(Backend backend) {
  RegisterTargetKind(backend.kind);
  const std::string name = backend.kind.name;
  Backends().emplace(name, std::move(backend));
}

const Backend& BackendOf(const Target& target) {
  target->CheckCode();
  const auto it = Backends().find(target->kind.view());
  if (it == Backends().end()) throw InternalError("target kind `" + target->kind.str() + "` has no backend");
  return it->second;
}

std::string DeviceCode(const IRModule& mod, const Target& target) {
  const Backend& backend = BackendOf(target);
  if (!backend.device_code) throw InternalError("target `" + target.str() + "` makes machine code");
  return backend.device_code(mod);
}

bool IsDeviceFormat(const std::string& format) {
  return std::any_of(Backends().begin(), Backends().end(), [&](const auto& entry) {
    const auto& formats = entry.second.formats;
    return std::find(formats.begin(), formats.end(), format) != formats.end();
  });
}

}  // namespace baton::codegen
