// SPDX-License-Identifier: Apache-2.0
// The older way to declare an attrs class, which much C++ code for TVM 0.8 uses: a macro for the class and one for each
// field. The declarations go into the same table as those of `Describe`, which new classes use.
//
//   struct ScaleAttrs : public AttrsNode<ScaleAttrs> {
//     double factor;
//     BATON_DECLARE_ATTRS(ScaleAttrs, "relay.attrs.ScaleAttrs") {
//       BATON_ATTR_FIELD(factor).describe("Unitless.").set_default(2.0).set_lower_bound(0);
//     }
//   };
//   BATON_REGISTER_NODE_TYPE(ScaleAttrs);
#pragma once

#include <baton/ir/attrs.h>
#include <baton/runtime/registry.h>

#include <string>
#include <type_traits>
#include <utility>

namespace baton {

/// BATON_ATTR_FIELD when an object is constructed: sets the default.
class AttrDefaultSetter {
 public:
  template <class T>
  class Field {
   public:
    explicit Field(T* member) : member_(member) {}
    Field& describe(const char*) { return *this; }
    template <class V>
    Field& set_default(V&& v) {
      *member_ = T(std::forward<V>(v));
      return *this;
    }
    Field& set_lower_bound(double) { return *this; }
    Field& set_upper_bound(double) { return *this; }

   private:
    T* member_;
  };
  template <class T>
  Field<T> operator()(const char*, T* member) {
    return Field<T>(member);
  }
};

/// BATON_ATTR_FIELD when the class is registered: fills the table.
class AttrFieldCollector {
 public:
  AttrFieldCollector(runtime::TypeInfo* info, Object* instance) : info_(info), instance_(instance) {}
  class Field {
   public:
    Field(runtime::FieldInfo* f, const Object* instance) : f_(f), instance_(instance) {}
    Field& describe(const char* doc) {
      f_->doc = doc;
      return *this;
    }
    template <class V>
    Field& set_default(const V&) {  // the instance has it already
      f_->default_value = f_->Get(instance_);
      f_->flags &= static_cast<uint16_t>(~kRequired);
      return *this;
    }
    Field& set_lower_bound(double v) {
      f_->has_lower = true, f_->lower = v;
      return *this;
    }
    Field& set_upper_bound(double v) {
      f_->has_upper = true, f_->upper = v;
      return *this;
    }

   private:
    runtime::FieldInfo* f_;
    const Object* instance_;  // without a default its members may hold anything
  };
  template <class T>
  Field operator()(const char* name, T* member) {
    runtime::FieldInfo f;
    f.name = name;
    f.doc = "";
    f.type_name = runtime::FieldTypeName<T>();
    f.kind = runtime::KindOf<T>();
    f.flags = kRequired;
    f.offset = static_cast<uint32_t>(reinterpret_cast<const char*>(member) - reinterpret_cast<const char*>(instance_));
    if constexpr (std::is_base_of_v<ObjectRef, T>) {
      f.convert = [](const BatonValue& in, Any* out) {
        *out = Any(runtime::ValueTraits<T>::From(in));
        return true;
      };
    }
    info_->fields.push_back(std::move(f));
    return Field(&info_->fields.back(), instance_);
  }

 private:
  runtime::TypeInfo* info_;
  Object* instance_;
};

/// Registers the field table of a class, from its BATON_ATTR_FIELDs or from its `Describe`.
template <class T>
bool RegisterAttrsType() {
  if constexpr (requires(T& t, AttrFieldCollector& c) { t.DeclareFields(c); }) {
    runtime::TypeInfo info;
    info.key = T::_type_key;
    info.index = T::RuntimeTypeIndex();
    info.parent = T::ParentType::RuntimeTypeIndex();
    info.described = true;
    info.doc = runtime::DocOf<T>();
    info.create = []() -> ObjectPtr<Object> { return make_object<T>(); };
    info.copy = [](const Object* o) -> ObjectPtr<Object> { return make_object<T>(*static_cast<const T*>(o)); };
    ObjectPtr<T> instance = make_object<T>();
    AttrFieldCollector fields(&info, instance.get());
    instance->DeclareFields(fields);
    for (runtime::FieldInfo& f : info.fields) {
      if (!(f.flags & kRequired)) f.flags |= kNullable;
    }
    runtime::TypeInfo::Put(std::move(info));
  } else {
    runtime::RegisterNode<T>();
  }
  return true;
}

}  // namespace baton

/// Opens the list of an attrs class's fields; gives the class its key and a constructor that sets the defaults.
#define BATON_DECLARE_ATTRS(Name, Key)             \
  static constexpr const char* _type_key = Key;    \
  Name() {                                         \
    ::baton::AttrDefaultSetter baton_set_defaults; \
    DeclareFields(baton_set_defaults);             \
  }                                                \
  template <class Declarer>                        \
  void DeclareFields([[maybe_unused]] Declarer& baton_declare)
/// One field; `.describe(text)`, `.set_default(v)`, `.set_lower_bound(v)` and `.set_upper_bound(v)` may follow. One
/// without a default must be given.
#define BATON_ATTR_FIELD(Member) baton_declare(#Member, &this->Member)
/// Registers the class; once, in a .cpp.
#define BATON_REGISTER_NODE_TYPE(Name) \
  [[maybe_unused]] static const bool BATON_CONCAT(baton_node_type_, __COUNTER__) = ::baton::RegisterAttrsType<Name>()
