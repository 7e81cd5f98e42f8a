// SPDX-License-Identifier: Apache-2.0
// NDArray: a reference-counted tensor over DLTensor, exchanged with other libraries through DLPack without copies.
#pragma once

#include <baton/runtime/any.h>
#include <baton/runtime/device_api.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace baton::runtime {

/// The object. Shape and strides (in elements, never null) lie behind it in the same block. On the CPU `byte_offset`
/// is 0. The fields are fixed for life; the elements are not, unless `read_only`.
class BATON_DLL NDArrayObj : public Object {
 public:
  static constexpr const char* _type_key = "runtime.NDArray";
  static constexpr uint32_t _type_index = TypeIndex::kRuntimeNDArray;

  DLTensor dl_tensor;
  bool read_only = false;
  bool dense = false;        ///< row-major without gaps
  bool away = false;         ///< without elements in memory; NDArray::data makes them again
  Object* source = nullptr;  ///< a PackedFunc that makes them; null for nearly all arrays
  int64_t numel = 0;

  BATON_DECLARE_FINAL_OBJECT_INFO(NDArrayObj, Object)

 private:
  /// Frees the elements; called once as `release(self)`. `owner` is its context.
  void (*release_)(NDArrayObj*) = nullptr;
  void* owner_ = nullptr;
  friend class NDArray;
};

class BATON_DLL NDArray : public ObjectRef {
 public:
  using ContainerType = NDArrayObj;
  NDArray() = default;
  explicit NDArray(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}
  const DLTensor* operator->() const { return &static_cast<const NDArrayObj*>(data_.get())->dl_tensor; }
  DLTensor* tensor() const {
    if (__builtin_expect(obj()->away, false)) Bring();
    return &obj()->dl_tensor;
  }
  NDArrayObj* obj() const { return static_cast<NDArrayObj*>(data_.get()); }

  /// Uninitialised elements, aligned to 64 bytes. Throws ValueError for a negative or overflowing shape and
  /// MemoryError when there is no memory.
  static NDArray Empty(const std::vector<int64_t>& shape, DataType dtype, Device device = Cpu());
  static NDArray Zeros(const std::vector<int64_t>& shape, DataType dtype, Device device = Cpu());
  /// A dense copy of the bytes at `data`, as many as the shape takes.
  static NDArray FromBytes(const void* data, const std::vector<int64_t>& shape, DataType dtype);
  /// A CPU array over external memory, which `owner` keeps alive (null: it lives for ever).
  static NDArray Wrap(void* data, const std::vector<int64_t>& shape, DataType dtype, ObjectRef owner,
                      bool read_only = false);
  /// An array whose elements are made when they are asked for: `source`, a PackedFunc without arguments, returns an
  /// equal array.
  static NDArray Later(const std::vector<int64_t>& shape, DataType dtype, const ObjectRef& source);
  /// Notes how the elements of an array that owns them can be made again.
  void SetSource(const ObjectRef& source) const;
  bool HasSource() const { return obj()->source != nullptr; }
  bool Away() const { return obj()->away; }
  /// Frees the elements of an array with a source until they are asked for again; does nothing to others. For a caller
  /// that knows of no pointers to them: what lends them (views, DLPack, the C interface) drops the source.
  void GiveBack() const;
  /// The elements stay in memory from now on.
  void Keep() const;
  /// Moves the elements of an array with a source to `place`, which `owner` keeps alive.
  void MoveTo(void* place, ObjectRef owner) const;
  /// An array of rank 0; the value is converted to the type.
  template <class T>
  static NDArray Scalar(T value, DataType dtype) {
    if constexpr (std::is_floating_point_v<T>) {
      return ScalarDouble(static_cast<double>(value), dtype);
    } else {
      return ScalarInt(static_cast<int64_t>(value), dtype);
    }
  }

