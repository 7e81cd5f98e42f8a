// SPDX-License-Identifier: Apache-2.0
// Data types that every module has without defining them.
#pragma once

#include <baton/ir/type.h>

#include <string_view>

namespace baton::relay {

/// The type of what `memory.alloc_storage` gives. Texts say `Storage[]`.
Type StorageType();
/// The type of a value that functions of the host make and take, other than a tensor. Texts say `HostValue`.
Type HostValueType();
/// True for the name of such a type.
bool IsBuiltinType(std::string_view name);

}  // namespace baton::relay
