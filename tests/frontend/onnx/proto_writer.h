// SPDX-License-Identifier: Apache-2.0
// Writes protobuf messages by hand, so that tests can make valid and broken ONNX files alike.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace baton::onnx::testing {

struct Proto {
  std::string bytes;

  Proto& Varint(uint64_t v) {
    while (v >= 0x80) {
      bytes += static_cast<char>(v | 0x80);
      v >>= 7;
    }
    bytes += static_cast<char>(v);
    return *this;
  }
  Proto& Int(int field, int64_t v) {
    Varint(static_cast<uint64_t>(field) << 3);
    return Varint(static_cast<uint64_t>(v));
  }
  Proto& Str(int field, std::string_view v) {
    Varint(static_cast<uint64_t>(field) << 3 | 2);
    Varint(v.size());
    bytes += v;
    return *this;
  }
  Proto& Msg(int field, const Proto& v) { return Str(field, v.bytes); }
  Proto& Float(int field, float v) {
    Varint(static_cast<uint64_t>(field) << 3 | 5);
    bytes.append(reinterpret_cast<const char*>(&v), 4);
    return *this;
  }
  Proto& Ints(int field, const std::vector<int64_t>& v) {
    Proto p;
    for (int64_t i : v) p.Varint(static_cast<uint64_t>(i));
    return Str(field, p.bytes);
  }
};

inline Proto AttrInt(std::string_view name, int64_t v) { return Proto().Str(1, name).Int(3, v).Int(20, 2); }
inline Proto AttrInts(std::string_view name, const std::vector<int64_t>& v) {
  return Proto().Str(1, name).Ints(8, v).Int(20, 7);
}
inline Proto AttrFloat(std::string_view name, float v) { return Proto().Str(1, name).Float(2, v).Int(20, 1); }
inline Proto AttrStr(std::string_view name, std::string_view v) { return Proto().Str(1, name).Str(4, v).Int(20, 3); }
inline Proto AttrGraph(std::string_view name, const Proto& g) { return Proto().Str(1, name).Msg(6, g).Int(20, 5); }

inline Proto NodeP(std::string_view op, std::initializer_list<std::string_view> inputs,
                   std::initializer_list<std::string_view> outputs, std::initializer_list<Proto> attributes = {},
                   std::string_view name = "", std::string_view domain = "") {
  Proto p;
  for (auto i : inputs) p.Str(1, i);
  for (auto o : outputs) p.Str(2, o);
  if (!name.empty()) p.Str(3, name);
  p.Str(4, op);
  for (const Proto& a : attributes) p.Msg(5, a);
  if (!domain.empty()) p.Str(7, domain);
  return p;
}

inline Proto TensorTypeP(int32_t elem, const std::vector<int64_t>& shape) {
  Proto dims;
  for (int64_t d : shape) dims.Msg(1, Proto().Int(1, d));
  return Proto().Msg(1, Proto().Int(1, elem).Msg(2, dims));
}
inline Proto ValueP(std::string_view name, const std::vector<int64_t>& shape, int32_t elem = 1) {
  return Proto().Str(1, name).Msg(2, TensorTypeP(elem, shape));
}
inline Proto TensorP(std::string_view name, const std::vector<int64_t>& dims, int32_t type, std::string_view raw) {
  return Proto().Ints(1, dims).Int(2, type).Str(8, name).Str(9, raw);
}
inline Proto FloatsP(std::string_view name, const std::vector<int64_t>& dims, const std::vector<float>& v) {
  return TensorP(name, dims, 1, {reinterpret_cast<const char*>(v.data()), v.size() * 4});
}
inline Proto Int64sP(std::string_view name, const std::vector<int64_t>& dims, const std::vector<int64_t>& v) {
  return TensorP(name, dims, 7, {reinterpret_cast<const char*>(v.data()), v.size() * 8});
}

struct GraphParts {
  std::vector<Proto> nodes, inputs, outputs, initializers;
};
inline Proto GraphP(const GraphParts& g, std::string_view name = "g") {
  Proto p;
  for (const Proto& n : g.nodes) p.Msg(1, n);
  p.Str(2, name);
  for (const Proto& n : g.initializers) p.Msg(5, n);
  for (const Proto& n : g.inputs) p.Msg(11, n);
  for (const Proto& n : g.outputs) p.Msg(12, n);
  return p;
}
inline Proto ModelP(const Proto& graph, int64_t opset = 17, int64_t ir = 8) {
  return Proto().Int(1, ir).Str(2, "tests").Msg(7, graph).Msg(8, Proto().Str(1, "").Int(2, opset));
}

}  // namespace baton::onnx::testing
