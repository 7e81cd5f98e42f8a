// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/executor_queries.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/runtime/scalar.h>
#include <baton/runtime/string.h>
#include <baton/support/file.h>
#include <baton/support/text.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

namespace baton::runtime {
using support::Cat;

void CopyStrided(const DLTensor* from, DLTensor* to);  // tensor_copy.cpp

namespace {

constexpr int kMaxRank = 64;
constexpr size_t kAlignment = 64;

char* Begin(const DLTensor* t) { return static_cast<char*>(t->data) + t->byte_offset; }

std::string TypeText(const DLTensor* t) { return TensorTypeString(t->shape, t->ndim, t->dtype); }

std::string Same(const DLTensor* a, const DLTensor* b) {
  bool same = a->ndim == b->ndim && DataType(a->dtype) == DataType(b->dtype);
  for (int i = 0; same && i < a->ndim; ++i) same = a->shape[i] == b->shape[i];
  if (same) return "";
  return Cat(TypeText(a), " into ", TypeText(b));
}

/// Preconditions on a tensor from outside.
void CheckTensor(const DLTensor* t) {
  if (t->ndim < 0 || t->ndim > kMaxRank) {
    throw ValueError(Cat("a tensor of rank ", t->ndim, ": expected 0 to ", kMaxRank));
  }
  if (t->ndim && !t->shape) throw ValueError("a tensor without a shape");
  const DataType type = t->dtype;
  if (type.bits() == 0 || type.lanes() == 0) throw ValueError(Cat("a tensor of dtype ", DataType2String(type)));
  const int64_t n = ShapeProduct(t->shape, static_cast<size_t>(t->ndim));
  TensorBytes(t->shape, t->ndim, type);
  if (n && !t->data) throw ValueError(Cat("a tensor of ", n, " elements without data"));
}

/// Frees the block that holds object, shape and strides.
void FreeBlock(Object* o) {
  auto* n = static_cast<NDArrayObj*>(o);
  n->~NDArrayObj();
  free(n);
}

}  // namespace

int64_t ShapeProduct(const int64_t* shape, size_t ndim) {
  int64_t n = 1;
  bool zero = false, overflow = false;
  for (size_t i = 0; i < ndim; ++i) {
    if (shape[i] < 0) {
      throw ValueError(Cat("negative extent ", shape[i], " in dimension ", i));
    }
    zero = zero || shape[i] == 0;
    overflow = overflow || __builtin_mul_overflow(n, shape[i] ? shape[i] : 1, &n);
  }
  if (zero) return 0;
  if (overflow) throw ValueError("a shape of more than 2^63 elements");
  return n;
}

size_t TensorBytes(const int64_t* shape, int ndim, DataType dtype) {
  const int64_t n = ShapeProduct(shape, static_cast<size_t>(ndim));
  int64_t total = 0;
  if (__builtin_mul_overflow(n, int64_t((dtype.bits() + 7) / 8) * dtype.lanes(), &total)) {
    throw ValueError("a tensor of more than 2^63 bytes");
  }
  return static_cast<size_t>(total);
}

bool IsContiguous(const DLTensor* t) {
  if (!t->strides) return true;
  int64_t expected = 1;
  for (int i = t->ndim - 1; i >= 0; --i) {
    if (t->shape[i] == 0) return true;
  }
  for (int i = t->ndim - 1; i >= 0; --i) {
    // The stride of an extent of 1 is never used.
    if (t->shape[i] == 1) continue;
    if (t->strides[i] != expected) return false;
    expected *= t->shape[i];
  }
  return true;
}

std::string TensorTypeString(const int64_t* shape, int ndim, DataType dtype) {
  std::string s = DataType2String(dtype);
  for (int i = 0; i < ndim; ++i) s += Cat(i ? ", " : "[", shape[i]);
  return s += ndim ? "]" : "[]";
}

void CopyTensor(const DLTensor* from, DLTensor* to) {
  const std::string difference = Same(from, to);
  if (!difference.empty()) throw ValueError(Cat("cannot copy ", difference));
  const size_t bytes = TensorBytes(from->shape, from->ndim, from->dtype);
  if (bytes == 0) return;
  if (IsContiguous(from) && IsContiguous(to)) {
    std::memmove(Begin(to), Begin(from), bytes);
    return;
  }
  CopyStrided(from, to);
}

void NDArray::EndLent(Object* o) {
  auto* self = static_cast<NDArrayObj*>(o);
  if (self->release_) self->release_(self);
  FreeBlock(self);
}

NDArray NDArray::Allocate(int ndim, const int64_t* shape, const int64_t* strides, DataType dtype, Device device) {
  if (ndim > kMaxRank) {
    throw ValueError(Cat("a tensor of rank ", ndim, ": expected 0 to ", kMaxRank));
  }
  const int64_t elements = ShapeProduct(shape, static_cast<size_t>(ndim));
  void* block = malloc(sizeof(NDArrayObj) + 2 * sizeof(int64_t) * static_cast<size_t>(ndim));
  if (!block) throw std::bad_alloc();
  NDArrayObj* n = new (block) NDArrayObj();
  int64_t* dims = reinterpret_cast<int64_t*>(n + 1);
  if (ndim) std::memcpy(dims, shape, sizeof(int64_t) * static_cast<size_t>(ndim));
  int64_t dense = 1;
  for (int i = ndim - 1; i >= 0; --i) {
    dims[ndim + i] = strides ? strides[i] : dense;
    // Beyond the range only where another extent is 0, and no stride is used.
    if (__builtin_mul_overflow(dense, shape[i] ? shape[i] : 1, &dense)) dense = 0;
  }
  n->dl_tensor = DLTensor{nullptr, device, ndim, dtype, dims, dims + ndim, 0};
  n->numel = elements;
  n->dense = runtime::IsContiguous(&n->dl_tensor);
  ObjectAccess::Init(n, NDArrayObj::RuntimeTypeIndex(), EndLent);
  return NDArray(ObjectPtr<Object>(n));
}

NDArray NDArray::Empty(const std::vector<int64_t>& shape, DataType dtype, Device device) {
  if (dtype.bits() == 0 || dtype.lanes() == 0)
    throw ValueError(Cat("an array cannot have dtype ", DataType2String(dtype)));
  const size_t bytes = TensorBytes(shape, dtype);
  DeviceAPI* api = DeviceAPI::Get(device);
  detail::InterruptPolls& polls = detail::interrupt_polls;
  if (polls.max_bytes && static_cast<int64_t>(bytes) > polls.max_bytes - polls.bytes) {
    BatonErrorSet("MemoryError", "arrays take more bytes than `limits` allow");
    ThrowFromSlot();
  }
  NDArray a = Allocate(static_cast<int>(shape.size()), shape.data(), nullptr, dtype, device);
  NDArrayObj* n = a.obj();
  // A line more than asked for, so that a vector load at the very end stays inside.
  n->dl_tensor.data = api->Alloc(device, bytes + kAlignment, kAlignment);
  polls.bytes += static_cast<int64_t>(bytes);
  n->owner_ = api;
  // Not the deleter of arrays over elements that others lend: OwnsElements tells them apart by it.
  ObjectAccess::Init(n, NDArrayObj::RuntimeTypeIndex(), EndOwned);
  return a;
}

void NDArray::EndOwned(Object* o) {
  auto* self = static_cast<NDArrayObj*>(o);
  if (self->source) ObjectAccess::DecRef(self->source);
  if (!self->away) Free(self);
  FreeBlock(self);
}

void NDArray::Free(NDArrayObj* self) {
  const DataType type = self->dl_tensor.dtype;
  detail::interrupt_polls.bytes -= self->numel * ((type.bits() + 7) / 8 * type.lanes());
  static_cast<DeviceAPI*>(self->owner_)->Free(self->dl_tensor.device, self->dl_tensor.data);
}

NDArray NDArray::Later(const std::vector<int64_t>& shape, DataType dtype, const ObjectRef& source) {
  TensorBytes(shape, dtype);
  NDArray a = Allocate(static_cast<int>(shape.size()), shape.data(), nullptr, dtype, Cpu());
  NDArrayObj* n = a.obj();
  n->owner_ = DeviceAPI::Get(Cpu());
  n->away = true;
  ObjectAccess::Init(n, NDArrayObj::RuntimeTypeIndex(), EndOwned);
  a.SetSource(source);
  return a;
}

void NDArray::SetSource(const ObjectRef& source) const {
  if (!OwnsElements(*this) || obj()->source) return;
  ObjectRef kept = source;
  obj()->source = ObjectAccess::Steal(kept);
}

void NDArray::Bring() const {
  static std::mutex bringing;  // two that ask for the same elements; rare beside what making them takes
  NDArrayObj* n = obj();
  const PackedFunc make{ObjectPtr<Object>(n->source)};
  NDArray made = make().As<NDArray>();
  if (made.same_as(*this) || made.shape() != shape() || !(made.dtype() == dtype()))
    throw InternalError("the source of an array makes another one");
  if (!OwnsElements(made) || made.obj()->source) made = made.Copy();
  const std::lock_guard lock(bringing);
  if (!n->away) return;
  n->dl_tensor.data = std::exchange(made.obj()->dl_tensor.data, nullptr);
  detail::interrupt_polls.bytes += static_cast<int64_t>(nbytes());  // what `made` takes away when it ends
  __atomic_store_n(&n->away, false, __ATOMIC_RELEASE);
}

void NDArray::GiveBack() const {
  NDArrayObj* n = obj();
  if (!n->source || n->away) return;
  // The heap keeps what is freed amid it: its pages go first.
  support::GiveBackPages({static_cast<const char*>(n->dl_tensor.data), nbytes()});
  Free(n);
  n->dl_tensor.data = nullptr;
  n->away = true;
}

void NDArray::Keep() const {
  NDArrayObj* n = obj();
  if (!n->source) return;
  tensor();
  ObjectAccess::DecRef(std::exchange(n->source, nullptr));
}

void NDArray::MoveTo(void* place, ObjectRef owner) const {
  NDArrayObj* n = obj();
  if (!n->source) throw InternalError("NDArray::MoveTo: elements are shared");
  std::memcpy(place, data(), nbytes());
  GiveBack();
  ObjectAccess::DecRef(std::exchange(n->source, nullptr));
  n->dl_tensor.data = place;
  n->owner_ = ObjectAccess::Steal(owner);
  n->release_ = [](NDArrayObj* self) {
    if (self->owner_) ObjectAccess::DecRef(static_cast<Object*>(self->owner_));
  };
  n->away = false;
  ObjectAccess::Init(n, NDArrayObj::RuntimeTypeIndex(), EndLent);
}

bool OwnsElements(const NDArray& a) {
  struct Deleter : Object {
    static FDeleter Of(const NDArray& x) { return x.obj()->*&Deleter::deleter_; }
  };
  return Deleter::Of(a) == Deleter::Of(NDArray::Empty({}, a.dtype()));
}

NDArray NDArray::Zeros(const std::vector<int64_t>& shape, DataType dtype, Device device) {
  NDArray a = Empty(shape, dtype, device);
  if (device.device_type == kDLCPU) {
    std::memset(a.data(), 0, a.nbytes());
  } else {
    const std::string zeros(a.nbytes(), '\0');
    a.CopyFromBytes(zeros.data(), zeros.size());
  }
  return a;
}

NDArray NDArray::FromBytes(const void* data, const std::vector<int64_t>& shape, DataType dtype) {
  NDArray a = Empty(shape, dtype);
  if (const size_t n = a.nbytes()) std::memcpy(a.data(), data, n);
  return a;
}

NDArray NDArray::Wrap(void* data, const std::vector<int64_t>& shape, DataType dtype, ObjectRef owner, bool read_only) {
  if (TensorBytes(shape, dtype) && !data) throw ValueError("a view of null");
  NDArray a = Allocate(static_cast<int>(shape.size()), shape.data(), nullptr, dtype, Cpu());
  NDArrayObj* n = a.obj();
  n->dl_tensor.data = data;
  n->read_only = read_only;
  n->owner_ = ObjectAccess::Steal(owner);
  n->release_ = [](NDArrayObj* self) {
    if (self->owner_) ObjectAccess::DecRef(static_cast<Object*>(self->owner_));
  };
  return a;
}

NDArray NDArray::ScalarDouble(double value, DataType dtype) {
  NDArray a = Empty({}, dtype);
  StoreDouble(a.data(), dtype, 0, value);
  return a;
}

NDArray NDArray::ScalarInt(int64_t value, DataType dtype) {
  NDArray a = Empty({}, dtype);
  StoreInt(a.data(), dtype, 0, value);
  return a;
}

size_t NDArray::nbytes() const { return TensorBytes((*this)->shape, ndim(), dtype()); }

void NDArray::CopyFrom(const DLTensor* other) const {
  if (obj()->read_only) throw ValueError("copy into a read-only array");
  CheckTensor(other);
  const std::string difference = Same(other, tensor());
  if (!difference.empty()) throw ValueError(Cat("cannot copy ", difference));
  const Device from = other->device, to = device();
  if (from.device_type == kDLCPU && to.device_type == kDLCPU) return CopyTensor(other, tensor());
  if (!runtime::IsContiguous(other) || !contiguous()) {
    throw UnsupportedError(Cat("copy between ", Device2String(from), " and ", Device2String(to),
                               " of an array with strides; make it contiguous first"));
  }
  DeviceAPI* api = DeviceAPI::Get(to.device_type == kDLCPU ? from : to);
  api->Copy(Begin(other), from, Begin(tensor()), to, nbytes());
}

void NDArray::CopyTo(const DLTensor* dst) const {
  DLTensor view = *dst;
  DLTensor* other = &view;
  CheckTensor(other);
  const std::string difference = Same(tensor(), other);
  if (!difference.empty()) throw ValueError(Cat("cannot copy ", difference));
  if (device().device_type == kDLCPU && other->device.device_type == kDLCPU) return CopyTensor(tensor(), other);
  if (!runtime::IsContiguous(other) || !contiguous()) {
    throw UnsupportedError("copy between devices of an array with strides; make it contiguous first");
  }
  DeviceAPI* api = DeviceAPI::Get(other->device.device_type == kDLCPU ? device() : other->device);
  api->Copy(Begin(tensor()), device(), Begin(other), other->device, nbytes());
}

NDArray NDArray::Copy(Device to) const {
  NDArray a = Empty(shape(), dtype(), to);
  a.CopyFrom(tensor());
  return a;
}

void NDArray::CopyFromBytes(const void* data, size_t bytes) const {
  if (obj()->read_only) throw ValueError("copy into a read-only array");
  if (bytes != nbytes()) {
    throw ValueError(Cat(bytes, " bytes for ", TypeText(tensor()), ", which takes ", nbytes()));
  }
  if (!contiguous()) throw ValueError("copy of bytes into an array with strides");
  DeviceAPI::Get(device())->Copy(data, Cpu(), Begin(tensor()), device(), bytes);
}

void NDArray::CopyToBytes(void* data, size_t bytes) const {
  if (bytes != nbytes()) {
    throw ValueError(Cat("room of ", bytes, " bytes for ", TypeText(tensor()), ", which takes ", nbytes()));
  }
  if (device().device_type == kDLCPU) {
    DLTensor to = *tensor();
    to.data = data, to.byte_offset = 0, to.strides = nullptr;
    return CopyTensor(tensor(), &to);
  }
  if (!contiguous()) throw ValueError("copy of bytes from an array with strides");
  DeviceAPI::Get(device())->Copy(Begin(tensor()), device(), data, Cpu(), bytes);
}

NDArray NDArray::Contiguous() const { return contiguous() && device().device_type == kDLCPU ? *this : Copy(Cpu()); }

NDArray NDArray::View(const std::vector<int64_t>& shape, DataType dtype) const {
  if (TensorBytes(shape, dtype) != nbytes()) {
    throw ValueError(Cat("a view as ", TensorTypeString(shape.data(), static_cast<int>(shape.size()), dtype), " of ",
                         TypeText(tensor()), ", which has another size"));
  }
  return CreateView(shape, dtype);
}

NDArray NDArray::CreateView(const std::vector<int64_t>& shape, DataType dtype) const {
  if (!contiguous()) throw ValueError("a view of an array with strides; make it contiguous first");
  if (TensorBytes(shape, dtype) > nbytes()) {
    throw ValueError(Cat("a view as ", TensorTypeString(shape.data(), static_cast<int>(shape.size()), dtype), " of ",
                         TypeText(tensor()), " would go beyond its end"));
  }
  Keep();
  NDArray a = Wrap(Begin(tensor()), shape, dtype, *this, obj()->read_only);
  a.tensor()->device = device();
  return a;
}

template <class M>
NDArray NDArray::Import(M* managed, uint64_t flags) {
  const DLTensor& t = managed->dl_tensor;
  CheckTensor(&t);
  if (t.dtype.bits < 8 && !(flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED)) {
    throw UnsupportedError(Cat("a DLPack tensor of packed ", DataType2String(t.dtype), "; give it padded to bytes"));
  }
  NDArray a = Allocate(t.ndim, t.shape, t.strides, t.dtype, t.device);
  NDArrayObj* n = a.obj();
  n->dl_tensor.data = t.data;
  n->dl_tensor.byte_offset = t.byte_offset;
  if (t.device.device_type == kDLCPU) {
    n->dl_tensor.data = Begin(&t);
    n->dl_tensor.byte_offset = 0;
  }
  n->read_only = (flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  n->owner_ = managed;
  n->release_ = [](NDArrayObj* self) {
    M* m = static_cast<M*>(self->owner_);
    if (m->deleter) m->deleter(m);
  };
  return a;
}

NDArray NDArray::FromDLPack(DLManagedTensor* tensor) {
  if (!tensor) throw ValueError("a DLPack tensor that is null");
  return Import(tensor, 0);
}

NDArray NDArray::FromDLPackVersioned(DLManagedTensorVersioned* tensor) {
  if (!tensor) throw ValueError("a DLPack tensor that is null");
  if (tensor->version.major != DLPACK_MAJOR_VERSION) {
    throw ValueError(Cat("DLPack version ", tensor->version.major, ".", tensor->version.minor, "; expected ",
                         DLPACK_MAJOR_VERSION, ".x"));
  }
  return Import(tensor, tensor->flags);
}

namespace {

template <class M>
M* Export(const NDArray& a) {
  a.Keep();
  M* m = new M();
  NDArray copy = a;
  m->dl_tensor = *a.tensor();
  m->manager_ctx = ObjectAccess::Steal(copy);
  m->deleter = [](M* self) {
    ObjectAccess::DecRef(static_cast<Object*>(self->manager_ctx));
    delete self;
  };
  return m;
}

}  // namespace

DLManagedTensor* NDArray::ToDLPack() const {
  if (obj()->read_only) throw ValueError("a read-only array cannot be given away in DLPack's old form; copy it first");
  return Export<DLManagedTensor>(*this);
}

DLManagedTensorVersioned* NDArray::ToDLPackVersioned() const {
  DLManagedTensorVersioned* m = Export<DLManagedTensorVersioned>(*this);
  m->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  m->flags = (obj()->read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0) |
             (dtype().bits() < 8 ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0);
  return m;
}

namespace {
/// A place within the elements of a dense CPU array, checked.
void CheckElement(const NDArray& a, int64_t i) {
  if (a->device.device_type != kDLCPU || !a.contiguous())
    throw ValueError("elements are read from dense CPU arrays only");
  if (i < 0 || i >= a.numel()) {
    throw Error("IndexError", Cat("element ", i, " of an array of ", a.numel()));
  }
}
}  // namespace

double NDArray::GetDouble(int64_t i) const { return CheckElement(*this, i), LoadDouble(data(), dtype(), i); }
int64_t NDArray::GetInt(int64_t i) const { return CheckElement(*this, i), LoadInt(data(), dtype(), i); }
void NDArray::SetDouble(int64_t i, double v) const { CheckElement(*this, i), StoreDouble(data(), dtype(), i, v); }
void NDArray::SetInt(int64_t i, int64_t v) const { CheckElement(*this, i), StoreInt(data(), dtype(), i, v); }

std::vector<int64_t> NDArray::ToInts() const {
  const NDArray a = Contiguous();
  std::vector<int64_t> out(static_cast<size_t>(a.numel()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = LoadInt(a.data(), dtype(), static_cast<int64_t>(i));
  return out;
}

std::string NDArray::Summary() const {
  if (!defined()) return "(null)";
  return Cat(TypeText(tensor()), " on ", Device2String(device()));
}

namespace {

void AppendElement(std::string* out, const void* data, DataType t, int64_t i) {
  char buffer[40];
  if (t.is_bool()) {
    out->append(LoadInt(data, t, i) ? "true" : "false");
  } else if (t.is_uint() && t.bits() == 64) {
    out->append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), static_cast<uint64_t>(LoadInt(data, t, i))).ptr);
  } else if (t.is_integral()) {
    out->append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), LoadInt(data, t, i)).ptr);
  } else {
    const double v = LoadDouble(data, t, i);
    if (std::isnan(v)) {
      out->append("nan");
    } else if (t.bits() == 64) {
      out->append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), v).ptr);
    } else {
      out->append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), static_cast<float>(v)).ptr);
    }
  }
}

}  // namespace

