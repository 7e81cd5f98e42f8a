// SPDX-License-Identifier: Apache-2.0
// Attributes of operators and functions.
#pragma once

#include <baton/ir/expr.h>
#include <baton/ir/reducer.h>
#include <baton/runtime/packed_func.h>

#include <iosfwd>

namespace baton {

/// Name, type and meaning of one field of an attrs class.
struct AttrFieldInfoNode : Node<AttrFieldInfoNode, Object> {
  static constexpr const char* _type_key = "AttrFieldInfo";
  static constexpr const char* _doc = "Name, type and meaning of one field of an attrs class.";
  String name;
  String type_info;
  String description;
  static constexpr void Describe(auto& d) {
    d(F<&AttrFieldInfoNode::name>, "Name of the field.");
    d(F<&AttrFieldInfoNode::type_info>, "Type and default, as text.");
    d(F<&AttrFieldInfoNode::description>, "What it means.");
  }
};
class AttrFieldInfo : public RefTo<AttrFieldInfoNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// Base of all attributes. Everything below is read off the field table.
class BATON_DLL BaseAttrsNode : public Node<BaseAttrsNode, Object> {
 public:
  static constexpr const char* _type_key = "Attrs";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 400;
  static constexpr bool _type_optional_fields = true;  ///< fields that are not kRequired may be null
  using TVMArgs = runtime::Args;
  using TVMRetValue = runtime::RetValue;
  virtual ~BaseAttrsNode() = default;

  /// From alternating names and values; unknown names are an error that lists the known ones, unless allowed.
  void InitByPackedArgs(const runtime::Args& args, bool allow_unknown = false);
  /// The same from C++ arguments: name, value, name, value.
  template <class... A>
  void InitBySeq(A&&... a) {
    runtime::PackedFunc([this](runtime::Args args, runtime::RetValue*) { InitByPackedArgs(args); })(
        std::forward<A>(a)...);
  }
  Array<AttrFieldInfo> ListFieldInfo() const;
  void PrintDocString(std::ostream& os) const;
  /// Visits the fields that differ from their defaults, and all required ones.
  void VisitNonDefaultAttrs(runtime::AttrVisitor* v);
  /// Visits (name, value) of each field, or of those that differ from their default.
  template <class Fn>
  void VisitFields(Fn fn, bool non_default_only = false) const {
    for (const auto& f : runtime::TypeInfo::Get(type_index())->fields) {
      Any v = f.Get(this);
      if (!non_default_only || (f.flags & kRequired) || !IsDefault(f, v)) fn(f.name, v);
    }
  }

 private:
  static bool IsDefault(const runtime::FieldInfo& f, const Any& v);
};
class Attrs : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(Attrs, ObjectRef, BaseAttrsNode)
};

/// CRTP base of attrs classes. Fields are declared once, in Describe; member initializers are their defaults.
template <class D>
struct AttrsNode : Node<D, BaseAttrsNode> {
  /// Equal iff all fields are; floats by their bits.
  bool SEqualReduce(const D* other, SEqualReducer equal) const { return equal.Fields(this, other); }
  void SHashReduce(SHashReducer hash) const { hash.Fields(this); }
};

/// Attributes by name: of functions, of modules, and of operators that keep unknown attributes.
struct DictAttrsNode : AttrsNode<DictAttrsNode> {
  static constexpr const char* _type_key = "DictAttrs";
  Map<String, Any> dict;
  static constexpr void Describe(auto& d) { d(F<&DictAttrsNode::dict>, "Values by name."); }
};
class BATON_DLL DictAttrs : public Attrs {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(DictAttrs, Attrs, DictAttrsNode)
  explicit DictAttrs(Map<String, Any> dict);
};

}  // namespace baton
