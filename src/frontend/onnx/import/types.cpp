// SPDX-License-Identifier: Apache-2.0
// Element types and shapes of ONNX in Relay's terms.
#include <string>

#include "importer.h"

namespace baton::onnx {

std::string ShapeFault(const Dims& dims) {
  if (static_cast<int64_t>(dims.size()) > kMaxRank) {
    return "a tensor of " + std::to_string(dims.size()) + " axes; there may be " + std::to_string(kMaxRank);
  }
  int64_t n = 1;
  for (int64_t d : dims) {
    if (d > 0 && (__builtin_mul_overflow(n, d, &n) || n > kMaxElements)) {
      return "a tensor of more than 2^48 elements";
    }
  }
  return "";
}

Any IntsAny(const Dims& v) { return Array<int64_t>(v); }

DataType FromOnnxType(int32_t type) {
  switch (type) {
    case kFloat:
      return DataType::Float(32);
    case kUInt8:
      return DataType::UInt(8);
    case kInt8:
      return DataType::Int(8);
    case kUInt16:
      return DataType::UInt(16);
    case kInt16:
      return DataType::Int(16);
    case kInt32:
      return DataType::Int(32);
    case kInt64:
      return DataType::Int(64);
    case kBool:
      return DataType::Bool();
    case kFloat16:
      return DataType::Float(16);
    case kDouble:
      return DataType::Float(64);
    case kUInt32:
      return DataType::UInt(32);
    case kUInt64:
      return DataType::UInt(64);
    case kBFloat16:
      return DataType::BFloat16();
    case kFloat8E4M3FN:
      return DataType(kDLFloat8_e4m3fn, 8);
    case kFloat8E4M3FNUZ:
      return DataType(kDLFloat8_e4m3fnuz, 8);
    case kFloat8E5M2:
      return DataType(kDLFloat8_e5m2, 8);
    case kFloat8E5M2FNUZ:
      return DataType(kDLFloat8_e5m2fnuz, 8);
    case kFloat8E8M0:
      return DataType(kDLFloat8_e8m0fnu, 8);
    case kFloat4E2M1:
      return DataType(kDLFloat4_e2m1fn, 4);
    case kFloat6E2M3:
      return DataType(kDLFloat6_e2m3fn, 6);
    case kFloat6E3M2:
      return DataType(kDLFloat6_e3m2fn, 6);
    case kUInt4:
      return DataType::UInt(4);
    case kInt4:
      return DataType::Int(4);
    case kUInt2:
      return DataType::UInt(2);
    case kInt2:
      return DataType::Int(2);
    default:
      return DataType::Void();
  }
}

}  // namespace baton::onnx
