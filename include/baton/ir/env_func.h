// SPDX-License-Identifier: Apache-2.0
// A global function as an IR node, identified by its name, so that it can be printed, compared, saved and loaded.
#pragma once

#include <baton/ir/attrs.h>
#include <baton/runtime/packed_func.h>

#include <string>
#include <utility>

namespace baton {

struct EnvFuncNode : Node<EnvFuncNode, Object> {
  static constexpr const char* _type_key = "EnvFunc";
  static constexpr const char* _doc = "A global function, known by its name.";
  String name;
  static constexpr void Describe(auto& d) { d(F<&EnvFuncNode::name>, "Name in the table of global functions."); }
};
class BATON_DLL EnvFunc : public RefTo<EnvFuncNode, ObjectRef> {
 public:
  using RefTo::RefTo;
  /// The function of a name; an unknown name is an error.
  static EnvFunc Get(const String& name);
  /// The function registered under the name now; an error if there is none, for example after loading in a process
  /// without the library that registers it.
  runtime::PackedFunc func() const;
  template <class... A>
  runtime::RetValue operator()(A&&... args) const {
    return func()(std::forward<A>(args)...);
  }
};

template <class F>
class TypedEnvFunc;
/// The same with a signature: `TypedEnvFunc<int(int)> f = EnvFunc::Get("my.add_one")`.
template <class R, class... A>
class TypedEnvFunc<R(A...)> : public EnvFunc {
 public:
  using TSelf = TypedEnvFunc<R(A...)>;
  TypedEnvFunc() = default;
  TypedEnvFunc(EnvFunc f) : EnvFunc(std::move(f)) {}  // NOLINT
  explicit TypedEnvFunc(ObjectPtr<Object> n) : EnvFunc(std::move(n)) {}
  R operator()(A... args) const { return runtime::TypedPackedFunc<R(A...)>(func())(std::forward<A>(args)...); }
};

}  // namespace baton
