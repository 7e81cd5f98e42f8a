// SPDX-License-Identifier: Apache-2.0
// Literals of a dtype, and operands brought to one dtype: what the operators, casts and intrinsics share.
#pragma once

#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

namespace baton::literals {

/// \throws TypeError
[[noreturn]] void Fail(const std::string& message);
inline std::string TypeName(const PrimExpr& e) { return e.defined() ? DataType2String(e.dtype()) : "null"; }
/// The value as dtype holds it after wrapping; nothing if a literal cannot hold it.
inline std::optional<int64_t> Wrap(DataType t, __int128 v) {
  int bits = t.is_bool() ? 1 : t.bits();
  if (t.is_bool()) return v != 0;
  unsigned __int128 mask = (static_cast<unsigned __int128>(1) << bits) - 1;
  unsigned __int128 u = static_cast<unsigned __int128>(v) & mask;
  if (t.is_uint()) {
    if (u > static_cast<unsigned __int128>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(u);
  }
  if (bits == 64) return static_cast<int64_t>(static_cast<uint64_t>(u));
  int64_t s = static_cast<int64_t>(static_cast<uint64_t>(u));
  if (s >> (bits - 1)) s -= static_cast<int64_t>(1) << bits;
  return s;
}
inline PrimExpr IntLit(DataType t, int64_t v) {
  IntImmNode n;
  n.dtype = t, n.value = v;
  return IntImm(std::move(n));
}
/// A double rounded to what the floating dtype holds; float8 and float4 stay as they are.
inline double RoundTo(DataType t, double v) {
  if (t.is_float() && t.bits() == 32) return static_cast<double>(static_cast<float>(v));
  if (t.is_float() && t.bits() == 16) return static_cast<double>(static_cast<_Float16>(v));
  if (t.is_bfloat16()) {
    float f = static_cast<float>(v);
    if (std::isnan(f)) return f;
    uint32_t u;
    std::memcpy(&u, &f, 4);
    u = (u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000u;
    std::memcpy(&f, &u, 4);
    return f;
  }
  return v;
}
inline PrimExpr FloatLit(DataType t, double v) {
  FloatImmNode n;
  n.dtype = t, n.value = RoundTo(t, v);
  return FloatImm(std::move(n));
}
inline const IntImmNode* AsInt(const PrimExpr& e) { return e.as<IntImmNode>(); }
inline const FloatImmNode* AsFloat(const PrimExpr& e) { return e.as<FloatImmNode>(); }
/// A literal, or a broadcast one; null otherwise.
inline PrimExpr Literal(const PrimExpr& e) {
  if (AsInt(e) || AsFloat(e)) return e;
  if (const auto* b = e.as<tir::BroadcastNode>()) return AsInt(b->value) || AsFloat(b->value) ? b->value : PrimExpr();
  return PrimExpr();
}
inline int Rank(DataType t) {  // how dtypes win when operands differ
  if (t.is_bool()) return 0;
  if (t.is_integral()) return 1;
  return 2;
}
/// Brings operands to one dtype and number of lanes. \throws TypeError where that would lose something.
void Match(const char* name, PrimExpr* a, PrimExpr* b);

}  // namespace baton::literals