std::string NDArray::ToString() const {
  if (!defined()) return "(null)";
  const NDArray a = Contiguous();
  if (!IsLoadable(dtype())) return Cat("<", Summary(), ">");
  const int64_t n = numel();
  const int rank = ndim();
  // How many of each dimension are shown at either end.
  const int64_t edge = n <= 1000 ? std::numeric_limits<int64_t>::max() / 2 : rank <= 2 ? 8 : 3;
  std::string out;
  if (rank == 0) {
    AppendElement(&out, a.data(), dtype(), 0);
    return out;
  }
  if (n == 0) return std::string(static_cast<size_t>(rank), '[') + std::string(static_cast<size_t>(rank), ']');
  std::vector<int64_t> at(static_cast<size_t>(rank), 0);
  out.append(static_cast<size_t>(rank), '[');
  for (;;) {
    int64_t index = 0;
    for (int d = 0; d < rank; ++d) index = index * dim(d) + at[static_cast<size_t>(d)];
    AppendElement(&out, a.data(), dtype(), index);
    if (out.size() > 64000) return out.append(" ...");
    int d = rank - 1;
    int closed = 0;
    for (; d >= 0; --d) {
      int64_t& x = at[static_cast<size_t>(d)];
      if (++x < dim(d)) break;
      x = 0;
      ++closed;
    }
    out.append(static_cast<size_t>(closed), ']');
    if (d < 0) return out;
    out += closed ? (closed > 1 ? ",\n\n" : ",\n") : ", ";
    int64_t& x = at[static_cast<size_t>(d)];
    if (x == edge && dim(d) > 2 * edge) {
      out += closed ? "...,\n" : "..., ";
      x = dim(d) - edge;
    }
    if (closed) out.append(static_cast<size_t>(rank - closed), ' ');
    out.append(static_cast<size_t>(closed), '[');
  }
}

