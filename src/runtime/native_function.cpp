// SPDX-License-Identifier: Apache-2.0
// Functions of compiled code as PackedFuncs, and the way back: compiled code that calls PackedFuncs. Small rather than
// fast: a call takes a microsecond beside its arguments' checks anyway.
#include <baton/runtime/c_backend_api.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>

#include <cstring>
#include <mutex>

namespace baton::runtime {
namespace {

void AddShape(std::string* s, const int64_t* shape, int ndim) {
  *s += "(";
  for (int i = 0; i < ndim; ++i) {
    *s += shape[i] < 0 ? "n" : std::to_string(shape[i]);
    *s += i + 1 < ndim ? ", " : ndim == 1 ? "," : "";
  }
  *s += ")";
}

/// "`f`: argument 1 (`A`) must ".
std::string Must(const BatonFunctionSpec* f, int i) {
  std::string s = "`";
  s += f->name;
  s += "`: argument ";
  s += std::to_string(i);
  s += " (`";
  s += f->params[i].name;
  s += "`) must ";
  return s;
}
[[noreturn]] void ThrowArgumentError(const BatonFunctionSpec* f, int i, const char* want, const BatonValue& got) {
  std::string s = Must(f, i);
  s += want;
  s += ", got ";
  s += ValueKindName(got);
  throw Error("TypeError", s);
}

void BindTensor(const BatonFunctionSpec* f, int i, const ArgValue& v, void** slot) {
  const BatonParamSpec& p = f->params[i];
  if (v.is_null() || !v.Is<DLTensor*>()) ThrowArgumentError(f, i, "be a tensor", v.raw());
  const DLTensor* t = v.As<DLTensor*>();
  bool cpu = t->device.device_type == kDLCPU || t->device.device_type == kDLCUDAHost;
  bool dtype = t->dtype.code == p.dtype_code && t->dtype.bits == p.dtype_bits && t->dtype.lanes == p.dtype_lanes;
  bool shape = t->ndim == p.ndim, dense = true, empty = false;
  for (int d = 0; shape && d < p.ndim; ++d) {
    shape = p.shape[d] < 0 || p.shape[d] == t->shape[d];
    empty = empty || t->shape[d] == 0;
  }
  if (t->strides && shape && !empty) {
    int64_t step = 1;
    for (int d = t->ndim; d-- > 0; step *= t->shape[d]) dense = dense && (t->shape[d] == 1 || t->strides[d] == step);
  }
  if (!(cpu && dtype && shape && dense)) {
    std::string s = Must(f, i);
    if (!cpu) {
      s += "lie on the CPU";
    } else if (!dtype) {
      s += "have dtype ";
      s += DataType2String(DLDataType{p.dtype_code, p.dtype_bits, p.dtype_lanes});
      s += ", got ";
      s += DataType2String(t->dtype);
    } else if (!shape) {
      s += "have shape ";
      AddShape(&s, p.shape, p.ndim);
      s += ", got ";
      AddShape(&s, t->shape, t->ndim);
    } else {
      s += "be dense: give a copy";
    }
    throw Error(cpu && !dtype ? "TypeError" : "ValueError", s);
  }
  slot[0] = static_cast<char*>(t->data) + t->byte_offset;
  slot[1] = t->shape;
}

void Call(const BatonFunctionSpec* f, const Args& args, RetValue* ret) {
  if (args.size() != f->num_params && args.size() != f->num_required) {
    std::string names;
    for (int i = 0; i < f->num_params; ++i) {
      names += i ? ", " : "(";
      names += f->params[i].name;
    }
    ThrowArity(f->name, (names + ")").c_str(), f->num_required, args.size());
  }
  std::string slots(static_cast<size_t>(f->num_params + 1) * 16, '\0');  // aligned as by new
  for (int i = 0; i < args.size(); ++i) {
    void** slot = reinterpret_cast<void**>(slots.data()) + 2 * i;
    slot[1] = slots.data();  // given
    const ArgValue v = args[i];
    const int kind = f->params[i].kind;
    if (kind == kBatonParamTensor) {
      BindTensor(f, i, v, slot);
    } else if (kind == kBatonParamInt) {
      if (!v.Is<int64_t>()) ThrowArgumentError(f, i, "be an int", v.raw());
      std::memcpy(slot, &v.raw().v_int64, 8);
    } else if (kind == kBatonParamFloat) {
      if (!v.Is<double>()) ThrowArgumentError(f, i, "be a float", v.raw());
      const double x = v.As<double>();
      std::memcpy(slot, &x, 8);
    } else {
      slot[0] = v.As<void*>();
    }
  }
  if (f->call(reinterpret_cast<void**>(slots.data())) != 0) ThrowFromSlot();
  const char* result = slots.data() + static_cast<size_t>(f->num_params) * 16;
  if (f->result == kBatonParamInt) {
    int64_t value;
    std::memcpy(&value, result, 8);
    *ret = value;
  } else if (f->result == kBatonParamFloat) {
    double value;
    std::memcpy(&value, result, 8);
    *ret = value;
  }
}

std::mutex resolve_mutex;

}  // namespace

PackedFunc MakeNativeFunction(const void* spec, ObjectPtr<Object> owner) {
  const auto* f = static_cast<const BatonFunctionSpec*>(spec);
  if (f->version != kBatonFunctionSpecVersion) throw RuntimeError("compiled for another runtime; compile it again");
  return PackedFunc([f, owner = std::move(owner)](Args args, RetValue* ret) { Call(f, args, ret); });
}

Object* ModuleNode::Resolve(const char* name) {
  PackedFunc f;
  for (const Module& m : imports_) {
    if (!f.defined()) f = m.GetFunction(name, true);
  }
  const PackedFunc* global = f.defined() ? nullptr : Registry::Get(name);
  if (global) f = *global;
  if (!f.defined()) {
    std::string s = "compiled code calls `";
    s += name;
    s += "`, which no imported module has and which is not registered; register it (register_func), or import its "
         "module";
    throw RuntimeError(s);
  }
  std::lock_guard lock(resolve_mutex);
  resolved_.push_back(f);
  return const_cast<Object*>(static_cast<const Object*>(f.get()));
}

extern "C" {

int BatonBackendGetFunction(void* module, const char* name, void** out) {
  try {
    *out = static_cast<ModuleNode*>(module)->Resolve(name);
    return 0;
  } catch (...) {
    return CatchToSlot();
  }
}

int BatonBackendCallFunction(void* function, const BatonValue* args, int num_args, BatonValue* ret) {
  const auto* f = static_cast<const PackedFuncObj*>(static_cast<Object*>(function));
  const int code = f->call(f->self, args, num_args, ret);
  if (code == 0 && ret->type_code == kBatonObject) {  // the code takes numbers and pointers alone
    BatonObjectRelease(ret->v_obj);
    *ret = BatonValue{kBatonNull, 0, {.v_int64 = 0}};
  }
  return code;
}

}  // extern "C"

}  // namespace baton::runtime
