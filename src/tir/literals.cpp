// SPDX-License-Identifier: Apache-2.0
#include "tir/literals.h"

#include <fmt/format.h>

namespace baton {
namespace {
using literals::Fail;
using literals::FloatLit;
using literals::IntLit;
using literals::Wrap;
}  // namespace

namespace {
PrimExpr Extreme(DataType t, bool high, bool infinite) {
  DataType e = t.element_of();
  PrimExpr v;
  if (e.is_bool()) {
    v = IntLit(e, high);
  } else if (e.is_uint()) {
    if (!high) {
      v = IntLit(e, 0);
    } else if (e.bits() == 64) {
      v = bitwise_not(IntLit(e, 0));
    } else {
      v = IntLit(e, static_cast<int64_t>((uint64_t{1} << e.bits()) - 1));
    }
  } else if (e.is_int()) {
    int64_t top = static_cast<int64_t>((uint64_t{1} << (e.bits() - 1)) - 1);
    v = IntLit(e, high ? top : -top - 1);
  } else {
    double m;
    if (infinite) {
      m = std::numeric_limits<double>::infinity();
    } else if (e.is_bfloat16()) {
      m = std::ldexp(255.0 / 128, 127);
    } else if (e.is_float() && e.bits() == 16) {
      m = 65504;
    } else if (e.is_float() && e.bits() == 32) {
      m = std::numeric_limits<float>::max();
    } else if (e.is_float() && e.bits() == 64) {
      m = std::numeric_limits<double>::max();
    } else {
      Fail(fmt::format("no largest value of {} here", DataType2String(e)));
    }
    v = FloatLit(e, high ? m : -m);
  }
  return tir::broadcast_to(v, t.lanes());
}
}  // namespace
PrimExpr min_value(DataType t) { return Extreme(t, false, false); }
PrimExpr max_value(DataType t) { return Extreme(t, true, false); }
PrimExpr lowest(DataType t) { return Extreme(t, false, true); }
PrimExpr highest(DataType t) { return Extreme(t, true, true); }

namespace tir {
PrimExpr make_const(DataType t, double value) {
  DataType e = t.element_of();
  PrimExpr v;
  if (e.is_floating()) {
    v = FloatLit(e, value);
  } else {
    if (!(value >= -9.3e18 && value <= 9.3e18) || std::trunc(value) != value) {
      Fail(fmt::format("{} is no value of {}", value, DataType2String(e)));
    }
    return make_int(t, static_cast<int64_t>(value));
  }
  return broadcast_to(v, t.lanes());
}
PrimExpr make_int(DataType t, int64_t value) {
  DataType e = t.element_of();
  PrimExpr v;
  if (e.is_floating()) {
    v = FloatLit(e, static_cast<double>(value));
  } else if (e.is_integral() || e.is_bool()) {
    auto w = Wrap(e, value);
    if (!w || (*w != value && !e.is_bool()))
      Fail(fmt::format("{} is outside the range of {}", value, DataType2String(e)));
    v = IntLit(e, *w);
  } else {
    Fail(fmt::format("no literals of {}", DataType2String(e)));
  }
  return broadcast_to(v, t.lanes());
}
const int64_t* as_const_int(const PrimExpr& e) {
  const auto* i = e.as<IntImmNode>();
  return i ? &i->value : nullptr;
}
bool is_const_int(const PrimExpr& e, int64_t value) {
  const int64_t* i = as_const_int(e);
  return i && *i == value;
}
bool is_zero(const PrimExpr& e) {
  if (const auto* f = e.as<FloatImmNode>()) return f->value == 0;
  return is_const_int(e, 0);
}
bool is_one(const PrimExpr& e) {
  if (const auto* f = e.as<FloatImmNode>()) return f->value == 1;
  return is_const_int(e, 1);
}
PrimExpr broadcast_to(PrimExpr e, int lanes) {
  if (e.dtype().lanes() == lanes) return e;
  return Broadcast(std::move(e), lanes);
}
}  // namespace tir
}  // namespace baton
