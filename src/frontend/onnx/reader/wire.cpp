// SPDX-License-Identifier: Apache-2.0
#include "wire.h"

namespace baton::onnx {
namespace {

bool ValidUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
    unsigned char c = byte(i);
    if (c < 0x80) {
      ++i;
      continue;
    }
    size_t n = c >= 0xf0 && c <= 0xf4 ? 3 : c >= 0xe0 ? 2 : c >= 0xc2 ? 1 : 0;
    if (n == 0 || c > 0xf4 || text.size() - i <= n) return false;
    uint32_t code = c & (0x3f >> n);
    for (size_t k = 1; k <= n; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
      code = code << 6 | (byte(i + k) & 0x3f);
    }
    static constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (code < kLeast[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return false;
    i += n + 1;
  }
  return true;
}

}  // namespace

[[noreturn]] void WireReader::Fail(const uint8_t* at, const std::string& what) const {
  std::string path;
  for (const Frame* f = top_; f != nullptr; f = f->parent) {
    std::string part = f->field;
    if (f->index >= 0) part += "[" + std::to_string(f->index) + "]";
    if (f->name != nullptr && !f->name->empty()) part += " (" + Printable(*f->name, 60) + ")";
    path = path.empty() ? part : part + "." + path;
  }
  Throw("`" + Printable(label_, 400) + "`: byte " + std::to_string(at - base_) + (path.empty() ? "" : ", in " + path) +
        ": " + what);
}

uint64_t WireReader::Varint(In* in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (in->empty()) Fail(in->at, "the data ends within a number; the file is truncated");
    uint8_t byte = *in->at++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  Fail(in->at, "a number is longer than ten bytes; the file is damaged");
}

In WireReader::Sized(In* in) {
  const uint8_t* at = in->at;
  uint64_t n = Varint(in);
  if (n > in->left()) {
    Fail(at, "a field of " + std::to_string(n) + " bytes begins where " + std::to_string(in->left()) +
                 " remain; the file is truncated or damaged");
  }
  In sub{in->at, in->at + n};
  in->at += n;
  return sub;
}

void WireReader::Expect(const In& in, int wire, Wire expected) const {
  if (wire != expected) {
    Fail(in.at, "a field has wire type " + std::to_string(wire) + " where the schema has " + std::to_string(expected) +
                    "; the file is damaged or no ONNX model");
  }
}

std::string_view WireReader::Raw(In* in, int wire) {
  Expect(*in, wire, kBytes);
  In sub = Sized(in);
  return {reinterpret_cast<const char*>(sub.at), sub.left()};
}

std::string_view WireReader::Str(In* in, int wire) {
  const uint8_t* at = in->at;
  std::string_view s = Raw(in, wire);
  if (!ValidUtf8(s)) Fail(at, "the name `" + Printable(s, 60) + "` is not UTF-8");
  return s;
}

void WireReader::Ints(In* in, int wire, std::vector<int64_t>* to) {
  if (wire == kVarint) {
    Append(*in, to) = Int(in, wire);
    return;
  }
  Expect(*in, wire, kBytes);
  In sub = Sized(in);
  while (!sub.empty()) {
    Append(sub, to);
    to->back() = static_cast<int64_t>(Varint(&sub));
  }
}

void WireReader::Floats(In* in, int wire, std::vector<float>* to) {
  if (wire == kFixed32) {
    Append(*in, to) = Fixed<float>(in);
    return;
  }
  Expect(*in, wire, kBytes);
  In sub = Sized(in);
  if (sub.left() % 4 != 0) Fail(sub.at, "packed floats do not fill whole numbers; the file is damaged");
  while (!sub.empty()) Append(sub, to) = Fixed<float>(&sub);
}

void WireReader::Skip(In* in, int wire) {
  switch (wire) {
    case kVarint:
      Varint(in);
      return;
    case kFixed64:
      Fixed<uint64_t>(in);
      return;
    case kBytes:
      Sized(in);
      return;
    case kFixed32:
      Fixed<uint32_t>(in);
      return;
    default:
      Fail(in->at, "wire type " + std::to_string(wire) + " occurs in no ONNX model; the file is damaged or foreign");
  }
}

}  // namespace baton::onnx
