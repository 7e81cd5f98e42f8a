// SPDX-License-Identifier: Apache-2.0
// One description per class: a class states its fields once in `Describe`; visiting, structural equality and hash,
// JSON, printing, Python attributes and constructors are derived from the table that this makes.
#pragma once

#include <baton/runtime/any.h>
#include <baton/runtime/array.h>
#include <baton/runtime/map.h>
#include <baton/runtime/signature.h>
#include <baton/runtime/string.h>

#include <string_view>
#include <vector>

namespace baton::runtime {

/// The representation of a field in memory.
enum class FieldKind : uint8_t { kBool, kInt32, kInt64, kUInt64, kDouble, kDataType, kObject, kStdString, kHandle };

/// The role of a field in the generic algorithms.
enum FieldFlag : uint16_t {
  kNoFlag = 0,
  kRequired = 1,    ///< attrs: must be given
  kBinds = 2,       ///< holds a variable (or an array of them) that is bound in the fields described after it
  kIgnored = 4,     ///< not part of the value: spans, inferred types
  kFree = 8,        ///< holds a variable that stands for itself
  kNullable = 16,   ///< a reference that may be null though its default is not an object
  kTransient = 32,  ///< lives in this process only: JSON leaves it out
  kSource = 64,     ///< says where something came from: text leaves it out, JSON a file's folder
};

struct BATON_DLL FieldInfo {
  const char* name;
  const char* doc;
  std::string type_name;  ///< "int64", "relay.Expr", "Array", ...
  uint32_t offset;        ///< from the Object*
  FieldKind kind;
  uint16_t flags = 0;
  bool has_lower = false, has_upper = false;
  double lower = 0, upper = 0;
  Any default_value;  ///< of a default instance; counts unless kRequired
  /// kObject: whether the value may be stored, and converts it if need be.
  bool (*convert)(const BatonValue& in, Any* out) = nullptr;

  /// Whether an instance is complete when nothing was given for the field.
  bool MayBeMissing() const {
    return !(flags & kRequired) && (kind != FieldKind::kObject || (flags & kNullable) || default_value.object());
  }
  /// The field's value in `obj`, borrowed by the object.
  Any Get(const Object* obj) const;
  /// Stores a checked value; the object must not be shared. Errors name the field, the bound and the value.
  void Set(Object* obj, const BatonValue& v) const;
  const ObjectRef& Ref(const Object* obj) const {
    return *reinterpret_cast<const ObjectRef*>(reinterpret_cast<const char*>(obj) + offset);
  }
  ObjectRef& MutableRef(Object* obj) const {
    return *reinterpret_cast<ObjectRef*>(reinterpret_cast<char*>(obj) + offset);
  }
};

struct BATON_DLL TypeInfo {
  std::string key;
  uint32_t index = 0;
  uint32_t parent = 0;
  const char* doc = "";
  bool described = false;         ///< has a table (an abstract class may lack one)
  bool identity = false;          ///< values compare by identity: operators
  bool is_var = false;            ///< a variable: equal by where it is bound; a free one by identity or by mapping
  bool has_equal = true;          ///< structural equality may be asked for
  bool has_hash = true;           ///< structural hash may be asked for
  bool is_value = true;           ///< how it is shared in memory does not matter; else compared as a node of a graph
  std::vector<FieldInfo> fields;  ///< all, parents' first
  ObjectPtr<Object> (*create)() = nullptr;                 ///< a default instance
  ObjectPtr<Object> (*copy)(const Object* obj) = nullptr;  ///< a shallow copy
  const FieldInfo* Find(std::string_view name) const;

