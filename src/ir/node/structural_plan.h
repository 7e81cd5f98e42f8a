// SPDX-License-Identifier: Apache-2.0
// Per-type data for equality and hash, computed once from the field table, and names of values for messages.
#pragma once

#include <baton/ir/attrs.h>
#include <baton/runtime/array.h>
#include <baton/runtime/map.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/reflection.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace baton::structural {

using runtime::ArrayObj;
using runtime::FieldInfo;
using runtime::FieldKind;
using runtime::MapObj;
using runtime::NDArrayObj;
using runtime::StringObj;
using runtime::TypeIndex;
using runtime::TypeInfo;

enum class Shape : uint8_t { kTable, kString, kArray, kMap, kNDArray, kModule, kIdentity };

struct Field {
  uint32_t offset;
  FieldKind kind;
  const char* name;
};
/// Data of one type, computed once from its field table.
struct Plan {
  Shape shape = Shape::kIdentity;
  bool graph = false;  ///< compared as a node of a graph
  bool is_var = false;
  bool leaf = true;          ///< no fields that are objects
  bool tuple = false;        ///< the unit value is not a node of a graph
  bool by_name = false;      ///< as a key of a map: by `name_hint`
  bool keeps_level = false;  ///< a pattern binds for what comes after it
  /// The type of the variable that it binds follows from a value: one that is written down equals one that was
  /// inferred.
  bool infers_var = false;
  bool type_data = false;  ///< compares the fields of its constructors, whose variables it binds
  bool is_id = false;      ///< the identity of a variable, by which maps may name it
  bool has_id = false;     ///< a variable whose identity is a separate object, at `id`
  Field id{};
  std::vector<Field> binds;
  std::vector<Field> fields;
  uint64_t seed = 0;
};

/// Plans by type index, made when first asked for; they live as long as the process. Reading one takes no lock.
inline constexpr uint32_t kMaxTypes = 1 << 16;
extern std::atomic<const Plan*> plans[kMaxTypes];
const Plan& NewPlan(uint32_t index);

inline const Plan& PlanOf(const Object* o) {
  const uint32_t index = o->type_index();
  const Plan* p = index < kMaxTypes ? plans[index].load(std::memory_order_acquire) : nullptr;
  return p ? *p : NewPlan(index);
}

inline const char* At(const Object* o, const Field& f) { return reinterpret_cast<const char*>(o) + f.offset; }
inline const Object* RefAt(const Object* o, const Field& f) {
  return f.kind == FieldKind::kObject ? reinterpret_cast<const ObjectRef*>(At(o, f))->get() : nullptr;
}

inline uint64_t DoubleBits(double v) {
  if (std::isnan(v)) return 0x7ff8000000000000u;
  uint64_t bits;
  std::memcpy(&bits, &v, 8);
  return bits;
}

/// Null and empty containers are the same value.
inline bool IsNothing(const Object* o) {
  if (!o) return true;
  switch (o->type_index()) {
    case TypeIndex::kRuntimeArray:
      return static_cast<const ArrayObj*>(o)->items.empty();
    case TypeIndex::kRuntimeMap:
      return static_cast<const MapObj*>(o)->entries.empty();
    default:
      return o->IsInstance<DictAttrsNode>() && static_cast<const DictAttrsNode*>(o)->dict.empty();
  }
}

/// The hash of a GlobalVar or GlobalTypeVar.
std::string_view NameOf(const Object* o);
/// Name of a variable; its own, or its identity's.
std::string_view VarName(const Object* o);
/// A value in a few words.
std::string Brief(const Object* o);
std::string ScalarText(const char* p, FieldKind kind);
std::string AnyText(const Any& a);

/// Within other values, an object without structural equality is compared by identity; at the root it is an error.
void Require(const Object* o, const char* what);

}  // namespace baton::structural
