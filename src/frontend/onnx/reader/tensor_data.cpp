// SPDX-License-Identifier: Apache-2.0
// Elements of tensors: raw bytes, packed numbers, external files.
#include <cstring>
#include <utility>

#include "reader.h"

namespace baton::onnx {
namespace {

uint64_t ReadVarintUnchecked(const uint8_t** at) {
  uint64_t value = 0;
  int shift = 0;
  uint8_t byte;
  do {
    byte = *(*at)++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    shift += 7;
  } while (byte >= 0x80);
  return value;
}

/// Every value of a varint field. A chunk was checked only for its length, so each value is checked here.
template <typename Each>
void ForEachVarint(const Tensor& t, Each&& each) {
  for (std::string_view chunk : t.chunks) {
    const auto* at = reinterpret_cast<const uint8_t*>(chunk.data());
    const uint8_t* end = at + chunk.size();
    while (at != end) {
      const uint8_t* last = at;
      while (last != end && *last >= 0x80 && last - at < 9) ++last;
      if (last == end || *last >= 0x80) {
        Throw("tensor `" + Printable(t.name) + "`: a number in its data is damaged");
      }
      each(ReadVarintUnchecked(&at));
    }
  }
}

size_t CountVarints(const Tensor& t) {
  size_t n = 0;
  for (std::string_view chunk : t.chunks) {
    for (char c : chunk) n += static_cast<unsigned char>(c) < 0x80;
  }
  return n;
}

std::string Describe(const Tensor& t) {
  std::string text = "tensor `" + Printable(t.name) + "` of type ";
  const char* name = DataTypeName(t.data_type);
  text += *name != '\0' ? name : std::to_string(t.data_type).c_str();
  text += " and shape (";
  for (size_t i = 0; i < t.dims.size() && i < 16; ++i) text += (i == 0 ? "" : ", ") + std::to_string(t.dims[i]);
  return text + ")";
}

/// Splits packed elements of `bits` < 8 into a byte each.
void Unpack(std::string_view packed, int bits, bool is_signed, size_t n, std::string* out) {
  out->resize(n);
  uint32_t hold = 0;
  int have = 0;
  size_t at = 0;
  for (size_t i = 0; i < n; ++i) {
    if (have < bits) {
      hold |= static_cast<uint32_t>(static_cast<uint8_t>(packed[at++])) << have;
      have += 8;
    }
    uint32_t value = hold & ((1u << bits) - 1);
    hold >>= bits;
    have -= bits;
    if (is_signed && (value >> (bits - 1)) != 0) value |= ~((1u << bits) - 1);
    (*out)[i] = static_cast<char>(value);
  }
}

template <typename T>
void Put(std::string* out, size_t* at, uint64_t value) {
  T narrow = static_cast<T>(value);
  std::memcpy(out->data() + *at, &narrow, sizeof(T));
  *at += sizeof(T);
}

int DataField(int32_t type) {
  switch (type) {
    case kFloat:
    case kComplex64:
      return 4;
    case kString:
      return 6;
    case kInt64:
      return 7;
    case kDouble:
    case kComplex128:
      return 10;
    case kUInt32:
    case kUInt64:
      return 11;
    default:
      return 5;
  }
}

}  // namespace

int64_t NumElements(const Tensor& t) {
  // 2^56 elements of 16 bytes are below 2^62 bytes, so sizes in bytes cannot overflow either.
  constexpr int64_t kMaxElements = int64_t{1} << 56;
  int64_t n = 1;
  bool zero = false;
  for (int64_t dim : t.dims) {
    if (dim < 0) Throw(Describe(t) + ": a negative length is impossible");
    if (dim == 0) {
      zero = true;
    } else if (n > kMaxElements / dim) {
      Throw(Describe(t) + " has more elements than any memory");
    } else {
      n *= dim;
    }
  }
  return zero ? 0 : n;
}

std::string_view TensorBytes(const Model& model, const Tensor& t, std::string* scratch,
                             std::shared_ptr<const Bytes>* keep) {
  int bits = DataTypeBits(t.data_type);
  if (bits == 0) {
    Throw(Describe(t) + (t.data_type == kString ? " has no numbers" : " has a type that ONNX does not define"));
  }
  size_t n = static_cast<size_t>(NumElements(t));
  size_t packed = bits < 8 ? n / 8 * static_cast<size_t>(bits) + (n % 8 * static_cast<size_t>(bits) + 7) / 8
                           : n * static_cast<size_t>(bits / 8);
  bool is_signed = t.data_type == kInt4 || t.data_type == kInt2;
  auto wrong = [&](size_t have, const char* unit) {
    Throw("`" + Printable(model.label, 400) + "`: byte " + std::to_string(t.offset) + ": " + Describe(t) + " needs " +
          std::to_string(packed) + " bytes of data but has " + std::to_string(have) + " " + unit +
          "; the model is damaged");
  };
  std::string_view raw;
  if (t.external) {
    if (model.external == nullptr) {
      Throw(Describe(t) + " lies in the file `" + Printable(t.location) +
            "`, but a model given as bytes has no folder; give the path of the model file instead");
    }
    std::shared_ptr<const Bytes> file;
    raw = model.external->Read(t.location, t.external_offset, t.external_length, &file);
    if (raw.size() < packed || (t.external_length >= 0 && raw.size() != packed)) {
      wrong(raw.size(), ("bytes in `" + Printable(t.location) + "`").c_str());
    }
    raw = raw.substr(0, packed);
    *keep = std::move(file);
  } else if (t.field == 9 || (t.field == 0 && n == 0)) {
    if (!t.chunks.empty()) raw = t.chunks[0];
    *keep = model.storage;
    if (raw.size() != packed) wrong(raw.size(), "bytes");
  } else if (t.field == 0) {
    wrong(0, "bytes");
  } else if (t.field != DataField(t.data_type)) {
    Throw("`" + Printable(model.label, 400) + "`: byte " + std::to_string(t.offset) + ": " + Describe(t) +
          " has its data in field " + std::to_string(t.field) + ", which is for other types");
  } else if (t.field == 4 || t.field == 10) {
    size_t total = 0;
    for (std::string_view chunk : t.chunks) total += chunk.size();
    if (total != packed) wrong(total, "bytes");
    if (t.chunks.size() == 1) {
      *keep = model.storage;
      return t.chunks[0];
    }
    scratch->clear();
    scratch->reserve(total);
    for (std::string_view chunk : t.chunks) scratch->append(chunk);
    return *scratch;
  } else {
    size_t have = CountVarints(t);
    bool six = t.data_type == kFloat6E2M3 || t.data_type == kFloat6E3M2;
    size_t want = bits < 8 && !six ? packed : n;
    if (have != want) wrong(have, "numbers");
    int width = bits < 8 ? 1 : bits / 8;
    std::string numbers(want * static_cast<size_t>(width), '\0');
    size_t at = 0;
    ForEachVarint(t, [&](uint64_t v) {
      if (width == 1) Put<uint8_t>(&numbers, &at, six ? v & 0x3f : v);
      if (width == 2) Put<uint16_t>(&numbers, &at, v);
      if (width == 4) Put<uint32_t>(&numbers, &at, v);
      if (width == 8) Put<uint64_t>(&numbers, &at, v);
    });
    if (bits < 8 && !six) {
      Unpack(numbers, bits, is_signed, n, scratch);
    } else {
      *scratch = std::move(numbers);
    }
    if (t.data_type == kBool) {
      for (char c : *scratch) {
        if (static_cast<unsigned char>(c) > 1) Throw(Describe(t) + " holds a byte other than 0 and 1");
      }
    }
    return *scratch;
  }
  if (t.data_type == kBool) {
    for (char c : raw) {
      if (static_cast<unsigned char>(c) > 1) Throw(Describe(t) + " holds a byte other than 0 and 1");
    }
  }
  if (bits >= 8) return raw;
  Unpack(raw, bits, is_signed, n, scratch);
  return *scratch;
}

std::vector<std::string_view> TensorStrings(const Tensor& t) {
  if (t.data_type != kString) Throw(Describe(t) + " does not hold strings");
  if (t.external || (t.field != 6 && t.field != 0)) Throw(Describe(t) + " has its strings outside `string_data`");
  if (static_cast<uint64_t>(NumElements(t)) != t.chunks.size()) {
    Throw(Describe(t) + " has " + std::to_string(t.chunks.size()) + " strings; the model is damaged");
  }
  return t.chunks;
}

std::vector<int64_t> TensorInts(const Model& model, const Tensor& t) {
  if (t.data_type != kInt64 && t.data_type != kInt32) Throw(Describe(t) + " should be INT64 or INT32");
  std::string scratch;
  std::shared_ptr<const Bytes> keep;
  std::string_view bytes = TensorBytes(model, t, &scratch, &keep);
  size_t width = t.data_type == kInt64 ? 8 : 4;
  std::vector<int64_t> out(bytes.size() / width);
  for (size_t i = 0; i < out.size(); ++i) {
    if (width == 8) {
      std::memcpy(&out[i], bytes.data() + i * 8, 8);
    } else {
      int32_t v;
      std::memcpy(&v, bytes.data() + i * 4, 4);
      out[i] = v;
    }
  }
  return out;
}

}  // namespace baton::onnx
