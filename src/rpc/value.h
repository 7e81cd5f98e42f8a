// SPDX-License-Identifier: Apache-2.0
// Values as bytes: those of the C ABI, arrays and maps of them, tensors, and references to what stays where it is.
#pragma once

#include <baton/runtime/any.h>
#include <baton/runtime/device_api.h>
#include <baton/runtime/ndarray.h>
#include <baton/support/bytes.h>

#include <cstdint>

namespace baton::rpc {

enum class Tag : uint8_t {
  kNull = 0,
  kInt = 1,
  kBool = 2,
  kFloat = 3,
  kDType = 5,
  kDevice = 6,
  kStr = 7,
  kBytes = 8,
  kTensor = 9,  ///< dtype, rank, extents, elements
  kArray = 16,
  kMap = 17,
  kTheirs = 64,  ///< an object of the reader's, by its handle; of an array also the view of it
  kOurs = 65,    ///< an object of the writer's: handle, kind, facts
  kText = 66,    ///< a long string or bytes of the writer's: kind, handle, size; the reader fetches it
};

inline constexpr int kMaxDepth = 8;
inline constexpr size_t kInlineBytes = 64 << 10;  ///< longer tensors and texts travel apart from the call

/// The handling of values that are not plain on a side.
class ValueMapper {
 public:
  virtual ~ValueMapper() = default;
  /// Writes a function, module, array, long text or other object, tag first.
  virtual void WriteObject(const BatonValue& value, support::ByteWriter* out) = 0;
  virtual runtime::Any ReadObject(Tag tag, support::ByteReader* in) = 0;
  virtual runtime::Device DeviceOut(runtime::Device d) { return d; }
  virtual runtime::Device DeviceIn(runtime::Device d) { return d; }
};

/// Throws TypeError for what cannot travel: opaque pointers, arrays and maps that are nested too deep.
void WriteValue(const BatonValue& value, support::ByteWriter* out, ValueMapper* mapper, int depth = 0);
/// Reads bytes that may be hostile; what it throws for those is a ProtocolError, or of the reader.
runtime::Any ReadValue(support::ByteReader* in, ValueMapper* mapper, int depth = 0);

/// Element type, rank and extents.
struct TensorHead {
  runtime::DataType dtype;
  std::vector<int64_t> shape;
  size_t bytes = 0;
};
void WriteTensorHead(const DLTensor* t, support::ByteWriter* out);
TensorHead ReadTensorHead(support::ByteReader* in);
/// The tensor with its elements, which must be dense and on the CPU.
void WriteTensor(const DLTensor* t, support::ByteWriter* out);

}  // namespace baton::rpc
