// SPDX-License-Identifier: Apache-2.0
#include <baton/support/bytes.h>
#include <doctest/doctest.h>

#include <stdexcept>

using baton::support::ByteReader;
using baton::support::ByteWriter;

namespace {
template <class F>
std::string ErrorOfBytes(F f) {
  try {
    f();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}
}  // namespace

TEST_CASE("what the writer writes the reader reads") {
  ByteWriter w;
  w.Write<uint8_t>(7);
  w.Write<int32_t>(-5);
  w.Write<double>(1.5);
  w.WriteString("name");
  w.Align(64);
  CHECK(w.size() == 64);
  ByteReader r(w.bytes().data(), w.size(), "memory");
  CHECK(r.Read<uint8_t>("a") == 7);
  CHECK(r.Read<int32_t>("b") == -5);
  CHECK(r.Read<double>("c") == 1.5);
  CHECK(r.ReadString("d") == "name");
  r.Skip(64 - r.position(), "padding");
  r.ExpectEnd();
  CHECK(w.bytes()[1] == char(-5));  // little-endian
}

TEST_CASE("no length is believed beyond the bytes that remain") {
  ByteWriter w;
  w.WriteString("abc");
  for (size_t cut = 0; cut < w.size(); ++cut) {
    const std::string copy = w.bytes().substr(0, cut);
    ByteReader r(copy.data(), copy.size(), "cut.bin");
    CHECK(ErrorOfBytes([&] { r.ReadString("name"); }).find("cut.bin: ") == 0);
  }
  ByteWriter huge;
  huge.Write<uint64_t>(~0ull);
  huge.Write<uint64_t>(0);
  ByteReader a(huge.bytes().data(), huge.size(), "x");
  CHECK(ErrorOfBytes([&] { a.ReadString("s"); }) ==
        "x: `s` is 18446744073709551615, more than the rest of the file can hold at byte 0");
  ByteReader b(huge.bytes().data(), huge.size(), "x");
  CHECK(ErrorOfBytes([&] { b.ReadBytes(~0ull, "s"); }).find("16 remain") != std::string::npos);
  huge = ByteWriter();
  huge.Write<uint64_t>(2);
  huge.Write<uint64_t>(0);
  ByteReader c(huge.bytes().data(), huge.size(), "x");
  CHECK(ErrorOfBytes([&] { c.ReadCount(8, "n"); }) != "");  // two of 8 bytes do not fit into 8
  CHECK(c.ReadCount(4, "n") == 2);
  CHECK(ErrorOfBytes([&] { c.ExpectEnd(); }) == "x: 8 bytes follow the end of the data at byte 8");
}

TEST_CASE("products of shapes are checked") {
  int64_t n = 0;
  CHECK(baton::support::CheckedMul(1ll << 31, 1ll << 31, &n));
  CHECK(n == 1ll << 62);
  CHECK_FALSE(baton::support::CheckedMul(1ll << 32, 1ll << 32, &n));
  CHECK_FALSE(baton::support::CheckedMul(-1, 1, &n));
}