bool ValueTraits<DLTensor*>::Is(const BatonValue& v) {
  return v.type_code == kBatonTensor ||
         (v.type_code == kBatonObject && reinterpret_cast<Object*>(v.v_obj)->IsInstance<NDArrayObj>());
}

DLTensor* ValueTraits<DLTensor*>::From(const BatonValue& v) {
  if (v.type_code == kBatonTensor) return v.v_tensor;
  if (!Is(v)) ThrowValueMismatch("NDArray", v);
  auto* n = static_cast<NDArrayObj*>(reinterpret_cast<Object*>(v.v_obj));
  if (__builtin_expect(n->away, false)) return NDArray(ObjectPtr<Object>(n)).tensor();
  return &n->dl_tensor;
}

namespace {

NDArray Given(const Args& args) {
  NDArray a = args[0].As<NDArray>();
  if (!a.defined()) throw TypeError("expected NDArray, got None");
  return a;
}
std::vector<int64_t> Shape(const Args& args, int i) { return args[i].As<Array<int64_t>>().ToVector(); }

// Packed by hand: a third of the code of typed covers.
BATON_REGISTER_GLOBAL("runtime.NDArrayEmpty").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = NDArray::Empty(Shape(args, 0), args[1].As<DataType>(), args[2].As<Device>());
}));
BATON_REGISTER_GLOBAL("runtime.NDArrayCopyTo").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = Given(args).Copy(args[1].As<Device>());
}));
BATON_REGISTER_GLOBAL("runtime.NDArrayCopyFrom").set_body(PackedFunc([](Args args, RetValue*) {
  Given(args).CopyFrom(args[1].As<DLTensor*>());
}));
BATON_REGISTER_GLOBAL("runtime.NDArrayCreateView").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = Given(args).CreateView(Shape(args, 1), args[2].As<DataType>());
}));
BATON_REGISTER_GLOBAL("runtime.NDArrayToString").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = Given(args).ToString();
}));
BATON_REGISTER_GLOBAL("runtime.NDArraySummary").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = Given(args).Summary();
}));
BATON_REGISTER_GLOBAL("runtime.NDArrayShape").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = Array<int64_t>(Given(args).shape());
}));
BATON_REGISTER_GLOBAL("runtime.NDArrayDType").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = Given(args).dtype();
}));
BATON_REGISTER_GLOBAL("runtime.NDArrayDevice").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = Given(args).device();
}));

}  // namespace

}  // namespace baton::runtime