  /// Null for an unknown index. Entries never move.
  static const TypeInfo* Get(uint32_t index);
  static const TypeInfo* FindKey(std::string_view key);
  /// All registered types in order of index.
  static std::vector<const TypeInfo*> List();
  /// Puts the table of a type in place (the second time for one key is ignored).
  static void Put(TypeInfo info);
};

// ---- Names of members, read off the compiler's own spelling.
template <auto M>
struct FieldTag {};
/// Names a member inside Describe: F<&LetNode::var>.
template <auto M>
inline constexpr FieldTag<M> F{};

template <auto M>
consteval std::string_view RawMemberName() {
  std::string_view s = __PRETTY_FUNCTION__;
  size_t end = s.find_first_of(";]", s.find("M = "));
  s = s.substr(0, end);
  while (!s.empty() && (s.back() == ')' || s.back() == ' ')) s.remove_suffix(1);
  return s.substr(s.rfind("::") + 2);
}
template <auto M>
struct MemberName {
  static constexpr std::string_view view = RawMemberName<M>();
  struct Buf {
    char c[view.size() + 1];
  };
  static constexpr Buf buf = [] {
    Buf b{};
    for (size_t i = 0; i < view.size(); ++i) b.c[i] = view[i];
    return b;
  }();
  static constexpr const char* c_str() { return buf.c; }
};
template <class T>
struct MemberOf;
template <class C, class T>
struct MemberOf<T C::*> {
  using Class = C;
  using Type = T;
};

struct LowerBound {
  double value;
};
struct UpperBound {
  double value;
};
/// Smallest value allowed (each element's, for an array of numbers).
constexpr LowerBound AtLeast(double v) { return {v}; }
/// Largest value allowed.
constexpr UpperBound AtMost(double v) { return {v}; }

template <class T>
constexpr FieldKind KindOf() {
  if constexpr (std::is_same_v<T, bool>)
    return FieldKind::kBool;
  else if constexpr (std::is_enum_v<T>) {
    static_assert(sizeof(T) == 4);
    return FieldKind::kInt32;
  } else if constexpr (std::is_same_v<T, int32_t>)
    return FieldKind::kInt32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return FieldKind::kInt64;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return FieldKind::kUInt64;
  else if constexpr (std::is_same_v<T, double>)
    return FieldKind::kDouble;
  else if constexpr (std::is_same_v<T, DataType>)
    return FieldKind::kDataType;
  else if constexpr (std::is_same_v<T, std::string>)
    return FieldKind::kStdString;
  else {
    static_assert(std::is_base_of_v<ObjectRef, T>, "a field is a number, a bool, a DataType, a string or a reference");
    return FieldKind::kObject;
  }
}
/// "Array<relay.Expr>", "Map<str, int>"; other references by their key.
template <class T>
struct ReferenceName {
  static std::string Get() { return ValueTraits<T>::Name(); }
};
template <class... A>
struct ReferenceName<Array<A...>> {
  static std::string Get() { return detail::TypeText<Array<A...>>(); }
};
template <class... A>
struct ReferenceName<Map<A...>> {
  static std::string Get() { return detail::TypeText<Map<A...>>(); }
};
template <class T>
std::string FieldTypeName() {
  if constexpr (std::is_base_of_v<ObjectRef, T>)
    return ReferenceName<T>::Get();
  else if constexpr (std::is_same_v<T, DataType>)
    return "dtype";
  else if constexpr (std::is_same_v<T, std::string>)
    return "str";
  else if constexpr (std::is_same_v<T, bool>)
    return "bool";
  else if constexpr (std::is_floating_point_v<T>)
    return "float";
  else
    return "int";
}

BATON_DLL void CheckFieldCoverage(const TypeInfo& info, size_t begin, size_t size);

/// Sees each member of an object by name: `v->Visit("name", &member)`, as the classes that state their fields in a
/// method `VisitAttrs(AttrVisitor* v)` say it, and as `VisitAttrs` of a described class does.
class BATON_DLL AttrVisitor {
 public:
  virtual ~AttrVisitor() = default;
  virtual void Visit(const char* key, double* value) = 0;
  virtual void Visit(const char* key, int64_t* value) = 0;
  virtual void Visit(const char* key, uint64_t* value) = 0;
  virtual void Visit(const char* key, int* value) = 0;
  virtual void Visit(const char* key, bool* value) = 0;
  virtual void Visit(const char* key, std::string* value) = 0;
  virtual void Visit(const char* key, void** value) = 0;
  virtual void Visit(const char* key, DataType* value) = 0;
  virtual void Visit(const char* key, ObjectRef* value) = 0;
  template <class T, class = std::enable_if_t<std::is_enum_v<T>>>
  void Visit(const char* key, T* value) {
    static_assert(sizeof(T) == sizeof(int));
    Visit(key, reinterpret_cast<int*>(value));
  }
  /// A reference with its own kind: the visitor may ask for the kind.
  template <class T>
    requires(std::is_base_of_v<ObjectRef, T> && !std::is_same_v<T, ObjectRef>)
  void Visit(const char* key, T* value) {
    RefKind kind{ValueTraits<T>::Name(), [](const BatonValue& in, Any* out) {
                   *out = Any(ValueTraits<T>::From(in));
                   return true;
                 }};
    VisitRef(key, value, kind);
  }

