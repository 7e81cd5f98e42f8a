// SPDX-License-Identifier: Apache-2.0
// Objects with names as keys of maps: compared by identity like others, and also found by name.
#pragma once

#include <baton/runtime/map.h>
#include <baton/runtime/string.h>

#include <string_view>

namespace baton::runtime {

using NameOfObject = const String& (*)(const Object* obj);
/// From now on maps hash keys of this type by their names, which must not change. Before any is a key; four types at
/// most.
BATON_DLL void DeclareNamed(uint32_t type_index, NameOfObject name);
/// The same for a node with the field `name_hint`.
template <class N>
struct NamedNode {
  NamedNode() {
    static_assert(N::_type_final, "the index of a type says nothing of its children");
    DeclareNamed(N::RuntimeTypeIndex(),
                 [](const Object* o) -> const String& { return static_cast<const N*>(o)->name_hint; });
  }
};

/// The first entry whose key has this name, in constant time; null if there is none, or the map is. Keys are of types
/// that are declared.
BATON_DLL const MapObj::Entry* FindNamed(const MapObj* map, std::string_view name);

}  // namespace baton::runtime
