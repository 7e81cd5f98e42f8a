// SPDX-License-Identifier: Apache-2.0
// The one bounded reader of binary formats, and its writer. Little-endian on every machine.
#pragma once

#include <baton/support/export.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace baton::support {

/// Reads a span of bytes that may be hostile: each length is checked against the bytes that remain, and an error says
/// where: "model.params: 8 bytes wanted for `shape` at byte 40, 3 remain". Does not own the bytes.
class BATON_DLL ByteReader {
 public:
  /// `what` names the source in errors; it must outlive the reader.
  ByteReader(const void* data, size_t size, const char* what)
      : begin_(static_cast<const uint8_t*>(data)), size_(size), what_(what) {}

  size_t position() const { return position_; }
  size_t remaining() const { return size_ - position_; }
  const char* what() const { return what_; }

  /// An integer, enum or float; `field` names it in the error.
  template <class T>
  T Read(const char* field) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    T value;
    std::memcpy(&value, Take(sizeof(T), field), sizeof(T));
    if constexpr (std::endian::native == std::endian::big && sizeof(T) > 1) {
      unsigned char* p = reinterpret_cast<unsigned char*>(&value);
      for (size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(p[i], p[sizeof(T) - 1 - i]);
    }
    return value;
  }
  /// A count of things that take at least `each` bytes: refused if they cannot fit into what remains.
  uint64_t ReadCount(size_t each, const char* field);
  /// `size` bytes in place; the view lives as long as the source.
  const uint8_t* ReadBytes(uint64_t size, const char* field) { return Take(size, field); }
  /// A 64-bit length, then so many bytes.
  std::string_view ReadString(const char* field);
  void Skip(uint64_t size, const char* field) { Take(size, field); }
  /// Refuses bytes after the end of the format.
  void ExpectEnd();
  /// Throws "<what>: <message> at byte <position>".
  [[noreturn]] void Fail(const std::string& message) const;

 private:
  const uint8_t* Take(uint64_t size, const char* field) {
    if (size > remaining()) [[unlikely]] {
      FailShort(size, field);
    }
    const uint8_t* p = begin_ + position_;
    position_ += static_cast<size_t>(size);
    return p;
  }
  [[noreturn]] void FailShort(uint64_t size, const char* field) const;

  const uint8_t* begin_;
  size_t size_;
  size_t position_ = 0;
  const char* what_;
};

/// Appends to a string of bytes.
class ByteWriter {
 public:
  template <class T>
  void Write(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    if constexpr (std::endian::native == std::endian::big) {
      for (size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(bytes[i], bytes[sizeof(T) - 1 - i]);
    }
    out_.append(bytes, sizeof(T));
  }
  void WriteBytes(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }
  /// A 64-bit length, then the bytes.
  void WriteString(std::string_view s) {
    Write<uint64_t>(s.size());
    out_.append(s.data(), s.size());
  }
  /// Zeros up to the next multiple of `alignment`.
  void Align(size_t alignment) { out_.append((alignment - out_.size() % alignment) % alignment, '\0'); }

  const std::string& bytes() const { return out_; }
  std::string Take() { return std::move(out_); }
  size_t size() const { return out_.size(); }

 private:
  std::string out_;
};

/// `a * b`, or false when it does not fit into 64 bits (or an operand is negative).
inline bool CheckedMul(int64_t a, int64_t b, int64_t* out) {
  return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

}  // namespace baton::support