 protected:
  struct RefKind {
    std::string name;
    bool (*convert)(const BatonValue& in, Any* out);
  };
  virtual void VisitRef(const char* key, ObjectRef* value, const RefKind&) { Visit(key, value); }
};
BATON_DLL void VisitField(Object* obj, const FieldInfo& f, AttrVisitor* v);
/// Visits the fields of the table of `obj`.
BATON_DLL void VisitTable(Object* obj, AttrVisitor* v);
/// The table of a class that states its fields in VisitAttrs, off an instance.
BATON_DLL void CollectVisited(TypeInfo* info, Object* instance, void (*visit)(Object*, AttrVisitor*));

/// Turns a class's Describe into its table.
class FieldCollector {
 public:
  FieldCollector(TypeInfo* info, const Object* instance) : info_(info), instance_(instance) {}
  template <auto M, class... Opts>
  constexpr void operator()(FieldTag<M>, const char* doc, Opts... opts) {
    using C = typename MemberOf<decltype(M)>::Class;
    using T = std::remove_cv_t<typename MemberOf<decltype(M)>::Type>;
    FieldInfo f;
    f.name = MemberName<M>::c_str();
    f.doc = doc;
    f.type_name = FieldTypeName<T>();
    f.kind = KindOf<T>();
    auto* member = &(static_cast<const C*>(instance_)->*M);
    f.offset = static_cast<uint32_t>(reinterpret_cast<const char*>(member) - reinterpret_cast<const char*>(instance_));
    (Apply(&f, opts), ...);
    if constexpr (std::is_base_of_v<ObjectRef, T>) {
      f.convert = [](const BatonValue& in, Any* out) {
        *out = Any(ValueTraits<T>::From(in));
        return true;
      };
    }
    f.default_value = f.Get(instance_);
    info_->fields.push_back(std::move(f));
  }