using namespace baton::runtime;  // NOLINT: the C functions below

namespace {
NDArray FromHandle(BatonObject* tensor) {
  auto* o = reinterpret_cast<Object*>(tensor);
  if (!o || !o->IsInstance<NDArrayObj>()) throw TypeError("expected a tensor object");
  return NDArray(ObjectPtr<Object>(o));
}
}  // namespace

extern "C" {

int BatonTensorView(BatonObject* tensor, DLTensor** out) {
  auto* o = reinterpret_cast<Object*>(tensor);
  if (!o || !o->IsInstance<NDArrayObj>()) {
    BatonErrorSet("TypeError", "BatonTensorView: not a tensor");
    return -1;
  }
  if (auto* n = static_cast<NDArrayObj*>(o); !n->source) {
    *out = &n->dl_tensor;
    return 0;
  }
  try {
    const NDArray a{ObjectPtr<Object>(o)};
    a.Keep();
    *out = a.tensor();
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}

int BatonTensorFromDLPack(DLManagedTensorVersioned* tensor, BatonObject** out) {
  try {
    NDArray a = NDArray::FromDLPackVersioned(tensor);
    *out = reinterpret_cast<BatonObject*>(ObjectAccess::Steal(a));
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}

int BatonTensorFromDLPackLegacy(DLManagedTensor* tensor, BatonObject** out) {
  try {
    NDArray a = NDArray::FromDLPack(tensor);
    *out = reinterpret_cast<BatonObject*>(ObjectAccess::Steal(a));
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}

int BatonTensorToDLPack(BatonObject* tensor, DLManagedTensorVersioned** out) {
  try {
    *out = FromHandle(tensor).ToDLPackVersioned();
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}

int BatonTensorToDLPackLegacy(BatonObject* tensor, DLManagedTensor** out) {
  try {
    *out = FromHandle(tensor).ToDLPack();
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}

}  // extern "C"
