// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/device.h>
#include <baton/relay/value.h>
#include <baton/tir/expr.h>

#include <unordered_set>
#include <vector>

namespace baton::relay {
namespace {

/// Calls f for each array of a value, tuples, data and what references hold included.
template <class F>
void ForEachArray(const ObjectRef& value, F f) {
  std::vector<ObjectRef> work{value};
  std::unordered_set<const Object*> seen;  // references: they may form cycles
  while (!work.empty()) {
    ObjectRef v = work.back();
    work.pop_back();
    if (v.as<runtime::NDArrayObj>()) {
      f(Downcast<NDArray>(v));
    } else if (v.as<runtime::ArrayObj>()) {
      for (const ObjectRef& x : Downcast<Array<ObjectRef>>(v)) work.push_back(x);
    } else if (const auto* data = v.as<ConstructorValueObj>()) {
      for (const ObjectRef& x : data->fields) work.push_back(x);
    } else if (const auto* ref = v.as<RefValueObj>(); ref && seen.insert(ref).second) {
      work.push_back(ref->value);
    }
  }
}

/// Calls f(tensor type) for each tensor of a type; false if it has other values.
template <class F>
bool ForEachTensor(const Type& type, F f) {
  std::vector<Type> work{type};
  while (!work.empty()) {
    const Type t = work.back();
    work.pop_back();
    if (const auto* tensor = t.as<TensorTypeNode>()) {
      f(tensor);
    } else if (const auto* tuple = t.as<TupleTypeNode>()) {
      for (size_t i = tuple->fields.size(); i-- > 0;) work.push_back(tuple->fields[static_cast<int64_t>(i)]);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

int64_t BytesOfValue(const Type& type) {
  int64_t bytes = 0;
  const bool tensors = ForEachTensor(type, [&](const TensorTypeNode* t) {
    int64_t n = t->dtype.bytes();
    for (const PrimExpr& d : t->shape) {
      const auto* extent = d.as<IntImmNode>();
      n = extent && n >= 0 ? n * extent->value : -1;
    }
    bytes = n < 0 || bytes < 0 ? -1 : bytes + n;
  });
  return tensors ? bytes : -1;
}

std::string BytesFormula(const Type& type) {
  std::string out;
  int64_t known = 0;
  const bool tensors = ForEachTensor(type, [&](const TensorTypeNode* t) {
    int64_t n = t->dtype.bytes();
    std::string open;
    for (const PrimExpr& d : t->shape) {
      if (const auto* extent = d.as<IntImmNode>()) {
        n *= extent->value;
      } else {
        const auto* var = d.as<tir::VarNode>();
        open += " * " + (var ? var->name_hint.str() : std::string("?"));
      }
    }
    if (open.empty() || n == 0) {
      known += n;
    } else {
      out += (out.empty() ? "" : " + ") + std::to_string(n) + open;
    }
  });
  if (!tensors) return "";
  if (out.empty()) return std::to_string(known);
  return known ? out + " + " + std::to_string(known) : out;
}

std::string DeviceTypeName(int64_t device_type) {
  std::string name = runtime::Device2String({static_cast<DLDeviceType>(device_type), 0});
  return name.substr(0, name.find('('));
}

Device DeviceOfValue(const ObjectRef& value, Device none) {
  Device found = none;
  if (value.as<runtime::NDArrayObj>()) return Downcast<NDArray>(value).device();
  bool any = false;
  ForEachArray(value, [&](const NDArray& a) {
    if (any && !runtime::operator==(a.device(), found)) {
      throw RuntimeError("a value lies on " + runtime::Device2String(found) + " and on " +
                         runtime::Device2String(a.device()) +
                         "; a program for several devices is planned by PlanDevices");
    }
    found = a.device();
    any = true;
  });
  return found;
}

ObjectRef MoveValue(const ObjectRef& value, int64_t device_type) {
  const Device to{static_cast<DLDeviceType>(device_type), 0};
  auto move = [&](const NDArray& a) -> NDArray {
    if (a.device().device_type == to.device_type) return a;
    if (!runtime::DeviceAPI::Get(to)->Exists(to))
      throw RuntimeError("this machine has no device " + runtime::Device2String(to));
    return a.Copy(to);
  };
  if (value.as<runtime::NDArrayObj>()) return move(Downcast<NDArray>(value));
  if (value.as<runtime::ArrayObj>()) {
    Array<ObjectRef> out = Downcast<Array<ObjectRef>>(value);
    for (size_t i = 0; i < out.size(); ++i) out.Set(i, MoveValue(out[i], device_type));
    return out;
  }
  const auto* data = value.as<ConstructorValueObj>();
  if (!data) return value;
  // Lists are long, not deep in other ways: the last field is a loop.
  std::vector<const ConstructorValueObj*> chain;
  ObjectRef last = value;
  for (const auto* d = data; d && !d->fields.empty(); d = last.as<ConstructorValueObj>()) {
    chain.push_back(d);
    last = d->fields[d->fields.size() - 1];
  }
  ObjectRef out = last.as<ConstructorValueObj>() ? last : MoveValue(last, device_type);
  while (!chain.empty()) {
    const ConstructorValueObj* d = chain.back();
    chain.pop_back();
    Array<ObjectRef> fields = d->fields;
    for (size_t i = 0; i + 1 < fields.size(); ++i) fields.Set(i, MoveValue(fields[i], device_type));
    fields.Set(fields.size() - 1, out);
    out = ConstructorValue(d->tag, fields, d->constructor);
  }
  return out;
}

}  // namespace baton::relay
