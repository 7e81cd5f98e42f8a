// SPDX-License-Identifier: Apache-2.0
/// \file proto.h
/// The ONNX schema (onnx.proto, IR version 14) as plain structs. Text and tensor data are views into the bytes that the
/// model was read from; `Model::storage` keeps those alive, so a struct must not outlive its Model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bytes.h"

namespace baton::onnx {

/// TensorProto.DataType.
enum ElemType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUInt8 = 2,
  kInt8 = 3,
  kUInt16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUInt32 = 12,
  kUInt64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBFloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUInt4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUInt2 = 25,
  kInt2 = 26,
  kFloat6E2M3 = 27,
  kFloat6E3M2 = 28,
};

/// Name as ONNX writes it ("FLOAT16"), or "" where `type` is none of them.
BATON_DLL const char* DataTypeName(int32_t type);
/// Bits of one element; 0 for STRING, UNDEFINED and unknown types.
BATON_DLL int DataTypeBits(int32_t type);

struct Dim {
  /// Length where >= 0; -1 where unknown or named.
  int64_t value = -1;
  /// Name of a symbolic length, else empty.
  std::string_view param;
};

/// TypeProto.
struct Type {
  enum Kind : uint8_t { kNone, kTensor, kSequence, kMap, kOptional, kSparseTensor, kOpaque };
  Kind kind = kNone;
  bool has_shape = false;
  /// Element type of a tensor, key type of a map.
  int32_t elem_type = 0;
  std::vector<Dim> shape;
  /// Element of a sequence or optional, value of a map.
  std::unique_ptr<Type> elem;
};

struct ValueInfo {
  std::string_view name;
  Type type;
};

/// TensorProto. Which `*_data` field is filled is in `field` (its number in the schema), its values are in `chunks`.
struct Tensor {
  std::string_view name;
  std::vector<int64_t> dims;
  int32_t data_type = 0;
  /// 0: none; 4 float_data, 5 int32_data, 6 string_data, 7 int64_data, 9 raw_data, 10 double_data, 11 uint64_data.
  int32_t field = 0;
  /// Each chunk holds values back to back without tags (one string per chunk for string_data).
  std::vector<std::string_view> chunks;
  bool external = false;
  std::string_view location;
  int64_t external_offset = 0;
  /// -1: up to the end of the file.
  int64_t external_length = -1;
  /// Where the tensor begins in the file, in bytes; for messages.
  size_t offset = 0;
};

struct SparseTensor {
  Tensor values;
  Tensor indices;
  std::vector<int64_t> dims;
};

struct Graph;

struct Attribute {
  enum Kind : int32_t {
    kUndefined = 0,
    kFloat = 1,
    kInt = 2,
    kString = 3,
    kTensor = 4,
    kGraph = 5,
    kFloats = 6,
    kInts = 7,
    kStrings = 8,
    kTensors = 9,
    kGraphs = 10,
    kSparseTensor = 11,
    kSparseTensors = 12,
    kTypeProto = 13,
    kTypeProtos = 14,
  };
  std::string_view name;
  /// Not empty: the value is the attribute of that name of the function call around this node.
  std::string_view ref_attr_name;
  Kind kind = kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  /// TENSOR holds one, TENSORS any number; the same for the others.
  std::vector<Tensor> tensors;
  std::vector<Graph> graphs;
  std::vector<SparseTensor> sparse_tensors;
  std::vector<Type> types;
  /// The message itself.
  std::string_view source;
};
/// Name of an attribute kind as ONNX writes it ("INTS").
BATON_DLL const char* AttributeKindName(int32_t kind);

struct Node {
  std::string_view name;
  std::string_view op_type;
  std::string_view domain;
  std::string_view overload;
  /// An empty name stands for an input or output left out.
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<Attribute> attributes;
  size_t offset = 0;
  /// The message itself.
  std::string_view source;

  /// The attribute of that name, or null.
  const Attribute* Find(std::string_view attr) const {
    for (const Attribute& a : attributes) {
      if (a.name == attr) return &a;
    }
    return nullptr;
  }
};

struct Graph {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<SparseTensor> sparse_initializers;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> value_info;
};

struct OpsetId {
  std::string_view domain;
  int64_t version = 0;
};

struct FunctionDef {
  std::string_view name;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  /// Attributes without a default.
  std::vector<std::string_view> attributes;
  /// Attributes with their defaults.
  std::vector<Attribute> attribute_defaults;
  std::vector<Node> nodes;
  std::vector<OpsetId> opset_imports;
};

struct Model {
  int64_t ir_version = 0;
  std::string_view producer_name;
  std::string_view producer_version;
  std::vector<OpsetId> opset_imports;
  Graph graph;
  std::vector<FunctionDef> functions;
  /// The bytes all views point into, and what external tensors are read through (null: external data is refused).
  std::shared_ptr<const Bytes> storage;
  std::shared_ptr<ExternalData> external;
  /// The name of this model in messages: a path, or "<model>".
  std::string label;
};

}  // namespace baton::onnx
