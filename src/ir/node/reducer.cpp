// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/reducer.h>
#include <baton/ir/structural.h>
#include <baton/support/hash.h>

#include <cmath>
#include <cstring>

namespace baton {
namespace {

using runtime::FieldInfo;
using runtime::FieldKind;
using runtime::TypeInfo;

uint64_t Bits(double v) {
  if (std::isnan(v)) return 0x7ff8000000000000u;
  uint64_t bits;
  std::memcpy(&bits, &v, 8);
  return bits;
}

/// Calls f(x, y) with the field of each of two objects, as what it is.
template <class F>
void ForFieldType(const FieldInfo& f, const Object* a, const Object* b, F fn) {
  const char *x = reinterpret_cast<const char*>(a) + f.offset, *y = reinterpret_cast<const char*>(b) + f.offset;
  auto as = [&]<class T>(T*) { fn(*reinterpret_cast<const T*>(x), *reinterpret_cast<const T*>(y)); };
  switch (f.kind) {
    case FieldKind::kBool:
      return as(static_cast<bool*>(nullptr));
    case FieldKind::kInt32:
      return as(static_cast<int*>(nullptr));
    case FieldKind::kInt64:
      return as(static_cast<int64_t*>(nullptr));
    case FieldKind::kUInt64:
    case FieldKind::kHandle:
      return as(static_cast<uint64_t*>(nullptr));
    case FieldKind::kDouble:
      return as(static_cast<double*>(nullptr));
    case FieldKind::kDataType:
      return as(static_cast<DataType*>(nullptr));
    case FieldKind::kStdString:
      return as(static_cast<std::string*>(nullptr));
    case FieldKind::kObject:
      return as(static_cast<ObjectRef*>(nullptr));
  }
}

}  // namespace

bool SEqualReducer::operator()(double a, double b) const { return Bits(a) == Bits(b); }
bool SEqualReducer::operator()(const ObjectRef& a, const ObjectRef& b) const {
  return StructuralEqual(a, b, map_free_vars_);
}
bool SEqualReducer::Fields(const Object* a, const Object* b) const {
  if (a->type_index() != b->type_index()) return false;
  const TypeInfo* info = TypeInfo::Get(a->type_index());
  bool same = info || a == b;
  for (size_t i = 0; info && same && i < info->fields.size(); ++i) {
    if (info->fields[i].flags & kIgnored) continue;
    ForFieldType(info->fields[i], a, b, [&](const auto& x, const auto& y) { same = (*this)(x, y); });
  }
  return same;
}

void SHashReducer::Mix(uint64_t x) const { *hash_ = support::HashCombine(*hash_, x); }
void SHashReducer::operator()(double x) const { Mix(Bits(x)); }
void SHashReducer::operator()(const std::string& x) const { Mix(support::HashString(x, 11)); }
void SHashReducer::operator()(const DataType& x) const {
  Mix((uint64_t(x.code()) << 32) | (uint64_t(x.bits()) << 16) | static_cast<uint64_t>(x.lanes()));
}
void SHashReducer::operator()(const ObjectRef& x) const { Mix(StructuralHash(x, map_free_vars_)); }
void SHashReducer::Fields(const Object* obj) const {
  const TypeInfo* info = TypeInfo::Get(obj->type_index());
  for (size_t i = 0; info && i < info->fields.size(); ++i) {
    if (info->fields[i].flags & kIgnored) continue;
    ForFieldType(info->fields[i], obj, obj, [&](const auto& x, const auto&) { (*this)(x); });
  }
}

}  // namespace baton
