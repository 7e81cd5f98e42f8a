// SPDX-License-Identifier: Apache-2.0
// The spellings of TVM 0.8 and before, for C++ written against them: include this instead of its headers. Nothing of
// Baton's own includes it. (`namespace tvm` is an alias, so code that reopens it says `namespace baton`.)
#pragma once

#include <baton/ir/attrs.h>
#include <baton/ir/declare_attrs.h>
#include <baton/ir/diagnostic.h>
#include <baton/ir/env_func.h>
#include <baton/ir/transform.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/transform.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/with.h>
#include <baton/te/tensor.h>
#include <baton/tir/functor.h>

#include <utility>
#include <vector>

namespace tvm = baton;

#define TVM_DLL BATON_DLL
#define TVM_REGISTER_GLOBAL BATON_REGISTER_GLOBAL
#define TVM_REGISTER_API BATON_REGISTER_GLOBAL
#define TVM_REGISTER_PASS_CONFIG_OPTION BATON_REGISTER_PASS_CONFIG_OPTION
#define TVM_DECLARE_ATTRS BATON_DECLARE_ATTRS
#define TVM_ATTR_FIELD BATON_ATTR_FIELD
#define TVM_REGISTER_NODE_TYPE BATON_REGISTER_NODE_TYPE
#define TVM_DECLARE_BASE_OBJECT_INFO BATON_DECLARE_BASE_OBJECT_INFO
#define TVM_DECLARE_FINAL_OBJECT_INFO BATON_DECLARE_FINAL_OBJECT_INFO
#define TVM_DEFINE_OBJECT_REF_METHODS BATON_DEFINE_OBJECT_REF_METHODS

namespace baton::runtime {

using TVMArgs = Args;
using TVMRetValue = RetValue;
using TVMArgValue = ArgValue;
using TVMValue = BatonValue;
using NodeRef = ObjectRef;
using NodeHash = ObjectHash;
using NodeEqual = ObjectEqual;

/// The early name of make_object.
template <class T, class... A>
ObjectPtr<T> make_node(A&&... args) {
  return make_object<T>(std::forward<A>(args)...);
}

/// A reference that says in its type that it may be null. (In Baton all may.)
template <class T>
class Optional : public T {
 public:
  using ContainerType = typename T::ContainerType;
  Optional() : T(ObjectPtr<Object>()) {}
  Optional(std::nullptr_t) : Optional() {}    // NOLINT
  Optional(T value) : T(std::move(value)) {}  // NOLINT
  explicit Optional(ObjectPtr<Object> n) : T(std::move(n)) {}
  /// The reference; an error where there is none.
  T value() const {
    ICHECK(this->defined()) << "an empty Optional has no value";
    return *this;
  }
  T value_or(T default_value) const { return this->defined() ? static_cast<T>(*this) : default_value; }
  explicit operator bool() const { return this->defined(); }
};

}  // namespace baton::runtime

namespace baton {

using runtime::make_node;
using runtime::NodeEqual;
using runtime::NodeHash;
using runtime::NodeRef;
using runtime::Optional;
using runtime::TVMArgs;
using runtime::TVMArgValue;
using runtime::TVMRetValue;
using runtime::TVMValue;
using Expr = RelayExpr;
using te::Operation;

/// The table of a functor: what to call for each type of node.
template <class F>
class NodeFunctor;
template <class R, class... Args>
class NodeFunctor<R(const ObjectRef& n, Args...)> {
 public:
  using FPointer = R (*)(const ObjectRef& n, Args...);
  template <class N>
  NodeFunctor& set_dispatch(FPointer f) {
    const uint32_t index = N::RuntimeTypeIndex();
    if (table_.size() <= index) table_.resize(index + 1);
    ICHECK(!table_[index]) << "a function for `" << N::_type_key << "` is set already";
    table_[index] = f;
    return *this;
  }
  bool can_dispatch(const ObjectRef& n) const {
    const uint32_t index = n.type_index();
    return n.defined() && index < table_.size() && table_[index];
  }
  R operator()(const ObjectRef& n, Args... args) const {
    ICHECK(can_dispatch(n)) << "no function for a node of type `" << (n.defined() ? n.get()->GetTypeKey() : "null")
                            << "`";
    return table_[n.type_index()](n, std::forward<Args>(args)...);
  }

 private:
  std::vector<FPointer> table_;
};

namespace relay {
/// Type of the operators' attribute of the same name.
using TOpIsStateful = bool;
}  // namespace relay

namespace transform {
using relay::transform::CreateFunctionPass;
}  // namespace transform

}  // namespace baton

namespace dmlc {
/// One object a thread.
template <class T>
class ThreadLocalStore {
 public:
  static T* Get() {
    static thread_local T value;
    return &value;
  }
};
}  // namespace dmlc
