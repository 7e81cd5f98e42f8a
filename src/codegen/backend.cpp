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

bool Backend::HasFormat(const std::string& format) const {
  return std::find(formats.begin(), formats.end(), format) != formats.end();
}

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

const Backend* BackendFor(int64_t device_type) {
  const TargetKind* kind = TargetKindFor(device_type);
  const auto it = kind ? Backends().find(kind->name) : Backends().end();
  return it == Backends().end() ? nullptr : &it->second;
}

bool IsDeviceFormat(const std::string& format) {
  return std::any_of(Backends().begin(), Backends().end(),
                     [&](const auto& entry) { return !entry.second.kind.on_host && entry.second.HasFormat(format); });
}

}  // namespace baton::codegen
