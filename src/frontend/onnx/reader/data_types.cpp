// SPDX-License-Identifier: Apache-2.0
// Names and sizes of the element types, names of kinds of attributes.
#include "proto.h"

namespace baton::onnx {

const char* DataTypeName(int32_t type) {
  static constexpr const char* kNames[] = {"UNDEFINED",      "FLOAT",    "UINT8",        "INT8",           "UINT16",
                                           "INT16",          "INT32",    "INT64",        "STRING",         "BOOL",
                                           "FLOAT16",        "DOUBLE",   "UINT32",       "UINT64",         "COMPLEX64",
                                           "COMPLEX128",     "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2",
                                           "FLOAT8E5M2FNUZ", "UINT4",    "INT4",         "FLOAT4E2M1",     "FLOAT8E8M0",
                                           "UINT2",          "INT2",     "FLOAT6E2M3",   "FLOAT6E3M2"};
  return type >= 0 && type <= 28 ? kNames[type] : "";
}

int DataTypeBits(int32_t type) {
  static constexpr int kBits[] = {0,   32, 8, 8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64, 64,
                                  128, 16, 8, 8, 8,  8,  4,  4,  4, 8, 2,  2,  6,  6};
  return type >= 0 && type <= 28 ? kBits[type] : 0;
}

const char* AttributeKindName(int32_t kind) {
  static constexpr const char* kNames[] = {
      "UNDEFINED", "FLOAT",   "INT",    "STRING",        "TENSOR",         "GRAPH",      "FLOATS",     "INTS",
      "STRINGS",   "TENSORS", "GRAPHS", "SPARSE_TENSOR", "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};
  return kind >= 0 && kind <= 14 ? kNames[kind] : "";
}

}  // namespace baton::onnx
