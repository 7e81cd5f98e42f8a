// SPDX-License-Identifier: Apache-2.0
#include "codegen/cache/entry.h"

#include <baton/support/bytes.h>
#include <baton/support/sha256.h>

#include <cstring>
#include <exception>

namespace baton::codegen::cache {
namespace {

constexpr std::string_view kMagic = "BATONKC\n";
constexpr uint32_t kFormat = 1;
constexpr size_t kDigest = std::tuple_size_v<support::Sha256::Digest>;
constexpr std::string_view kSuffix = ".kernel";
constexpr size_t kShort = 16, kLong = 32;  // hexadecimal digits of the parts of a name

std::string Part(std::string_view text, size_t digits) { return support::Sha256Hex(text).substr(0, digits); }

}  // namespace

std::string Unit::Name() const {
  std::string name = Part(functions, kShort);
  name += "-" + Part(target, kShort) + "-" + Part(build, kShort) + "-" + Part(code, kLong);
  return name.append(kSuffix);
}

std::optional<NameParts> PartsOf(std::string_view name) {
  if (name.size() != 3 * (kShort + 1) + kLong + kSuffix.size() || !name.ends_with(kSuffix)) return {};
  const std::string_view digits = name.substr(0, name.size() - kSuffix.size());
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool dash = i < 3 * (kShort + 1) && i % (kShort + 1) == kShort;
    const char c = digits[i];
    if (dash ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return {};
  }
  const auto part = [&](size_t i) { return digits.substr(i * (kShort + 1), kShort); };
  return NameParts{part(0), part(1), part(2), digits.substr(3 * (kShort + 1))};
}

std::string Pack(const Entry& entry) {
  support::ByteWriter w;
  w.WriteBytes(kMagic.data(), kMagic.size());
  w.Write<uint32_t>(kFormat);
  w.Write<uint32_t>(0);
  for (const std::string* s : {&entry.unit.functions, &entry.unit.code, &entry.unit.target, &entry.unit.build}) {
    w.WriteString(*s);
  }
  w.Write<int64_t>(entry.made);
  w.WriteString(entry.object);
  const support::Sha256::Digest digest = support::Sha256Of(w.bytes().data(), w.size());
  w.WriteBytes(digest.data(), digest.size());
  return w.Take();
}

std::optional<Entry> Unpack(std::string_view bytes, Refusal* refusal) {
  const auto refuse = [&](const char* reason, std::string why) {
    *refusal = {reason, std::move(why)};
    return std::nullopt;
  };
  if (bytes.size() < kMagic.size() + 8 + kDigest) return refuse("corrupt", "the file is cut short");
  if (!bytes.starts_with(kMagic)) return refuse("corrupt", "the file does not begin as an entry does");
  const size_t size = bytes.size() - kDigest;
  const support::Sha256::Digest digest = support::Sha256Of(bytes.data(), size);
  if (std::memcmp(digest.data(), bytes.data() + size, kDigest) != 0) {
    return refuse("corrupt", "its checksum differs: the file was cut or changed");
  }
  try {
    support::ByteReader r(bytes.data(), size, "entry");
    r.Skip(kMagic.size(), "magic");
    const auto format = r.Read<uint32_t>("format");
    if (format != kFormat) {
      return refuse("version", "it has format " + std::to_string(format) + ", this compiler reads format " +
                                   std::to_string(kFormat));
    }
    r.Skip(4, "reserved");
    Entry out;
    for (std::string* s : {&out.unit.functions, &out.unit.code, &out.unit.target, &out.unit.build}) {
      *s = r.ReadString("field");
    }
    out.made = r.Read<int64_t>("time");
    out.object = r.ReadString("object");
    r.ExpectEnd();
    return out;
  } catch (const std::exception& e) {
    return refuse("corrupt", e.what());
  }
}

}  // namespace baton::codegen::cache