 private:
  static constexpr void Apply(FieldInfo* f, FieldFlag flag) { f->flags |= flag; }
  static constexpr void Apply(FieldInfo* f, LowerBound b) { f->has_lower = true, f->lower = b.value; }
  static constexpr void Apply(FieldInfo* f, UpperBound b) { f->has_upper = true, f->upper = b.value; }
  TypeInfo* info_;
  const Object* instance_;
};

/// A new node that converts to any kind of reference that the receiver asks for.
template <class D>
struct MadeNode {
  ObjectPtr<D> node;
  template <class R, class = std::enable_if_t<std::is_base_of_v<ObjectRef, R> &&
                                              std::is_base_of_v<typename R::ContainerType, D>>>
  operator R() const {  // NOLINT
    return R(ObjectPtr<Object>(node));
  }
};

/// CRTP base of described nodes: gives the type its index. A class with members that are none of its fields (a
/// function, a cache) says `static constexpr bool _type_has_hidden_members = true`. A class with children says `static
/// constexpr bool _type_final = false` and, if the check is hot, `_type_child_slots`.
template <class D, class B>
struct Node : B {
  using ParentType = B;
  /// The older way to construct, `LetNode::make(var, value, body)`; new code uses the reference's constructor.
  template <class... A>
  static MadeNode<D> make(A&&... args) {
    return {make_object<D>(std::forward<A>(args)...)};
  }
  static constexpr bool _type_final = true;
  static constexpr uint32_t _type_child_slots = 0;
  static constexpr bool _type_child_slots_can_overflow = true;
  static constexpr bool _type_has_method_visit_attrs = true;
  static constexpr bool _type_has_method_sequal_reduce = true;
  static constexpr bool _type_has_method_shash_reduce = true;
  static constexpr bool _type_abstract = false;  ///< no instances: base classes say true
  static constexpr bool _type_identity = false;  ///< values compare by identity: operators
  static constexpr bool _type_is_var = false;    ///< a variable: equal by its binding, else by identity
  static uint32_t RuntimeTypeIndex() {
    static const uint32_t index = _GetOrAllocRuntimeTypeIndex();
    return index;
  }
  static uint32_t _GetOrAllocRuntimeTypeIndex() {
    static_assert(!B::_type_final, "the parent is final");
    return Object::GetOrAllocRuntimeTypeIndex(D::_type_key, TypeIndex::kDynamic, B::_GetOrAllocRuntimeTypeIndex(),
                                              D::_type_child_slots, D::_type_child_slots_can_overflow);
  }
  /// Passes each field to `v`, parents' first.
  void VisitAttrs(AttrVisitor* v) { VisitTable(this, v); }
};

template <class T>
concept HasOwnDescribe = requires(FieldCollector& c) { T::Describe(c); };
/// The class states its fields, and its parents', in its own VisitAttrs.
template <class T>
concept HasOwnVisitAttrs = std::is_same_v<decltype(&T::VisitAttrs), void (T::*)(AttrVisitor*)>;

/// True where Describe is T's own and not the parent's.
template <class T>
void DescribeChain(FieldCollector& c) {
  if constexpr (requires { typename T::ParentType; }) {
    DescribeChain<typename T::ParentType>(c);
    if constexpr (HasOwnDescribe<T>) {
      if constexpr (HasOwnDescribe<typename T::ParentType>) {
        if (&T::template Describe<FieldCollector> != &T::ParentType::template Describe<FieldCollector>) T::Describe(c);
      } else {
        T::Describe(c);
      }
    }
  }
}

template <class T>
const char* DocOf() {
  if constexpr (requires { T::_doc; })
    return T::_doc;
  else
    return "";
}

/// Size from the Object on: the table of a polymorphic class comes before it.
template <class T>
constexpr size_t BytesOf() {
  return sizeof(T) - (std::is_polymorphic_v<T> ? sizeof(void*) : 0);
}

template <class T>
void RegisterNode() {
  TypeInfo info;
  info.key = T::_type_key;
  info.index = T::RuntimeTypeIndex();
  info.parent = T::ParentType::RuntimeTypeIndex();
  info.described = true;
  info.doc = DocOf<T>();
  info.identity = T::_type_identity;
  info.is_var = T::_type_is_var;
  info.is_value = T::_type_is_value;
  info.has_equal = T::_type_has_method_sequal_reduce;
  info.has_hash = T::_type_has_method_shash_reduce;
  if constexpr (!T::_type_abstract) {
    info.create = []() -> ObjectPtr<Object> { return make_object<T>(); };
    info.copy = [](const Object* o) -> ObjectPtr<Object> { return make_object<T>(*static_cast<const T*>(o)); };
    ObjectPtr<T> instance = make_object<T>();
    if constexpr (HasOwnVisitAttrs<T>) {
      CollectVisited(&info, instance.get(), [](Object* o, AttrVisitor* v) { static_cast<T*>(o)->VisitAttrs(v); });
    } else {
      FieldCollector c(&info, instance.get());
      DescribeChain<T>(c);
    }
    if constexpr (requires { T::_type_optional_fields; }) {
      for (FieldInfo& f : info.fields) {
        if (!(f.flags & kRequired)) f.flags |= kNullable;
      }
    }
    if constexpr (!HasOwnVisitAttrs<T> && !requires { T::_type_has_hidden_members; })
      CheckFieldCoverage(info, BytesOf<typename T::ParentType>(), BytesOf<T>());
  }
  TypeInfo::Put(std::move(info));
}

/// `const RegisterNodes<VarNode, LetNode> registered;` in a .cpp puts the tables in place.
template <class... T>
struct RegisterNodes {
  RegisterNodes() { (RegisterNode<T>(), ...); }
};

/// CRTP base of references to described nodes. `Let(x, v, b)` needs no constructor: the node is an aggregate.
template <class N, class B>
class RefTo : public B {
 public:
  using ContainerType = N;
  RefTo() = default;
  explicit RefTo(ObjectPtr<Object> n) : B(std::move(n)) {}
  RefTo(N&& node) : B(ObjectPtr<Object>(make_object<N>(std::move(node)))) {}  // NOLINT
  template <class... A>
    requires(sizeof...(A) > 0 && std::is_aggregate_v<N> && requires(A&&... a) { N{{}, std::forward<A>(a)...}; } &&
             !(sizeof...(A) == 1 && (std::is_base_of_v<RefTo, std::decay_t<A>> || ...)))
  explicit RefTo(A&&... args) : B(ObjectPtr<Object>(make_object<N>(std::forward<A>(args)...))) {}
  const N* operator->() const { return static_cast<const N*>(this->data_.get()); }
  const N* get() const { return operator->(); }
  /// For in-place change: the node itself if this is its only reference, else a copy that this then refers to.
  N* CopyOnWrite() {
    if (!this->data_.unique()) this->data_ = make_object<N>(*get());
    N* n = static_cast<N*>(this->data_.get());
    // Inferred facts of the old value need not hold of the new one.
    if constexpr (requires { n->checked_type_; }) n->checked_type_ = ObjectRef();
    return n;
  }
};

/// Fields by name, for front ends; a missing one is an AttributeError-kind error with type key and name.
BATON_DLL Any GetField(const Object* obj, std::string_view name);
BATON_DLL Array<String> ListFields(const Object* obj);
/// Makes a node of a type key and alternating names and values.
BATON_DLL ObjectRef MakeNode(std::string_view key, const BatonValue* kv, int n);

}  // namespace baton::runtime

namespace baton {
using runtime::AtLeast;
using runtime::AtMost;
using runtime::F;
using runtime::kBinds;
using runtime::kIgnored;
using runtime::kNullable;
using runtime::kRequired;
using runtime::kSource;
using runtime::kTransient;
using runtime::Node;
using runtime::RefTo;
using runtime::RegisterNodes;
}  // namespace baton
