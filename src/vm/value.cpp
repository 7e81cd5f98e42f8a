// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/packed_func.h>
#include <baton/runtime/registry.h>
#include <baton/support/text.h>
#include <baton/vm/value.h>

#include <cstdlib>
#include <new>

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
Closure::Closure(int32_t function, uint32_t size) : ObjectRef(ObjectPtr<Object>(NewWithTail<ClosureObj>(size))) {
  const_cast<ClosureObj*>(get())->function = function;
}

}  // namespace baton::vm
