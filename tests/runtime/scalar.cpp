// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/error.h>
#include <baton/runtime/scalar.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace baton::runtime;

namespace {
const double kInf = std::numeric_limits<double>::infinity();
DataType F16() { return DataType::Float(16); }
}  // namespace

TEST_CASE("every code of every small type survives decoding and encoding") {
  const DataType types[] = {F16(),
                            DataType::BFloat16(),
                            DataType(kDLFloat8_e3m4, 8),
                            DataType(kDLFloat8_e4m3, 8),
                            DataType(kDLFloat8_e4m3b11fnuz, 8),
                            DataType(kDLFloat8_e4m3fn, 8),
                            DataType(kDLFloat8_e4m3fnuz, 8),
                            DataType(kDLFloat8_e5m2, 8),
                            DataType(kDLFloat8_e5m2fnuz, 8),
                            DataType(kDLFloat8_e8m0fnu, 8),
                            DataType(kDLFloat6_e2m3fn, 6),
                            DataType(kDLFloat6_e3m2fn, 6),
                            DataType(kDLFloat4_e2m1fn, 4)};
  for (DataType t : types) {
    CAPTURE(DataType2String(t));
    double previous = -1;
    for (uint32_t c = 0; c < (1u << t.bits()); ++c) {
      const double v = DecodeSmallFloat(t, c);
      if (std::isnan(v)) {
        CHECK(std::isnan(DecodeSmallFloat(t, EncodeSmallFloat(t, v))));
        continue;
      }
      CHECK(EncodeSmallFloat(t, v) == c);
      // Positive codes grow; halfway between two neighbours the even one is taken.
      if (c && c < (1u << (t.bits() - 1)) && std::isfinite(v) && t.code() != kDLFloat8_e8m0fnu) {
        CHECK(v > previous);
        const double middle = (v + previous) / 2;
        CHECK(EncodeSmallFloat(t, middle) == (c % 2 ? c - 1 : c));
        CHECK(EncodeSmallFloat(t, std::nextafter(middle, kInf)) == c);
        CHECK(EncodeSmallFloat(t, std::nextafter(middle, -kInf)) == c - 1);
      }
      previous = v;
    }
  }
}

TEST_CASE("known values, and what is too large") {
  CHECK(EncodeSmallFloat(F16(), 1.0) == 0x3c00);
  CHECK(EncodeSmallFloat(F16(), 65504) == 0x7bff);
  CHECK(EncodeSmallFloat(F16(), 65519) == 0x7bff);
  CHECK(EncodeSmallFloat(F16(), 65520) == 0x7c00);
  CHECK(EncodeSmallFloat(F16(), -1e9) == 0xfc00);
  CHECK(EncodeSmallFloat(F16(), 0x1p-24) == 1);
  CHECK(EncodeSmallFloat(F16(), 0x1p-25) == 0);
  CHECK(EncodeSmallFloat(F16(), -0.0) == 0x8000);
  CHECK(DecodeSmallFloat(DataType(kDLFloat8_e4m3fn, 8), 0x7e) == 448);
  CHECK(EncodeSmallFloat(DataType(kDLFloat8_e4m3fn, 8), 464) == 0x7e);  // a tie goes to even
  CHECK(EncodeSmallFloat(DataType(kDLFloat8_e4m3fn, 8), 465) == 0x7f);
  CHECK(DecodeSmallFloat(DataType(kDLFloat8_e5m2, 8), 0x7b) == 57344);
  CHECK(DecodeSmallFloat(DataType(kDLFloat8_e4m3fnuz, 8), 0x7f) == 240);
  CHECK(DecodeSmallFloat(DataType(kDLFloat4_e2m1fn, 4), 7) == 6);
  CHECK(EncodeSmallFloat(DataType(kDLFloat4_e2m1fn, 4), 100) == 7);
  CHECK(EncodeSmallFloat(DataType(kDLFloat8_e4m3fnuz, 8), -0.0) == 0);
  for (float f : {1.0f, 1.00390625f, 1.01171875f, 3.4e38f, 1e-40f, -2.5f}) {
    CHECK(FloatToBFloat16(f) == EncodeSmallFloat(DataType::BFloat16(), f));
  }
  CHECK(BFloat16ToFloat(0x3f80) == 1.0f);
}

TEST_CASE("elements of every type are loaded and stored") {
  char data[64] = {};
  for (DataType t : {DataType::Int(8), DataType::Int(16), DataType::Int(32), DataType::Int(64), F16(),
                     DataType::BFloat16(), DataType::Float(32), DataType::Float(64), DataType(kDLFloat8_e5m2, 8)}) {
    CAPTURE(DataType2String(t));
    StoreDouble(data, t, 2, -3);
    CHECK(LoadDouble(data, t, 2) == -3);
    CHECK(LoadInt(data, t, 2) == -3);
    StoreInt(data, t, 1, 5);
    CHECK(LoadDouble(data, t, 1) == 5);
    CHECK(LoadDouble(data, t, 2) == -3);
  }
  StoreInt(data, DataType::Int(64), 0, INT64_MAX);
  CHECK(LoadInt(data, DataType::Int(64), 0) == INT64_MAX);
  StoreDouble(data, DataType::UInt(64), 0, 18446744073709549568.0);
  CHECK(LoadDouble(data, DataType::UInt(64), 0) == 18446744073709549568.0);
  StoreDouble(data, DataType::Bool(), 0, 0.5);
  CHECK(LoadInt(data, DataType::Bool(), 0) == 1);
  StoreInt(data, DataType::Int(8), 0, 300);  // wraps
  CHECK(LoadInt(data, DataType::Int(8), 0) == 44);
  StoreDouble(data, DataType::Int(32), 0, -2.9);  // truncates
  CHECK(LoadInt(data, DataType::Int(32), 0) == -2);
  CHECK_THROWS_AS(LoadDouble(data, DataType::Float(32, 4), 0), UnsupportedError);
  CHECK_THROWS_AS(LoadInt(data, DataType(kDLComplex, 64), 0), UnsupportedError);
}
