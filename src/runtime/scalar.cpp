// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/error.h>
#include <baton/runtime/scalar.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace baton::runtime {
namespace {

enum Special : uint8_t {
  kIeee,       // infinities and NaNs at the top exponent
  kNanOnly,    // all ones is NaN, there is no infinity
  kUnsigned0,  // the bits of -0 are the only NaN
  kFinite,     // neither
  kPower,      // exponent only, no sign; all ones is NaN
};

struct Format {
  uint8_t code, bits, exponent, mantissa;
  uint8_t bias;
  Special special;
};

constexpr Format kFormats[] = {
    {kDLFloat, 16, 5, 10, 15, kIeee},
    {kDLBfloat, 16, 8, 7, 127, kIeee},
    {kDLFloat8_e3m4, 8, 3, 4, 3, kIeee},
    {kDLFloat8_e4m3, 8, 4, 3, 7, kIeee},
    {kDLFloat8_e4m3b11fnuz, 8, 4, 3, 11, kUnsigned0},
    {kDLFloat8_e4m3fn, 8, 4, 3, 7, kNanOnly},
    {kDLFloat8_e4m3fnuz, 8, 4, 3, 8, kUnsigned0},
    {kDLFloat8_e5m2, 8, 5, 2, 15, kIeee},
    {kDLFloat8_e5m2fnuz, 8, 5, 2, 16, kUnsigned0},
    {kDLFloat8_e8m0fnu, 8, 8, 0, 127, kPower},
    {kDLFloat6_e2m3fn, 6, 2, 3, 1, kFinite},
    {kDLFloat6_e3m2fn, 6, 3, 2, 3, kFinite},
    {kDLFloat4_e2m1fn, 4, 2, 1, 1, kFinite},
};

const Format* FormatOf(DataType t) {
  for (const Format& f : kFormats) {
    if (f.code == t.code() && f.bits == t.bits()) return &f;
  }
  return nullptr;
}

[[noreturn]] void ThrowType(DataType t) {
  throw UnsupportedError("elements of type " + DataType2String(t) + " cannot be read or written one by one");
}

template <class T>
T At(const void* data, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}
template <class T>
void Put(void* data, int64_t i, T v) {
  std::memcpy(static_cast<char*>(data) + i * static_cast<int64_t>(sizeof(T)), &v, sizeof(T));
}

/// Truncation that is defined for every double; modulo 2^64 is not wanted from a float, so it saturates.
int64_t Truncate(double v) {
  if (!(v == v)) return 0;
  if (v >= 9223372036854775808.0) return std::numeric_limits<int64_t>::max();
  if (v < -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(v);
}

}  // namespace

double DecodeSmallFloat(DataType t, uint32_t bits) {
  const Format* f = FormatOf(t.element_of());
  if (!f) ThrowType(t);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (f->special == kPower) return bits == 255 ? nan : std::ldexp(1.0, static_cast<int>(bits) - f->bias);
  const uint32_t e = bits >> f->mantissa & ((1u << f->exponent) - 1), m = bits & ((1u << f->mantissa) - 1);
  const uint32_t sign = bits >> (f->exponent + f->mantissa) & 1;
  const bool top = e == (1u << f->exponent) - 1;
  double v;
  if (f->special == kUnsigned0 && sign && !e && !m) return nan;
  if (f->special == kIeee && top) {
    v = m ? nan : std::numeric_limits<double>::infinity();
  } else if (f->special == kNanOnly && top && m == (1u << f->mantissa) - 1) {
    v = nan;
  } else if (e == 0) {
    v = std::ldexp(static_cast<double>(m), 1 - f->bias - f->mantissa);
  } else {
    v = std::ldexp(static_cast<double>(m | 1u << f->mantissa), static_cast<int>(e) - f->bias - f->mantissa);
  }
  return sign ? -v : v;
}

uint32_t EncodeSmallFloat(DataType t, double value) {
  const Format* f = FormatOf(t.element_of());
  if (!f) ThrowType(t);
  const bool negative = std::signbit(value);
  const uint32_t all = (1u << (f->exponent + f->mantissa)) - 1;  // every bit but the sign
  uint32_t sign = negative ? all + 1 : 0;
  if (f->special == kPower) {
    // Only positive powers of two: the nearest one, the larger of two that are as near.
    if (!(value > 0)) return value == 0 ? 0 : 255;
    if (std::isinf(value)) return 255;
    int k;
    const double half = std::frexp(value, &k);
    const int e = k - 1 + f->bias + (half >= 0.75);
    return e < 0 ? 0 : e > 254 ? 255 : static_cast<uint32_t>(e);
  }
  const uint32_t infinity = all & ~((1u << f->mantissa) - 1);
  uint32_t max = f->special == kIeee ? infinity - 1 : f->special == kNanOnly ? all - 1 : all;
  const auto nan = [&]() -> uint32_t {
    switch (f->special) {
      case kIeee:
        return sign | infinity | 1u << (f->mantissa - 1);
      case kNanOnly:
        return sign | all;
      case kUnsigned0:
        return all + 1;
      default:
        return sign | max;
    }
  };
  const auto large = [&]() -> uint32_t { return f->special == kIeee ? sign | infinity : nan(); };
  if (std::isnan(value)) return nan();
  if (std::isinf(value)) return large();
  const double a = std::fabs(value);
  int k = 0;
  if (a != 0) std::frexp(a, &k);
  int e = k - 1 + f->bias;
  if (a == 0 || e < 1) e = 1;  // subnormals share the quantum of the smallest normal exponent
  // Exact scaling, then one rounding to an integer, ties to even.
  const double scaled = std::ldexp(a, f->bias + f->mantissa - e);
  double r = std::floor(scaled);
  const double rest = scaled - r;
  if (rest > 0.5 || (rest == 0.5 && std::fmod(r, 2.0) == 1.0)) r += 1;
  // A carry out of the mantissa propagates into the exponent.
  const double code = (e - 1) * std::ldexp(1.0, f->mantissa) + r;
  if (code > max) return large();
  if (f->special == kUnsigned0 && code == 0) sign = 0;
  return sign | static_cast<uint32_t>(code);
}

bool IsLoadable(DataType t) {
  if (t.lanes() != 1) return false;
  if (t.is_int() || t.is_uint()) return t.bits() == 8 || t.bits() == 16 || t.bits() == 32 || t.bits() == 64;
  if (t.is_bool()) return t.bits() == 8;
  if (t.is_float() && (t.bits() == 32 || t.bits() == 64)) return true;
  return FormatOf(t) && (t.bits() == 16 || t.bits() == 8);
}

double LoadDouble(const void* data, DataType t, int64_t i) {
  if (!IsLoadable(t)) ThrowType(t);
  if (t.is_float() && t.bits() == 32) return At<float>(data, i);
  if (t.is_float() && t.bits() == 64) return At<double>(data, i);
  if (t.is_uint() && t.bits() == 64) return static_cast<double>(At<uint64_t>(data, i));
  if (t.is_integral() || t.is_bool()) return static_cast<double>(LoadInt(data, t, i));
  return DecodeSmallFloat(t, t.bits() == 16 ? At<uint16_t>(data, i) : At<uint8_t>(data, i));
}

int64_t LoadInt(const void* data, DataType t, int64_t i) {
  if (!IsLoadable(t)) ThrowType(t);
  if (t.is_bool()) return At<uint8_t>(data, i) != 0;
  if (t.is_int()) {
    switch (t.bits()) {
      case 8:
        return At<int8_t>(data, i);
      case 16:
        return At<int16_t>(data, i);
      case 32:
        return At<int32_t>(data, i);
      default:
        return At<int64_t>(data, i);
    }
  }
  if (t.is_uint()) {
    switch (t.bits()) {
      case 8:
        return At<uint8_t>(data, i);
      case 16:
        return At<uint16_t>(data, i);
      case 32:
        return At<uint32_t>(data, i);
      default:
        return static_cast<int64_t>(At<uint64_t>(data, i));
    }
  }
  return Truncate(LoadDouble(data, t, i));
}

void StoreDouble(void* data, DataType t, int64_t i, double v) {
  if (!IsLoadable(t)) ThrowType(t);
  if (t.is_float() && t.bits() == 32) return Put(data, i, static_cast<float>(v));
  if (t.is_float() && t.bits() == 64) return Put(data, i, v);
  if (t.is_bool()) return Put<uint8_t>(data, i, v != 0);
  if (t.is_uint() && t.bits() == 64 && v >= 9223372036854775808.0) {
    return Put<uint64_t>(data, i, v >= 18446744073709551616.0 ? ~uint64_t(0) : static_cast<uint64_t>(v));
  }
  if (t.is_integral()) return StoreInt(data, t, i, Truncate(v));
  const uint32_t bits = EncodeSmallFloat(t, v);
  t.bits() == 16 ? Put(data, i, static_cast<uint16_t>(bits)) : Put(data, i, static_cast<uint8_t>(bits));
}

void StoreInt(void* data, DataType t, int64_t i, int64_t v) {
  if (!IsLoadable(t)) ThrowType(t);
  if (t.is_bool()) return Put<uint8_t>(data, i, v != 0);
  if (t.is_integral()) {
    switch (t.bits()) {
      case 8:
        return Put(data, i, static_cast<uint8_t>(v));
      case 16:
        return Put(data, i, static_cast<uint16_t>(v));
      case 32:
        return Put(data, i, static_cast<uint32_t>(v));
      default:
        return Put(data, i, static_cast<uint64_t>(v));
    }
  }
  // One rounding: not through a double.
  if (t.is_float() && t.bits() == 32) return Put(data, i, static_cast<float>(v));
  StoreDouble(data, t, i, static_cast<double>(v));
}

}  // namespace baton::runtime
