// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/ndarray.h>

#include <baton/runtime/registry.h>

#include <cmath>
#include <cstdlib>
#include <new>

namespace baton::runtime {
namespace {

float HalfToFloat(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, exp = (h >> 10) & 31, frac = h & 1023, bits;
  if (exp == 31) {
    bits = sign | 0x7f800000 | (frac << 13);
  } else if (exp != 0) {
    bits = sign | ((exp + 112) << 23) | (frac << 13);
  } else {
    float f = std::ldexp(static_cast<float>(frac), -24);
    return sign ? -f : f;
  }
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

uint16_t FloatToHalf(float f) {
  uint32_t b;
  memcpy(&b, &f, 4);
  uint32_t sign = (b >> 16) & 0x8000, rest = b & 0x7fffffff;
  if (rest > 0x7f800000) return sign | 0x7e00;
  if (rest >= 0x477ff000) return sign | 0x7c00;  // rounds beyond the largest half
  if (rest < 0x38800000) {                       // subnormal: let the adder round
    float a;
    memcpy(&a, &rest, 4);
    return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(a, 24)));
  }
  uint32_t odd = (rest >> 13) & 1;
  return sign | static_cast<uint16_t>((rest - 0x38000000 + 0xfff + odd) >> 13);
}

float BFloatToFloat(uint16_t h) {
  uint32_t bits = static_cast<uint32_t>(h) << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

uint16_t FloatToBFloat(float f) {
  uint32_t b;
  memcpy(&b, &f, 4);
  if ((b & 0x7fffffff) > 0x7f800000) return (b >> 16) | 0x40;
  return (b + 0x7fff + ((b >> 16) & 1)) >> 16;
}

void FreeAligned(NDArrayObj* o) { free(o->tensor.data); }

ObjectPtr<NDArrayObj> NewArray(const std::vector<int64_t>& shape, DataType dtype, DLDevice dev) {
  auto o = make_object<NDArrayObj>();
  o->shape_ = shape;
  o->tensor.ndim = static_cast<int32_t>(shape.size());
  o->tensor.shape = o->shape_.data();
  o->tensor.dtype = dtype;
  o->tensor.device = dev;
  return o;
}

template <class M>
NDArray Adopt(M* m) {
  const DLTensor& t = m->dl_tensor;
  if (t.ndim < 0 || t.ndim > 64) throw ValueError("DLPack tensor with " + std::to_string(t.ndim) + " dimensions");
  auto o = NewArray({t.shape, t.shape + t.ndim}, t.dtype, t.device);
  o->tensor.data = t.data;
  o->tensor.byte_offset = t.byte_offset;
  if (t.strides) {
    o->strides_.assign(t.strides, t.strides + t.ndim);
    o->tensor.strides = o->strides_.data();
  }
  o->manager_ctx = m;
  o->free_memory = [](NDArrayObj* self) {
    auto* m = static_cast<M*>(self->manager_ctx);
    if (m->deleter) m->deleter(m);
  };
  return NDArray(ObjectPtr<Object>(o));
}

template <class M>
M* Export(const NDArray& a) {
  auto* m = new M{};
  m->dl_tensor = *a.operator->();
  ObjectRef keep = a;
  m->manager_ctx = ObjectAccess::Steal(keep);
  m->deleter = [](M* self) {
    ObjectAccess::DecRef(static_cast<Object*>(self->manager_ctx));
    delete self;
  };
  return m;
}

/// Copies between dense or strided CPU tensors, element by element where need be. No recursion: one counter a dimension.
void CopyStrided(const DLTensor* src, const DLTensor* dst) {
  size_t item = DataType(src->dtype).bytes();
  int64_t n = ShapeProduct(src->shape, src->ndim);
  std::vector<int64_t> index(src->ndim, 0), ss(src->ndim), ds(src->ndim);
  int64_t sdense = 1, ddense = 1;
  for (int d = src->ndim - 1; d >= 0; --d) {
    ss[d] = src->strides ? src->strides[d] : sdense;
    ds[d] = dst->strides ? dst->strides[d] : ddense;
    sdense *= src->shape[d];
    ddense *= src->shape[d];
  }
  const char* s = static_cast<const char*>(src->data) + src->byte_offset;
  char* t = static_cast<char*>(dst->data) + dst->byte_offset;
  int64_t so = 0, to = 0;
  for (int64_t i = 0; i < n; ++i) {
    memcpy(t + to * static_cast<int64_t>(item), s + so * static_cast<int64_t>(item), item);
    for (int d = src->ndim - 1; d >= 0; --d) {
      so += ss[d], to += ds[d];
      if (++index[d] < src->shape[d]) break;
      so -= ss[d] * src->shape[d], to -= ds[d] * src->shape[d];
      index[d] = 0;
    }
  }
}

bool Dense(const DLTensor* t) {
  if (!t->strides) return true;
  int64_t want = 1;
  for (int d = t->ndim - 1; d >= 0; --d) {
    if (t->shape[d] != 1 && t->strides[d] != want) return false;
    want *= t->shape[d];
  }
  return true;
}

size_t BytesOf(const DLTensor* t) {
  int64_t n = ShapeProduct(t->shape, t->ndim);
  int64_t bits = t->dtype.bits * t->dtype.lanes;
  int64_t total;
  if (__builtin_mul_overflow(n, bits, &total)) throw ValueError("a tensor's size overflows");
  // Types narrower than a byte are kept one element a byte.
  return bits < 8 ? n : static_cast<size_t>(total / 8);
}

}  // namespace

int64_t ShapeProduct(const int64_t* shape, size_t ndim) {
  int64_t n = 1;
  bool zero = false;
  for (size_t i = 0; i < ndim; ++i) {
    if (shape[i] < 0) throw ValueError("a dimension is " + std::to_string(shape[i]) + ", must not be negative");
    if (shape[i] == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(n, shape[i], &n)) {
      throw ValueError("the number of elements of a tensor overflows");
    }
  }
  return zero ? 0 : n;
}

NDArray NDArray::Empty(const std::vector<int64_t>& shape, DataType dtype, DLDevice dev) {
  if (dev.device_type != kDLCPU) {
    throw RuntimeError("no device of type " + std::to_string(dev.device_type) + " is available; use cpu(0)");
  }
  auto o = NewArray(shape, dtype, dev);
  size_t bytes = BytesOf(&o->tensor);
  if (bytes > (size_t{1} << 46)) throw Error("MemoryError", "a tensor of " + std::to_string(bytes) + " bytes is too large");
  // One line more than asked for, so that a vector load at the end stays inside.
  void* p = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (!p) throw Error("MemoryError", "no memory for a tensor of " + std::to_string(bytes) + " bytes");
  o->tensor.data = p;
  o->free_memory = FreeAligned;
  return NDArray(ObjectPtr<Object>(o));
}

NDArray NDArray::FromBytes(const void* data, const std::vector<int64_t>& shape, DataType dtype) {
  NDArray a = Empty(shape, dtype);
  if (size_t n = a.nbytes()) memcpy(a.data(), data, n);
  return a;
}

NDArray NDArray::FromDLPack(DLManagedTensor* t) { return Adopt(t); }
NDArray NDArray::FromDLPackVersioned(DLManagedTensorVersioned* t) {
  if (t->version.major != DLPACK_MAJOR_VERSION) {
    throw ValueError("DLPack version " + std::to_string(t->version.major) + " is not known; version 1 is");
  }
  return Adopt(t);
}
DLManagedTensor* NDArray::ToDLPack() const { return Export<DLManagedTensor>(*this); }
DLManagedTensorVersioned* NDArray::ToDLPackVersioned() const {
  auto* m = Export<DLManagedTensorVersioned>(*this);
  m->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  return m;
}

int64_t NDArray::numel() const { return ShapeProduct((*this)->shape, (*this)->ndim); }
size_t NDArray::nbytes() const { return BytesOf(operator->()); }
bool NDArray::contiguous() const { return Dense(operator->()); }

NDArray NDArray::View(const std::vector<int64_t>& shape, DataType dtype) const {
  if (!contiguous()) throw ValueError("a view needs a dense tensor; call Contiguous() first");
  auto o = NewArray(shape, dtype, device());
  o->tensor.data = (*this)->data;
  o->tensor.byte_offset = (*this)->byte_offset;
  if (BytesOf(&o->tensor) != nbytes()) throw ValueError("a view must have as many bytes as the tensor");
  o->owner = *this;
  return NDArray(ObjectPtr<Object>(o));
}

NDArray NDArray::Contiguous() const { return contiguous() ? *this : Copy(); }

NDArray NDArray::Copy(DLDevice dev) const {
  NDArray a = Empty(shape(), dtype(), dev);
  a.CopyFrom(operator->());
  return a;
}

void NDArray::CopyFrom(const DLTensor* src) const {
  const DLTensor* dst = operator->();
  auto text = [](const DLTensor* t) {
    std::string s = DataType2String(t->dtype) + "(";
    for (int i = 0; i < t->ndim; ++i) s += (i ? ", " : "") + std::to_string(t->shape[i]);
    return s + ")";
  };
  bool same = src->ndim == dst->ndim && DataType(src->dtype) == DataType(dst->dtype);
  for (int i = 0; same && i < src->ndim; ++i) same = src->shape[i] == dst->shape[i];
  if (!same) throw ValueError("cannot copy " + text(src) + " to " + text(dst));
  if (Dense(src) && Dense(dst)) {
    if (size_t n = BytesOf(src)) {
      memmove(static_cast<char*>(dst->data) + dst->byte_offset, static_cast<const char*>(src->data) + src->byte_offset, n);
    }
  } else {
    CopyStrided(src, dst);
  }
}
void NDArray::CopyTo(const DLTensor* dst) const {
  auto o = NewArray({dst->shape, dst->shape + dst->ndim}, dst->dtype, dst->device);
  o->tensor.data = dst->data;
  o->tensor.byte_offset = dst->byte_offset;
  o->tensor.strides = dst->strides;
  NDArray(ObjectPtr<Object>(o)).CopyFrom(operator->());
}
void NDArray::CopyFromBytes(const void* data, size_t n) const {
  if (n != nbytes()) throw ValueError("got " + std::to_string(n) + " bytes for a tensor of " + std::to_string(nbytes()));
  if (!contiguous()) throw ValueError("bytes are copied to dense tensors only");
  if (n) memcpy(this->data(), data, n);
}
void NDArray::CopyToBytes(void* data, size_t n) const {
  NDArray a = Contiguous();
  if (n != a.nbytes()) throw ValueError("got room for " + std::to_string(n) + " bytes, the tensor has " + std::to_string(nbytes()));
  if (n) memcpy(data, a.data(), n);
}

double NDArray::GetDouble(int64_t i) const {
  DataType t = dtype();
  if (t.is_float() && t.bits() == 32) return ptr<float>()[i];
  if (t.is_float() && t.bits() == 64) return ptr<double>()[i];
  if (t.is_float() && t.bits() == 16) return HalfToFloat(ptr<uint16_t>()[i]);
  if (t.is_bfloat16()) return BFloatToFloat(ptr<uint16_t>()[i]);
  if (t.is_uint() && t.bits() == 64) return static_cast<double>(ptr<uint64_t>()[i]);
  return static_cast<double>(GetInt(i));
}
int64_t NDArray::GetInt(int64_t i) const {
  DataType t = dtype();
  if (t.is_floating()) return static_cast<int64_t>(GetDouble(i));
  bool u = t.is_uint() || t.is_bool();
  switch (t.bits()) {
    case 1: case 2: case 4: case 8: return u ? ptr<uint8_t>()[i] : ptr<int8_t>()[i];
    case 16: return u ? ptr<uint16_t>()[i] : ptr<int16_t>()[i];
    case 32: return u ? static_cast<int64_t>(ptr<uint32_t>()[i]) : ptr<int32_t>()[i];
    case 64: return ptr<int64_t>()[i];
  }
  throw TypeError("elements of " + DataType2String(t) + " cannot be read as numbers");
}
void NDArray::SetDouble(int64_t i, double v) const {
  DataType t = dtype();
  if (t.is_float() && t.bits() == 32) {
    ptr<float>()[i] = static_cast<float>(v);
  } else if (t.is_float() && t.bits() == 64) {
    ptr<double>()[i] = v;
  } else if (t.is_float() && t.bits() == 16) {
    ptr<uint16_t>()[i] = FloatToHalf(static_cast<float>(v));
  } else if (t.is_bfloat16()) {
    ptr<uint16_t>()[i] = FloatToBFloat(static_cast<float>(v));
  } else if (t.is_bool()) {
    ptr<uint8_t>()[i] = v != 0;
  } else if (t.is_integral()) {
    int64_t x = static_cast<int64_t>(v);
    switch (t.bits()) {
      case 8: ptr<int8_t>()[i] = static_cast<int8_t>(x); return;
      case 16: ptr<int16_t>()[i] = static_cast<int16_t>(x); return;
      case 32: ptr<int32_t>()[i] = static_cast<int32_t>(x); return;
      case 64: ptr<int64_t>()[i] = x; return;
    }
  } else {
    throw TypeError("elements of " + DataType2String(t) + " cannot be written as numbers");
  }
}
std::vector<int64_t> NDArray::ToInts() const {
  NDArray a = Contiguous();
  std::vector<int64_t> out(a.numel());
  for (size_t i = 0; i < out.size(); ++i) out[i] = a.GetInt(i);
  return out;
}

bool ValueTraits<DLTensor*>::Is(const BatonValue& v) {
  return v.type_code == kBatonTensor || (v.type_code == kBatonObject && ValueTraits<NDArray>::Is(v));
}
DLTensor* ValueTraits<DLTensor*>::From(const BatonValue& v) {
  if (v.type_code == kBatonTensor) return v.v_tensor;
  if (v.type_code == kBatonObject && ValueTraits<NDArray>::Is(v)) return ValueTraits<NDArray>::From(v).tensor();
  ThrowValueMismatch("DLTensor", v);
}

}  // namespace baton::runtime
