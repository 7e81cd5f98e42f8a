// SPDX-License-Identifier: Apache-2.0
// Base of the functions of every IR.
#pragma once

#include <baton/ir/attrs.h>
#include <baton/ir/type.h>

namespace baton {

namespace attr {
constexpr const char* kPrimitive = "Primitive";                ///< int 1: a fusion group, compiled as one kernel
constexpr const char* kSkipOptimization = "SkipOptimization";  ///< int 1: function passes skip it
constexpr const char* kGlobalSymbol = "global_symbol";         ///< String: name in the compiled module
constexpr const char* kNoAlias = "tir.noalias";                ///< bool: buffers do not overlap
constexpr const char* kTarget = "target";                      ///< Target that it is compiled for
constexpr const char* kClosure = "Closure";                    ///< int 1: returns a closure (lambda lifting)
constexpr const char* kCompiler = "Compiler";                  ///< String: external code generator
constexpr const char* kInline = "Inline";                      ///< int 1: inlined where called
}  // namespace attr

/// Base of relay::Function and tir::PrimFunc.
struct BATON_DLL BaseFuncNode : Node<BaseFuncNode, RelayExprNode> {
  static constexpr const char* _type_key = "BaseFunc";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 4;
  DictAttrs attrs;
  static constexpr void Describe(auto& d) {
    d(F<&BaseFuncNode::attrs>, "Attributes by name; null is none.", kNullable);
  }
  template <class T>
  T GetAttr(const char* key, T default_value = T()) const {
    if (!attrs.defined()) return default_value;
    const auto* e = attrs->dict.get() ? attrs->dict.get()->Find(Any(key)) : nullptr;
    return e ? e->value.template As<T>() : default_value;
  }
  /// True if the attribute is there and not zero.
  bool HasNonzeroAttr(const char* key) const;
};
class BaseFunc : public RelayExpr {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(BaseFunc, RelayExpr, BaseFuncNode)
};

/// A copy of the function with one more attribute.
template <class Fn>
inline Fn WithAttr(Fn func, const char* key, Any value) {
  ObjectRef type = func->checked_type_;  // attributes do not affect the type
  auto* n = func.CopyOnWrite();
  n->checked_type_ = type;
  Map<String, Any> dict = n->attrs.defined() ? n->attrs->dict : Map<String, Any>();
  dict.Set(key, value);
  n->attrs = DictAttrs(dict);
  return func;
}

}  // namespace baton
