// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format: numbers, byte strings and messages. Every length is checked.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader.h"

namespace baton::onnx {

enum Wire : int { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// A run of bytes still to be read; always within the input.
struct In {
  const uint8_t* at;
  const uint8_t* end;
  size_t left() const { return static_cast<size_t>(end - at); }
  bool empty() const { return at == end; }
};

/// Reads fields of messages; errors name the byte and the path of fields that leads to it.
class WireReader {
 public:
  WireReader(std::string_view text, std::string label)
      : base_(reinterpret_cast<const uint8_t*>(text.data())),
        size_(text.size()),
        label_(std::move(label)),
        budget_(64 * static_cast<uint64_t>(text.size()) + (uint64_t{64} << 20)) {}

 protected:
  struct Frame {
    const char* field;
    int64_t index;
    const std::string_view* name;
    Frame* parent;
  };

  [[noreturn]] void Fail(const uint8_t* at, const std::string& what) const;

  void Charge(const uint8_t* at, uint64_t bytes) {
    if (bytes > budget_) Fail(at, "the model asks for more memory than 64 times its size; it is damaged or hostile");
    budget_ -= bytes;
  }

  uint64_t Varint(In* in);

  In Sized(In* in);

  template <typename T>
  T Fixed(In* in) {
    if (in->left() < sizeof(T)) Fail(in->at, "the data ends within a number; the file is truncated");
    T value;
    std::memcpy(&value, in->at, sizeof(T));
    in->at += sizeof(T);
    return value;
  }

  void Expect(const In& in, int wire, Wire expected) const;

  std::string_view Raw(In* in, int wire);
  std::string_view Str(In* in, int wire);
  int64_t Int(In* in, int wire) {
    Expect(*in, wire, kVarint);
    return static_cast<int64_t>(Varint(in));
  }
  int32_t Int32(In* in, int wire) { return static_cast<int32_t>(Int(in, wire)); }

  template <typename T>
  T& Append(const In& in, std::vector<T>* to) {
    Charge(in.at, 2 * sizeof(T));
    return to->emplace_back();
  }

  void Strs(In* in, int wire, std::vector<std::string_view>* to) {
    std::string_view s = Str(in, wire);
    Append(*in, to) = s;
  }
  void Ints(In* in, int wire, std::vector<int64_t>* to);
  void Floats(In* in, int wire, std::vector<float>* to);

  void Skip(In* in, int wire);

  /// Reads the fields of one message: `on_field(number, wire, in)` consumes a field and returns true, or returns false
  /// to have it skipped (protobuf's rule for fields unknown).
  template <typename OnField>
  void Message(In in, const char* field, int64_t index, const std::string_view* name, OnField&& on_field) {
    Frame frame{field, index, name, top_};
    if (++depth_ > kMaxNesting) {
      top_ = &frame;
      Fail(in.at, "messages nest deeper than " + std::to_string(kMaxNesting) + "; the file is damaged or hostile");
    }
    top_ = &frame;
    while (!in.empty()) {
      const uint8_t* at = in.at;
      uint64_t tag = Varint(&in);
      int wire = static_cast<int>(tag & 7);
      uint64_t number = tag >> 3;
      if (number == 0 || number > 0x1fffffff) {
        Fail(at, "field number " + std::to_string(number) + " is impossible; the file is damaged or no ONNX model");
      }
      if (!on_field(static_cast<int>(number), wire, &in)) Skip(&in, wire);
    }
    top_ = frame.parent;
    --depth_;
  }

  template <typename T, typename Read>
  void Repeat(In* in, int wire, std::vector<T>* to, Read&& read) {
    Expect(*in, wire, kBytes);
    In sub = Sized(in);
    Append(*in, to);
    read(sub, &to->back(), static_cast<int64_t>(to->size()) - 1);
  }

  const uint8_t* base_;
  size_t size_;
  std::string label_;
  uint64_t budget_;  // bytes that may still be allocated
  Frame* top_ = nullptr;
  int depth_ = 0;
};

}  // namespace baton::onnx
