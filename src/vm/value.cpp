// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/packed_func.h>
#include <baton/runtime/registry.h>
#include <baton/support/text.h>

#include <cstdlib>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "vm/map_tensors.h"

namespace baton::vm {
namespace {

template <class N>
N* NewWithTail(uint32_t size) {
  void* block = malloc(sizeof(N) + size * sizeof(ObjectRef));
  if (!block) throw std::bad_alloc();
  N* n = new (block) N();
  n->size = size;
  auto* tail = reinterpret_cast<ObjectRef*>(n + 1);
  for (uint32_t i = 0; i < size; ++i) new (tail + i) ObjectRef();
  runtime::ObjectAccess::Init(n, N::RuntimeTypeIndex(), [](Object* o) {
    auto* self = static_cast<N*>(o);
    auto* tail = reinterpret_cast<ObjectRef*>(self + 1);
    for (uint32_t i = self->size; i-- > 0;) tail[i].~ObjectRef();
    self->~N();
    free(self);
  });
  return n;
}

ADT Given(const runtime::ArgValue& v) {
  ADT a = Downcast<ADT>(v.As<ObjectRef>());
  if (!a.defined()) throw runtime::TypeError("expected runtime.ADT, got None");
  return a;
}

BATON_REGISTER_GLOBAL("runtime.ADT").set_body(PackedFunc([](runtime::Args args, runtime::RetValue* rv) {
  if (args.size() < 1) throw runtime::TypeError("runtime.ADT takes a tag and fields");
  ADT out(args[0].As<int32_t>(), static_cast<uint32_t>(args.size() - 1));
  auto* n = const_cast<ADTObj*>(out.get());
  for (int i = 1; i < args.size(); ++i) n->fields()[i - 1] = args[i].As<ObjectRef>();
  *rv = out;
}));
BATON_REGISTER_GLOBAL("runtime.GetADTTag").set_body(PackedFunc([](runtime::Args args, runtime::RetValue* rv) {
  *rv = int64_t{Given(args[0])->tag};
}));
BATON_REGISTER_GLOBAL("runtime.GetADTSize").set_body(PackedFunc([](runtime::Args args, runtime::RetValue* rv) {
  *rv = int64_t{Given(args[0])->size};
}));
BATON_REGISTER_GLOBAL("runtime.GetADTField").set_body(PackedFunc([](runtime::Args args, runtime::RetValue* rv) {
  const ADT a = Given(args[0]);
  const int64_t i = args[1].As<int64_t>();
  if (i < 0 || i >= int64_t{a->size}) {
    throw runtime::Error("IndexError", support::Cat("field ", i, " of a value with ", a->size, " fields"));
  }
  *rv = a->fields()[i];
}));

}  // namespace

ADT::ADT(int32_t tag, uint32_t size) : ObjectRef(ObjectPtr<Object>(NewWithTail<ADTObj>(size))) {
  const_cast<ADTObj*>(get())->tag = tag;
}

ObjectRef MapTensors(const ObjectRef& value, const std::function<NDArray(const NDArray&)>& f, bool in_data) {
  struct Item {
    ObjectRef value;
    size_t next = 0;
    bool changed = false;
    std::vector<ObjectRef> fields;
  };
  std::unordered_map<const Object*, ObjectRef> done;  // tuples and data, which others may share
  std::vector<Item> stack;
  ObjectRef result;
  // Gives what is known of a part at once, else puts it on the stack.
  auto enter = [&](const ObjectRef& v) {
    if (v.as<runtime::NDArrayObj>()) {
      result = f(static_cast<const NDArray&>(v));
      return true;
    }
    if (!v.as<runtime::ArrayObj>() && !(in_data && v.as<ADTObj>())) {
      result = v;
      return true;
    }
    if (auto it = done.find(v.get()); it != done.end()) {
      result = it->second;
      return true;
    }
    stack.push_back({v});
    return false;
  };
  if (enter(value)) return result;
  bool have = false;  // `result` is the next field of the innermost
  for (;;) {
    Item& top = stack.back();
    const auto* data = top.value.as<ADTObj>();
    const auto& tuple = static_cast<const runtime::Array<ObjectRef>&>(top.value);
    const size_t size = data ? data->size : tuple.size();
    auto field = [&](size_t i) { return data ? data->fields()[i] : tuple[static_cast<int64_t>(i)]; };
    if (have) {
      top.changed = top.changed || !result.same_as(field(top.next));
      top.fields.push_back(result);
      ++top.next;
      have = false;
    }
    bool deeper = false;  // one is above it now, and `top` may have moved
    while (!deeper && top.next < size) {
      const ObjectRef part = field(top.next);
      deeper = !enter(part);
      if (deeper) break;
      top.changed = top.changed || !result.same_as(part);
      top.fields.push_back(result);
      ++top.next;
    }
    if (deeper) continue;
    result = top.value;
    if (top.changed && data) {
      ADT made(data->tag, data->size);
      for (size_t i = 0; i < size; ++i) const_cast<ADTObj*>(made.get())->fields()[i] = std::move(top.fields[i]);
      result = made;
    } else if (top.changed) {
      result = runtime::Array<ObjectRef>(top.fields.begin(), top.fields.end());
    }
    done[top.value.get()] = result;
    stack.pop_back();
    if (stack.empty()) return result;
    have = true;
  }
}

ObjectRef MoveTo(const ObjectRef& value, runtime::Device device) {
  return MapTensors(
      value, [&](const NDArray& a) { return runtime::operator==(a.device(), device) ? a : a.Copy(device); }, true);
}

Closure::Closure(int32_t function, uint32_t size) : ObjectRef(ObjectPtr<Object>(NewWithTail<ClosureObj>(size))) {
  const_cast<ClosureObj*>(get())->function = function;
}

}  // namespace baton::vm
