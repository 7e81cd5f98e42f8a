// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/device.h>
#include <baton/relay/value.h>

#include <vector>

namespace baton::relay {
namespace {

/// Calls f for each array of a value, tuples and data included.
template <class F>
void ForEachArray(const ObjectRef& value, F f) {
  std::vector<ObjectRef> work{value};
  while (!work.empty()) {
    ObjectRef v = work.back();
    work.pop_back();
    if (v.as<runtime::NDArrayObj>()) {
      f(Downcast<NDArray>(v));
    } else if (v.as<runtime::ArrayObj>()) {
      for (const ObjectRef& x : Downcast<Array<ObjectRef>>(v)) work.push_back(x);
    } else if (const auto* data = v.as<ConstructorValueObj>()) {
      for (const ObjectRef& x : data->fields) work.push_back(x);
    }
  }
}

}  // namespace

std::string DeviceTypeName(int64_t device_type) {
  std::string name = runtime::Device2String({static_cast<DLDeviceType>(device_type), 0});
  return name.substr(0, name.find('('));
}

Device DeviceOfValue(const ObjectRef& value) {
  Device found = Cpu();
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