  std::vector<int64_t> shape() const { return {(*this)->shape, (*this)->shape + (*this)->ndim}; }
  std::vector<int64_t> Shape() const { return shape(); }
  int ndim() const { return (*this)->ndim; }
  int64_t dim(int i) const { return (*this)->shape[i]; }
  DataType dtype() const { return (*this)->dtype; }
  Device device() const { return (*this)->device; }
  int64_t numel() const { return obj()->numel; }
  /// Bytes of the elements without gaps.
  size_t nbytes() const;
  bool contiguous() const { return obj()->dense; }
  bool IsContiguous() const { return contiguous(); }
  /// First element, with the byte offset applied.
  void* data() const {
    const DLTensor* t = tensor();
    return static_cast<char*>(t->data) + t->byte_offset;
  }
  template <class T>
  T* ptr() const {
    return static_cast<T*>(data());
  }

  /// The same memory (which must be dense) under another shape and type of exactly as many bytes.
  NDArray View(const std::vector<int64_t>& shape, DataType dtype) const;
  /// The same, of as many bytes or fewer.
  NDArray CreateView(const std::vector<int64_t>& shape, DataType dtype) const;
  /// Dense and on the CPU: itself if it is so already.
  NDArray Contiguous() const;
  /// A dense copy on a device.
  NDArray Copy(Device device = Cpu()) const;
  /// Copies the elements of another tensor of the same shape and type, whatever the strides; between devices too.
  void CopyFrom(const DLTensor* src) const;
  void CopyFrom(const NDArray& src) const { CopyFrom(src.tensor()); }
  void CopyTo(const DLTensor* dst) const;
  void CopyFromBytes(const void* data, size_t bytes) const;
  void CopyToBytes(void* data, size_t bytes) const;

  /// Element i of the dense CPU array as a double or an integer, whatever its dtype (scalar.h).
  double GetDouble(int64_t i) const;
  int64_t GetInt(int64_t i) const;
  void SetDouble(int64_t i, double v) const;
  void SetInt(int64_t i, int64_t v) const;
  /// All elements, for shape-like operands.
  std::vector<int64_t> ToInts() const;

  /// Takes over a tensor: its deleter runs with the last reference. When this throws the caller still owns it.
  static NDArray FromDLPack(DLManagedTensor* tensor);
  static NDArray FromDLPackVersioned(DLManagedTensorVersioned* tensor);
  /// Exports a tensor that holds a reference to this array. The legacy form rejects a read-only array.
  DLManagedTensor* ToDLPack() const;
  DLManagedTensorVersioned* ToDLPackVersioned() const;

  /// "float32[2, 3] on cpu(0)".
  std::string Summary() const;
  /// The elements in brackets; long dimensions are shortened around an ellipsis so that at most about 1,000 are shown.
  std::string ToString() const;

 private:
  void Bring() const;
  static void Free(NDArrayObj* self);
  static void EndOwned(Object* o);
  static void EndLent(Object* o);
  static NDArray ScalarDouble(double value, DataType dtype);
  static NDArray ScalarInt(int64_t value, DataType dtype);
  static NDArray Allocate(int ndim, const int64_t* shape, const int64_t* strides, DataType dtype, Device device);
  template <class M>
  static NDArray Import(M* managed, uint64_t flags);
};

/// Elements of a shape; throws ValueError for a negative extent or a product beyond 63 bits.
BATON_DLL int64_t ShapeProduct(const int64_t* shape, size_t ndim);
/// Bytes that a tensor takes without gaps, with the same checks. Types narrower than a byte take one byte an element.
BATON_DLL size_t TensorBytes(const int64_t* shape, int ndim, DataType dtype);
inline size_t TensorBytes(const std::vector<int64_t>& shape, DataType dtype) {
  return TensorBytes(shape.data(), static_cast<int>(shape.size()), dtype);
}
BATON_DLL bool IsContiguous(const DLTensor* t);
/// Copies elements between CPU tensors of the same shape and type, whatever the strides.
BATON_DLL void CopyTensor(const DLTensor* from, DLTensor* to);
/// "float32[2, 3]".
BATON_DLL std::string TensorTypeString(const int64_t* shape, int ndim, DataType dtype);

}  // namespace baton::runtime

namespace baton {
using runtime::NDArray;
}
