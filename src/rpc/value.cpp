// SPDX-License-Identifier: Apache-2.0
#include "rpc/value.h"

#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/map.h>
#include <baton/runtime/string.h>
#include <baton/support/text.h>

#include "rpc/errors.h"

namespace baton::rpc {
using namespace runtime;  // NOLINT
using support::ByteReader;
using support::ByteWriter;
using support::Cat;
namespace {

void WriteTag(Tag tag, ByteWriter* out) { out->Write(static_cast<uint8_t>(tag)); }

void WriteChars(Tag tag, std::string_view s, ByteWriter* out) {
  WriteTag(tag, out);
  out->Write(static_cast<uint32_t>(s.size()));
  out->WriteBytes(s.data(), s.size());
}

std::string_view ReadChars(ByteReader* in) {
  const uint32_t size = in->Read<uint32_t>("text");
  return {reinterpret_cast<const char*>(in->ReadBytes(size, "text")), size};
}

/// The values of either kind of tags in the form of C: strings and bytes, owned or borrowed.
bool TextOf(const BatonValue& v, std::string_view* text, bool* is_bytes) {
  *is_bytes = false;
  if (v.type_code == kBatonStr) {
    *text = v.v_str;
  } else if (v.type_code == kBatonBytes) {
    *text = {v.v_bytes->data, v.v_bytes->size};
    *is_bytes = true;
  } else if (v.type_code == kBatonObject) {
    const auto* o = reinterpret_cast<const Object*>(v.v_obj);
    if (o->IsInstance<StringObj>()) {
      const auto* s = static_cast<const StringObj*>(o);
      *text = {s->data, static_cast<size_t>(s->size)};
    } else if (o->IsInstance<BytesObj>()) {
      *text = static_cast<const BytesObj*>(o)->data;
      *is_bytes = true;
    } else {
      return false;
    }
  } else {
    return false;
  }
  return true;
}

void WriteContainer(const BatonValue& v, ByteWriter* out, ValueMapper* mapper, int depth) {
  if (depth >= kMaxDepth) throw TypeError(Cat("arrays and maps within each other: at most ", kMaxDepth, " deep"));
  const auto* o = reinterpret_cast<const Object*>(v.v_obj);
  if (o->IsInstance<ArrayObj>()) {
    const auto& items = static_cast<const ArrayObj*>(o)->items;
    WriteTag(Tag::kArray, out);
    out->Write(static_cast<uint32_t>(items.size()));
    for (const Any& item : items) WriteValue(item.raw(), out, mapper, depth + 1);
    return;
  }
  const auto& entries = static_cast<const MapObj*>(o)->entries;
  WriteTag(Tag::kMap, out);
  out->Write(static_cast<uint32_t>(entries.size()));
  for (const auto& e : entries) {
    WriteValue(e.key.raw(), out, mapper, depth + 1);
    WriteValue(e.value.raw(), out, mapper, depth + 1);
  }
}

}  // namespace

void WriteTensorHead(const DLTensor* t, ByteWriter* out) {
  out->Write(static_cast<uint8_t>(t->dtype.code));
  out->Write(static_cast<uint8_t>(t->dtype.bits));
  out->Write(static_cast<uint16_t>(t->dtype.lanes));
  out->Write(static_cast<uint8_t>(t->ndim));
  for (int i = 0; i < t->ndim; ++i) out->Write(t->shape[i]);
}

TensorHead ReadTensorHead(ByteReader* in) {
  TensorHead head;
  DLDataType type;
  type.code = in->Read<uint8_t>("dtype");
  type.bits = in->Read<uint8_t>("dtype");
  type.lanes = in->Read<uint16_t>("dtype");
  const int rank = in->Read<uint8_t>("rank");
  if (type.bits == 0 || type.lanes == 0 || rank > 64) in->Fail("no tensor has such a dtype or rank");
  for (int i = 0; i < rank; ++i) head.shape.push_back(in->Read<int64_t>("extent"));
  head.dtype = type;
  head.bytes = TensorBytes(head.shape, head.dtype);  // refuses negative extents and what overflows
  return head;
}

void WriteTensor(const DLTensor* t, ByteWriter* out) {
  WriteTag(Tag::kTensor, out);
  WriteTensorHead(t, out);
  out->WriteBytes(static_cast<const char*>(t->data) + t->byte_offset, TensorBytes(t->shape, t->ndim, t->dtype));
}

void WriteValue(const BatonValue& v, ByteWriter* out, ValueMapper* mapper, int depth) {
  std::string_view text;
  bool is_bytes = false;
  switch (v.type_code) {
    case kBatonNull:
      return WriteTag(Tag::kNull, out);
    case kBatonInt:
      WriteTag(Tag::kInt, out);
      return out->Write(v.v_int64);
    case kBatonBool:
      WriteTag(Tag::kBool, out);
      return out->Write(static_cast<uint8_t>(v.v_int64 != 0));
    case kBatonFloat:
      WriteTag(Tag::kFloat, out);
      return out->Write(v.v_float64);
    case kBatonDType:
      WriteTag(Tag::kDType, out);
      out->Write(v.v_dtype.code);
      out->Write(v.v_dtype.bits);
      return out->Write(v.v_dtype.lanes);
    case kBatonDevice: {
      const Device d = mapper->DeviceOut(v.v_device);
      WriteTag(Tag::kDevice, out);
      out->Write(static_cast<int32_t>(d.device_type));
      return out->Write(static_cast<int32_t>(d.device_id));
    }
    case kBatonHandle:
      if (!v.v_handle) return WriteTag(Tag::kNull, out);
      throw TypeError("an opaque pointer means nothing on another machine");
    default:
      break;
  }
  if (TextOf(v, &text, &is_bytes) && text.size() <= kInlineBytes) {
    return WriteChars(is_bytes ? Tag::kBytes : Tag::kStr, text, out);
  }
  if (v.type_code == kBatonObject) {
    const auto* o = reinterpret_cast<const Object*>(v.v_obj);
    if (o->IsInstance<ArrayObj>() || o->IsInstance<MapObj>()) return WriteContainer(v, out, mapper, depth);
  }
  mapper->WriteObject(v, out);
}

Any ReadValue(ByteReader* in, ValueMapper* mapper, int depth) {
  const Tag tag = static_cast<Tag>(in->Read<uint8_t>("tag"));
  if (depth > kMaxDepth) in->Fail("arrays and maps within each other are nested too deep");
  switch (tag) {
    case Tag::kNull:
      return Any();
    case Tag::kInt:
      return Any(in->Read<int64_t>("int"));
    case Tag::kBool:
      return Any(in->Read<uint8_t>("bool") != 0);
    case Tag::kFloat:
      return Any(in->Read<double>("float"));
    case Tag::kDType: {
      DLDataType t;
      t.code = in->Read<uint8_t>("dtype");
      t.bits = in->Read<uint8_t>("dtype");
      t.lanes = in->Read<uint16_t>("dtype");
      return Any(DataType(t));
    }
    case Tag::kDevice: {
      const int32_t type = in->Read<int32_t>("device");
      const int32_t id = in->Read<int32_t>("device");
      return Any(mapper->DeviceIn({static_cast<DLDeviceType>(type), id}));
    }
    case Tag::kStr:
      return Any(String(ReadChars(in)));
    case Tag::kBytes:
      return Any(Bytes(std::string(ReadChars(in))));
    case Tag::kTensor: {
      const TensorHead head = ReadTensorHead(in);
      const uint8_t* data = in->ReadBytes(head.bytes, "elements");
      return Any(NDArray::FromBytes(data, head.shape, head.dtype));
    }
    case Tag::kArray: {
      const uint32_t count = in->Read<uint32_t>("count");
      if (count > in->remaining()) in->Fail("an array of more items than bytes");
      Array<Any> out;
      for (uint32_t i = 0; i < count; ++i) out.push_back(ReadValue(in, mapper, depth + 1));
      return Any(out);
    }
    case Tag::kMap: {
      const uint32_t count = in->Read<uint32_t>("count");
      if (count > in->remaining() / 2) in->Fail("a map of more entries than bytes");
      Map<Any, Any> out;
      for (uint32_t i = 0; i < count; ++i) {
        const Any key = ReadValue(in, mapper, depth + 1);
        if (key.type_code() == kBatonObject && !key.Is<std::string>()) in->Fail("a map's key is a number or a string");
        out.Set(key, ReadValue(in, mapper, depth + 1));
      }
      return Any(out);
    }
    case Tag::kTheirs:
    case Tag::kOurs:
    case Tag::kText:
      return mapper->ReadObject(tag, in);
  }
  in->Fail("a value of a kind that does not exist");
}

}  // namespace baton::rpc
