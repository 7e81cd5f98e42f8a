// SPDX-License-Identifier: Apache-2.0
// NDArray: a counted tensor over a DLTensor.
#pragma once

#include <baton/runtime/any.h>
#include <baton/runtime/string.h>

#include <vector>

namespace baton::runtime {

/// Memory with shape and dtype. `tensor.shape` points into `shape_`; strides are null when row-major and dense.
class BATON_DLL NDArrayObj : public Object {
 public:
  static constexpr const char* _type_key = "runtime.NDArray";
  static constexpr uint32_t _type_index = TypeIndex::kRuntimeNDArray;
  DLTensor tensor{};
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  ObjectRef owner;                          ///< what keeps the memory of a view alive
  void* manager_ctx = nullptr;              ///< for memory that came from outside: what frees it
  void (*free_memory)(NDArrayObj*) = nullptr;  ///< runs once at the end; null: nothing to free
  ~NDArrayObj() {
    if (free_memory) free_memory(this);
  }
  BATON_DECLARE_FINAL_OBJECT_INFO(NDArrayObj, Object)
};

class BATON_DLL NDArray : public ObjectRef {
 public:
  NDArray() = default;
  explicit NDArray(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}
  using ContainerType = NDArrayObj;
  const DLTensor* operator->() const { return &static_cast<const NDArrayObj*>(data_.get())->tensor; }
  DLTensor* tensor() const { return &static_cast<NDArrayObj*>(data_.get())->tensor; }
  NDArrayObj* obj() const { return static_cast<NDArrayObj*>(data_.get()); }

  /// Uninitialised memory, aligned to 64 bytes. Throws for a product of dimensions that overflows, or no memory.
  static NDArray Empty(const std::vector<int64_t>& shape, DataType dtype, DLDevice dev = {kDLCPU, 0});
  /// A dense copy of `bytes` bytes at `data`.
  static NDArray FromBytes(const void* data, const std::vector<int64_t>& shape, DataType dtype);
  template <class T>
  static NDArray Scalar(T value, DataType dtype) {
    return FromBytes(&value, {}, dtype);
  }
  /// Takes a DLPack tensor over without a copy; its deleter runs when the last reference is gone.
  static NDArray FromDLPack(DLManagedTensor* tensor);
  static NDArray FromDLPackVersioned(DLManagedTensorVersioned* tensor);
  DLManagedTensor* ToDLPack() const;
  DLManagedTensorVersioned* ToDLPackVersioned() const;

  std::vector<int64_t> shape() const { return {(*this)->shape, (*this)->shape + (*this)->ndim}; }
  DataType dtype() const { return (*this)->dtype; }
  DLDevice device() const { return (*this)->device; }
  int64_t numel() const;
  size_t nbytes() const;
  bool contiguous() const;
  /// First element, with the byte offset applied.
  void* data() const { return static_cast<char*>((*this)->data) + (*this)->byte_offset; }
  template <class T>
  T* ptr() const {
    return static_cast<T*>(data());
  }
  /// The same memory under another shape of as many elements (dense arrays only), or another dtype of the same size.
  NDArray View(const std::vector<int64_t>& shape, DataType dtype) const;
  /// Dense and on the CPU: itself if it is so already.
  NDArray Contiguous() const;
  NDArray Copy(DLDevice dev = {kDLCPU, 0}) const;
  void CopyFrom(const DLTensor* src) const;
  void CopyTo(const DLTensor* dst) const;
  void CopyFromBytes(const void* data, size_t nbytes) const;
  void CopyToBytes(void* data, size_t nbytes) const;
  /// Element i of the dense CPU array as a double or an integer, whatever its dtype (float16 and bfloat16 too).
  double GetDouble(int64_t i) const;
  int64_t GetInt(int64_t i) const;
  void SetDouble(int64_t i, double v) const;
  /// All elements, for shape-like operands.
  std::vector<int64_t> ToInts() const;
};

/// Elements of a shape; throws for a negative dimension or a product beyond int64.
BATON_DLL int64_t ShapeProduct(const int64_t* shape, size_t ndim);

}  // namespace baton::runtime

namespace baton {
using runtime::NDArray;
}
